from __future__ import annotations

from typing import Any

import pytest

from ballast.kube.nodes import NodeReader, model_node
from ballast.model import CORDON, DEFAULT_LEVELS, LEAVING_TAINTS, LeavingTaint, Resources, Taint
from ballast.model.leaving import with_rows
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
    seen = model_node(facts, DEFAULT_LEVELS)
    assert (facts.ready, facts.schedulable, bool(seen.leaving)) == (ready, schedulable, leaving)
    assert seen.open is (ready and schedulable and not leaving)
    assert (seen.notice is not None) is (leaving or not schedulable)


def test_a_notice_names_its_taint_and_begins_when_the_taint_was_added() -> None:
    spot = {"key": "aws-node-termination-handler/spot-itn", "effect": "NoSchedule", "timeAdded": "1970-01-01T01:00:00Z"}
    seen = model_node(NodeReader().read(node(taints=[spot])), DEFAULT_LEVELS).notice
    assert seen is not None
    assert (seen.taint, seen.since, seen.seconds) == (spot["key"], 3600.0, 120.0)
    assert [seen.left_seconds(now) for now in (3500.0, 3630.0, 9999.0)] == [120.0, 90.0, 0.0]


def test_the_cluster_autoscaler_writes_the_time_into_the_taint() -> None:
    taint = {"key": "ToBeDeletedByClusterAutoscaler", "value": "1786925486", "effect": "NoSchedule"}
    seen = model_node(NodeReader().read(node(taints=[taint])), DEFAULT_LEVELS).notice
    assert seen is not None
    assert seen.since == 1786925486.0


def test_of_several_notices_the_shortest_that_drains_counts() -> None:
    taints = [
        {"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"},
        {"key": "DeletionCandidateOfClusterAutoscaler", "effect": "PreferNoSchedule"},
        {"key": "cloud.google.com/impending-node-termination", "effect": "NoSchedule"},
    ]
    facts = NodeReader().read(node(taints=taints, unschedulable=True))
    seen = model_node(facts, DEFAULT_LEVELS).notice
    assert seen is not None
    assert seen.taint == "cloud.google.com/impending-node-termination"
    alone = model_node(NodeReader().read(node(taints=taints[:1])), DEFAULT_LEVELS).notice
    assert alone is not None
    assert not alone.drains


def test_a_policy_adds_taints_and_changes_known_ones() -> None:
    own = LeavingTaint("example.com/retired", "it has the taint example.com/retired", 60.0)
    table = with_rows(LEAVING_TAINTS, [own, LeavingTaint(CORDON, "it is cordoned", 10.0, drains=False)])
    retired = {"key": "example.com/retired", "effect": "PreferNoSchedule"}
    seen = model_node(NodeReader().read(node(taints=[retired])), DEFAULT_LEVELS, leaving=table)
    assert (seen.leaving, seen.notice and seen.notice.drains) == (own.why, True)
    cordoned = model_node(NodeReader().read(node(unschedulable=True)), DEFAULT_LEVELS, leaving=table)
    assert (cordoned.leaving, cordoned.notice and cordoned.notice.drains, cordoned.open) == ("", False, False)
    assert len({row.key for row in table}) == len(table)
    assert all(row.source for row in LEAVING_TAINTS)


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
