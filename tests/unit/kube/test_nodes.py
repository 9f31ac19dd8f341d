from __future__ import annotations

from typing import Any

import pytest

from ballast.kube.nodes import NodeReader, model_node
from ballast.model import DEFAULT_LEVELS, Resources, Taint
from tests.unit.kube.builders import node


def test_a_node_is_located_level_by_level_and_a_missing_label_is_off() -> None:
    facts = NodeReader().read(node("n1", labels={"topology.ballast.dev/rack": ""}))
    assert facts.location(DEFAULT_LEVELS) == ("a", None, "n1")


@pytest.mark.parametrize(
    ("changes", "ready", "schedulable", "leaving"),
    [
        pytest.param({}, True, True, False, id="healthy"),
        pytest.param({"ready": False}, False, True, False, id="not ready"),
        pytest.param({"unschedulable": True}, True, False, False, id="cordoned"),
        pytest.param({"leaving": True}, True, True, True, id="being deleted"),
        pytest.param(
            {"taints": [{"key": "ToBeDeletedByClusterAutoscaler", "value": "1", "effect": "NoSchedule"}]},
            True,
            True,
            True,
            id="scale-down",
        ),
        pytest.param(
            {"taints": [{"key": "DeletionCandidateOfClusterAutoscaler", "effect": "PreferNoSchedule"}]},
            True,
            True,
            True,
            id="candidate for scale-down",
        ),
        pytest.param(
            {"taints": [{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}]}, True, True, True, id="karpenter"
        ),
        pytest.param(
            {"taints": [{"key": "dedicated", "value": "ml", "effect": "NoSchedule"}]}, True, True, False, id="dedicated"
        ),
    ],
)
def test_what_state_a_node_is_in(changes: dict[str, Any], ready: bool, schedulable: bool, leaving: bool) -> None:
    facts = NodeReader().read(node(**changes))
    assert (facts.ready, facts.schedulable, bool(facts.leaving)) == (ready, schedulable, leaving)
    assert model_node(facts, DEFAULT_LEVELS).open is (ready and schedulable and not leaving)


def test_a_node_is_as_old_as_the_server_says() -> None:
    raw = node("n1")
    raw["metadata"]["creationTimestamp"] = "1970-01-01T01:00:00Z"
    assert NodeReader().read(raw).created_at == 3600.0
    del raw["metadata"]["creationTimestamp"]
    assert NodeReader().read(raw).created_at == 0.0


def test_taints_are_kept_for_tolerations() -> None:
    facts = NodeReader().read(node(taints=[{"key": "spot", "effect": "NoExecute"}]))
    assert facts.taints == (Taint("spot", "", "NoExecute"),)


@pytest.mark.parametrize(
    ("text", "bits"), [("10G", 10e9), ("10Gi", 10.0 * (1 << 30)), ("fast", None), ("-1", None), ("", None)]
)
def test_network_capacity_is_an_annotation(text: str, bits: float | None) -> None:
    facts = NodeReader().read(node(annotations={"ballast.dev/network-capacity": text}))
    assert facts.network_capacity_bits_per_second == bits


def test_a_machines_speed_is_an_annotation_and_one_by_default() -> None:
    assert NodeReader().read(node(annotations={"ballast.dev/speed": "1.5"})).speed == 1.5
    assert NodeReader().read(node()).speed == 1.0


def test_free_is_allocatable_less_requested() -> None:
    facts = NodeReader().read(node(allocatable={"cpu": "4", "memory": "0", "pods": "10"}))
    assert model_node(facts, DEFAULT_LEVELS, requested=Resources(1.0, 0.0, 3.0)).free == Resources(3.0, 0.0, 7.0)
