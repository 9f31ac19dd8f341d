from dataclasses import replace
from typing import Any

import pytest

from ballast.api.policy_placement import PlacementStrategy
from ballast.model import (
    Anchor,
    Attempts,
    AvgShedderPolicy,
    Component,
    ComponentLimit,
    ConditionReason,
    Constraints,
    Demand,
    LoadUnit,
    Memory,
    MetricsHealth,
    MovePhase,
    MovesMode,
    MovesPolicy,
    Phase,
    Pin,
    Placement,
    PlacementMode,
    PlacementPolicy,
    Plan,
    Policy,
    Reason,
    Requirement,
    Resources,
    Separation,
    SheddingPolicy,
    Snapshot,
    Weights,
)
from ballast.model.shedders import ThresholdSettings, TransferSettings, UniformSettings
from ballast.moves.loads import loads
from ballast.planner.plan import plan, remembered, reservations, with_placed
from tests.builders import GIB, NOW, a_move, a_node, a_policy, a_snapshot, a_topology, an_executor, gated

POLICY: Policy = a_policy(
    interval_seconds=60.0,
    window_seconds=30.0,
    placement=PlacementPolicy(mode=PlacementMode.ENFORCE, max_executors_per_node_ratio=0.5),
    moves=MovesPolicy(mode=MovesMode.ENFORCE, saturation_score=100.0),
    shedding=SheddingPolicy(avg_shedder=AvgShedderPolicy(low_hits=3, high_hits=9)),
)


def hot_pool(**changes: object) -> Snapshot:
    """Three nodes, the hot one with two executors that use half a core each and are slow."""
    nodes = (
        a_node("cold", cores=2.0, cpu=0.10),
        a_node("hot", cores=2.0, cpu=0.95),
        a_node("mild", cores=2.0, cpu=0.40),
    )
    executors = (
        an_executor("e-1", node="hot", cpu=0.4, task_seconds=3.0, task_bytes=1.0),
        an_executor("e-2", node="hot", cpu=0.4, task_seconds=3.0, task_bytes=1.0),
        an_executor("e-3", node="mild", cpu=0.4, task_seconds=1.0, task_bytes=1.0),
        an_executor("e-4", node="mild", cpu=0.4, task_seconds=1.0, task_bytes=1.0),
        an_executor("e-5", node="cold", cpu=0.0, task_seconds=1.0, task_bytes=1.0),
    )
    return a_snapshot(*nodes, **{"executors": executors, **changes})


def passes(
    snapshot: Snapshot, count: int, policy: Policy = POLICY, memory: Memory | None = None
) -> tuple[Plan, Memory]:
    """So many passes a minute apart over the same facts."""
    found, kept = plan(snapshot, policy, memory or Memory(), NOW)
    for i in range(1, count):
        at = NOW + 60.0 * i
        found, kept = plan(replace(snapshot, taken_at=at), policy, kept, at)
    return found, kept


def low_hits(found: Plan, name: str) -> int:
    return next(node.low_hits for node in found.pool.nodes if node.name == name)


def test_a_gap_moves_nothing_before_its_hits_are_counted() -> None:
    found, _ = passes(hot_pool(), 2)
    assert not found.moves
    assert low_hits(found, "hot") == 2
    assert Reason.WAITING_FOR_HITS in {refusal.reason for refusal in found.refusals}


def test_the_slow_executor_of_the_hot_node_goes_to_the_cold_one() -> None:
    found, _ = passes(hot_pool(), 3)
    assert [(move.source, move.target) for move in found.moves] == [("hot", "cold")]
    move = found.moves[0]
    assert move.strategy == POLICY.shedding.strategy
    assert move.uid in {"uid-e-1", "uid-e-2"}
    assert move.hot_after >= move.cold_after
    assert move.gain > 0


