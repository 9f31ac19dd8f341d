"""How much room a pass begins with."""

from __future__ import annotations

from ballast.model import Constraints, Demand, MovePhase, Phase, Policy, Requirement, Resources, Snapshot
from ballast.placement.admission import Admission
from ballast.placement.grid import grid
from ballast.placement.room import Room, in_flight, room
from tests.builders import GIB, a_move, a_node, a_snapshot, an_executor, gated


def room_of(snapshot: Snapshot, **reserved: Resources) -> dict[str, float]:
    """Cores left by node."""
    places = grid(snapshot.nodes, Policy("p").levels)
    found: Room = room(snapshot, places, Admission(places.nodes), gated=(), scores={}, reserved=reserved)
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
    released = an_executor("e-1", phase=Phase.PENDING, node=None)
    assert room_of(a_snapshot(a_node("n1"), executors=(released,))) == {"n1": 3.0}


def test_a_move_under_way_books_its_target_until_the_replacement_is_there() -> None:
    leaving = an_executor("e-1", node="hot")
    move = a_move(executor_uid=leaving.uid, phase=MovePhase.LEAVING)
    arrived = a_move(executor_uid=leaving.uid, phase=MovePhase.ARRIVING, replacement_uid="uid-e-2")
    replacement = an_executor("e-2", phase=Phase.PENDING, node=None)
    assert in_flight(a_snapshot(executors=(leaving,), moves=(move,))) == {"cold": leaving.requests}
    assert in_flight(a_snapshot(executors=(replacement,), moves=(arrived,))) == {}
    assert in_flight(a_snapshot(executors=(leaving,), moves=(a_move(executor_uid=leaving.uid),))) == {}


def test_a_replacement_that_waits_at_the_gate_has_its_place_kept() -> None:
    replacement = gated("e-2")
    move = a_move(executor_uid="gone", phase=MovePhase.ARRIVING, replacement_uid=replacement.uid)
    assert in_flight(a_snapshot(executors=(replacement,), moves=(move,))) == {"cold": replacement.requests}


def test_a_move_whose_executor_is_gone_books_what_its_fellows_ask_for() -> None:
    fellow = an_executor("e-2", node="cold")
    move = a_move(executor_uid="gone", phase=MovePhase.ARRIVING, application=fellow.application, resource_profile="0")
    assert in_flight(a_snapshot(executors=(fellow,), moves=(move,))) == {"cold": fellow.requests}
