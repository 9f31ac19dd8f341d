from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from ballast.model import (
    AvgShedderPolicy,
    Budget,
    Component,
    Constraints,
    Executor,
    ExecutorUsage,
    LoadUnit,
    Memory,
    Move,
    MovePhase,
    MovesMode,
    MovesPolicy,
    Node,
    NodeUsage,
    Packing,
    Phase,
    PlacementMode,
    PlacementPolicy,
    Plan,
    PlannedMove,
    Reason,
    Resources,
    SheddingPolicy,
    Snapshot,
    Taint,
    Toleration,
    Workload,
)
from ballast.model.shedders import OverloadSettings, ThresholdSettings, TransferSettings, UniformSettings
from ballast.planner.leveling import changing_nodes, destinations, pool_load
from ballast.planner.plan import plan
from ballast.shedding.load import NodeLoad
from tests.builders import NOW, a_move, a_node, a_policy, a_snapshot, a_topology, an_executor

RESERVED, DEDICATED = Taint("reserved", "", "NoSchedule"), Taint("dedicated", "streams", "NoExecute")

POLICY = a_policy(
    placement=PlacementPolicy(mode=PlacementMode.ENFORCE, max_executors_per_node_ratio=1.0),
    moves=MovesPolicy(mode=MovesMode.ENFORCE),
)
"""A window of 120 s, and executors count as young for 300 s."""
BATCH = a_topology(Component("ingest", workload=Workload.BATCH))


def an_executor_that_tolerates(name: str, *keys: str) -> Executor:
    tolerations = tuple(Toleration(key, "Exists") for key in keys)
    return an_executor(name, constraints=Constraints(tolerations=tolerations))


@pytest.mark.parametrize(
    ("tolerated", "expected"),
    [
        ([], {"plain"}),
        ([()], {"plain"}),
        ([(), ("dedicated",)], {"plain", "dedicated"}),
        ([("dedicated",), ("reserved",)], {"plain", "dedicated"}),
        ([("dedicated", "reserved")], {"plain", "dedicated", "both"}),
    ],
)
def test_a_tainted_node_takes_where_somebody_tolerates_all_its_taints(
    tolerated: list[tuple[str, ...]], expected: set[str]
) -> None:
    nodes = (
        a_node("plain"),
        a_node("dedicated", taints=(DEDICATED,)),
        a_node("both", taints=(RESERVED, DEDICATED)),
        a_node("cordoned", schedulable=False),
    )
    executors = tuple(an_executor_that_tolerates(f"e-{i}", *keys) for i, keys in enumerate(tolerated))
    assert destinations(a_snapshot(*nodes, executors=executors)) == expected


@pytest.mark.parametrize(
    ("executor", "nodes"),
    [
        (an_executor("e-1", node="a", running_since=NOW - 299), {"a"}),
        (an_executor("e-1", node="a", running_since=NOW - 300), set()),
        (an_executor("e-1", node="a", phase=Phase.PENDING, created_at=NOW - 899), {"a"}),
        (an_executor("e-1", node="a", phase=Phase.PENDING, created_at=NOW - 900), set()),
        (an_executor("e-1", node=None, phase=Phase.PENDING), set()),
        (an_executor("e-1", node="a", phase=Phase.LEAVING), set()),
        (an_executor("e-1", node="a", component="other", running_since=NOW), set()),
    ],
)
def test_a_node_is_changing_while_a_streaming_executor_begins_there(executor: Executor, nodes: set[str]) -> None:
    assert changing_nodes(a_snapshot(a_node("a"), executors=(executor,)), POLICY, NOW) == nodes


def test_executors_of_batch_jobs_come_and_go_all_the_time() -> None:
    young = an_executor("e-1", node="a", running_since=NOW)
    assert changing_nodes(a_snapshot(a_node("a"), executors=(young,), topologies=(BATCH,)), POLICY, NOW) == set()