def test_a_move_that_is_approved_alone_promises_no_more_than_it_brings() -> None:
    """Two are suggested together; the second has to wait for the first."""
    nodes = (a_node("hot", cpu=0.95), a_node("cold", cpu=0.20))
    snapshot = a_snapshot(*nodes, executors=tuple(an_executor(f"e-{i}", node="hot", cpu=0.5) for i in range(4)))
    moves = MovesPolicy(mode=MovesMode.ENFORCE, max_concurrent_per_node=2, max_locality_loss=1.0)
    placement = replace(POLICY.placement, max_executors_per_node_ratio=1.0)
    found, _ = passes(snapshot, 3, replace(POLICY, moves=moves, placement=placement))
    (move,) = found.moves
    assert (move.hot_score, move.cold_score, move.hot_after, move.cold_after, move.gain) == (95, 20, 82.5, 32.5, 25)
    assert {refusal.reason for refusal in found.refusals} >= {Reason.MAX_CONCURRENT}


def test_a_plan_tells_how_far_apart_each_topology_is_and_which_figures_it_did_not_use() -> None:
    weighted = replace(POLICY, weights=replace(POLICY.weights, memory=1.0))
    found, _ = passes(hot_pool(), 1, weighted)
    assert [view.topology for view in found.locality] == ["team/clicks"]
    assert found.pool.dropped == ("memory",)


def test_without_metrics_nothing_moves_and_hits_neither_grow_nor_vanish() -> None:
    before, memory = passes(hot_pool(), 2)
    blind = hot_pool(metrics=MetricsHealth(available=False, reason=ConditionReason.UNREACHABLE, message="no answer"))
    found, after = plan(replace(blind, taken_at=NOW + 300), POLICY, memory, NOW + 300)
    assert not found.moves
    assert after.shedding == memory.shedding
    assert low_hits(found, "hot") == low_hits(before, "hot") == 2
    assert [refusal.reason for refusal in found.refusals] == [Reason.NO_METRICS]


def test_a_pass_a_moment_later_counts_no_second_hit() -> None:
    snapshot = hot_pool()
    _, memory = passes(snapshot, 1)
    found, _ = plan(replace(snapshot, taken_at=NOW + 1), POLICY, memory, NOW + 1)
    assert low_hits(found, "hot") == 1


def test_where_cpu_has_no_weight_nothing_moves_and_the_reason_names_the_field() -> None:
    full = tuple(
        replace(n, usage=replace(n.usage, memory_ratio=n.usage.cpu_ratio)) for n in hot_pool().nodes if n.usage
    )
    found, _ = passes(hot_pool(nodes=full), 3, replace(POLICY, weights=Weights(cpu=0.0, memory=1.0)))
    assert (found.moves, {each.reason for each in found.refusals}) == ((), {Reason.UNKNOWN_LOAD})
    assert "metrics.weights.cpu above 0" in found.refusals[0].detail


def test_equally_slow_executors_have_nothing_to_gain() -> None:
    snapshot = hot_pool()
    alike = tuple(replace(e, usage=replace(e.usage, task_seconds=1.0)) if e.usage else e for e in snapshot.executors)
    found, _ = passes(replace(snapshot, executors=alike), 3)
    assert not found.moves
    assert Reason.NOTHING_TO_GAIN in {refusal.reason for refusal in found.refusals}


def test_a_node_where_the_application_is_as_slow_is_no_destination() -> None:
    snapshot = hot_pool()
    assert {move.target for move in passes(snapshot, 3)[0].moves} == {"cold"}
    slow = tuple(
        replace(e, usage=replace(e.usage, task_seconds=3.0)) if e.usage and e.node == "cold" else e
        for e in snapshot.executors
    )
    found, _ = passes(replace(snapshot, executors=slow), 3)
    assert "cold" not in {move.target for move in found.moves}
    assert Reason.NOTHING_TO_GAIN in {each.reason for each in found.refusals if each.target == "cold"}


def test_switched_off_moves_are_not_even_suggested() -> None:
    found, memory = passes(hot_pool(), 4, replace(POLICY, moves=MovesPolicy(mode=MovesMode.DISABLED)))
    assert not found.moves
    assert not memory.shedding
    assert low_hits(found, "hot") == 0


def test_a_full_cold_node_is_passed_over_for_the_next_one() -> None:
    snapshot = hot_pool()
    full = tuple(replace(n, requested=n.allocatable) if n.name == "cold" else n for n in snapshot.nodes)
    found, _ = passes(replace(snapshot, nodes=full), 3)
    assert [move.target for move in found.moves] in ([], ["mild"])
    assert "cold" not in {move.target for move in found.moves}


