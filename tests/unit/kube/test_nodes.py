from __future__ import annotations

from collections.abc import Iterable
from math import inf
from typing import Any

import pytest

from ballast.kube.nodes import NodeReader, model_node
from ballast.model import CORDON, DEFAULT_LEVELS, DELETED, LEAVING_TAINTS, LeavingTaint, Notice, Resources, Taint
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


GCE = "cloud.google.com/impending-node-termination"


def noticed(*taints: dict[str, Any], table: Iterable[LeavingTaint] = LEAVING_TAINTS, **changes: Any) -> Notice:
    found = model_node(NodeReader().read(node(taints=list(taints), **changes)), DEFAULT_LEVELS, leaving=table).notice
    assert found is not None
    return found


def test_a_deadline_runs_down_from_when_its_taint_was_added_and_then_is_over() -> None:
    seen = noticed({"key": GCE, "effect": "NoExecute", "timeAdded": "1970-01-01T01:00:00Z"})
    assert (seen.taint, seen.since, seen.seconds) == (GCE, 3600.0, 30.0)
    assert [seen.left_seconds(now) for now in (3500.0, 3620.0, 3630.0)] == [30.0, 10.0, inf]


@pytest.mark.parametrize(
    ("changes", "seconds"),
    [
        pytest.param({"unschedulable": True}, None, id="a cordon tells no time"),
        pytest.param({"leaving": True}, None, id="nor does a deletion"),
        pytest.param({"taints": [{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}]}, None, id="nor Karpenter"),
        pytest.param({"taints": [{"key": "medik8s.io/drain", "effect": "NoSchedule"}]}, None, id="nor maintenance"),
        pytest.param({"taints": [{"key": GCE, "effect": "NoSchedule"}]}, 30.0, id="a machine that is reclaimed does"),
    ],
)
def test_a_notice_is_a_deadline_or_a_guess(changes: dict[str, Any], seconds: float | None) -> None:
    found = noticed(*changes.pop("taints", []), **changes)
    assert (found.seconds, found.drains) == (seconds, True)
    assert found.left_seconds(1e9) == (inf if seconds is None else seconds)


def test_a_deletion_has_a_time_for_policies_that_give_it_a_notice() -> None:
    table = with_rows(LEAVING_TAINTS, [LeavingTaint(DELETED, "it is being deleted", 90.0)])
    raw = node(leaving=True)
    raw["metadata"]["deletionTimestamp"] = "1970-01-01T01:00:00Z"
    found = model_node(NodeReader().read(raw), DEFAULT_LEVELS, leaving=table).notice
    assert found is not None
    assert (found.taint, found.since, found.left_seconds(3660.0)) == (DELETED, 3600.0, 30.0)


def test_what_a_policy_says_of_karpenters_taint_holds_once_karpenter_deletes_the_node() -> None:
    karpenter = {"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}
    assert noticed(karpenter, leaving=True).drains
    stays = with_rows(
        LEAVING_TAINTS, [LeavingTaint("karpenter.sh/disrupted", "Karpenter is replacing it", drains=False)]
    )
    assert not noticed(karpenter, leaving=True, table=stays).drains
    assert noticed(leaving=True, table=stays).drains


def test_a_candidate_for_scale_down_gets_no_executors_and_keeps_those_that_it_has() -> None:
    candidate = {"key": "DeletionCandidateOfClusterAutoscaler", "effect": "PreferNoSchedule"}
    seen = model_node(NodeReader().read(node(taints=[candidate])), DEFAULT_LEVELS)
    assert (seen.open, seen.notice is not None and seen.notice.drains) == (False, False)
    assert noticed(candidate, unschedulable=True).drains, "the cordon empties it"


def test_the_cluster_autoscaler_writes_the_time_into_the_taint() -> None:
    taint = {"key": "ToBeDeletedByClusterAutoscaler", "value": "1786925486", "effect": "NoSchedule"}
    seen = model_node(NodeReader().read(node(taints=[taint])), DEFAULT_LEVELS).notice
    assert seen is not None
    assert seen.since == 1786925486.0


def test_of_several_notices_the_shortest_that_drains_counts() -> None:
    taints = [
        {"key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule"},
        {"key": "DeletionCandidateOfClusterAutoscaler", "effect": "PreferNoSchedule"},
        {"key": GCE, "effect": "NoSchedule"},
    ]
    assert noticed(*taints, unschedulable=True).taint == GCE


@pytest.mark.parametrize("key", ["node.kubernetes.io/out-of-service", "node.cloudprovider.kubernetes.io/shutdown"])
def test_nothing_can_leave_a_dead_node_whatever_else_announces_that_it_goes(key: str) -> None:
    dead, spot = {"key": key, "effect": "NoExecute"}, {"key": GCE, "effect": "NoSchedule"}
    assert not noticed(dead, spot, unschedulable=True, leaving=True).drains


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
