"""How much room a pass begins with."""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np
import pytest

from ballast.model import (
    Constraints,
    Demand,
    Executor,
    MovePhase,
    Phase,
    Policy,
    Requirement,
    Resources,
    Snapshot,
    Weights,
)
from ballast.placement.node_locations import node_locations
from ballast.placement.room import UNBOUNDED, Room, counts_that_fit, expected, fits, in_flight, room
from ballast.placement.shortage import short_of_room
from tests.builders import GIB, NOW, a_move, a_node, a_snapshot, an_executor, gated


def room_of(snapshot: Snapshot, **reserved: Resources) -> dict[str, float]:
    """Cores left by node."""
    places = node_locations(snapshot.nodes, Policy("p").levels)
    found: Room = room(snapshot, places, gated=(), scores={}, reserved=reserved)
    return {node.name: float(free[0]) for node, free in zip(places.nodes, found.free, strict=True)}


def test_bound_requests_and_reservations_are_taken_off() -> None:
    snapshot = a_snapshot(a_node("n1", requested=Resources(1.0, GIB, 1)), a_node("n2"))
    assert room_of(snapshot, n2=Resources(0.5, GIB, 1)) == {"n1": 3.0, "n2": 3.5}


def test_pending_pods_are_taken_to_go_where_most_is_free() -> None:
    snapshot = a_snapshot(a_node("n1", cores=4.0), a_node("n2", cores=2.0), pending=(Demand(Resources(1.0, GIB)),))
    assert room_of(snapshot) == {"n1": 3.0, "n2": 2.0}


def test_pending_pods_go_only_where_they_are_admitted() -> None:
    only = Constraints(affinity_terms=((Requirement("metadata.name", "In", ("n2",), on_field=True),),))
    snapshot = a_snapshot(a_node("n1"), a_node("n2", cores=2.0), pending=(Demand(Resources(1.0, GIB), only),))
    assert room_of(snapshot) == {"n1": 4.0, "n2": 1.0}


def test_a_pending_pod_that_fits_nowhere_takes_nothing() -> None:
    snapshot = a_snapshot(a_node("n1"), pending=(Demand(Resources(5.0, GIB)),))
    assert room_of(snapshot) == {"n1": 4.0}


def test_executors_that_were_released_but_not_bound_keep_room() -> None:
    assert room_of(a_snapshot(a_node("n1"), executors=(released(),))) == {"n1": 3.0}


def released(**changes: Any) -> Executor:
    """An executor without a gate and without a node, created a moment ago."""
    said = {"phase": Phase.PENDING, "node": None, "created_at": NOW - 1.0, **changes}
    return an_executor(said.pop("name", "e-1"), **said)


@pytest.mark.parametrize(
    ("changes", "keeps"),
    [
        pytest.param({"created_at": NOW - 3600.0, "pinned_at": NOW - 1.0}, True, id="held by others until now"),
        pytest.param({"created_at": NOW - 3600.0}, False, id="kube-scheduler does not try it"),
        pytest.param({"created_at": NOW - 3600.0, "pinned_at": NOW - 3600.0}, False, id="nor since its release"),
        pytest.param({"pinned_at": NOW + 3600.0}, False, id="its author made up when it was pinned"),
        pytest.param({"never_unschedulable": True}, False, id="its devices need not exist"),
        pytest.param({"scheduler": "absent"}, False, id="its scheduler need not exist"),
        pytest.param({"gates": ("kueue.x-k8s.io/admission",)}, False, id="another controller holds it"),
    ],
)
def test_executors_that_no_scheduler_will_bind_soon_keep_no_room_from_others(
    changes: dict[str, Any], *, keeps: bool
) -> None:
    snapshot = a_snapshot(a_node("n1"), executors=(released(**changes),))
    assert room_of(snapshot) == {"n1": 3.0 if keeps else 4.0}


