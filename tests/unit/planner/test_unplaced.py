"""Why executors that opted in are not placed: one row each, from what a pass knows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ballast.model import (
    DEFAULT_LEVELS,
    FAULTS,
    Cause,
    ConditionReason,
    Constraints,
    Executor,
    Memory,
    MetricsHealth,
    Phase,
    PlacementMode,
    Policy,
    Reason,
    Requirement,
    Snapshot,
    by_cause,
)
from ballast.planner.plan import plan
from tests.builders import NOW, a_node, a_policy, a_snapshot, an_executor, gated

ZONE, RACK = (level.label for level in DEFAULT_LEVELS.ordered[:2])
UNREACHABLE = MetricsHealth(reason=ConditionReason.UNREACHABLE)
TASK_GROUP = "annotation yunikorn.apache.org/task-group-name: workers"
PINNED: dict[str, Any] = {"pinned": True, "placed": True}


def enforcing(**changes: Any) -> Policy:
    placement = a_policy().placement
    return a_policy(placement=replace(placement, mode=PlacementMode.ENFORCE, **changes))


def table(executor: Executor, policy: Policy | None = None, **changes: Any) -> dict[str, str]:
    """Detail by cause."""
    seen: Snapshot = a_snapshot(a_node("a"), a_node("b", zone="z2", rack="r2"), executors=(executor,), **changes)
    decided, _ = plan(seen, policy or enforcing(), Memory(), NOW)
    assert {row.executor for row in decided.unplaced} <= {executor.key}
    return {row.cause: row.detail for row in decided.unplaced}


def tied(name: str, *keys: str, **changes: Any) -> Executor:
    """On node a, where a release tied it to the values of these levels."""
    term = tuple(Requirement(key, "In", ("z1",)) for key in keys)
    return an_executor(name, node="a", **PINNED, constraints=Constraints(affinity_terms=(term,)), **changes)


WATCHED: dict[str, Any] = {"gate_missing": (), "released_as_is": {}}
"""As the operator fills it in."""
PENDING: dict[str, Any] = {"phase": Phase.PENDING, "node": None, "running_since": None}


@pytest.mark.parametrize(
    ("executor", "changes", "cause", "words"),
    [
        (an_executor("e-1", node="a", scheduler="volcano"), {}, Cause.FOREIGN_SCHEDULER, "its scheduler is volcano"),
        (gated("e-1", scheduler="yunikorn"), {}, Cause.FOREIGN_SCHEDULER, "its scheduler is yunikorn"),
        (gated("e-1", gang=TASK_GROUP), {}, Cause.GANG, f"it belongs to a gang ({TASK_GROUP})"),
        (an_executor("e-1", node="a", gang=TASK_GROUP), WATCHED, Cause.GANG, "its scheduler reserves room"),
        (
            gated("e-1"),
            {"ungated_namespaces": {"team": "webhook gatekeeper denied it"}},
            Cause.RELEASE_REFUSED,
            "webhook gatekeeper denied it",
        ),
        (
            an_executor("e-1", node="a"),
            {"ungated_namespaces": {"team": "webhook gatekeeper denied it"}},
            Cause.RELEASE_REFUSED,
            "webhook gatekeeper denied it",
        ),
        (
            gated("e-1", last_gate_since=None, gates=("kueue.x-k8s.io/admission",)),
            {},
            Cause.FOREIGN_GATE,
            "kueue.x-k8s.io/admission",
        ),
        # Kueue marks pods that another cluster runs as unschedulable here.
        (
            an_executor("e-1", **PENDING, gates=("kueue.x-k8s.io/admission",), unschedulable_since=NOW - 5),
            {},
            Cause.FOREIGN_GATE,
            "kueue.x-k8s.io/admission",
        ),
        (gated("e-1", since=NOW - 0.1), {}, Cause.WAITING, "for a moment, for others that are created with it"),
        (gated("e-1", since=NOW - 60.0), {}, Cause.OVERDUE, "its release is refused (see its Events)"),
        (gated("e-1", requests=replace(a_node("a").allocatable, cpu_cores=64.0)), {}, Cause.NO_ROOM, "PoolFull"),
        (an_executor("e-1", **PENDING, **PINNED, unschedulable_since=NOW - 5), {}, Cause.NO_ROOM, "finds no node"),
        (an_executor("e-1", node="a"), {"gate_missing": ("team/e-1",)}, Cause.GATE_MISSING, "webhook"),
        (
            an_executor("e-1", node="a"),
            {"released_as_is": {"uid-e-1": Reason.GATE_TIMEOUT}},
            Cause.RELEASED_AS_IS,
            "GateTimeout",
        ),
        (an_executor("e-1", node="a"), WATCHED, Cause.NOT_GATED, "it came before it opted in"),
        (an_executor("e-1", node="a"), {}, Cause.NOT_GATED, "why is not known from here"),
        (gated("e-1", since=NOW - 8.0), {"metrics": UNREACHABLE}, Cause.METRICS_MISSING, "by requests alone"),
        (
            tied("e-1", ZONE, soft_spread_keys=(ZONE,)),
            {},
            Cause.CONSTRAINTS_OVERRULED,
            "placement.maxExecutorsPerZonePercent",
        ),
        (
            gated("e-1", since=NOW - 8.0, soft_spread_keys=(ZONE,)),
            {},
            Cause.CONSTRAINTS_OVERRULED,
            f"a spread over {ZONE}",
        ),
    ],
)
def test_each_cause_is_one_row_with_its_words(
    executor: Executor, changes: dict[str, Any], cause: Cause, words: str
) -> None:
    found = table(executor, **changes)
    assert list(found) == [cause]
    assert words in found[cause]


@pytest.mark.parametrize(
    "executor",
    [
        an_executor("e-1", node="a", **PINNED),
        an_executor("e-1", node="a", placed=True),
        an_executor("e-1", **PENDING, nominated="a"),
        an_executor("e-1", node="a", enforced=False),
        an_executor("e-1", node="a", phase=Phase.ENDED),
        tied("e-1", ZONE, soft_spread_keys=("kubernetes.io/hostname", "example.com/row")),
        tied("e-1", ZONE, soft_spread_keys=(RACK,)),
        an_executor("e-1", node="a", placed=True, soft_spread_keys=(ZONE,)),
        gated("e-1", since=NOW - 8.0),
    ],
)
def test_an_executor_that_is_placed_or_has_not_opted_in_has_no_row(executor: Executor) -> None:
    assert table(executor) == {}


def test_a_scheduler_that_the_policy_names_is_none_of_others() -> None:
    named = enforcing(scheduler_names=("default-scheduler", "yunikorn"))
    assert table(an_executor("e-1", node="a", scheduler="yunikorn", **PINNED), named) == {}


def test_an_executor_that_found_room_in_the_zone_it_was_pinned_to_is_placed() -> None:
    released = {"uid-e-1": Reason.POOL_FULL}
    pinned = an_executor("e-1", node="a", **PINNED)
    assert table(pinned, released_as_is=released) == {}
    assert list(table(replace(pinned, **PENDING), released_as_is=released)) == [Cause.NO_ROOM]


def test_a_spread_over_what_the_pool_has_one_of_is_not_overruled() -> None:
    executor = tied("e-1", ZONE, soft_spread_keys=(ZONE,))
    alone = a_snapshot(a_node("a"), a_node("b"), executors=(executor,))
    assert plan(alone, enforcing(), Memory(), NOW)[0].unplaced == ()


def test_the_remedy_of_an_overruled_spread_is_one_that_is_not_in_place_yet() -> None:
    over_zones, over_racks = (tied("e-1", ZONE, RACK, soft_spread_keys=(key,)) for key in (ZONE, RACK))
    (words,) = table(over_zones, enforcing(max_executors_per_zone_ratio=0.6)).values()
    assert words.endswith("lower placement.maxExecutorsPerZonePercent, which is 60%, or set placement.pin: None")
    (words,) = table(over_racks).values()
    assert words.endswith("set placement.pin: Zone, which requires nothing nearer")


def test_where_placement_is_not_enforced_there_is_no_table() -> None:
    assert table(an_executor("e-1", node="a", scheduler="volcano"), a_policy()) == {}


def test_faults_come_before_what_ends_by_itself() -> None:
    waiting = [gated(f"e-{n}", last_gate_since=None, gates=("kueue.x-k8s.io/admission",)) for n in range(3)]
    seen = a_snapshot(a_node("a"), executors=(*waiting, an_executor("f-1", node="a", scheduler="volcano")))
    found = by_cause(plan(seen, enforcing(), Memory(), NOW)[0].unplaced)
    assert [(each.cause, each.executors, each.first.executor) for each in found] == [
        (Cause.FOREIGN_SCHEDULER, 1, "team/f-1"),
        (Cause.FOREIGN_GATE, 3, "team/e-0"),
    ]
    assert found[0].cause in FAULTS
    assert found[1].cause not in FAULTS
