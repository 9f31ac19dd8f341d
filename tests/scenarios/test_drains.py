"""Nodes that are announced to leave, with executors on them, pass by pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from typing import Any

import pytest

from ballast.model import (
    CORDON,
    Component,
    DrainPolicy,
    Executor,
    Memory,
    Move,
    MovePhase,
    MovesMode,
    MovesPolicy,
    Notice,
    PlacementMode,
    PlacementPolicy,
    Policy,
    Snapshot,
    Workload,
)
from ballast.planner.arbiter import as_started
from ballast.planner.plan import plan
from ballast.simulation.engine import simulate
from ballast.simulation.trace import Cause, Trace
from tests.builders import NOW, a_node, a_policy, a_snapshot, a_topology, an_executor
from tests.unit.simulation.small_world import EAGER, by_spec, scenario

# A zone's upgrade: its nodes leave together.

UPGRADED = {"a-0", "a-1", "a-2"}
UPGRADE: dict[str, Any] = {
    "duration": "30m",
    "nodes": [{"name": name, "count": 3, "cores": 16, "zones": [name]} for name in ("a", "b")],
    "applications": [
        {"name": "clicks", "executors": 9, "load": {"cores": 0.5}, "runsOn": dict.fromkeys(sorted(UPGRADED), 3)},
        {"name": "views", "executors": 6, "load": {"cores": 0.5}, "runsOn": dict.fromkeys(sorted(UPGRADED), 2)},
    ],
    "events": [{"at": "10m", "leave": ["a"], "notice": "16m"}],
}


def upgraded(**drain: Any) -> Trace:
    world = scenario(**UPGRADE)
    moves = {**EAGER["moves"], "drain": drain}
    return simulate(world, by_spec({**EAGER, "moves": moves, "shedding": {"strategy": "None"}}, world, name="drained"))


def lost(trace: Trace) -> int:
    """Executors that were on a node when it went."""
    return sum(placed.cause is Cause.LOST for placed in trace.placements)


def test_all_executors_leave_the_zone_within_its_notice_and_none_moves_twice() -> None:
    trace = upgraded()
    assert lost(trace) == 0
    assert len(trace.moves) == 15
    assert max(Counter(move.slot for move in trace.moves).values()) == 1
    assert {move.source for move in trace.moves} == UPGRADED
    assert not {move.target for move in trace.moves} & UPGRADED
    assert trace.executors[-1].sum() == 15


@pytest.mark.parametrize(
    "drain", [{"enabled": False}, {"taints": [{"key": "ToBeDeletedByClusterAutoscaler", "drain": False}]}]
)
def test_without_drains_all_of_them_are_lost(drain: dict[str, Any]) -> None:
    trace = upgraded(**drain)
    assert trace.moves == ()
    assert lost(trace) == 15


# A cordon that stays, and what becomes of the applications on the node.

PASS_SECONDS = 10.0
START_SECONDS = 20.0
"""From an executor's departure until its replacement runs."""
TIMEOUT_SECONDS = 120.0
"""After which an eviction that a disruption budget blocks, or a replacement that does not come, is given up."""