@pytest.mark.parametrize(
    ("since", "bound", "left"),
    [
        pytest.param(NOW - 100.0, {"namespace": "team"}, 3.0, id="room may come"),
        pytest.param(NOW - 130.0, {"namespace": "team"}, 4.0, id="no room comes"),
        pytest.param(NOW - 1.0, {"namespace": "other"}, 4.0, id="none of its namespace runs"),
        pytest.param(NOW - 1.0, {"requests": Resources(0.9, GIB, 1)}, 4.0, id="those that have one request less"),
        pytest.param(NOW - 1.0, {"phase": Phase.LEAVING}, 4.0, id="that one is leaving"),
        pytest.param(NOW - 1.0, {"phase": Phase.PENDING}, 4.0, id="its author may have bound it to no node"),
    ],
)
def test_executors_without_a_node_keep_no_more_room_than_those_of_their_namespace_that_run(
    since: float, bound: dict[str, Any], left: float
) -> None:
    """Otherwise a user could keep all room by executors that never get a node, made again and again."""
    elsewhere = an_executor("e-0", **{"node": "elsewhere", **bound})
    refused = [released(unschedulable_since=since, name=f"e-{index}", uid=f"uid-{index}") for index in range(1, 4)]
    assert room_of(a_snapshot(a_node("n1"), executors=(elsewhere, *refused))) == {"n1": left}


@pytest.mark.parametrize(
    ("nominated", "left"),
    [
        (None, {"n1": 4.0, "n2": 2.0}),
        ("n2", {"n1": 5.0, "n2": 1.0}),
        ("full", {"n1": 4.0, "n2": 2.0}),
        ("gone", {"n1": 4.0, "n2": 2.0}),
    ],
)
def test_a_nominated_executor_keeps_the_room_of_its_node_as_long_as_that_has_any(
    nominated: str | None, left: dict[str, float]
) -> None:
    nodes = (a_node("n1", cores=5.0), a_node("n2", cores=2.0), a_node("full", cores=0.5))
    assert room_of(a_snapshot(*nodes, executors=(released(nominated=nominated),))) == {**left, "full": 0.5}


@pytest.mark.parametrize(
    ("executors", "takes"),
    [
        pytest.param([released()], ["n2"], id="where it was made to prefer"),
        pytest.param([released(), released(name="e-2")], ["n1", "n2"], id="as long as that has room"),
        pytest.param([released(), released(name="e-2", nominated="n2")], ["n1", "n2"], id="nominated ones first"),
        pytest.param([released(nominated="n1")], ["n1"], id="where it is nominated to after all"),
        pytest.param([released(name="other")], ["n1"], id="not sent"),
    ],
)
def test_an_executor_that_was_sent_to_a_node_is_expected_there(executors: list[Executor], takes: list[str]) -> None:
    snapshot = a_snapshot(a_node("n1"), a_node("n2", cores=1.0), executors=tuple(executors))
    found = expected(snapshot, Policy("p").levels, sent={"uid-e-1": "n2", "uid-e-2": "n1"})
    assert sorted(found) == takes


def test_what_pods_that_are_not_bound_yet_will_take_is_said_node_by_node() -> None:
    nodes, levels = (a_node("n1"), a_node("n2", cores=2.0)), Policy("p").levels
    pending = (Demand(Resources(1.0, GIB, 1, ((GPU, 0.0),))), Demand(Resources(2.0, GIB, 1)))
    executors = (released(requests=Resources(2.0, GIB, 1)),)
    found = expected(a_snapshot(*nodes, pending=pending, executors=executors), levels)
    assert found == {"n1": Resources(3.0, 2 * GIB, 2, ((GPU, 0.0),)), "n2": Resources(2.0, GIB, 1)}
    assert expected(a_snapshot(*nodes), levels) == {}


def test_they_take_what_a_move_under_way_will_need_for_kube_scheduler_keeps_nothing_free() -> None:
    pending = (Demand(Resources(3.0, GIB, 1)),)
    assert room_of(a_snapshot(a_node("n1"), pending=pending), n1=Resources(2.0)) == {"n1": -1.0}


