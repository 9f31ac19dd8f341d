"""The plan, the explanation and the revalidation of a move give the same answer, whatever else is under way."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import hypothesis
import pytest
from hypothesis import find, given, settings
from hypothesis import strategies as st

from ballast.model import (
    AvgShedderPolicy,
    Component,
    Executor,
    Memory,
    Move,
    MovePhase,
    MovesMode,
    MovesPolicy,
    Node,
    Phase,
    PlacementMode,
    PlacementPolicy,
    Policy,
    Reason,
    Resources,
    SheddingPolicy,
    Snapshot,
    Workload,
)
from ballast.moves.budget import ExecutorCounts
from ballast.moves.candidates import Candidates
from ballast.moves.loads import loads
from ballast.moves.rest import rest
from ballast.moves.revalidation import revalidate
from ballast.moves.rules import DRIFT_POINTS, Rules
from ballast.moves.score import measured, projected
from ballast.moves.speed import node_speeds
from ballast.planner import strategy_state
from ballast.planner.arbiter import Arbiter, ArbiterTerms
from ballast.planner.explanation import alternatives, standing
from ballast.planner.leveling import _Moment
from ballast.planner.plan import plan
from ballast.shedding.load import Suggestion
from ballast.shedding.victims_and_destination import completed
from tests.builders import NOW, a_move, a_node, a_policy, a_snapshot, a_topology, an_executor, gated
from tests.examples import examples

STREAMING = Component("ingest", workload=Workload.STREAMING)
TOPOLOGIES = (
    a_topology(STREAMING),
    a_topology(STREAMING, key="team/orders", name="orders"),
    a_topology(Component("ingest"), key="team/unknown", name="unknown"),
)
LOOSE = MovesPolicy(
    mode=MovesMode.ENFORCE,
    max_concurrent=9,
    max_concurrent_per_node=9,
    max_concurrent_per_topology=9,
    max_locality_loss=9.0,
    cooldown_seconds=0.0,
    pause_after_failures=9,
)
"""Here room, scores and spread decide."""
TIGHT = replace(LOOSE, max_concurrent=2, max_concurrent_per_node=1, max_concurrent_per_topology=1)
RESTING = replace(LOOSE, cooldown_seconds=600.0, pause_after_failures=1, max_locality_loss=0.1)
POLICY = a_policy(
    placement=PlacementPolicy(mode=PlacementMode.ENFORCE, max_executors_per_node_ratio=0.5),
    shedding=SheddingPolicy(avg_shedder=AvgShedderPolicy(low_hits=1, high_hits=1)),
    moves=LOOSE,
)
policies = st.sampled_from(
    (
        *(replace(POLICY, moves=moves) for moves in (LOOSE, TIGHT, RESTING)),
        replace(POLICY, placement=replace(POLICY.placement, mode=PlacementMode.RECOMMEND)),
    )
)


@st.composite
def pools(draw: st.DrawFn) -> Snapshot:
    """Two to five nodes with little room, executors of which some may not move, and up to four moves."""
    nodes = [_node(draw, number) for number in range(draw(st.integers(2, 5)))]
    names = [node.name for node in nodes]
    parts = [_executor(draw, number, names) for number in range(draw(st.integers(2, 6)))]
    snapshot = a_snapshot(*nodes, executors=tuple(parts), topologies=TOPOLOGIES)
    moves: list[Move] = []
    for number in range(draw(st.integers(0, 4))):
        snapshot, move = _under_way(draw, number, snapshot, names)
        moves.append(move)
    return replace(snapshot, moves=tuple(moves))


def _node(draw: st.DrawFn, number: int) -> Node:
    cpu = draw(st.sampled_from([0.7, 0.8, 0.9, 0.95] if number == 0 else [None, 0.1, 0.1, 0.2, 0.2, 0.5, 0.7]))
    return a_node(
        f"n{number}",
        zone=draw(st.sampled_from(["z1", "z2"])),
        rack=f"r{number % 2}",
        # Distinct thousandths, so that no two scores tie.
        cpu=None if cpu is None else cpu + number / 1000,
        # Room for none, one or two executors, or for many.
        requested=Resources(draw(st.sampled_from([3.0, 3.0, 3.0, 2.0, 4.0, 0.0])), 0.0, 1),
        schedulable=draw(st.integers(0, 9)) > 0,
    )


def _executor(draw: st.DrawFn, number: int, nodes: list[str]) -> Executor:
    topology = draw(st.sampled_from(TOPOLOGIES[:2] * 4 + TOPOLOGIES[2:]))
    found = an_executor(
        f"e-{number}",
        node=draw(st.sampled_from(nodes[:1] * 4 + nodes)),
        cpu=draw(st.sampled_from([0.4, 0.4, 0.4, 0.6, 0.05, None])),
        topology=topology.key,
        application=topology.name,
        graceful=draw(st.integers(0, 14)) > 0,
    )
    return replace(found, running_since=NOW - draw(st.sampled_from([3500.0] * 14 + [10.0])))


def _under_way(draw: st.DrawFn, number: int, snapshot: Snapshot, nodes: list[str]) -> tuple[Snapshot, Move]:
    """A move of another executor: leaving, arriving with or without a replacement, settling, or ended."""
    topology = draw(st.sampled_from(TOPOLOGIES[:2]))
    target = draw(st.sampled_from(nodes[1:]))
    source = draw(st.sampled_from([node for node in nodes if node != target]))
    phase = draw(
        st.sampled_from(
            [MovePhase.LEAVING, MovePhase.ARRIVING] * 2 + [MovePhase.SETTLING, MovePhase.SUCCEEDED, MovePhase.FAILED]
        )
    )
    kind = {"topology": topology.key, "application": topology.name}
    newcomer = gated(f"r-{number}", **kind)
    placed = replace(newcomer, phase=Phase.RUNNING, node=target, last_gate_since=None, running_since=NOW - 30)
    arrived = phase in (MovePhase.SETTLING, MovePhase.SUCCEEDED)
    claimed = arrived or (phase is MovePhase.ARRIVING and draw(st.booleans()))
    move = a_move(
        f"m{number}",
        **kind,
        resource_profile="0",
        executor_uid=f"uid-x-{number}",
        source=source,
        target=target,
        phase=phase,
        started_at=NOW - 200,
        ended_at=NOW - 100 if phase.ended else None,
        helped=phase is MovePhase.SUCCEEDED if phase.ended else None,
        load_cores=draw(st.sampled_from([0.0, 0.0, 0.4, 0.8])),
        left_at=None if phase is MovePhase.LEAVING else NOW - 60,
        arrived_at=NOW - 30 if arrived else None,
        replacement_uid=newcomer.uid if claimed else None,
        requests=newcomer.requests,
    )
    if phase is MovePhase.LEAVING:
        there = replace(an_executor(f"x-{number}", node=source, cpu=0.4, **kind), phase=Phase.LEAVING)
    elif claimed:
        there = placed if arrived else newcomer
    else:
        return snapshot, move
    return replace(snapshot, executors=(*snapshot.executors, there)), move


@dataclass(frozen=True)
class Answer:
    """Of each part of Ballast, why one executor may not go to one node; None: it may."""

    executor: str
    target: str
    planned: Reason | None
    explained: Reason | None
    revalidated: Reason | None
    with_drift: Reason | None
    """Of the revalidation of a move that was predicted."""


def answers(snapshot: Snapshot, policy: Policy) -> Iterator[Answer]:
    known = strategy_state.candidates(snapshot, policy, Memory(), now=NOW)
    scores = projected(snapshot, policy, known.loads, measured(snapshot, policy).by_node)
    for executor in snapshot.executors:
        if executor.phase is not Phase.RUNNING:
            continue
        explained = _explained(executor, snapshot, policy, known, scores)
        for node in snapshot.nodes:
            if node.name != executor.node:
                yield Answer(
                    executor.key,
                    node.name,
                    planned=_planned(executor, node.name, snapshot, policy, scores),
                    explained=explained[node.name],
                    revalidated=_revalidated(executor, node.name, snapshot, policy),
                    with_drift=_revalidated(executor, node.name, snapshot, policy, tolerance_points=DRIFT_POINTS),
                )


def _planned(
    executor: Executor, target: str, snapshot: Snapshot, policy: Policy, scores: dict[str, float]
) -> Reason | None:
    """What becomes of it when a strategy suggests it. It may be sent elsewhere, where this node has no room for it."""
    resting = rest(snapshot.moves, policy.moves, NOW)
    known = strategy_state.candidates(snapshot, policy, Memory(), now=NOW)
    arbiter = Arbiter(snapshot, policy, resting=resting, now=NOW)
    terms = ArbiterTerms(known, arbiter, policy.moves)
    used = loads(snapshot.executors, node_speeds(snapshot.nodes))
    at = _Moment(snapshot, policy, Memory(), scores, used, known, arbiter, terms, NOW)
    suggestion = Suggestion(executor.key, executor.node or "", target, hot_score=0.0)
    sent, refused = completed([suggestion], at.pool(from_score=0.0), terms, ruling=at.ruling)
    if refused:
        return refused[0].reason
    return None if sent[0].target == target else Reason.NO_DESTINATION


def _explained(
    executor: Executor, snapshot: Snapshot, policy: Policy, known: Candidates, scores: dict[str, float]
) -> dict[str, Reason | None]:
    resting = rest(snapshot.moves, policy.moves, NOW)
    rules = Rules(policy, snapshot.moves, resting=resting, counts=ExecutorCounts.of(snapshot.executors), now=NOW)
    everywhere = next(standing(executor, candidates=known, rules=rules, resting=resting), None)
    seen = alternatives(executor, snapshot, policy, candidates=known, rules=rules, scores=scores)
    there = {each.node: Reason(each.reason) if each.reason else None for each in seen}
    return {name: everywhere[0] if everywhere else reason for name, reason in there.items()}


def _revalidated(
    executor: Executor, target: str, snapshot: Snapshot, policy: Policy, *, tolerance_points: float = 0.0
) -> Reason | None:
    """Of a move that was made of it, by hand or by the operator, when it is about to leave."""
    move = Move(
        name="new",
        namespace=executor.namespace,
        topology=executor.topology,
        component=executor.component,
        executor_uid=executor.uid,
        executor_name=executor.name,
        source=executor.node or "",
        target=target,
        phase=MovePhase.APPROVED,
        started_at=NOW,
    )
    seen = replace(snapshot, moves=(*snapshot.moves, move))
    known = strategy_state.candidates(seen, policy, Memory(), now=NOW)
    scores = measured(seen, policy).by_node
    found = revalidate(
        seen, policy, move, candidates=known, measured=scores, now=NOW, tolerance_points=tolerance_points
    )
    if found.destination is not None:
        return Reason.NO_DESTINATION
    return found.refusal.reason if found.refusal else None


@examples(200)
@given(pools(), policies)
def test_plan_explanation_and_revalidation_allow_the_same_moves(snapshot: Snapshot, policy: Policy) -> None:
    for each in answers(snapshot, policy):
        allowed = {each.planned is None, each.explained is None, each.revalidated is None}
        assert len(allowed) == 1, each


@given(pools(), policies)
def test_drift_forgives_an_overshoot_alone(snapshot: Snapshot, policy: Policy) -> None:
    for each in answers(snapshot, policy):
        if each.with_drift is not each.revalidated:
            assert each.revalidated is Reason.OVERSHOOT, each


@examples(200)
@given(pools(), policies)
def test_what_a_pass_decides_is_cleared_by_the_revalidation_that_follows(snapshot: Snapshot, policy: Policy) -> None:
    decided, _ = plan(snapshot, policy, Memory(), NOW)
    executors = {executor.uid: executor for executor in snapshot.executors}
    for move in decided.moves[:1]:
        assert _revalidated(executors[move.uid], move.target, snapshot, policy) is None


@examples(200)
@given(pools(), policies)
def test_no_two_moves_are_sent_to_one_place(snapshot: Snapshot, policy: Policy) -> None:
    """With every replacement that is still to be bound, what is allowed to come fits on the node."""
    nodes = {node.name: node for node in snapshot.nodes}
    executors = {executor.key: executor for executor in snapshot.executors}
    coming = {
        move.target: [m for m in snapshot.moves if m.target == move.target and _to_come(m, snapshot)]
        for move in snapshot.moves
    }
    for each in answers(snapshot, policy):
        if each.planned is None or each.explained is None or each.revalidated is None:
            one = executors[each.executor].requests
            asked = nodes[each.target].requested.plus(one)
            for _ in coming.get(each.target, ()):
                asked = asked.plus(one)
            assert asked.fits_in(nodes[each.target].allocatable), each


def _to_come(move: Move, snapshot: Snapshot) -> bool:
    """Whether its replacement is on no node yet."""
    replacement = next((e for e in snapshot.executors if e.uid == move.replacement_uid), None)
    return move.phase.traveling and (replacement is None or replacement.phase is Phase.GATED)


RULES = (
    Reason.OVERSHOOT,
    Reason.MIN_GAIN,
    Reason.LOCALITY_LOSS,
    Reason.STALE_METRICS,
    Reason.NO_ROOM,
    Reason.SPREAD_LIMIT,
    Reason.NODE_UNAVAILABLE,
    Reason.UNKNOWN_WORKLOAD,
    Reason.NO_DECOMMISSIONING,
    Reason.TOO_YOUNG,
    Reason.NOT_ENFORCED,
    Reason.MAX_CONCURRENT,
    Reason.COOLDOWN,
    Reason.PAUSED,
    Reason.REVERSE,
)


@pytest.mark.soak
@pytest.mark.parametrize("reason", RULES)
def test_each_of_these_rules_decides_somewhere(reason: Reason) -> None:
    """Else what is said above would say nothing about it."""
    any_one = settings(phases=[hypothesis.Phase.generate], max_examples=2000)
    find(
        st.tuples(pools(), policies),
        lambda drawn: any(each.revalidated is reason for each in answers(*drawn)),
        settings=any_one,
    )


def test_two_nodes_at_90_and_70_are_told_the_same_everywhere() -> None:
    """A move of 15 points would end at 75 and 85."""
    nodes = (a_node("hot", cpu=0.90), a_node("warm", cpu=0.70))
    mover = an_executor("e-1", node="hot", cpu=0.6, application="clicks")
    snapshot = a_snapshot(*nodes, executors=(mover,), topologies=TOPOLOGIES)
    policy = replace(POLICY, placement=replace(POLICY.placement, max_executors_per_node_ratio=1.0))
    (found,) = answers(snapshot, policy)
    assert (found.planned, found.explained, found.revalidated, found.with_drift) == (Reason.OVERSHOOT,) * 4
