"""The placement strategies that go from node to node, through the same door as Proximity."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from ballast.api.policy_placement import PlacementStrategy
from ballast.model import (
    ComponentLimit,
    Constraints,
    Executor,
    ExecutorUsage,
    Memory,
    MovePhase,
    Node,
    Phase,
    Pin,
    PlacementPolicy,
    Policy,
    Reason,
    Requirement,
    Resources,
    Separation,
)
from ballast.placement import strategies
from ballast.placement.placing import Placed, place
from ballast.placement.strategies import Averages, ComponentRate, PlacementState, Rates
from tests.builders import GIB, NOW, a_move, a_node, a_snapshot, a_topology, an_executor, gated

OTHERS = tuple(str(strategy) for strategy in PlacementStrategy if strategy is not PlacementStrategy.PROXIMITY)


def policy(strategy: str, **changes: Any) -> Policy:
    settings: dict[str, Any] = {"strategy": strategy, "max_executors_per_node_ratio": 1.0, **changes}
    return Policy("p", placement=PlacementPolicy(**settings))


def placed(
    strategy: str,
    nodes: Sequence[Node],
    executors: Sequence[Executor],
    *,
    running: Sequence[Executor] = (),
    changes: dict[str, Any] | None = None,
    **settings: Any,
) -> Placed:
    snapshot = a_snapshot(*nodes, **{"executors": (*executors, *running), "topologies": (), **(changes or {})})
    memory = settings.pop("memory", Memory())
    wanted = {key: settings.pop(key) for key in ("scores", "measured", "state") if key in settings}
    return place(snapshot, policy(strategy, **settings), memory, gated=executors, **wanted)


def homes(result: Placed) -> Counter[str | None]:
    return Counter(placement.node for placement in result.placements)


def many(count: int, **changes: Any) -> list[Executor]:
    return [gated(f"e-{number}", **changes) for number in range(count)]


def nodes(count: int, **changes: Any) -> list[Node]:
    return [a_node(f"n{number}", **changes) for number in range(count)]


@pytest.mark.parametrize("strategy", OTHERS)
def test_a_full_pool_is_said_to_be_full(strategy: str) -> None:
    result = placed(strategy, nodes(1, cores=2.0), many(3))
    assert homes(result) == {"n0": 2, None: 1}
    assert {p.reason for p in result.placements if p.node is None} == {Reason.POOL_FULL}


@pytest.mark.parametrize("strategy", OTHERS)
def test_constraints_and_limits_hold(strategy: str) -> None:
    only_n1 = Constraints(affinity_terms=((Requirement("kubernetes.io/hostname", "In", ("n1",)),),))
    assert homes(placed(strategy, nodes(3), many(2, constraints=only_n1))) == {"n1": 2}
    spread = placed(strategy, nodes(4, cores=16.0), many(8), max_executors_per_node_ratio=0.25)
    assert set(homes(spread).values()) == {2}


@pytest.mark.parametrize("strategy", OTHERS)
def test_hot_and_unfavored_nodes_come_last_and_favored_ones_first(strategy: str) -> None:
    result = placed(strategy, nodes(3), many(4), scores={"n0": 95.0, "n1": 20.0, "n2": 20.0})
    assert homes(result)["n0"] == 0
    assert homes(placed(strategy, nodes(3), many(4), unfavored_nodes=("n0", "n2"))) == {"n1": 4}
    assert homes(placed(strategy, nodes(3), many(4), favored_nodes=("n2",))) == {"n2": 4}


@pytest.mark.parametrize("strategy", OTHERS)
def test_a_component_stays_within_its_scope_while_there_is_room(strategy: str) -> None:
    pool = [a_node(f"{zone}{n}", zone=zone, rack=zone) for zone in "ab" for n in (1, 2)]
    memory = Memory(scopes=(("team/clicks", "ingest", "Zone"),))
    result = placed(strategy, pool, many(4), running=[an_executor("r", node="b1")], memory=memory)
    assert set(homes(result)) <= {"b1", "b2"}
    wider = placed(strategy, pool, many(12), running=[an_executor("r", node="b1")], memory=memory)
    assert homes(wider)["b1"] + homes(wider)["b2"] == 8


def test_round_robin_goes_on_after_the_last_node_even_if_that_is_gone() -> None:
    first = placed("RoundRobin", nodes(3), many(4))
    assert [p.node for p in first.placements] == ["n0", "n1", "n2", "n0"]
    assert [p.node for p in placed("RoundRobin", nodes(3), many(2), state=first.state).placements] == ["n1", "n2"]
    gone = PlacementState(turn="n0")
    assert [p.node for p in placed("RoundRobin", nodes(3)[1:], many(2), state=gone).placements] == ["n1", "n2"]


def test_round_robin_passes_over_who_can_not_take_it() -> None:
    pool = [a_node("n0"), a_node("n1", requested=Resources(4.0, GIB, 1)), a_node("n2")]
    assert [p.node for p in placed("RoundRobin", pool, many(3)).placements] == ["n0", "n2", "n0"]


def rated(component: str, rate: float) -> ComponentRate:
    return ComponentRate("team/clicks", component, rate, 5)


def test_least_long_term_rate_counts_what_it_has_just_placed() -> None:
    running = [an_executor("big", node="n0", component="big"), an_executor("small", node="n1", component="small")]
    state = PlacementState(rates=Rates("records", (rated("big", 300.0), rated("ingest", 100.0), rated("small", 100.0))))
    result = placed("LeastLongTermRate", nodes(3, cores=16.0), many(6), running=running, state=state)
    assert homes(result) == {"n0": 1, "n1": 2, "n2": 3}


def test_least_long_term_rate_spreads_evenly_what_has_no_figures() -> None:
    assert set(homes(placed("LeastLongTermRate", nodes(4), many(12))).values()) == {3}


def test_least_long_term_rate_counts_those_that_are_not_bound_yet_and_those_that_move() -> None:
    pending = [an_executor(f"p-{n}", phase=Phase.PENDING, node=None, created_at=NOW - 5.0) for n in range(2)]
    sent = PlacementState(sent=tuple((executor.uid, "n0") for executor in pending))
    result = placed("LeastLongTermRate", nodes(2), many(2), running=pending, state=sent)
    assert homes(result) == {"n1": 2}
    assert dict(result.state.sent) == {**dict(sent.sent), "uid-e-0": "n1", "uid-e-1": "n1"}
    running = [an_executor("m1", node="n0"), an_executor("m2", node="n1")]
    move = a_move("m1", source="n0", target="n1", phase=MovePhase.APPROVED)
    moving = placed("LeastLongTermRate", nodes(2), many(1), running=running, changes={"moves": (move,)})
    assert homes(moving) == {"n0": 1}


UNBOUND = an_executor("before", phase=Phase.PENDING, node=None)
SENT = {"state": PlacementState(sent=((UNBOUND.uid, "n0"),))}
REPLACING = {"moves": (a_move(target="n0", phase=MovePhase.ARRIVING, ended_at=None, replacement_uid=UNBOUND.uid),)}


@pytest.mark.parametrize("strategy", list(map(str, PlacementStrategy)))
@pytest.mark.parametrize("known", [SENT, {"changes": REPLACING}], ids=["sent by a pass", "sent by a move"])
def test_the_place_of_one_that_is_not_bound_yet_is_taken(strategy: str, known: dict[str, Any]) -> None:
    """Though `n0` is the one node that is cool."""
    pool, scores = nodes(2), {"n0": 10.0, "n1": 60.0}
    limits = (ComponentLimit("ingest", 1),)
    limited = placed(strategy, pool, many(1), running=[UNBOUND], scores=scores, limits=limits, **known)
    assert homes(limited) == {"n1": 1}
    apart = (a_topology(separate=(Separation(("ingest", "sink"), "Node"),)),)
    changes = {"topologies": apart, **known.get("changes", {})}
    sinks = many(1, component="sink")
    kept_apart = placed(strategy, pool, sinks, running=[UNBOUND], scores=scores, **{**known, "changes": changes})
    assert homes(kept_apart) == {"n1": 1}


def working(name: str, records: float | None, volume: float | None = None, **changes: Any) -> Executor:
    usage = ExecutorUsage(records_per_second=records, bytes_per_second=volume)
    return replace(an_executor(name, **changes), usage=usage)


def test_long_term_rates_are_means_until_the_window_is_full_and_then_move() -> None:
    rates = Rates()
    for figure in (100.0, 200.0, 300.0, 400.0):
        running = (working("a", figure), working("b", figure + 20.0))
        rates = strategies.rates_observed(a_snapshot(executors=running), rates, most_samples=3)
    mean = (110.0 + 210.0 + 310.0) / 3
    assert rates.unit == "records"
    assert rates.components[0].per_second == pytest.approx((mean * 2 + 410.0) / 3, rel=1e-3)


@pytest.mark.parametrize(
    ("records", "volume", "unit"),
    [(5.0, 7.0, "records"), (None, 7.0, "bytes"), (None, None, "executors")],
    ids=["records", "bytes", "nothing"],
)
def test_rates_count_what_there_are_figures_for(records: float | None, volume: float | None, unit: str) -> None:
    found = strategies.rates_observed(a_snapshot(executors=(working("a", records, volume),)), Rates(), most_samples=9)
    assert found.unit == unit


def test_rates_of_another_unit_and_of_those_that_are_gone_are_forgotten() -> None:
    before = Rates("bytes", (rated("ingest", 1e9),))
    running = a_snapshot(executors=(working("a", 5.0),))
    assert strategies.rates_observed(running, before, most_samples=9).components[0].per_second == 5.0
    gone = Rates("records", (rated("gone", 3.0),))
    assert [c.component for c in strategies.rates_observed(running, gone, most_samples=9).components] == ["ingest"]


def test_least_resource_usage_chooses_below_the_mean_and_counts_what_it_has_just_placed() -> None:
    scores = {"n0": 10.0, "n1": 50.0, "n2": 50.0}
    averages = Averages((("n0", 0.1), ("n1", 0.5), ("n2", 0.5)))
    state = PlacementState(usage=averages)
    one = placed("LeastResourceUsage", nodes(3, cores=8.0), many(1), scores=scores, state=state)
    assert homes(one) == {"n0": 1}
    more = placed("LeastResourceUsage", nodes(3, cores=8.0), many(12), scores=scores, state=state)
    assert homes(more)["n0"] < 8
    assert None not in homes(more)


def test_least_resource_usage_goes_by_the_average_and_adds_what_is_on_its_way() -> None:
    state = PlacementState(usage=Averages((("n0", 0.5), ("n1", 0.2))))
    scores = {"n0": 10.0, "n1": 40.0}
    found = placed("LeastResourceUsage", nodes(2), many(1), scores=scores, state=state)
    assert homes(found) == {"n1": 1}
    arriving = {"n0": 10.0, "n1": 80.0}
    later = placed("LeastResourceUsage", nodes(2), many(1), scores=arriving, measured=scores, state=state)
    assert homes(later) == {"n0": 1}


def test_a_node_that_has_no_average_yet_goes_by_what_is_measured() -> None:
    state = PlacementState(usage=Averages((("n0", 0.5),)))
    for scores, chosen in (({"n0": 50.0, "n1": 10.0}, "n1"), ({"n0": 50.0, "n1": 90.0}, "n0")):
        assert homes(placed("LeastResourceUsage", nodes(2), many(1), scores=scores, state=state)) == {chosen: 1}


def test_averages_move_slowly_and_start_again_on_a_node_without_executors() -> None:
    snapshot = a_snapshot(a_node("n0"), a_node("n1"), executors=(an_executor("a", node="n0"),))
    before = Averages((("gone", 0.9), ("n0", 0.5), ("n1", 0.5)))
    after = strategies.usage_observed(snapshot, {"n0": 90.0, "n1": 90.0}, before, history_ratio=0.9)
    assert dict(after.by_node) == {"n0": pytest.approx(0.54), "n1": 0.9}


@pytest.mark.parametrize(("recognized", "sent"), [(None, "e-1"), ("uid-e-0", "e-0"), ("uid-e-8", None)])
@pytest.mark.parametrize("strategy", PlacementStrategy)
def test_each_strategy_sends_what_a_move_waits_for_to_its_target(
    strategy: str, recognized: str | None, sent: str | None
) -> None:
    move = a_move(
        "m1", source="n9", target="n3", phase=MovePhase.ARRIVING, application="spark-app", resource_profile="0"
    )
    move = replace(move, replacement_uid=recognized)
    waiting = [gated("e-0", created_at=NOW - 5), gated("e-1", created_at=NOW - 9)]
    result = placed(strategy, nodes(5), waiting, changes={"moves": (move,)}, pin=Pin.NONE)
    assert [p.pod for p in result.placements if p.pin is Pin.ZONE] == ([] if sent is None else [sent])
    assert all(p.node == "n3" for p in result.placements if p.pod == sent)


def test_avg_shedder_spreads_executors_at_random() -> None:
    many_nodes = homes(placed("AvgShedder", nodes(20), many(60)))
    assert len(many_nodes) > 12
    assert max(many_nodes.values()) <= 4


@pytest.mark.parametrize("strategy", PlacementStrategy)
def test_a_target_of_a_move_that_is_full_is_explained(strategy: str) -> None:
    move = a_move("m1", target="n0", phase=MovePhase.LEAVING, application="spark-app", resource_profile="0")
    pool = [a_node("n0", requested=Resources(4.0, GIB, 1)), a_node("n1")]
    (placement,) = placed(strategy, pool, many(1), changes={"moves": (move,)}).placements
    assert (placement.node, placement.reason, placement.detail) == ("n1", Reason.NO_ROOM, "n0 can't take it any more")


@pytest.mark.parametrize("strategy", OTHERS)
def test_the_order_of_lists_decides_nothing(strategy: str) -> None:
    pool, waiting = nodes(7), many(15)
    shuffled = Random(1).sample(pool, 7), Random(2).sample(waiting, 15)
    assert placed(strategy, pool, waiting).placements == placed(strategy, *shuffled).placements