@pytest.mark.parametrize(
    ("move", "nodes"),
    [
        (a_move(phase=MovePhase.LEAVING, ended_at=None), {"hot", "cold"}),
        (a_move(phase=MovePhase.SETTLING, ended_at=None), {"hot", "cold"}),
        (a_move(phase=MovePhase.SUCCEEDED, ended_at=NOW - 119), {"hot", "cold"}),
        (a_move(phase=MovePhase.SUCCEEDED, ended_at=NOW - 120), set()),
        (a_move(phase=MovePhase.PROPOSED, ended_at=None), set()),
        (a_move(phase=MovePhase.REFUSED, ended_at=NOW), set()),
    ],
)
def test_both_ends_of_a_move_are_changing_until_the_metrics_show_it(move: Move, nodes: set[str]) -> None:
    assert changing_nodes(a_snapshot(moves=(move,)), POLICY, NOW) == nodes


@pytest.mark.parametrize("seed", range(3))
def test_the_start_of_a_job_is_not_taken_for_noise(seed: int) -> None:
    """Six minutes of start, fourteen of quiet, then a lasting gap: eight hits take fifteen minutes, passes overlap."""
    chance = random.Random(seed)
    executors = tuple(
        an_executor(f"e-{number}", node=f"n{number % 6}", cpu=0.5, running_since=NOW) for number in range(12)
    )
    memory = Memory()
    for minute in range(45):
        scores = [chance.uniform(20, 100) if minute < 6 else chance.gauss(60, 1.5) for _ in range(6)]
        scores[0] += 22 if minute >= 20 else 0
        nodes = (a_node(f"n{number}", cpu=score / 100) for number, score in enumerate(scores))
        at = NOW + 60.0 * minute
        decided, memory = plan(replace(a_snapshot(*nodes, executors=executors), taken_at=at), POLICY, memory, at)
        if decided.moves:
            break
    assert [move.source for move in decided.moves] == ["n0"]
    assert minute >= 20


def shown(snapshot: Snapshot, name: str = "hot") -> NodeLoad:
    scores = {node.name: 50.0 for node in snapshot.nodes}
    load = pool_load(snapshot, scores, receivers=scores, movable=lambda _: True, now=NOW)
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
        # One user's moves by hand would make TransferShedder wait for good.
        ({"phase": MovePhase.APPROVED, "left_at": None, "ended_at": None, "by_hand": True}, None),
        ({"phase": MovePhase.LEAVING, "left_at": None, "ended_at": None, "by_hand": True}, None),
        ({"left_at": NOW - 250.0, "by_hand": True}, None),
    ],
)
def test_an_unload_is_as_old_as_the_figures_say(move: dict[str, Any], seconds: float | None) -> None:
    node = replace(a_node("hot"), usage=NodeUsage(cpu_ratio=0.9, age_seconds=10.0))
    found = shown(a_snapshot(node, moves=(a_move(**move),)))
    assert (found.age_seconds, found.since_unload_seconds) == (10.0, seconds)


def test_the_latest_of_several_unloads_counts() -> None:
    moves = (a_move("m1", left_at=NOW - 60.0), a_move("m2", left_at=NOW - 90.0))
    assert shown(a_snapshot(a_node("hot"), moves=moves)).since_unload_seconds == 60.0


CLOSED = {
    "cordoned": {"schedulable": False},
    "not ready": {"ready": False},
    "leaving": {"leaving": "ToBeDeletedByClusterAutoscaler"},
    "tainted for everybody": {"taints": (Taint("reserved", "", "NoSchedule"),)},
}
BY_TRAFFIC = AvgShedderPolicy(unit=LoadUnit.TRAFFIC, low_hits=2, high_hits=2, min_rate=0.0, min_throughput_bytes=0.0)
EVERY_STRATEGY = (
    SheddingPolicy(avg_shedder=BY_TRAFFIC),
    SheddingPolicy("ThresholdShedder", threshold_shedder=ThresholdSettings(min_bytes_per_second=0.0)),
    SheddingPolicy("OverloadShedder", overload_shedder=OverloadSettings(threshold=80.0)),
    SheddingPolicy(
        "UniformLoadShedder",
        uniform_load_shedder=UniformSettings(max_unload_ratio=0.5, min_rate_per_second=0.0, min_bytes_per_second=0.0),
    ),
    SheddingPolicy("TransferShedder", transfer_shedder=TransferSettings(hits=1, target_std_ratio=0.1)),
    SheddingPolicy(avg_shedder=AvgShedderPolicy(low_hits=2, high_hits=2)),
)
every_strategy = pytest.mark.parametrize(
    "shedding", EVERY_STRATEGY, ids=lambda each: f"{each.strategy}-{each.avg_shedder.unit}"
)