def test_a_complete_set_is_placed_with_its_zone_required() -> None:
    nodes = (a_node("a"), a_node("b"), a_node("c", zone="z2", rack="r2"))
    waiting = tuple(gated(f"e-{i}", since=NOW - 3) for i in range(3))
    together = replace(POLICY, placement=replace(POLICY.placement, max_executors_per_node_ratio=1.0))
    found, _ = plan(a_snapshot(*nodes, executors=waiting), together, Memory(), NOW)
    assert [placement.pin for placement in found.placements] == [Pin.ZONE] * 3
    assert len({placement.location[0] for placement in found.placements}) == 1


def test_an_executor_goes_to_the_zone_of_its_driver_though_nodes_elsewhere_are_somewhat_cooler() -> None:
    topology = a_topology(Component("job", expected=1), driver=Anchor(("b", "s", "elsewhere"), 1.0))
    cooler = [a_node(f"a{number}", zone="a", rack=f"a{number}", cpu=0.05) for number in range(2)]
    warmer = [a_node(f"b{number}", zone="b", rack=f"b{number // 2}", cpu=0.3) for number in range(4)]
    executor = gated("exec-1", component="job")
    enforced = a_policy(placement=PlacementPolicy(mode=PlacementMode.ENFORCE))
    decided, _ = plan(
        a_snapshot(*cooler, *warmer, executors=(executor,), topologies=(topology,)), enforced, Memory(), NOW
    )
    assert [placement.location[0] for placement in decided.placements] == ["b"]


def test_a_cold_node_that_takes_nothing_makes_no_other_one_hot() -> None:
    """Were every node hot, the one to avoid would come into question as well, and be the cooler one."""
    nodes = (a_node("closed", cpu=0.02, schedulable=False), a_node("avoided", cpu=0.71), a_node("plain", cpu=0.75))
    policy = replace(POLICY, placement=replace(POLICY.placement, unfavored_nodes=("avoided",)))
    found, _ = plan(a_snapshot(*nodes, executors=(gated("e-1", since=NOW - 3),)), policy, Memory(), NOW)
    assert [placement.node for placement in found.placements] == ["plain"]


def test_who_could_not_be_deleted_at_its_place_is_not_tied_to_it() -> None:
    waiting = (gated("e-1", since=NOW - 3), gated("e-2", since=NOW - 3, labeled=False))
    found, _ = plan(a_snapshot(a_node("a"), a_node("b"), executors=waiting), POLICY, Memory(), NOW)
    assert {p.executor: (p.pin, p.node is not None) for p in found.placements} == {
        "team/e-1": (Pin.ZONE, True),
        "team/e-2": (Pin.NONE, True),
    }


def test_an_executor_that_requires_a_spread_over_other_pods_is_not_tied_to_one_zone() -> None:
    """The zone left it no node, or defeated the spread: it was deleted three times in a minute before it ran."""
    waiting = (gated("e-1", since=NOW - 3, by_other_pods=True),)
    found, _ = plan(a_snapshot(a_node("a"), a_node("b"), executors=waiting), POLICY, Memory(), NOW)
    (placement,) = found.placements
    assert (placement.pin, placement.node is not None) == (Pin.NONE, True)
    assert "requires affinity to other pods" in placement.detail


def test_an_executor_whose_volume_is_still_to_be_made_only_prefers_its_zone() -> None:
    """Its StorageClass may make volumes in another zone alone: pinned, it was deleted and made again."""
    waiting = (gated("e-1", since=NOW - 3, late_claims=True),)
    found, _ = plan(a_snapshot(a_node("a"), a_node("b"), executors=waiting), POLICY, Memory(), NOW)
    (placement,) = found.placements
    assert (placement.pin, placement.node is not None) == (Pin.NONE, True)
    assert "a claim that has no volume yet" in placement.detail


def test_a_second_pass_over_placed_executors_does_nothing() -> None:
    nodes = (a_node("a"), a_node("b"))
    running = tuple(an_executor(f"e-{i}", node="a") for i in range(3))
    found, memory = plan(a_snapshot(*nodes, executors=running), POLICY, Memory(), NOW)
    again, after = plan(a_snapshot(*nodes, executors=running), POLICY, memory, NOW)
    assert (found.placements, found.moves) == ((), ())
    assert (again, after) == (found, memory)