class CordonedNode:
    """`blocked`: namespaces whose executors may not be evicted. `replaced`: whether replacements come."""

    def __init__(
        self, snapshot: Snapshot, policy: Policy, *, blocked: Collection[str] = (), replaced: bool = True
    ) -> None:
        self._snapshot, self._policy, self._memory = snapshot, policy, Memory()
        self._blocked, self._replaced = blocked, replaced
        self.left: list[Executor] = []
        """In the order in which they left."""

    @property
    def executors(self) -> Counter[str]:
        """How many run, by namespace."""
        return Counter(each.namespace for each in self._snapshot.executors)

    def run(self, seconds: float) -> CordonedNode:
        for _ in range(int(seconds / PASS_SECONDS)):
            now = self._snapshot.taken_at + PASS_SECONDS
            moves = tuple(self._later(move, now) for move in self._snapshot.moves)
            self._snapshot = replace(self._snapshot, taken_at=now, moves=moves)
            decided, self._memory = plan(self._snapshot, self._policy, self._memory, now)
            begun = (replace(as_started(move, now), phase=MovePhase.LEAVING) for move in decided.moves)
            marked = tuple(replace(move, blocked=move.namespace in self._blocked) for move in begun)
            self._snapshot = replace(self._snapshot, moves=(*moves, *marked))
        return self

    def _later(self, move: Move, now: float) -> Move:
        if move.phase is MovePhase.LEAVING and not move.blocked:
            executor = next(each for each in self._snapshot.executors if each.uid == move.executor_uid)
            rest = tuple(each for each in self._snapshot.executors if each is not executor)
            self._snapshot = replace(self._snapshot, executors=rest)
            self.left.append(executor)
            return replace(move, phase=MovePhase.ARRIVING, left_at=now, application=executor.application)
        if move.phase is MovePhase.LEAVING and now - move.started_at >= TIMEOUT_SECONDS:
            return replace(move, phase=MovePhase.REFUSED, ended_at=now)
        if move.phase is MovePhase.ARRIVING and move.left_at is not None:
            if self._replaced and now - move.left_at >= START_SECONDS:
                gone = next(each for each in self.left if each.uid == move.executor_uid)
                arrived = replace(gone, name=f"{gone.name}-again", uid=f"{gone.uid}-again", node=move.target)
                self._snapshot = replace(self._snapshot, executors=(*self._snapshot.executors, arrived))
                return replace(move, phase=MovePhase.SUCCEEDED, ended_at=now)
            if now - move.left_at >= TIMEOUT_SECONDS:
                return replace(move, phase=MovePhase.SUCCEEDED, ended_at=now, unreplaced=True)
        return move


def cordoned(applications: dict[str, int], *, executors_each: int, **drain: Any) -> tuple[Snapshot, Policy]:
    """So many applications by namespace."""
    executors = tuple(
        an_executor(f"{app}-{i}", namespace=namespace, topology=f"{namespace}/{app}", application=app, node="old")
        for namespace, count in applications.items()
        for app in (f"{namespace}{number}" for number in range(count))
        for i in range(executors_each)
    )
    streaming = a_topology(Component("ingest", workload=Workload.STREAMING))
    keys = dict.fromkeys((each.topology, each.namespace) for each in executors)
    old = a_node("old", cores=64.0, schedulable=False, notice=Notice(CORDON, "it is cordoned"))
    snapshot = a_snapshot(
        old,
        a_node("new", cores=64.0),
        executors=executors,
        topologies=tuple(replace(streaming, key=key, namespace=namespace) for key, namespace in keys),
        taken_at=NOW,
    )
    policy = a_policy(
        placement=PlacementPolicy(mode=PlacementMode.ENFORCE, max_executors_per_node_ratio=1.0),
        moves=MovesPolicy(mode=MovesMode.ENFORCE, cooldown_seconds=600.0, drain=DrainPolicy(**drain)),
    )
    return snapshot, policy


def test_namespaces_leave_in_turn_and_one_whose_evictions_are_blocked_keeps_none_waiting() -> None:
    node = CordonedNode(
        *cordoned({"large": 12, "protected": 6, "small": 3}, executors_each=1, max_concurrent=2), blocked={"protected"}
    ).run(300.0)
    order = [each.namespace for each in node.left]
    assert Counter(order) == {"large": 12, "small": 3}
    assert order[:6].count("small") == 3
    assert node.executors == {"large": 12, "protected": 6, "small": 3}


def test_a_job_without_replacements_loses_no_more_than_its_share_and_one_with_them_is_moved() -> None:
    moved, shrinking = (
        CordonedNode(*cordoned({"team": 1}, executors_each=12), replaced=replaced).run(1800.0)
        for replaced in (True, False)
    )
    assert (len(moved.left), moved.executors["team"]) == (12, 12)
    assert (len(shrinking.left), shrinking.executors["team"]) == (3, 9)