def with_traffic(nodes: tuple[Node, ...], *, on: str) -> Snapshot:
    """Four executors on node `on`, and nothing else that could move."""
    busy = [an_executor(f"e-{i}", node=on, cpu=0.4) for i in range(4)]
    traffic = {"records_per_second": 1e3, "bytes_per_second": 1e6}
    executors = tuple(replace(e, usage=replace(e.usage, **traffic)) for e in busy if e.usage)
    return a_snapshot(*nodes, executors=executors)


def several_passes(snapshot: Snapshot, shedding: SheddingPolicy, before: Memory | None = None) -> list[Plan]:
    moves = MovesPolicy(mode=MovesMode.RECOMMEND, max_locality_loss=1.0)
    policy = a_policy(window_seconds=30.0, shedding=shedding, moves=moves)
    memory, found = before or Memory(), []
    for at in range(6):
        now = NOW + 60.0 * at
        decided, memory = plan(replace(snapshot, taken_at=now), policy, memory, now)
        found.append(decided)
    return found


@every_strategy
@pytest.mark.parametrize("state", CLOSED.values(), ids=CLOSED)
def test_a_cold_node_that_takes_nothing_keeps_nobody_else_from_taking(
    shedding: SheddingPolicy, state: dict[str, Any]
) -> None:
    nodes = (a_node("closed", cpu=0.02, **state), a_node("cold", cpu=0.3), a_node("mild", cpu=0.5))
    found = several_passes(with_traffic((*nodes, a_node("hot", cpu=0.95)), on="hot"), shedding)
    assert {(move.source, move.target) for each in found for move in each.moves} == {("hot", "cold")}
    assert Reason.NODE_UNAVAILABLE not in {refusal.reason for each in found for refusal in each.refusals}


@every_strategy
def test_a_cold_node_that_idle_pods_have_filled_keeps_nobody_else_from_taking(shedding: SheddingPolicy) -> None:
    full = a_node("full", cpu=0.02, requested=Resources(4.0))
    nodes = (full, a_node("cold", cpu=0.3), a_node("mild", cpu=0.5), a_node("hot", cpu=0.95))
    found = several_passes(with_traffic(nodes, on="hot"), shedding)
    assert {(move.source, move.target) for each in found for move in each.moves} == {("hot", "cold")}


@every_strategy
@pytest.mark.parametrize("state", CLOSED.values(), ids=CLOSED)
def test_a_hot_node_that_takes_nothing_still_gives(shedding: SheddingPolicy, state: dict[str, Any]) -> None:
    nodes = (a_node("closed", cpu=0.95, **state), a_node("cold", cpu=0.3), a_node("mild", cpu=0.5))
    found = several_passes(with_traffic(nodes, on="closed"), shedding)
    assert {(move.source, move.target) for each in found for move in each.moves} == {("closed", "cold")}