PLACEMENT_STRATEGIES = tuple(map(str, PlacementStrategy))


def placing_by(strategy: str) -> Policy:
    return replace(POLICY, placement=replace(POLICY.placement, strategy=strategy, max_executors_per_node_ratio=1.0))


@pytest.mark.parametrize("strategy", PLACEMENT_STRATEGIES)
def test_every_placement_strategy_places_a_set_and_then_rests(strategy: str) -> None:
    nodes = tuple(a_node(name, cpu=0.2, cores=8.0) for name in ("a", "b", "c"))
    waiting = tuple(gated(f"e-{i}", since=NOW - 3) for i in range(6))
    found, memory = plan(a_snapshot(*nodes, executors=waiting), placing_by(strategy), Memory(), NOW)
    home = {p.uid: p.node for p in found.placements}
    assert set(home) == {e.uid for e in waiting}
    assert None not in home.values()
    running = tuple(an_executor(e.name, node=home[e.uid], running_since=NOW) for e in waiting)
    again, _ = plan(a_snapshot(*nodes, executors=running), placing_by(strategy), memory, NOW + 1)
    assert (again.placements, again.moves) == ((), ())


def test_round_robin_goes_on_in_the_next_pass() -> None:
    nodes = tuple(a_node(name) for name in ("a", "b", "c"))
    memory, homes = Memory(), []
    for i in range(4):
        snapshot = a_snapshot(*nodes, executors=(gated(f"e-{i}", since=NOW - 3),))
        found, memory = plan(snapshot, placing_by("RoundRobin"), memory, NOW + i)
        homes += [p.node for p in found.placements]
    assert homes == ["a", "b", "c", "a"]


def test_the_next_pass_knows_whom_this_one_has_sent_and_forgets_them_once_they_are_bound() -> None:
    nodes = (a_node("a"), a_node("b"))
    policy = placing_by("LeastLongTermRate")
    first, memory = plan(a_snapshot(*nodes, executors=(gated("e-1", since=NOW - 3),)), policy, Memory(), NOW)
    unbound = replace(an_executor("e-1"), phase=Phase.PENDING, node=None)
    waiting = gated("e-2", since=NOW - 3)
    second, memory = plan(a_snapshot(*nodes, executors=(unbound, waiting)), policy, memory, NOW + 1)
    assert {p.node for p in (*first.placements, *second.placements)} == {"a", "b"}
    _, memory = plan(a_snapshot(*nodes, executors=(an_executor("e-1", node="a"),)), policy, memory, NOW + 2)
    assert "uid-e-1" not in dict(memory.placement_state)["LeastLongTermRate"]


def test_no_two_sets_get_the_same_room_while_the_first_is_not_bound_yet() -> None:
    """Ten sets in three passes of half a second each: three of them were sent to a rack that has room for two."""
    nodes = tuple(a_node(f"{rack}{number}", rack=rack, cores=2.0) for rack in "abc" for number in range(2))
    one, other = ([gated(f"{name}-{n}", since=NOW - 3, topology=name) for n in range(4)] for name in ("one", "other"))
    first, memory = plan(a_snapshot(*nodes, executors=tuple(one)), POLICY, Memory(), NOW)
    unbound = [replace(each, phase=Phase.PENDING, created_at=NOW) for each in one]
    second, _ = plan(a_snapshot(*nodes, executors=(*unbound, *other)), POLICY, memory, NOW + 1)
    racks = [{placement.location[1] for placement in found.placements} for found in (first, second)]
    assert racks == [{"a"}, {"b"}]


def test_a_moving_average_takes_a_figure_in_once_a_window() -> None:
    nodes = (a_node("a", cpu=0.5), a_node("b", cpu=0.1))
    executors = (an_executor("e-1", node="a"), an_executor("e-2", node="b"))
    policy = placing_by("LeastResourceUsage")
    _, memory = plan(a_snapshot(*nodes, executors=executors), policy, Memory(), NOW)
    hotter = a_snapshot(a_node("a", cpu=0.9), nodes[1], executors=executors)
    _, soon = plan(hotter, policy, memory, NOW + 5)
    _, later = plan(hotter, policy, memory, NOW + 60)
    assert soon.placement_state == memory.placement_state
    assert '["a",0.54]' in dict(later.placement_state)["LeastResourceUsage"]