def test_what_is_known_of_them_is_not_worked_out_again() -> None:
    snapshot = a_snapshot(a_node("n1"), pending=(Demand(Resources(1.0, GIB, 1)),))
    found = space(snapshot, unbound={"n1": Resources(3.0, GIB, 1)})
    assert found.free.tolist() == [[1.0, 15 * GIB, 109.0]]


def test_a_move_under_way_books_its_target_until_the_replacement_is_there() -> None:
    leaving = an_executor("e-1", node="hot")
    move = a_move(executor_uid=leaving.uid, phase=MovePhase.LEAVING)
    arrived = a_move(executor_uid=leaving.uid, phase=MovePhase.ARRIVING, replacement_uid="uid-e-2")
    replacement = an_executor("e-2", phase=Phase.PENDING, node=None)
    assert in_flight(a_snapshot(executors=(leaving,), moves=(move,))) == {"cold": leaving.requests}
    assert in_flight(a_snapshot(executors=(replacement,), moves=(arrived,))) == {}
    assert in_flight(a_snapshot(executors=(leaving,), moves=(a_move(executor_uid=leaving.uid),))) == {}


@pytest.mark.parametrize(
    ("phase", "replacement", "books"),
    [
        pytest.param(MovePhase.PROPOSED, [], False, id="only asked for"),
        pytest.param(MovePhase.APPROVED, [], False, id="not revalidated"),
        pytest.param(MovePhase.LEAVING, [], False, id="its executor may never go"),
        pytest.param(MovePhase.ARRIVING, [], False, id="its replacement may never come"),
        pytest.param(MovePhase.ARRIVING, [gated("e-2", gates=("example.com/mine",))], False, id="nor be let go"),
        pytest.param(MovePhase.ARRIVING, [gated("e-2")], True, id="it waits for Ballast alone"),
    ],
)
def test_a_move_by_hand_books_its_target_for_a_replacement_that_it_places_next(
    phase: MovePhase, replacement: list[Executor], *, books: bool
) -> None:
    """A user could keep any node from others by executors that never leave, or are never replaced."""
    executor = an_executor("e-1", node="hot", phase=Phase.LEAVING)
    said: dict[str, Any] = {"replacement_uid": "uid-e-2" if replacement else None, "requests": executor.requests}
    move = a_move(executor_uid=executor.uid, phase=phase, ended_at=None, by_hand=True, **said)
    found = in_flight(a_snapshot(executors=(executor, *replacement), moves=(move,)))
    assert found == ({"cold": executor.requests} if books else {})


def test_a_replacement_that_waits_at_the_gate_has_its_place_kept() -> None:
    replacement = gated("e-2")
    move = a_move(executor_uid="gone", phase=MovePhase.ARRIVING, replacement_uid=replacement.uid, requests=ASKED)
    assert in_flight(a_snapshot(executors=(replacement,), moves=(move,))) == {"cold": ASKED}


ASKED = Resources(0.05, GIB, 1)
HUGE: dict[str, Any] = {"requests": Resources(10_000.0, GIB, 1)}
GONE: dict[str, Any] = {
    "executor_uid": "gone",
    "phase": MovePhase.ARRIVING,
    "application": "spark-app",
    "resource_profile": "0",
}


@pytest.mark.parametrize(
    "executors",
    [
        pytest.param([gated("e-2", **HUGE)], id="a replacement that asks for any amount"),
        pytest.param([gated("e-2", **HUGE, gates=("example.com/mine",))], id="and is held by another gate"),
        pytest.param([an_executor("e-3", node="warm", **HUGE)], id="an executor that was given its labels"),
        pytest.param([], id="none at all"),
    ],
)
def test_a_move_books_what_its_executor_asked_for_whatever_comes_after_it(executors: list[Executor]) -> None:
    """Their author could keep a whole node from others for as long as a replacement may take to arrive."""
    move = a_move(**GONE, replacement_uid="uid-e-2", requests=ASKED)
    assert in_flight(a_snapshot(executors=tuple(executors), moves=(move,))) == {"cold": ASKED}


