"""Which nodes an executor could move to, and what it would cost."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ballast.model import (
    DEFAULT_LEVELS,
    AvgShedderPolicy,
    Component,
    ComponentLimit,
    Constraints,
    Executor,
    Memory,
    Phase,
    PlacementPolicy,
    Policy,
    Reason,
    Requirement,
    Resources,
    Separation,
    SheddingPolicy,
    Workload,
)
from ballast.moves.candidates import Candidates
from ballast.moves.loads import loads
from ballast.moves.speed import node_speeds
from ballast.planner.plan import plan
from tests.builders import GIB, NOW, a_node, a_policy, a_snapshot, a_topology, an_executor, gated

NODES = (
    a_node("hot"),
    a_node("cold"),
    a_node("neighbor"),
    a_node("rack-2", rack="r2"),
    a_node("zone-2", zone="z2", rack="r9"),
    a_node("empty", cores=0.0),
)
MOVER = an_executor("e1", node="hot", cpu=0.5)

HOST = DEFAULT_LEVELS.ordered[-1].label


def candidates(*others: Executor, policy: Policy | None = None, **changes: Any) -> Candidates:
    told = {key: changes.pop(key, {}) for key in ("reserved", "unbound", "sent")}
    executors = (changes.pop("mover", MOVER), *others)
    snapshot = a_snapshot(*NODES, **{"executors": executors, **changes})
    return Candidates(snapshot, policy or a_policy(), loads(executors, node_speeds(snapshot.nodes)), **told, now=NOW)


def refusal(target: str, *others: Executor, arriving: tuple[str, ...] = (), **changes: Any) -> Reason | None:
    return candidates(*others, **changes).refusal(MOVER.key, target, arriving)


def crowd(size: int, node: str, component: str = "ingest") -> list[Executor]:
    return [an_executor(f"{component}-{node}-{i}", node=node, component=component) for i in range(size)]


def test_a_node_with_room_is_a_destination() -> None:
    assert refusal("cold") is None


def test_a_node_that_is_not_in_the_pool_is_none() -> None:
    assert refusal("elsewhere") is Reason.NODE_UNAVAILABLE


@pytest.mark.parametrize(("free_cores", "reason"), [(1.0, None), (0.9, Reason.NO_ROOM)])
def test_what_is_spoken_for_is_no_room(free_cores: float, reason: Reason | None) -> None:
    assert refusal("cold", reserved={"cold": Resources(4.0 - free_cores, GIB, 1)}) is reason


def test_nor_is_what_pods_will_take_that_are_not_bound_yet() -> None:
    two, one = {"cold": Resources(2.0, GIB, 1)}, {"cold": Resources(1.0, GIB, 1)}
    assert refusal("cold", reserved=two, unbound=one) is None
    assert refusal("cold", reserved=two, unbound=two) is Reason.NO_ROOM
    assert candidates(unbound=two).given(reserved=two, now=NOW).refusal(MOVER.key, "cold", ()) is Reason.NO_ROOM


def test_given_other_bookings_it_answers_by_them_and_the_first_as_before() -> None:
    before = candidates()
    after = before.given(reserved={"cold": Resources(4.0, GIB, 1)}, now=NOW - 3500.0)
    assert after.refusal(MOVER.key, "cold", ()) is Reason.NO_ROOM
    assert after.objection(MOVER) == (Reason.TOO_YOUNG, "it has run 0 s of minExecutorAge 300 s")
    assert before.refusal(MOVER.key, "cold", ()) is None
    assert before.objection(MOVER) is None


def test_those_that_arrive_with_it_need_room_too() -> None:
    big = an_executor("e2", node="hot", component="big", requests=Resources(3.5, GIB, 1))
    assert refusal("cold", big, arriving=(big.key,)) is Reason.NO_ROOM
    assert refusal("cold", big) is None


@pytest.mark.parametrize(("there", "reason"), [(2, None), (3, Reason.SPREAD_LIMIT)])
def test_a_node_holds_no_more_than_its_share_of_a_component(there: int, reason: Reason | None) -> None:
    # Eleven executors, a quarter of them on one node at most, rounded up.
    others = [*crowd(there, "cold"), *crowd(10 - there, "zone-2")]
    assert refusal("cold", *others) is reason


def test_executors_that_arrive_and_those_that_are_bound_count_towards_the_share() -> None:
    others = crowd(10, "zone-2")
    assert refusal("cold", *others, arriving=tuple(each.key for each in others[:2])) is None
    assert refusal("cold", *others, arriving=tuple(each.key for each in others[:3])) is Reason.SPREAD_LIMIT
    bound = [an_executor(f"p{i}", node="cold", phase=Phase.PENDING, running_since=None) for i in range(3)]
    assert refusal("cold", *others, *bound) is Reason.SPREAD_LIMIT


@pytest.mark.parametrize("waiting", [gated("e9"), an_executor("e9", phase=Phase.PENDING, node=None)])
def test_those_that_are_on_no_node_yet_count_where_they_were_sent(waiting: Executor) -> None:
    others, sent = crowd(9, "zone-2"), {waiting.uid: "cold"}
    one = a_policy(placement=PlacementPolicy(limits=(ComponentLimit("ingest", 1),)))
    assert refusal("cold", *others, waiting, policy=one) is None
    assert refusal("cold", *others, waiting, policy=one, sent=sent) is Reason.SPREAD_LIMIT
    apart = (a_topology(separate=(Separation(("ingest", "standby"), "Rack"),)),)
    standby = replace(waiting, component="standby")
    assert refusal("neighbor", standby, topologies=apart) is None
    assert refusal("neighbor", standby, topologies=apart, sent=sent) is Reason.SEPARATED


def test_one_that_is_bound_counts_where_it_is_alone() -> None:
    one = a_policy(placement=PlacementPolicy(limits=(ComponentLimit("ingest", 1),)))
    bound = an_executor("e9", phase=Phase.PENDING, node="cold")
    assert refusal("cold", bound, policy=one, sent={bound.uid: "neighbor"}) is Reason.SPREAD_LIMIT
    assert refusal("neighbor", bound, policy=one, sent={bound.uid: "neighbor"}) is None


def test_the_limit_of_a_component_is_the_narrower_one() -> None:
    limited = a_policy(placement=PlacementPolicy(limits=(ComponentLimit("ingest", 1), ComponentLimit("other", 0))))
    others = [*crowd(1, "cold"), *crowd(9, "zone-2")]
    assert refusal("cold", *others, policy=limited) is Reason.SPREAD_LIMIT
    assert refusal("neighbor", *others, policy=limited) is None


@pytest.mark.parametrize(
    ("by", "refused"),
    [
        ("Node", {"cold"}),
        ("Rack", {"cold", "neighbor"}),
        ("Zone", {"cold", "neighbor", "rack-2"}),
    ],
)
def test_separated_components_share_no_place(by: str, refused: set[str]) -> None:
    components = tuple(Component(name, workload=Workload.STREAMING) for name in ("ingest", "standby", "other"))
    separate = (Separation(("other", "nobody"), "Zone"), Separation(("ingest", "standby"), by))
    found = candidates(*crowd(1, "cold", "standby"), topologies=(a_topology(*components, separate=separate),))
    targets = [node.name for node in NODES if node.name not in ("hot", "empty")]
    assert {name for name in targets if found.refusal(MOVER.key, name, ()) is Reason.SEPARATED} == refused


def test_separated_components_do_not_arrive_together_either() -> None:
    standby, other = crowd(1, "hot", "standby")[0], crowd(1, "hot", "other")[0]
    found = candidates(standby, other, topologies=(a_topology(separate=(Separation(("ingest", "standby")),)),))
    assert found.refusal(MOVER.key, "cold", (other.key,)) is None
    assert found.refusal(MOVER.key, "cold", (other.key, standby.key)) is Reason.SEPARATED


def test_racks_are_the_level_above_the_nodes_however_many_are_above_them() -> None:
    places = {"hot": ("z1", "r1"), "standby": ("z1", "r2"), "same-rack": ("z1", "r2"), "same-zone": ("z1", "r3")}
    nodes = tuple(replace(a_node(name), location=("region", *place, name)) for name, place in places.items())
    separate = (Separation(("ingest", "standby"), "Rack"),)
    found = candidates(*crowd(1, "standby", "standby"), nodes=nodes, topologies=(a_topology(separate=separate),))
    assert found.refusal(MOVER.key, "same-rack", ()) is Reason.SEPARATED
    assert found.refusal(MOVER.key, "same-zone", ()) is None


def test_executors_of_one_component_are_not_kept_apart_from_each_other() -> None:
    separate = (Separation(("ingest", "standby")),)
    assert refusal("cold", *crowd(1, "cold"), *crowd(8, "zone-2"), topologies=(a_topology(separate=separate),)) is None


def test_state_costs_by_the_gibibyte() -> None:
    mover = an_executor("e1", node="hot", cpu=0.5, state_bytes=3 * GIB, running_since=NOW)
    assert candidates(mover=mover).cost(mover.key, "cold") == pytest.approx(3.0)


@pytest.mark.parametrize("usage", [{"usage": None}, {"state_bytes": None}])
def test_state_that_nobody_measured_costs_nothing(usage: dict[str, Any]) -> None:
    mover = an_executor("e1", node="hot", running_since=NOW, **usage)
    assert candidates(mover=mover).cost(mover.key, "cold") == 0.0


@pytest.mark.parametrize(
    ("since", "cost"),
    [(None, 0.0), (NOW + 5.0, 0.0), (NOW - 170.0, 0.0), (NOW - 1800.0, 0.05), (NOW - 3600.0, 0.1), (0.0, 0.1)],
)
def test_an_executor_costs_more_the_longer_it_has_run_until_it_is_warm(since: float | None, cost: float) -> None:
    mover = an_executor("e1", node="hot", state_bytes=0.0, running_since=since)
    assert candidates(mover=mover).cost(mover.key, "cold") == pytest.approx(cost)


def test_dearer_traffic_costs_and_cheaper_traffic_pays_nothing() -> None:
    mover = an_executor("e1", node="hot", state_bytes=0.0, running_since=NOW)
    with_mates = candidates(*crowd(3, "hot"), mover=mover)
    ratio = with_mates.locality_delta_ratio(mover, "zone-2")
    assert ratio > 0
    assert with_mates.cost(mover.key, "zone-2") == pytest.approx(10.0 * ratio)
    assert with_mates.cost(mover.key, "cold") < with_mates.cost(mover.key, "zone-2")
    assert candidates(*crowd(3, "cold"), mover=mover).cost(mover.key, "cold") == 0.0


def test_a_load_makes_points_by_the_nodes_own_capacity() -> None:
    found = candidates()
    assert found.points_on(MOVER, "cold") == pytest.approx(12.5)
    assert found.points_on(MOVER, "empty") == 0.0
    assert found.points_on(MOVER, "elsewhere") == 0.0


@pytest.mark.parametrize(
    ("home", "node", "points"), [("hot", "slow", 25.0), ("slow", "hot", 6.25), ("slow", "slow", 12.5)]
)
def test_a_slower_node_is_longer_at_the_same_work(home: str, node: str, points: float) -> None:
    mover = an_executor("e1", node=home, cpu=0.5)
    found = candidates(mover=mover, nodes=(a_node("hot"), a_node("slow", speed=0.5)))
    assert found.points_on(mover, node) == pytest.approx(points)


def test_the_weightiest_objection_is_the_one_that_counts() -> None:
    found = candidates(mover=an_executor("e1", node="hot", cpu=1.0, graceful=False, running_since=NOW))
    every = list(found.objections(found.executor(MOVER.key)))
    assert [reason for reason, _ in every] == [Reason.NO_DECOMMISSIONING, Reason.TOO_YOUNG]
    assert found.objection(found.executor(MOVER.key)) == every[0]
    assert candidates().objection(MOVER) is None


def test_an_executor_that_a_move_tied_to_its_node_can_be_moved_again() -> None:
    tied = Constraints(affinity_terms=((Requirement(HOST, "In", ("hot",)),),))
    executor = an_executor("e", node="hot", cpu=0.9, constraints=tied, pinned=True)
    shedding = SheddingPolicy(avg_shedder=AvgShedderPolicy(high_hits=1))
    snapshot = a_snapshot(a_node("hot", cpu=0.95), a_node("cold", cpu=0.1), executors=(executor,))
    decided, _ = plan(snapshot, a_policy(shedding=shedding), Memory(), NOW)
    assert [(move.executor, move.target) for move in decided.moves] == [("team/e", "cold")]


def test_takers_admit_it_and_have_room_for_it_by_what_is_spoken_for() -> None:
    found = candidates(reserved={"cold": Resources(3.5)}, unbound={"rack-2": Resources(3.5)})
    assert found.takers(MOVER) == {"hot", "neighbor", "zone-2"}
    assert found.given(reserved={"neighbor": Resources(3.5)}, now=NOW).takers(MOVER) == {"hot", "cold", "zone-2"}
    chosen = replace(MOVER, constraints=Constraints(node_selector=((HOST, "zone-2"),)))
    assert candidates(mover=chosen).takers(chosen) == {"zone-2"}


def test_each_node_is_not_asked_about_each_executor_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """One user's executors may each name thousands of nodes in their affinity."""
    asked: list[str] = []
    monkeypatch.setattr(Constraints, "selects", lambda _, __, name: asked.append(name))
    terms = ((Requirement("metadata.name", "NotIn", ("cold", "absent"), on_field=True),),)
    choosy = replace(MOVER, constraints=Constraints(affinity_terms=terms))
    assert candidates(mover=choosy).takers(choosy) == {"hot", "neighbor", "rack-2", "zone-2"}
    assert asked == []