def test_how_far_a_component_may_spread_is_stepped_and_followed() -> None:
    nodes = tuple(a_node(f"{zone}{i}", zone=zone, rack=zone, cores=2.0) for zone in "ab" for i in range(2))
    running = tuple(an_executor(f"e-{i}", node=f"b{i}") for i in range(2))
    policy = placing_by("RoundRobin")
    _, memory = plan(a_snapshot(*nodes, executors=running), policy, Memory(), NOW)
    assert memory.scopes == (("team/clicks", "ingest", "Rack"),)
    waiting = gated("g-1", since=NOW - 3)
    found, _ = plan(a_snapshot(*nodes, executors=(*running, waiting)), policy, memory, NOW)
    assert [p.node for p in found.placements] == ["b0"]


def test_an_unplaceable_executor_is_released_with_the_reason() -> None:
    full = a_node("a", cores=0.5)
    found, _ = plan(a_snapshot(full, executors=(gated("e-1", since=NOW - 3),)), POLICY, Memory(), NOW)
    assert [(p.node, p.pin, p.reason) for p in found.placements] == [(None, Pin.NONE, Reason.POOL_FULL)]
    assert [(r.subject, r.reason) for r in found.refusals if r.subject == "team/e-1"] == [
        ("team/e-1", Reason.POOL_FULL)
    ]


def arrived(count: int, *, cores: float) -> tuple[list[str | None], list[Reason]]:
    """Of `count` executors, none of which has waited: the nodes of those released, and why the others are held."""
    waiting = tuple(gated(f"e-{i}", since=NOW) for i in range(count))
    found, _ = plan(a_snapshot(a_node("a", cores=cores), executors=waiting), POLICY, Memory(), NOW)
    return [p.node for p in found.placements], [hold.reason for hold in found.holds]


def test_a_set_that_the_pool_has_room_for_waits_for_others_that_come_with_it() -> None:
    assert arrived(2, cores=2.0) == ([], [Reason.WAITING_FOR_SET, Reason.WAITING_FOR_SET])


def test_a_set_for_which_room_is_missing_is_released_at_once_and_those_that_fit_have_their_places() -> None:
    nodes, holds = arrived(3, cores=2.0)
    assert sorted(nodes, key=str) == [None, "a", "a"]
    assert not holds


def test_a_set_that_waits_is_not_released_early_for_the_lack_of_another() -> None:
    small = tuple(gated(f"s-{i}", since=NOW - 0.1, component="report") for i in range(1))
    large = tuple(gated(f"l-{i}", since=NOW, component="ingest") for i in range(4))
    found, _ = plan(a_snapshot(a_node("a", cores=2.0), executors=(*small, *large)), POLICY, Memory(), NOW)
    assert {p.executor for p in found.placements} == {f"team/l-{i}" for i in range(4)}
    assert [hold.executor for hold in found.holds] == ["team/s-0"]


@pytest.mark.parametrize(
    ("labeled", "attempts", "pin"), [(True, 0, Pin.ZONE), (False, 0, Pin.NONE), (True, 1, Pin.NONE)]
)
def test_a_zone_is_required_for_a_new_node_unless_that_was_in_vain_or_the_pod_must_not_be_deleted(
    attempts: int, pin: Pin, *, labeled: bool
) -> None:
    full = a_node("a", cores=0.5, labels={"karpenter.sh/nodepool": "spark"})
    memory = Memory(attempts=(Attempts("team/clicks", "ingest", attempts, NOW - 300),) if attempts else ())
    snapshot = a_snapshot(full, executors=(gated("e-1", since=NOW, labeled=labeled),))
    (placement,) = plan(snapshot, POLICY, memory, NOW)[0].placements
    assert (placement.node, placement.pin, placement.location[0]) == (None, pin, "z1")