def test_executors_of_a_namespace_that_takes_no_moves_leave_the_moves_to_those_of_others() -> None:
    """The best ones to move are there, and there is one move at a time."""
    theirs = [an_executor(f"t-{i}", namespace="closed", topology="closed/t", node="hot", cpu=1.0) for i in range(2)]
    ours = [an_executor(f"e-{i}", node="hot", cpu=0.2) for i in range(2)]
    topologies = (a_topology(), a_topology(key="closed/t", namespace="closed", name="t"))
    snapshot = a_snapshot(
        a_node("hot", cpu=0.95), a_node("cold", cpu=0.1), executors=(*theirs, *ours), topologies=topologies
    )
    moves = MovesPolicy(mode=MovesMode.RECOMMEND, max_locality_loss=1.0, max_concurrent=1, min_gain=1.0)
    policy = a_policy(shedding=AT_ONCE, moves=moves)
    open_to_all, _ = plan(snapshot, policy, Memory(), NOW)
    assert [move.namespace for move in open_to_all.moves] == ["closed"]
    decided, _ = plan(replace(snapshot, closed_namespaces={"closed": "exceeded quota"}), policy, Memory(), NOW)
    assert [move.namespace for move in decided.moves] == ["team"]
    told = {refusal.subject: refusal.detail for refusal in decided.refusals}
    assert told["closed/t-0"] == "moves in closed rest: exceeded quota"


def next_to(*theirs: Executor, moves: tuple[Move, ...] = ()) -> Plan:
    """A pass over a hot node that one of our executors fills, next to others; only a large node may take it."""
    ours = an_executor("e-1", node="hot", cpu=2.8, requests=Resources(2.0))
    nodes = (
        a_node("hot", cpu=1.0),
        a_node("large", cores=32.0, cpu=0.45),
        a_node("also", cores=32.0, cpu=0.5),
        a_node("mild", cores=32.0, cpu=0.75),
    )
    topologies = (a_topology(), a_topology(key="theirs/t", namespace="theirs", name="t"))
    snapshot = a_snapshot(*nodes, executors=(ours, *theirs), topologies=topologies, moves=moves)
    policy = replace(POLICY, shedding=AT_ONCE, moves=MovesPolicy(mode=MovesMode.ENFORCE, max_locality_loss=1.0))
    return plan(snapshot, policy, Memory(), NOW)[0]


def one_of_theirs(**changes: Any) -> Executor:
    changes = {"namespace": "theirs", "topology": "theirs/t", "node": "hot", "requests": Resources(0.01), **changes}
    return an_executor("t-1", **changes)


def test_an_executor_that_levels_nothing_is_not_chosen_in_place_of_one_that_does() -> None:
    """The gap would hardly narrow by it, but it fits always; one of another user ended the leveling of its node."""
    assert [move.executor for move in next_to().moves] == ["team/e-1"]
    decided = next_to(one_of_theirs(cpu=0.05))
    assert [move.executor for move in decided.moves] == ["team/e-1"]
    told = {each.subject: (each.reason, each.detail) for each in decided.refusals}
    assert told["theirs/t-1"] == (Reason.MIN_GAIN, "the gap to large would narrow by 1.4 points, minGain is 5")


def test_an_executor_whose_move_waits_is_not_chosen_in_place_of_another() -> None:
    """A user may ask for a move by hand that is never approved, of the executor that is the best one to move."""
    waits = a_move(
        namespace="theirs", topology="theirs/t", executor_uid="uid-t-1", phase=MovePhase.PROPOSED, ended_at=None
    )
    decided = next_to(one_of_theirs(cpu=1.0), moves=(replace(waits, by_hand=True, unapproved=True),))
    assert [move.executor for move in decided.moves] == ["team/e-1"]
    told = {each.subject: each.reason for each in decided.refusals}
    assert told["theirs/t-1"] is Reason.IN_FLIGHT


def test_what_has_lately_come_from_a_node_does_not_hide_the_other_destinations() -> None:
    before = a_move(source="large", target="hot", topology="theirs/t", namespace="theirs", started_at=NOW - 1200)
    decided = next_to(moves=(replace(before, ended_at=NOW - 1000),))
    assert [(move.executor, move.target) for move in decided.moves] == [("team/e-1", "also")]


