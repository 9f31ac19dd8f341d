"""What the strategies that look at traffic are shown."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ballast.model import Memory, MovePhase, MovesMode, MovesPolicy, NodeUsage, PlannedMove, SheddingPolicy, Snapshot
from ballast.planner.by_traffic import pool_load
from ballast.planner.plan import plan
from ballast.shedding.load import NodeLoad
from tests.builders import NOW, a_move, a_node, a_policy, a_snapshot, an_executor


def shown(snapshot: Snapshot, name: str = "hot") -> NodeLoad:
    scores = {node.name: 50.0 for node in snapshot.nodes}
    load = pool_load(snapshot, scores, movable=lambda _: True, now=NOW)
    return next(node for node in load.nodes if node.name == name)


@pytest.mark.parametrize(
    ("move", "seconds"),
    [
        ({"left_at": NOW - 250.0}, 240.0),
        ({"left_at": None, "arrived_at": NOW - 200.0}, 190.0),
        ({"phase": MovePhase.LEAVING, "left_at": None, "ended_at": None}, -10.0),
        ({"phase": MovePhase.FAILED, "left_at": None}, None),
        ({"phase": MovePhase.REFUSED, "left_at": None}, None),
        ({"phase": MovePhase.PROPOSED, "left_at": None, "ended_at": None}, None),
        ({"left_at": NOW - 250.0, "source": "other", "target": "hot"}, None),
    ],
)
def test_an_unload_is_as_old_as_the_figures_say(move: dict[str, Any], seconds: float | None) -> None:
    node = replace(a_node("hot"), usage=NodeUsage(cpu_ratio=0.9, age_seconds=10.0))
    found = shown(a_snapshot(node, moves=(a_move(**move),)))
    assert (found.age_seconds, found.since_unload_seconds) == (10.0, seconds)


def test_the_latest_of_several_unloads_counts() -> None:
    moves = (a_move("m1", left_at=NOW - 60.0), a_move("m2", left_at=NOW - 90.0))
    assert shown(a_snapshot(a_node("hot"), moves=moves)).since_unload_seconds == 60.0


def moves_of(settings: tuple[tuple[str, float], ...], *, age: float = 0.0, left_ago: float) -> tuple[PlannedMove, ...]:
    """What TransferShedder makes of a pool from which a move took something so many seconds ago."""
    usage = {"hot": 0.95, "cold": 0.05}
    nodes = (replace(a_node(n), usage=NodeUsage(cpu_ratio=r, age_seconds=age)) for n, r in usage.items())
    busy = [an_executor(f"e-{i}", node="hot", cpu=0.4) for i in range(4)]
    executors = [replace(e, usage=replace(e.usage, bytes_per_second=1e6)) for e in busy if e.usage]
    policy = a_policy(
        shedding=SheddingPolicy("TransferShedder", settings=(("hits", 0.0), ("target_std_dev", 10.0), *settings)),
        moves=MovesPolicy(mode=MovesMode.RECOMMEND, cooldown_seconds=0.0, max_locality_loss=1.0),
    )
    before = a_move(left_at=NOW - left_ago)
    return plan(a_snapshot(*nodes, executors=tuple(executors), moves=(before,)), policy, Memory(), NOW)[0].moves


def test_transfer_waits_for_the_delay_after_an_unload() -> None:
    assert moves_of((("delay", 300.0),), left_ago=299.0) == ()
    assert moves_of((("delay", 300.0),), left_ago=300.0)


def test_transfer_goes_by_no_figures_older_than_its_max_age() -> None:
    assert moves_of((("max_age", 30.0),), age=31.0, left_ago=900.0) == ()
    assert moves_of((("max_age", 30.0),), age=30.0, left_ago=900.0)


def test_the_hottest_node_is_relieved_first_whatever_its_name() -> None:
    nodes = (a_node("a", cpu=0.8, cores=8.0), a_node("b", cpu=0.95, cores=8.0), a_node("c", cpu=0.1, cores=8.0))
    executors = [an_executor(f"e-{n}{i}", node=n, cpu=1.0, application=n) for n in "ab" for i in range(3)]
    busy = tuple(replace(e, usage=replace(e.usage, bytes_per_second=1e6)) for e in executors if e.usage)
    policy = a_policy(
        shedding=SheddingPolicy("OverloadShedder", settings=(("threshold", 70.0),)),
        moves=MovesPolicy(mode=MovesMode.RECOMMEND, max_concurrent=1, max_locality_loss=1.0),
    )
    (made,) = plan(a_snapshot(*nodes, executors=busy), policy, Memory(), NOW)[0].moves
    assert made.source == "b"