def test_a_pinned_pod_that_stays_unschedulable_is_placed_again_a_few_times_only() -> None:
    stuck = replace(
        gated("e-1"), phase=an_executor("x").phase.PENDING, pinned=True, unschedulable_since=NOW - 30, gates=()
    )
    memory = Memory()
    for i in range(3):
        at = NOW + 60.0 * i
        stuck_now = replace(stuck, unschedulable_since=at - 30)
        found, memory = plan(a_snapshot(a_node("a"), executors=(stuck_now,), taken_at=at), POLICY, memory, at)
        assert [p.executor for p in found.replacements] == ["team/e-1"]
    successor = gated("e-2", since=NOW + 178)
    found, _ = plan(a_snapshot(a_node("a"), executors=(successor,), taken_at=NOW + 181), POLICY, memory, NOW + 181)
    assert [(p.node, p.pin, p.reason) for p in found.placements] == [("a", Pin.NONE, Reason.TOO_MANY_ATTEMPTS)]


def test_a_components_limit_holds_for_moves_as_well() -> None:
    placement = replace(POLICY.placement, limits=(ComponentLimit("ingest", 1),))
    found, _ = passes(hot_pool(), 3, replace(POLICY, placement=placement))
    assert "cold" not in {move.target for move in found.moves}


@pytest.mark.parametrize(
    "shedding",
    [
        SheddingPolicy(
            avg_shedder=AvgShedderPolicy(unit=LoadUnit.TRAFFIC, low_hits=1, min_rate=0, min_throughput_bytes=0)
        ),
        SheddingPolicy(
            strategy="ThresholdShedder",
            threshold_shedder=ThresholdSettings(10.0, 0.0, 0.0),
        ),
        SheddingPolicy(strategy="OverloadShedder"),
        SheddingPolicy(strategy="UniformLoadShedder", uniform_load_shedder=UniformSettings(max_unload_ratio=0.5)),
        SheddingPolicy(strategy="TransferShedder", transfer_shedder=TransferSettings(hits=0, history_ratio=0.0)),
    ],
    ids=lambda shedding: shedding.strategy,
)
def test_every_other_strategy_names_a_destination_and_a_prediction(shedding: SheddingPolicy) -> None:
    snapshot = hot_pool()
    rates = {"e-1": 8000.0, "e-2": 1500.0, "e-3": 4000.0, "e-4": 4000.0, "e-5": 100.0}
    busy = tuple(
        replace(e, usage=replace(e.usage, records_per_second=rates[e.name], bytes_per_second=rates[e.name]))
        for e in snapshot.executors
        if e.usage
    )
    found, memory = passes(replace(snapshot, executors=busy), 4, replace(POLICY, shedding=shedding))
    suggested = {(m.source, m.target) for m in found.moves} | {
        (r.subject, r.target) for r in found.refusals if r.target
    }
    assert memory.shedding or shedding.strategy in ("OverloadShedder", "UniformLoadShedder")
    assert suggested
    assert all(move.source == "hot" and move.target in ("cold", "mild") for move in found.moves)


def test_no_strategy_sheds_nothing() -> None:
    found, _ = passes(hot_pool(), 4, replace(POLICY, shedding=SheddingPolicy(strategy="None")))
    assert [refusal.reason for refusal in found.refusals] == [Reason.SHEDDING_DISABLED]


def test_when_an_executor_rests_the_other_one_of_the_hot_node_goes() -> None:
    first, _ = passes(hot_pool(), 3)
    refused = a_move(executor_uid=first.moves[0].uid, phase=MovePhase.REFUSED, helped=None, ended_at=NOW + 100)
    found, _ = passes(hot_pool(moves=(refused,)), 3)
    assert {move.uid for move in (*first.moves, *found.moves)} == {"uid-e-1", "uid-e-2"}
    assert Reason.COOLDOWN in {refusal.reason for refusal in found.refusals}