@pytest.mark.parametrize("enforced", [True, False])
def test_a_hot_node_that_nothing_can_leave_does_not_keep_the_only_cold_one(enforced: bool) -> None:
    """Others than executors keep it hot, and one user's executor there levels nothing, or may not move at all."""
    crowded = [a_node(f"crowded{number}", cores=8.0, cpu=0.79) for number in range(8)]
    hot, cold = a_node("hot", cores=8.0, cpu=0.9), a_node("cold", cores=8.0, cpu=0.2)
    hotter = a_node("hotter", cores=8.0, cpu=0.97)
    ours = [an_executor(f"e-{number}", node="hot", cpu=1.6) for number in range(2)]
    theirs = one_of_theirs(node="hotter", cpu=0.05, enforced=enforced)
    topologies = (a_topology(), a_topology(key="theirs/t", namespace="theirs", name="t"))
    snapshot = a_snapshot(hot, hotter, cold, *crowded, executors=(*ours, theirs), topologies=topologies)
    moves = MovesPolicy(mode=MovesMode.ENFORCE, max_locality_loss=1.0)
    decided, _ = plan(snapshot, replace(POLICY, shedding=AT_ONCE, moves=moves), Memory(), NOW)
    assert {(move.source, move.target) for move in decided.moves} == {("hot", "cold")}


@every_strategy
@pytest.mark.parametrize("cpu", [0.0, 0.05])
def test_an_idle_executor_that_claims_all_traffic_keeps_nobody_else_from_moving(
    shedding: SheddingPolicy, cpu: float
) -> None:
    nodes = (a_node("cold", cpu=0.3), a_node("mild", cpu=0.5), a_node("hot", cpu=0.95))
    usual = with_traffic(nodes, on="hot")
    claims = ExecutorUsage(cpu_cores=cpu, records_per_second=1e12, bytes_per_second=1e15, state_bytes=0.0)
    idle = [
        replace(an_executor(f"t-{i}", namespace="theirs", topology="theirs/t", node="hot"), usage=claims)
        for i in range(20)
    ]
    topologies = (a_topology(), a_topology(key="theirs/t", namespace="theirs", name="t"))
    made = several_passes(replace(usual, executors=(*usual.executors, *idle), topologies=topologies), shedding)
    assert [[move.executor for move in each.moves] for each in made] == [
        [move.executor for move in each.moves] for each in several_passes(usual, shedding)
    ]


def test_a_namespace_that_had_its_part_of_the_moves_leaves_the_others_to_executors_of_others() -> None:
    """Its executors are the best ones to move, each of another application."""
    theirs = [
        an_executor(f"t-{i}", namespace="busy", topology=f"busy/app-{i}", node="hot", cpu=1.0, application=f"app-{i}")
        for i in range(2)
    ]
    ours = [an_executor(f"e-{i}", node="hot", cpu=0.2) for i in range(2)]
    topologies = (a_topology(), *(a_topology(key=f"busy/app-{i}", namespace="busy", name=f"app-{i}") for i in range(2)))
    moves = MovesPolicy(
        mode=MovesMode.RECOMMEND,
        max_locality_loss=1.0,
        min_gain=1.0,
        cooldown_seconds=0.0,
        budgets=(Budget(2, per_seconds=3600.0, scope="Pool"),),
    )
    earlier = a_move(namespace="busy", topology="busy/earlier", source="n8", target="n9")
    hot, cold = a_node("hot", cpu=0.95), a_node("cold", cpu=0.1)
    for ended, whose in ((), ["busy", "team"]), ((earlier,), ["team"]):
        snapshot = a_snapshot(hot, cold, executors=(*theirs, *ours), topologies=topologies, moves=ended)
        decided, _ = plan(snapshot, a_policy(shedding=AT_ONCE, moves=moves), Memory(), NOW)
        assert [move.namespace for move in decided.moves] == whose