def test_a_move_books_what_its_executor_asked_for_when_it_began_to_leave() -> None:
    leaving = an_executor("e-1", node="hot", **HUGE)
    move = a_move(executor_uid=leaving.uid, phase=MovePhase.LEAVING, requests=ASKED)
    assert in_flight(a_snapshot(executors=(leaving,), moves=(move,))) == {"cold": ASKED}


NONE = float("nan")
GPU = "nvidia.com/gpu"


def space(snapshot: Snapshot, *gated_ones: Executor, **changes: Any) -> Room:
    places = node_locations(snapshot.nodes, Policy("p").levels)
    settings: dict[str, Any] = {"scores": {}, "reserved": {}, **changes}
    return room(snapshot, places, gated=gated_ones, **settings)


def test_every_kind_that_those_to_place_ask_for_is_counted() -> None:
    nodes = (a_node("n1", allocatable=Resources(4.0, 8.0, 10.0, ((GPU, 2.0), ("zoo", 1.0)))), a_node("n2", cores=2.0))
    waiting = gated("e-1", requests=Resources(1.0, 2.0, 1.0, ((GPU, 1.0),)))
    pending = Demand(Resources(0.0, 0.0, 1.0, (("disk", 1.0),)))
    found = space(a_snapshot(*nodes, pending=(pending,)), waiting)
    assert found.kinds == ("cpu", "memory", "pods", GPU)
    assert found.offered.tolist() == [[4.0, 8.0, 10.0, 2.0], [2.0, 16 * GIB, 110.0, 0.0]]
    assert found.slack.tolist() == [1e-6, 1.0, 1e-6, 1e-6]
    assert found.vector(waiting.requests).tolist() == [1.0, 2.0, 1.0, 1.0]
    assert found.vector(Resources(3.0, 5.0, 7.0, (("zoo", 1.0),))).tolist() == [3.0, 5.0, 7.0, 0.0]


def test_scores_and_reservations_of_nodes_that_are_not_in_the_pool_are_none_of_its_business() -> None:
    reserved = {"gone": Resources(9.0), "n2": Resources(1.0, GIB, 1)}
    found = space(a_snapshot(a_node("n1"), a_node("n2")), scores={"n2": 40.0, "gone": 90.0}, reserved=reserved)
    assert np.nan_to_num(found.scores, nan=-1.0).tolist() == [-1.0, 40.0]
    assert found.free.tolist() == [[4.0, 16 * GIB, 110.0], [3.0, 15 * GIB, 109.0]]


def test_the_largest_of_those_that_wait_go_first_whatever_their_order() -> None:
    nodes = (a_node("n1", cores=4.0), a_node("n2", cores=3.0))
    small, large = Demand(Resources(1.0, GIB)), Demand(Resources(3.0, GIB))
    for pending in ((small, large), (large, small)):
        assert room_of(a_snapshot(*nodes, pending=pending)) == {"n1": 1.0, "n2": 2.0}


def test_each_goes_to_where_the_largest_mean_share_of_cpu_and_memory_is_left() -> None:
    nodes = (
        a_node("n1", allocatable=Resources(10.0, 10.0, 9)),
        a_node("n2", allocatable=Resources(10.0, 10.0, 9), requested=Resources(1.0, 2.0)),
    )
    pending = tuple(Demand(Resources(1.0, 1.0)) for _ in range(5))
    counts = [room_of(a_snapshot(*nodes, pending=pending[:count])) for count in range(6)]
    assert [9.0 - cores["n2"] for cores in counts] == [0, 0, 0, 1, 1, 2]