def test_when_one_topology_rests_another_executor_of_the_hot_node_is_looked_at() -> None:
    snapshot = hot_pool()
    second = an_executor(
        "x-1", node="hot", cpu=0.4, task_seconds=3.0, task_bytes=1.0, topology="team/other", application="spark-2"
    )
    peers = tuple(
        an_executor(f"x-{i}", node="mild", cpu=0.4, task_seconds=1.0, task_bytes=1.0, topology="team/other",
                    application="spark-2")
        for i in (2, 3)
    )  # fmt: skip
    other = replace(a_topology(), key="team/other", name="other")
    rested = a_move(source="n8", target="n9", ended_at=NOW + 100, started_at=NOW)
    found, _ = passes(
        replace(
            snapshot,
            executors=(*snapshot.executors, second, *peers),
            topologies=(*snapshot.topologies, other),
            moves=(rested,),
        ),
        3,
    )
    assert [move.uid for move in found.moves] == ["uid-x-1"]
    assert Reason.COOLDOWN in {refusal.reason for refusal in found.refusals}


TIED = Constraints(affinity_terms=((Requirement("metadata.name", "In", ("cold",), on_field=True),),))
ONE_A_NODE = replace(POLICY.placement, limits=(ComponentLimit("ingest", 1),))
APART = (a_topology(*a_topology().components, separate=(Separation(("ingest", "sink"), "Node"),)),)


@pytest.mark.parametrize(
    ("changes", "placement", "reason"),
    [
        ({}, POLICY.placement, None),
        ({"executors": (gated("g-1", since=NOW - 20, constraints=TIED),)}, ONE_A_NODE, Reason.SPREAD_LIMIT),
        (
            {"executors": (gated("g-1", since=NOW - 20, constraints=TIED, component="sink"),), "topologies": APART},
            POLICY.placement,
            Reason.SEPARATED,
        ),
        ({"pending": (Demand(Resources(1.5), TIED),)}, POLICY.placement, Reason.NO_ROOM),
    ],
    ids=["nobody", "one of its component", "one to keep apart from", "a pod of others"],
)
def test_nobody_moves_to_a_place_that_another_will_take(
    changes: dict[str, Any], placement: PlacementPolicy, reason: Reason | None
) -> None:
    """Whether the same pass places that one, or kube-scheduler is about to."""
    eager = SheddingPolicy(avg_shedder=AvgShedderPolicy(low_hits=1, high_hits=1))
    policy = replace(POLICY, placement=placement, shedding=eager, moves=replace(POLICY.moves, max_locality_loss=5.0))
    nodes = (a_node("cold", cores=2.0, cpu=0.10), a_node("hot", cores=2.0, cpu=0.95))
    running = tuple(an_executor(f"e-{i}", node="hot", cpu=0.4) for i in range(2))
    seen = a_snapshot(*nodes, **{**changes, "executors": (*running, *changes.get("executors", ()))})
    decided, _ = plan(seen, policy, Memory(), NOW)
    assert bool(decided.moves) is (reason is None)
    assert reason is None or reason in {refusal.reason for refusal in decided.refusals}


def test_a_figure_beyond_all_measure_ends_no_pass() -> None:
    snapshot = a_snapshot(a_node("absurd", cpu=1e300), a_node("calm", cpu=0.5))
    decided, _ = plan(snapshot, POLICY, Memory(), NOW)
    assert decided.pool.std_dev == pytest.approx(5e301)
    assert decided.pool.hottest == "absurd"


NODES = (a_node("a", cores=4.0), a_node("b", cores=0.0))
WAITING = (gated("e1"), gated("e2", requests=Resources(2.0, GIB, 1)), gated("e3"))
SNAPSHOT = a_snapshot(*NODES, executors=WAITING)


def _on(name: str, node: str | None) -> Placement:
    return Placement(f"team/{name}", f"uid-{name}", node, (), Pin.NONE)


def _ahead(*placements: Placement) -> dict[str, float]:
    return with_placed({"a": 10.0, "b": 20.0}, SNAPSHOT, a_policy(), loads(WAITING, {}), placements)


def test_what_a_pass_places_is_spoken_for_node_by_node() -> None:
    booked = reservations({}, SNAPSHOT, [_on("e1", "a"), _on("e2", "a"), _on("e3", None), _on("gone", "b")])
    assert booked == {"a": Resources(3.0, 2 * GIB, 2)}