@pytest.mark.parametrize(("packing", "acts"), [(Packing.SPREAD, True), (Packing.PACK, False)])
def test_a_small_gap_that_has_persisted_is_closed_unless_nodes_are_filled_on_purpose(
    packing: Packing, acts: bool
) -> None:
    shedding = SheddingPolicy(avg_shedder=AvgShedderPolicy(persistent_hits=3))
    moves = MovesPolicy(mode=MovesMode.RECOMMEND, max_locality_loss=1.0)
    placement = PlacementPolicy(packing=packing)
    policy = a_policy(window_seconds=30.0, shedding=shedding, placement=placement, moves=moves)
    snapshot, memory, made = with_traffic((a_node("hot", cpu=0.55), a_node("cold", cpu=0.2)), on="hot"), Memory(), []
    for at in range(4):
        now = NOW + 60.0 * at
        decided, memory = plan(replace(snapshot, taken_at=now), policy, memory, now)
        made.append(bool(decided.moves))
    assert made == [False, False, acts, acts]


def test_a_node_without_figures_for_one_pass_keeps_its_hits() -> None:
    shedding = SheddingPolicy(avg_shedder=replace(BY_TRAFFIC, low_hits=99, high_hits=99))
    policy, memory, hits = a_policy(window_seconds=30.0, shedding=shedding), Memory(), []
    for at in range(5):
        hot = a_node("hot", cpu=None if at == 3 else 0.95)
        now = NOW + 60.0 * at
        snapshot = with_traffic((hot, a_node("cold", cpu=0.3), a_node("mild", cpu=0.5)), on="hot")
        decided, memory = plan(replace(snapshot, taken_at=now), policy, memory, now)
        hits += [node.low_hits for node in decided.pool.nodes if node.name == "hot"]
    assert hits == [1, 2, 3, 3, 4]


@every_strategy
def test_a_clock_that_is_set_back_holds_nobody_up(shedding: SheddingPolicy) -> None:
    nodes = (a_node("hot", cpu=0.95), a_node("cold", cpu=0.3), a_node("mild", cpu=0.5))
    snapshot, ahead = with_traffic(nodes, on="hot"), NOW + 7200.0
    policy = a_policy(window_seconds=30.0, shedding=shedding)
    _, memory = plan(replace(snapshot, taken_at=ahead), policy, Memory(), ahead)
    assert any(each.moves for each in several_passes(snapshot, shedding, memory))


def moves_of(settings: TransferSettings, *, age: float = 0.0, left_ago: float) -> tuple[PlannedMove, ...]:
    """What TransferShedder makes of a pool from which a move took something so many seconds ago."""
    usage = {"hot": 0.95, "cold": 0.05}
    nodes = (replace(a_node(n), usage=NodeUsage(cpu_ratio=r, age_seconds=age)) for n, r in usage.items())
    busy = [an_executor(f"e-{i}", node="hot", cpu=0.4) for i in range(4)]
    executors = [replace(e, usage=replace(e.usage, bytes_per_second=1e6)) for e in busy if e.usage]
    policy = a_policy(
        shedding=SheddingPolicy("TransferShedder", transfer_shedder=replace(settings, hits=0, target_std_ratio=0.1)),
        moves=MovesPolicy(mode=MovesMode.RECOMMEND, cooldown_seconds=0.0, max_locality_loss=1.0),
    )
    before = a_move(left_at=NOW - left_ago)
    return plan(a_snapshot(*nodes, executors=tuple(executors), moves=(before,)), policy, Memory(), NOW)[0].moves


def test_transfer_waits_for_the_delay_after_an_unload() -> None:
    assert moves_of(TransferSettings(cooldown_seconds=300.0), left_ago=299.0) == ()
    assert moves_of(TransferSettings(cooldown_seconds=300.0), left_ago=300.0)


def test_transfer_goes_by_no_figures_older_than_its_max_age() -> None:
    assert moves_of(TransferSettings(ttl_seconds=30.0), age=31.0, left_ago=900.0) == ()
    assert moves_of(TransferSettings(ttl_seconds=30.0), age=30.0, left_ago=900.0)