def test_of_nodes_that_are_alike_the_first_ones_take_pending_pods_one_each() -> None:
    nodes = tuple(a_node(f"n{number}") for number in range(6))
    for count in range(9):
        pending = tuple(Demand(Resources(1.0, GIB, 1)) for _ in range(count))
        taken = [4.0 - cores for cores in room_of(a_snapshot(*nodes, pending=pending)).values()]
        assert taken == [count // 6 + (number < count % 6) for number in range(6)]


def test_no_more_nodes_are_put_in_order_than_there_are_pending_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any user may create thousands of pods, each of another size."""
    ordered: list[int] = []
    replaced = heapq.heapreplace

    def noted(heap: list[Any], item: Any) -> Any:
        ordered.append(len(heap))
        return replaced(heap, item)

    monkeypatch.setattr(heapq, "heapreplace", noted)
    nodes = tuple(a_node(f"n{number:02}") for number in range(60))
    pending = tuple(Demand(Resources(0.1 + number / 100, GIB, 1)) for number in range(10))
    room_of(a_snapshot(*nodes, pending=pending))
    assert ordered == [1] * 10


def test_a_node_that_is_full_gets_no_more_of_them() -> None:
    nodes = (a_node("n1", cores=2.0), a_node("n2", allocatable=Resources(1.0, 1.0 * GIB, 1)))
    pending = tuple(Demand(Resources(1.0, 0.5 * GIB, 1)) for _ in range(5))
    assert room_of(a_snapshot(*nodes, pending=pending)) == {"n1": 0.0, "n2": 0.0}


def test_those_that_are_bound_or_gated_or_gone_wait_for_nothing() -> None:
    executors = (
        an_executor("e-1", phase=Phase.PENDING, node="n1"),
        an_executor("e-2", phase=Phase.ENDED, node=None),
        gated("e-3"),
    )
    assert room_of(a_snapshot(a_node("n1"), executors=executors)) == {"n1": 4.0}


@pytest.mark.parametrize(
    ("score", "cores"), [(NONE, float("inf")), (65.0, 0.8), (85.0, 0.0), (85.1, -1.0), (0.0, 3.4), (105.0, -1.0)]
)
def test_the_headroom_is_what_it_takes_to_reach_the_score(score: float, cores: float) -> None:
    found = space(a_snapshot(a_node("n1")), scores={"n1": score})
    assert found.headroom(85.0).tolist() == pytest.approx([cores])


def test_a_weighed_core_heats_by_its_weight() -> None:
    found = space(a_snapshot(a_node("n1")), scores={"n1": 65.0}, weights=Weights(cpu=0.5))
    assert found.headroom(85.0).tolist() == pytest.approx([1.6])


def test_a_node_without_cores_is_never_heated() -> None:
    found = space(a_snapshot(a_node("n1", cores=0.0)), scores={"n1": 10.0})
    assert found.headroom(85.0).tolist() == [float("inf")]


def test_what_is_taken_is_gone_and_heats() -> None:
    found = space(a_snapshot(a_node("n1"), a_node("n2")), scores={"n1": 10.0, "n2": 10.0})
    found.take(1, np.array([1.0, GIB, 1.0]), count=2, load_cores=0.4)
    found.take(0, np.array([1.0, GIB, 1.0]))
    assert found.free.tolist() == [[3.0, 15 * GIB, 109.0], [2.0, 14 * GIB, 108.0]]
    assert found.scores.tolist() == [10.0, 30.0]


FREE = np.array([[4.0, 8.0], [1.0, 8.0], [0.5, 8.0], [-1.0, 8.0], [3.0 - 1e-9, 1.0]])
SLACK = np.array([1e-6, 1e-6])


@pytest.mark.parametrize(
    ("demand", "counts"),
    [
        ([1.0, 0.0], [4, 1, 0, 0, 3]),
        ([1.0, 2.0], [4, 1, 0, 0, 0]),
        ([0.0, 4.0], [2, 2, 2, 2, 0]),
        ([0.0, 0.0], [UNBOUNDED] * 5),
        ([1e-20, 0.0], [UNBOUNDED, UNBOUNDED, UNBOUNDED, 0, UNBOUNDED]),
    ],
)
def test_a_demand_fits_so_often_and_once_where_it_fits_at_all(demand: list[float], counts: list[int]) -> None:
    asked = np.array(demand)
    assert counts_that_fit(FREE, asked, SLACK).tolist() == counts
    assert fits(FREE, asked, SLACK).tolist() == [count > 0 for count in counts]


def test_capacity_is_by_requests() -> None:
    found = space(a_snapshot(a_node("n1"), a_node("n2", cores=1.0)))
    assert found.capacity(np.array([2.0, GIB, 1.0])).tolist() == [2, 0]


def test_two_moves_to_one_node_book_both() -> None:
    leaving = (an_executor("e-1", node="hot"), an_executor("e-2", node="warm", requests=Resources(2.0)))
    moves = tuple(a_move(e.name, executor_uid=e.uid, phase=MovePhase.APPROVED) for e in leaving)
    assert in_flight(a_snapshot(executors=leaving, moves=moves)) == {"cold": Resources(3.0, GIB, 1)}


def test_a_move_of_which_nothing_was_noted_books_nothing_once_its_executor_is_gone() -> None:
    fellow = an_executor("e-2", node="cold")
    assert in_flight(a_snapshot(executors=(fellow,), moves=(a_move(**GONE),))) == {}


LEVELS = Policy("p").levels


def short(*sets: int, executors: tuple[Executor, ...] = (), **changes: Any) -> tuple[bool, ...]:
    """Of sets of so many executors of one core, for two nodes of two cores."""
    waiting = [[gated(f"set-{number}-{i}", **changes) for i in range(count)] for number, count in enumerate(sets)]
    snapshot = a_snapshot(a_node("n1", cores=2.0), a_node("n2", cores=2.0), executors=executors)
    return short_of_room(snapshot, LEVELS, waiting, reserved={}, unbound=expected(snapshot, LEVELS))


@pytest.mark.parametrize(
    ("sets", "lacking"),
    [
        ((4,), (False,)),
        ((5,), (True,)),
        ((2, 2), (False, False)),
        ((3, 2), (False, True)),
        ((0, 5, 1), (False, True, True)),
    ],
)
def test_the_pool_lacks_room_for_a_set_if_some_of_it_fits_nowhere_next_to_those_before_it(
    sets: tuple[int, ...], lacking: tuple[bool, ...]
) -> None:
    assert short(*sets) == lacking


def test_a_node_counts_for_as_many_as_it_takes_whole() -> None:
    assert short(2, requests=Resources(1.5, GIB, 1)) == (False,)
    assert short(3, requests=Resources(1.5, GIB, 1)) == (True,)


def test_only_nodes_that_admit_an_executor_have_room_for_it() -> None:
    on_n1 = Constraints(affinity_terms=((Requirement("metadata.name", "In", ("n1",), on_field=True),),))
    assert short(2, constraints=on_n1) == (False,)
    assert short(3, constraints=on_n1) == (True,)


@pytest.mark.parametrize(
    ("changes", "lacking"),
    [
        ({"node": "n1"}, True),
        ({"node": "n1", "phase": Phase.LEAVING}, False),
        ({"node": None, "phase": Phase.PENDING, "created_at": NOW}, True),
    ],
)
def test_the_room_of_an_executor_that_is_leaving_will_be_there(changes: dict[str, Any], *, lacking: bool) -> None:
    """`a_node` counts no bound requests by itself: the node is full of the executor's."""
    before = an_executor("before", **changes)
    full = a_node("n1", cores=1.0, requested=before.requests if before.node else Resources())
    snapshot = a_snapshot(full, executors=(before,))
    waiting = [[gated("new")]]
    found = short_of_room(snapshot, LEVELS, waiting, reserved={}, unbound=expected(snapshot, LEVELS))
    assert found == (lacking,)


def test_room_that_a_move_has_reserved_is_not_there() -> None:
    snapshot = a_snapshot(a_node("n1", cores=1.0))
    reserved = {"n1": Resources(1.0, GIB, 1)}
    assert short_of_room(snapshot, LEVELS, [[gated("new")]], reserved=reserved, unbound={}) == (True,)