@pytest.mark.parametrize("replacement", [None, "uid-e-9"])
def test_a_replacement_that_waited_too_long_takes_the_room_that_its_move_has_kept_for_it(
    replacement: str | None,
) -> None:
    move = a_move(
        phase=MovePhase.ARRIVING,
        source="hot",
        target="cold",
        ended_at=None,
        application="spark-app",
        resource_profile="0",
    )
    move = replace(move, replacement_uid=replacement)
    nodes = (a_node("cold", cores=1.0), a_node("hot", cores=4.0))
    late = gated("e-9", since=NOW - 10, requests=Resources(1.0, GIB, 1))
    snapshot = a_snapshot(*nodes, executors=(an_executor("e-1", node="hot"), late), moves=(move,))
    (placement,) = plan(snapshot, POLICY, Memory(), NOW)[0].placements
    assert (placement.executor, placement.node, placement.reason) == (late.key, "cold", None)


def test_it_comes_on_top_of_what_moves_under_way_need() -> None:
    reserved = {"a": Resources(1.0, GIB, 1), "b": Resources(1.0)}
    booked = reservations(reserved, SNAPSHOT, [_on("e2", "a")])
    assert booked == {"a": Resources(3.0, 2 * GIB, 2), "b": Resources(1.0)}
    assert reserved["a"] == Resources(1.0, GIB, 1)


def test_placed_executors_bring_their_load_to_the_nodes_own_capacity() -> None:
    assert _ahead(_on("e1", "a"), _on("e2", "a")) == {"a": 85.0, "b": 20.0}


def test_a_node_without_a_figure_or_without_cores_gets_no_figure_by_it() -> None:
    assert _ahead(_on("e1", "elsewhere")) == {"a": 10.0, "b": 20.0}
    assert _ahead(_on("e1", "b")) == {"a": 10.0, "b": 20.0}


BEFORE = (("team/clicks", "ingest", (("a", 2),)),)


def test_running_executors_are_remembered_by_node() -> None:
    executors = (an_executor("e-1", node="a"), an_executor("e-2", node="b"), an_executor("e-3", node="a"))
    assert remembered(a_snapshot(executors=executors), Memory()) == (("team/clicks", "ingest", (("a", 2), ("b", 1))),)


def test_places_are_kept_while_executors_are_missing_or_on_their_way() -> None:
    memory = Memory(placements=BEFORE)
    assert remembered(a_snapshot(), memory) == BEFORE
    assert remembered(a_snapshot(executors=(an_executor("e-1", node="a"), gated("e-2"))), memory) == BEFORE


def test_one_that_has_ended_is_not_waited_for() -> None:
    executors = (an_executor("e-1", node="b"), an_executor("e-2", node="a", phase=Phase.ENDED))
    now_on_b = (("team/clicks", "ingest", (("b", 1),)),)
    assert remembered(a_snapshot(executors=executors), Memory(placements=BEFORE)) == now_on_b


def test_places_are_kept_while_fewer_run_than_before_and_more_may_come() -> None:
    first = an_executor("e-1", node="b", created_at=NOW - 10)
    assert remembered(a_snapshot(executors=(first,)), Memory(placements=BEFORE)) == BEFORE
    both = (first, an_executor("e-2", node="b", created_at=NOW - 5))
    all_on_b = (("team/clicks", "ingest", (("b", 2),)),)
    assert remembered(a_snapshot(executors=both), Memory(placements=BEFORE)) == all_on_b


def test_a_topology_that_exists_no_more_is_forgotten() -> None:
    assert remembered(a_snapshot(topologies=()), Memory(placements=BEFORE)) == ()


def test_an_executor_that_another_pod_took_the_room_of_is_reported_once() -> None:
    waiting = a_snapshot(a_node("a"), a_node("b"), executors=(gated("e-1", since=NOW - 60.0),))
    first, memory = plan(waiting, POLICY, Memory(), NOW)
    (chosen,) = [placement.node for placement in first.placements]
    other = "b" if chosen == "a" else "a"
    for node, lost in ((chosen, ()), (other, (("e-1", chosen, other),))):
        bound = a_snapshot(a_node("a"), a_node("b"), executors=(an_executor("e-1", node=node),))
        second, after = plan(bound, POLICY, memory, NOW + 1)
        assert tuple((each.executor.split("/")[1], each.chosen, each.node) for each in second.displaced) == lost
        assert plan(bound, POLICY, after, NOW + 2)[0].displaced == ()