def test_the_hottest_node_is_relieved_first_whatever_its_name() -> None:
    nodes = (a_node("a", cpu=0.8, cores=8.0), a_node("b", cpu=0.95, cores=8.0), a_node("c", cpu=0.1, cores=8.0))
    executors = [an_executor(f"e-{n}{i}", node=n, cpu=1.0, application=n) for n in "ab" for i in range(3)]
    busy = tuple(replace(e, usage=replace(e.usage, bytes_per_second=1e6)) for e in executors if e.usage)
    policy = a_policy(
        shedding=SheddingPolicy("OverloadShedder", overload_shedder=OverloadSettings(threshold=70.0)),
        moves=MovesPolicy(mode=MovesMode.RECOMMEND, max_concurrent=1, max_locality_loss=1.0),
    )
    (made,) = plan(a_snapshot(*nodes, executors=busy), policy, Memory(), NOW)[0].moves
    assert made.source == "b"


OVERLOAD = SheddingPolicy("OverloadShedder", overload_shedder=OverloadSettings(threshold=85.0))
AT_ONCE = SheddingPolicy(avg_shedder=AvgShedderPolicy(low_hits=1, high_hits=1))


def two_hot_nodes(*moves: Move, shedding: SheddingPolicy = OVERLOAD, others: tuple[Node, ...] = ()) -> Plan:
    """A pass over two hot nodes and a cold one, where what rests is what those moves say."""
    usage = {"h1": 0.99, "h2": 0.97, "cold": 0.1}
    nodes = (a_node(n, cores=8.0, cpu=ratio) for n, ratio in usage.items())
    executors = []
    for node in ("h1", "h2"):
        for name, volume in ((f"e-{node}", 9e6), (f"small-{node}", 1e6)):
            one = an_executor(name, node=node, topology=f"team/{node}", application=node)
            executors.append(replace(one, usage=ExecutorUsage(cpu_cores=2.0, bytes_per_second=volume, state_bytes=0.0)))
    topologies = tuple(a_topology(key=f"team/{n}", name=n) for n in ("h1", "h2"))
    policy = a_policy(
        shedding=shedding,
        moves=MovesPolicy(mode=MovesMode.RECOMMEND, max_concurrent=5, max_concurrent_per_node=1, max_locality_loss=1.0),
    )
    snapshot = a_snapshot(*nodes, *others, executors=tuple(executors), topologies=topologies, moves=moves)
    return plan(snapshot, policy, Memory(), NOW)[0]


def test_a_node_that_rests_takes_no_room_from_others() -> None:
    decided = two_hot_nodes(a_move("before", source="elsewhere", target="h1", topology="team/other"))
    (made,) = decided.moves
    assert (made.source, made.cold_score, made.cold_after) == ("h2", 10.0, 35.0)
    assert [(each.subject, each.reason, each.target) for each in decided.refusals] == [
        ("team/e-h1", Reason.COOLDOWN, "cold")
    ]
    assert decided.refusals[0].detail == "h1 rests 500 s more after a move"


def test_avg_shedder_keeps_no_cold_node_for_a_hot_one_that_rests() -> None:
    before = a_move("before", source="elsewhere", target="h1", topology="team/other")
    decided = two_hot_nodes(before, shedding=AT_ONCE, others=(a_node("mild", cores=8.0, cpu=0.5),))
    assert [(move.source, move.target) for move in decided.moves] == [("h2", "cold")]
    resting = {(each.subject, each.detail) for each in decided.refusals if each.reason is Reason.COOLDOWN}
    assert resting == {(f"team/{name}-h1", "h1 rests 500 s more after a move") for name in ("e", "small")}


def test_of_two_that_would_go_to_one_node_the_second_waits_and_says_for_what() -> None:
    decided = two_hot_nodes()
    assert [move.source for move in decided.moves] == ["h1"]
    assert [(each.subject, each.reason, each.detail) for each in decided.refusals] == [
        ("team/e-h2", Reason.MAX_CONCURRENT, "1 moves from or to cold are under way, moves.maxConcurrentPerNode is 1")
    ]
