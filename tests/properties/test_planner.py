"""What holds for every pass, whatever the pool looks like."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import hypothesis
import pytest
from hypothesis import find, given, settings
from hypothesis import strategies as st

from ballast.api.policy_placement import PlacementStrategy
from ballast.model import (
    AvgShedderPolicy,
    ComponentLimit,
    Executor,
    LoadUnit,
    Memory,
    Move,
    MovePhase,
    MovesMode,
    MovesPolicy,
    Node,
    Phase,
    PlacementMode,
    PlacementPolicy,
    Plan,
    PlannedMove,
    Policy,
    Resources,
    SheddingPolicy,
    Snapshot,
)
from ballast.model.shedders import OverloadSettings, ThresholdSettings, TransferSettings, UniformSettings
from ballast.moves.score import points_per_core
from ballast.placement.strategies import PlacementState
from ballast.planner.arbiter import as_started
from ballast.planner.plan import plan
from ballast.planner.strategy_state import encoded
from tests.builders import NOW, a_move, a_node, a_policy, a_snapshot, a_topology, an_executor, gated
from tests.examples import examples

EAGER: Policy = a_policy(
    window_seconds=30.0,
    placement=PlacementPolicy(mode=PlacementMode.ENFORCE, max_executors_per_node_ratio=0.5),
    moves=MovesPolicy(mode=MovesMode.ENFORCE, max_concurrent=5, max_locality_loss=5.0),
    shedding=SheddingPolicy(avg_shedder=AvgShedderPolicy(low_hits=1, high_hits=1)),
)
SEVERAL = replace(EAGER.moves, max_concurrent_per_node=2, max_concurrent_per_topology=5, cooldown_seconds=0.0)
"""Limits under which moves of one topology, and of one node, may begin together."""
BEFORE = ((), (a_move("before", source="n1", target="n2", topology="team/other", component="other"),))
"""A move after which two nodes rest, where there is a cooldown."""
UNLIMITED = replace(
    SEVERAL, max_concurrent=99, max_concurrent_per_node=99, max_concurrent_per_topology=99, min_gain=0.0
)
"""What is suggested is approved."""
BY_TRAFFIC = AvgShedderPolicy(unit=LoadUnit.TRAFFIC, low_hits=1, high_hits=1, min_rate=0.0, min_throughput_bytes=0.0)
SHEDDING = (
    EAGER.shedding,
    SheddingPolicy(avg_shedder=BY_TRAFFIC),
    SheddingPolicy("ThresholdShedder", threshold_shedder=ThresholdSettings(10.0, 0.9, 0.0, lower_boundary=True)),
    SheddingPolicy("OverloadShedder", overload_shedder=OverloadSettings(threshold=60.0)),
    SheddingPolicy(
        "UniformLoadShedder",
        uniform_load_shedder=UniformSettings(max_unload_ratio=0.5, min_rate_per_second=0.0, min_bytes_per_second=0.0),
    ),
    SheddingPolicy("TransferShedder", transfer_shedder=TransferSettings(hits=0, target_std_ratio=0.05)),
)
TRAVELING = tuple(phase for phase in MovePhase if phase.traveling)
TOPOLOGIES = (a_topology(), a_topology(key="team/orders", name="orders"))


@st.composite
def pools(draw: st.DrawFn) -> Snapshot:
    """Two to eight nodes of any usage, with running and gated executors of two topologies."""
    count = draw(st.integers(2, 8))
    nodes: list[Node] = []
    executors: list[Executor] = []
    for i in range(count):
        residents = draw(st.integers(0, 3))
        # Distinct thousandths, so that no two scores tie.
        cpu = draw(st.integers(0, 110)) / 100 + i / 1000
        nodes.append(
            a_node(
                f"n{i}",
                zone=draw(st.sampled_from(["z1", "z2"])),
                rack=f"r{draw(st.integers(0, 2))}",
                cores=draw(st.sampled_from([2.0, 4.0, 8.0])),
                cpu=cpu,
                requested=Resources(float(residents), 0.0, residents),
                ready=draw(st.integers(0, 9)) > 0,
            )
        )
        executors += [_resident(draw, i, j) for j in range(residents)]
    executors += [gated(f"g-{k}", since=NOW - 20) for k in range(draw(st.integers(0, 4)))]
    return a_snapshot(*nodes, executors=tuple(executors), topologies=TOPOLOGIES)


def _resident(draw: st.DrawFn, node: int, number: int) -> Executor:
    topology = draw(st.sampled_from(TOPOLOGIES))
    executor = an_executor(
        f"e-{node}{number}",
        node=f"n{node}",
        cpu=draw(st.integers(1, 20)) / 10,
        topology=topology.key,
        application=topology.name,
    )
    # Distinct roots, so that no two rates tie, nor sums of them.
    records = 1000.0 * draw(st.integers(0, 20)) + (4.0 * node + number + 2.0) ** 0.5
    traffic = {"records_per_second": records, "bytes_per_second": 1000.0 * records}
    return replace(executor, usage=replace(executor.usage, **traffic)) if executor.usage else executor


@st.composite
def pools_with_moves(draw: st.DrawFn) -> Snapshot:
    """The same with up to three moves under way: some executors leave, of others the replacement is not there yet."""
    pool = draw(pools())
    names = [node.name for node in pool.nodes]
    running = [e for e in pool.executors if e.phase is Phase.RUNNING]
    chosen = draw(st.lists(st.sampled_from(running), max_size=3, unique_by=lambda e: e.uid)) if running else []
    moves = tuple(
        a_move(
            e.name,
            executor_uid=e.uid,
            topology=e.topology,
            application=e.application,
            source=e.node,
            target=draw(st.sampled_from(names)),
            phase=draw(st.sampled_from(TRAVELING)),
            ended_at=None,
            helped=None,
        )
        for e in chosen
    )
    return replace(pool, moves=moves)


strategies = st.sampled_from(list(map(str, PlacementStrategy)))
shedders = st.sampled_from(SHEDDING)
limits = st.sampled_from((EAGER.moves, SEVERAL))


def eager(
    strategy: str = "Proximity", shedding: SheddingPolicy = EAGER.shedding, moves: MovesPolicy = EAGER.moves
) -> Policy:
    return replace(EAGER, placement=replace(EAGER.placement, strategy=strategy), shedding=shedding, moves=moves)


def decide(snapshot: Snapshot, policy: Policy = EAGER) -> tuple[Plan, Memory]:
    return plan(snapshot, policy, Memory(), NOW)


@pytest.mark.parametrize("shedding", SHEDDING, ids=lambda each: f"{each.strategy}-{each.avg_shedder.unit}")
def test_every_strategy_moves_something_in_some_pool(shedding: SheddingPolicy) -> None:
    """Else nothing below would say anything about it."""
    policy, any_one = eager(shedding=shedding), settings(phases=[hypothesis.Phase.generate], max_examples=500)
    assert find(pools(), lambda snapshot: bool(decide(snapshot, policy)[0].moves), settings=any_one)


@pytest.mark.parametrize("shedding", SHEDDING, ids=lambda each: f"{each.strategy}-{each.avg_shedder.unit}")
def test_every_strategy_makes_two_moves_at_once_in_some_pool(shedding: SheddingPolicy) -> None:
    policy = eager(shedding=shedding, moves=SEVERAL)
    any_one = settings(phases=[hypothesis.Phase.generate], max_examples=2000)
    assert find(pools(), lambda snapshot: len(decide(snapshot, policy)[0].moves) > 1, settings=any_one)


@given(pools(), shedders, limits)
def test_a_move_has_a_destination_and_it_is_another_node(
    snapshot: Snapshot, shedding: SheddingPolicy, moves: MovesPolicy
) -> None:
    names = {node.name for node in snapshot.nodes}
    for move in decide(snapshot, eager(shedding=shedding, moves=moves))[0].moves:
        assert move.target in names
        assert move.target != move.source


@given(pools(), shedders, limits)
def test_a_victim_makes_the_cold_node_the_hotter_one_only_if_that_cools_the_hotter_by_half_of_their_gap(
    snapshot: Snapshot, shedding: SheddingPolicy, moves: MovesPolicy
) -> None:
    for move in decide(snapshot, eager(shedding=shedding, moves=moves))[0].moves:
        assert move.hot_score > move.cold_score
        stops = move.hot_after >= move.cold_after - 1e-6
        assert stops or move.hot_score - move.cold_after >= (move.hot_score - move.cold_score) / 2.0 - 1e-6
        assert move.gain > 0


@pytest.mark.parametrize("shedding", SHEDDING, ids=lambda each: f"{each.strategy}-{each.avg_shedder.unit}")
@examples(200)
@given(pools(), st.sampled_from([0.0, 30.0]), st.sampled_from([0.0, 600.0]), st.sampled_from(BEFORE))
def test_each_move_counts_on_those_before_it_and_on_nothing_that_was_refused(
    shedding: SheddingPolicy,
    snapshot: Snapshot,
    min_gain: float,
    cooldown_seconds: float,
    before: tuple[Move, ...],
) -> None:
    moves = replace(UNLIMITED, min_gain=min_gain, cooldown_seconds=cooldown_seconds)
    policy, snapshot = eager(shedding=shedding, moves=moves), replace(snapshot, moves=before)
    settled = replace(snapshot, executors=tuple(e for e in snapshot.executors if e.phase is Phase.RUNNING))
    decided, _ = decide(settled, policy)
    scores = {node.name: node.projected or 0.0 for node in decided.pool.nodes}
    points = points_per_core(settled, policy)
    for move in decided.moves:
        assert (move.hot_score, move.cold_score) == pytest.approx((scores[move.source], scores[move.target]))
        scores[move.source] -= move.load_cores * points[move.source]
        scores[move.target] += move.load_cores * points[move.target]
        assert (move.hot_after, move.cold_after) == pytest.approx((scores[move.source], scores[move.target]))


@given(pools_with_moves(), strategies, shedders, st.sampled_from((EAGER.moves, UNLIMITED)))
def test_what_is_placed_fits_next_to_what_is_on_its_way(
    snapshot: Snapshot, strategy: str, shedding: SheddingPolicy, moves: MovesPolicy
) -> None:
    decided, _ = decide(snapshot, eager(strategy, shedding, moves))
    requests = {e.uid: e.requests for e in snapshot.executors}
    for node in snapshot.nodes:
        arriving = [requests[p.uid] for p in decided.placements if p.node == node.name]
        arriving += [requests[m.uid] for m in decided.moves if m.target == node.name]
        wanted = node.requested
        under_way = [requests[m.executor_uid] for m in snapshot.moves if m.target == node.name]
        for each in (*arriving, *under_way):
            wanted = wanted.plus(each)
        if arriving:
            assert wanted.fits_in(node.allocatable)
            assert node.open


@given(pools(), strategies)
def test_every_gated_executor_is_placed_released_or_held(snapshot: Snapshot, strategy: str) -> None:
    decided, _ = decide(snapshot, eager(strategy))
    waiting = {e.uid for e in snapshot.executors if e.phase is Phase.GATED}
    assert {p.uid for p in decided.placements} | {h.uid for h in decided.holds} == waiting


@given(pools(), strategies, shedders, limits, st.randoms(use_true_random=False))
def test_the_order_of_lists_decides_nothing(
    snapshot: Snapshot,
    strategy: str,
    shedding: SheddingPolicy,
    moves: MovesPolicy,
    random: st.random.Random,  # type: ignore[name-defined]
) -> None:
    nodes, executors = list(snapshot.nodes), list(snapshot.executors)
    random.shuffle(nodes)
    random.shuffle(executors)
    shuffled = replace(snapshot, nodes=tuple(nodes), executors=tuple(executors))
    policy = eager(strategy, shedding, moves)
    one, other = decide(snapshot, policy)[0], decide(shuffled, policy)[0]
    assert set(one.moves) == set(other.moves)
    assert set(one.placements) == set(other.placements)


def _after(snapshot: Snapshot, move: PlannedMove) -> Snapshot:
    """The pool once the move is done and the metrics show it, with the load of those that were placed."""
    scores = {move.source: move.hot_after, move.target: move.cold_after}
    nodes = tuple(
        replace(n, usage=replace(n.usage, cpu_ratio=scores[n.name] / 100)) if n.usage and n.name in scores else n
        for n in snapshot.nodes
    )
    executors = tuple(
        replace(e, node=move.target) if e.uid == move.uid else e
        for e in snapshot.executors
        if e.phase is not Phase.GATED
    )
    return replace(snapshot, nodes=nodes, executors=executors)


@given(pools(), strategies)
def test_a_second_pass_over_what_was_placed_places_nothing(snapshot: Snapshot, strategy: str) -> None:
    policy = eager(strategy)
    decided, memory = decide(snapshot, policy)
    home = {p.uid: p.node for p in decided.placements}
    released = tuple(
        replace(e, phase=Phase.PENDING, node=home[e.uid], last_gate_since=None) if e.uid in home else e
        for e in snapshot.executors
    )
    again, _ = plan(replace(snapshot, executors=released), policy, memory, NOW)
    assert again.placements == ()


@given(pools(), strategies)
def test_those_that_are_not_bound_yet_fill_their_places(snapshot: Snapshot, strategy: str) -> None:
    """Of a component whose limit is one executor a node, no matter in which of two passes each was placed."""
    limited = replace(eager(strategy).placement, limits=(ComponentLimit("ingest", 1),))
    policy = replace(eager(strategy), placement=limited)
    decided, memory = decide(snapshot, policy)
    home = {p.uid: p.node for p in decided.placements}
    released = tuple(
        replace(e, phase=Phase.PENDING, last_gate_since=None) if e.uid in home else e for e in snapshot.executors
    )
    late = tuple(gated(f"late-{number}", since=NOW - 20) for number in range(3))
    again, _ = plan(replace(snapshot, executors=(*released, *late)), policy, memory, NOW)
    key = late[0].topology
    running = [e.node for e in snapshot.executors if e.topology == key and e.phase is Phase.RUNNING]
    placed = [p.node for p in (*decided.placements, *again.placements) if p.node is not None]
    assert len(set(placed)) == len(placed)
    assert not set(placed) & set(running)


@given(pools(), strategies, shedders, st.sampled_from((SEVERAL, UNLIMITED)), st.integers(0, 2))
def test_a_pass_keeps_the_limits_with_all_that_it_places_and_moves(
    snapshot: Snapshot, strategy: str, shedding: SheddingPolicy, moves: MovesPolicy, unbound: int
) -> None:
    """Those included that were released before and are not bound yet; nothing goes where a limit is reached."""
    limit = 2
    policy = eager(strategy, shedding, moves)
    policy = replace(policy, placement=replace(policy.placement, limits=(ComponentLimit("ingest", limit),)))
    before = tuple(replace(gated(f"b-{n}"), phase=Phase.PENDING, last_gate_since=None) for n in range(unbound))
    sent = tuple((executor.uid, "n0") for executor in before)
    memory = Memory(placement_state=((strategy, encoded(PlacementState(sent=sent))),))
    decided, _ = plan(replace(snapshot, executors=(*snapshot.executors, *before)), policy, memory, NOW)
    topology = {e.uid: e.topology for e in snapshot.executors}
    there = Counter((e.topology, e.node) for e in snapshot.executors if e.node is not None)
    there.update((executor.topology, "n0") for executor in before)
    coming = Counter((topology[p.uid], p.node) for p in decided.placements if p.node is not None)
    coming.update((topology[m.uid], m.target) for m in decided.moves)
    assert all(there[place] + count <= limit for place, count in coming.items())


def _hits(decided: Plan) -> dict[str, tuple[int, int]]:
    return {node.name: (node.low_hits, node.high_hits) for node in decided.pool.nodes}


@given(pools(), shedders)
def test_a_second_pass_over_what_is_about_to_move_moves_nothing(snapshot: Snapshot, shedding: SheddingPolicy) -> None:
    """By the limits that a policy has unless it says otherwise: of a topology, one move at a time."""
    policy, key = eager(shedding=shedding), TOPOLOGIES[0].key
    running = tuple(replace(e, topology=key) for e in snapshot.executors if e.phase is Phase.RUNNING)
    settled = replace(snapshot, executors=running)
    decided, memory = decide(settled, policy)
    moves = tuple(as_started(move, NOW) for move in decided.moves)
    again, _ = plan(replace(settled, moves=moves), policy, memory, NOW)
    assert again.moves == ()
    assert moves or _hits(again) == _hits(decided)
    assert all(low <= 1 and high <= 1 for low, high in _hits(again).values()), "a window counts once"


@given(pools(), shedders)
def test_the_reverse_of_a_move_is_not_suggested(snapshot: Snapshot, shedding: SheddingPolicy) -> None:
    policy = eager(shedding=shedding)
    decided, _ = decide(snapshot, policy)
    for move in decided.moves[:1]:
        again, _ = decide(_after(snapshot, move), policy)
        assert (move.target, move.source) not in {(m.source, m.target) for m in again.moves}


@given(pools(), strategies, shedders)
def test_the_same_facts_give_the_same_plan(snapshot: Snapshot, strategy: str, shedding: SheddingPolicy) -> None:
    policy = eager(strategy, shedding)
    assert decide(snapshot, policy) == decide(snapshot, policy)


@examples(60)
@given(pools(), shedders, limits, st.permutations(range(8)))
def test_new_names_for_nodes_rename_the_moves(
    snapshot: Snapshot, shedding: SheddingPolicy, moves: MovesPolicy, order: list[int]
) -> None:
    names = {f"n{i}": f"n{order[i]}" for i in range(8)}
    nodes = tuple(
        replace(n, name=names[n.name], location=(*n.location[:2], names[n.name]), labels={}) for n in snapshot.nodes
    )
    executors = tuple(replace(e, node=names[e.node]) if e.node else e for e in snapshot.executors)
    plain = replace(snapshot, nodes=tuple(replace(n, labels={}) for n in snapshot.nodes))
    renamed = replace(snapshot, nodes=nodes, executors=executors)
    policy = eager(shedding=shedding, moves=moves)
    one = {(m.uid, names[m.source], names[m.target]) for m in decide(plain, policy)[0].moves}
    assert one == {(m.uid, m.source, m.target) for m in decide(renamed, policy)[0].moves}
