"""A pool that has something to tell: one hot node, one cold one, a topology over both zones and an open move."""

from __future__ import annotations

from dataclasses import replace

from ballast.cli.situation import Situation
from ballast.model import (
    Anchor,
    AvgShedderPolicy,
    Budget,
    Component,
    Memory,
    MovePhase,
    MovesPolicy,
    Resources,
    SheddingPolicy,
    Snapshot,
    Stream,
    Workload,
)
from ballast.planner.strategy_state import USAGE, stored
from ballast.shedding.avg_shedder_usage import UsageMemory
from ballast.shedding.streak import Streak
from tests.builders import GIB, NOW, a_move, a_node, a_policy, a_snapshot, a_topology, an_executor, gated

HOT, COLD = "hot", "cold"


def a_pool() -> Snapshot:
    nodes = (
        a_node(HOT, zone="z1", rack="r1", cpu=0.95, requested=Resources(2, 2 * GIB, 2)),
        a_node("warm", zone="z1", rack="r2", cpu=0.5, requested=Resources(1, GIB, 1)),
        a_node(COLD, zone="z1", rack="r1", cpu=0.1),
        a_node("far", zone="z2", rack="r3", cpu=0.3, requested=Resources(1, GIB, 1)),
        a_node("silent", zone="z2", rack="r3"),
        a_node("full", zone="z1", rack="r2", cpu=0.2, requested=Resources(4, 16 * GIB, 9)),
        a_node("cordoned", zone="z1", rack="r1", cpu=0.2, schedulable=False),
    )
    brokers = (Anchor(("z1", "r1", HOT), 0.5, HOT), Anchor(("z2", None, None), 0.5))
    components = (
        Component("kafka", external=True, anchors=brokers),
        Component("ingest", workload=Workload.STREAMING, expected=4),
    )
    topology = a_topology(*components, streams=(Stream("kafka", "ingest"),), driver=Anchor(("z1", "r2", "warm"), 1.0))
    executors = (
        an_executor("exec-1", node=HOT, cpu=0.9, task_seconds=2.0, task_bytes=100.0),
        an_executor("exec-2", node=HOT, cpu=0.8, task_seconds=1.0, task_bytes=100.0),
        an_executor("exec-3", node="warm", cpu=0.7, task_seconds=1.0, task_bytes=100.0),
        an_executor("exec-4", node="far", cpu=0.6, task_seconds=1.0, task_bytes=100.0),
    )
    return a_snapshot(*nodes, executors=executors, topologies=(topology,))


def a_situation(**changes: object) -> Situation:
    """The pool under a policy of quick hits, two of which were counted before; `changes` are the snapshot's."""
    policy = a_policy(
        shedding=SheddingPolicy(avg_shedder=AvgShedderPolicy(low_hits=8, high_hits=1)),
        moves=MovesPolicy(budgets=(Budget(6, per_seconds=3600.0),), saturation_score=100.0),
    )
    policy = replace(policy, placement=replace(policy.placement, max_executors_per_node_ratio=0.5))
    counted = UsageMemory(streaks=((HOT, Streak(hot=True, low=2, last_at_seconds=NOW - 1000)),))
    memory = stored(Memory(), USAGE, counted)
    return Situation(policy, memory, replace(a_pool(), **changes))  # type: ignore[arg-type]


def with_a_proposed_move() -> Situation:
    move = a_move(phase=MovePhase.PROPOSED, started_at=NOW - 90, ended_at=None, helped=None)
    return a_situation(moves=(move,))


def with_a_held_executor() -> Situation:
    pool = a_pool()
    return a_situation(executors=(*pool.executors, gated("exec-5")))
