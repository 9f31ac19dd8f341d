"""Which executors are nominated to their nodes, and for how long."""

from dataclasses import replace
from typing import Any

import pytest

from ballast.model import (
    Demand,
    Executor,
    Memory,
    Move,
    MovePhase,
    Phase,
    Pin,
    Placement,
    PlacementMode,
    PlacementPolicy,
    Reason,
    Resources,
    Snapshot,
)
from ballast.placement.room import about_to_be_bound
from ballast.planner.nominations import scored_nodes, with_nominations
from ballast.planner.plan import plan
from tests.builders import NOW, a_move, a_node, a_policy, a_snapshot, an_executor, gated

LEVELS = a_policy().levels
ENFORCING = a_policy(placement=PlacementPolicy(mode=PlacementMode.ENFORCE))


@pytest.mark.parametrize(
    ("nodes", "scored"),
    [(0, 0), (100, 100), (101, 100), (200, 100), (500, 230), (1000, 420), (5000, 500), (20000, 1000)],
)
def test_kube_scheduler_scores_a_share_of_many_nodes(nodes: int, scored: int) -> None:
    assert scored_nodes(nodes) == scored


def wide_pool(nodes: int, **changes: Any) -> Snapshot:
    """One zone of racks of 50 nodes."""
    return a_snapshot(*(a_node(f"n{n:03d}", rack=f"r{n // 50}") for n in range(nodes)), **changes)


@pytest.mark.parametrize(
    ("snapshot", "pin", "nominated"),
    [
        pytest.param(wide_pool(100), Pin.ZONE, False, id="not where kube-scheduler scores every node"),
        pytest.param(wide_pool(101), Pin.ZONE, True, id="in a zone of which it may score a sample"),
        pytest.param(wide_pool(101), Pin.RACK, False, id="not in a required rack of few nodes"),
        pytest.param(wide_pool(101), Pin.NONE, True, id="where nothing is required and the pool is large"),
        pytest.param(wide_pool(3, pending=(Demand(Resources(1.0)),)), Pin.ZONE, True, id="next to other pods"),
        pytest.param(
            wide_pool(3, executors=(gated("e-1", nominated="n002"),)), Pin.ZONE, True, id="instead of an earlier one"
        ),
    ],
)
def test_an_executor_is_nominated_to_its_node(snapshot: Snapshot, pin: Pin, *, nominated: bool) -> None:
    chosen = Placement("team/e-1", gated("e-1").uid, "n001", ("z1", "r0", "n001"), pin)
    (found,) = with_nominations((chosen,), snapshot, LEVELS)
    assert found == replace(chosen, nominated=nominated)


def test_an_executor_of_which_kube_scheduler_may_never_say_that_no_node_takes_it_is_not_nominated() -> None:
    """Its ResourceClaim need not exist: kube-scheduler would keep the room of the node for good."""
    waiting = replace(gated("e-1"), never_unschedulable=True)
    snapshot = wide_pool(3, executors=(waiting,), contended=True)
    chosen = Placement("team/e-1", waiting.uid, "n001", ("z1", "r0", "n001"), Pin.ZONE)
    assert with_nominations((chosen,), snapshot, LEVELS) == (chosen,)
    assert with_nominations((chosen,), replace(snapshot, executors=(gated("e-1"),)), LEVELS)[0].nominated


@pytest.mark.parametrize(
    ("changes", "nominated"),
    [
        pytest.param({"nominated": "n000"}, False, id="nominated"),
        pytest.param({"pinned": True}, True, id="tied to a zone: it may have come too late for its room"),
        pytest.param({}, True, id="not where Ballast found no node either"),
        pytest.param({"nominated": "n000", "namespace": "other"}, True, id="of another namespace"),
        pytest.param({"nominated": "n000", "unschedulable_since": None}, True, id="not tried yet"),
    ],
)
def test_no_executor_is_nominated_next_to_a_nominated_one_that_could_not_be_bound(
    changes: dict[str, Any], *, nominated: bool
) -> None:
    """Its volume need not exist, and it may be created again and again: each nomination would keep a node's room."""
    stuck = replace(an_executor("e-9", phase=Phase.PENDING, node=None, unschedulable_since=NOW - 1.0), **changes)
    snapshot = wide_pool(3, executors=(stuck, gated("e-1")), contended=True)
    chosen = Placement("team/e-1", gated("e-1").uid, "n001", ("z1", "r0", "n001"), Pin.ZONE)
    (found,) = with_nominations((chosen,), snapshot, LEVELS)
    assert found.nominated == nominated


def test_an_executor_without_a_node_is_not_nominated() -> None:
    nowhere = Placement("team/e-1", "uid-e-1", None, (), Pin.NONE, Reason.NO_ROOM)
    assert with_nominations((nowhere,), wide_pool(101), LEVELS) == (nowhere,)


def left_gated(**changes: Any) -> Executor:
    """The operator crashed after it had nominated it, and more of its set has come since, so it waits again."""
    return gated(
        "e-1", **{"since": NOW - 0.1, "application": "spark-2", "topology": "team/waiting", "nominated": "a", **changes}
    )


OF_A_MOVE = (a_move(phase=MovePhase.ARRIVING, target="a", replacement_uid=left_gated().uid),)


@pytest.mark.parametrize(
    ("waiting", "moves", "cores", "chosen"),
    [
        pytest.param(left_gated(), (), (1.0, 1.0), "b", id="which kube-scheduler keeps for it"),
        pytest.param(left_gated(nominated=None), (), (1.0, 1.0), "a", id="but none without a nomination"),
        pytest.param(left_gated(nominated="gone"), (), (1.0, 1.0), "a", id="but none of a node that is gone"),
        pytest.param(left_gated(), OF_A_MOVE, (2.0, 0.5), "a", id="once, if its move keeps that room as well"),
    ],
)
def test_an_executor_that_stays_gated_keeps_the_room_of_the_node_that_it_is_nominated_to(
    waiting: Executor, moves: tuple[Move, ...], cores: tuple[float, float], chosen: str
) -> None:
    ready = gated("e-2", since=NOW - 60.0)
    nodes = a_node("a", cores=cores[0]), a_node("b", cores=cores[1])
    decided, _ = plan(a_snapshot(*nodes, executors=(waiting, ready), moves=moves), ENFORCING, Memory(), NOW)
    assert [(placement.uid, placement.node) for placement in decided.placements] == [(ready.uid, chosen)]


def test_an_executor_that_is_placed_takes_the_room_that_its_earlier_nomination_kept() -> None:
    ready = left_gated(since=NOW - 60.0)
    decided, _ = plan(a_snapshot(a_node("a", cores=1.0), executors=(ready,)), ENFORCING, Memory(), NOW)
    assert [placement.node for placement in decided.placements] == ["a"]


def unbound(**changes: Any) -> Snapshot:
    executor = replace(an_executor("e-1", phase=Phase.PENDING, node=None, nominated="a"), **changes)
    return a_snapshot(a_node("a"), a_node("b"), executors=(executor,))


@pytest.mark.parametrize(
    ("snapshot", "overdue", "wake_at"),
    [
        pytest.param(unbound(), False, None, id="none while kube-scheduler has not tried"),
        pytest.param(unbound(unschedulable_since=NOW - 4.0), False, NOW + 1.0, id="none within five seconds"),
        pytest.param(unbound(unschedulable_since=NOW - 5.0), True, None, id="an autoscaler must see the pod"),
        pytest.param(unbound(unschedulable_since=NOW + 3600.0), True, None, id="its author made up the time"),
        pytest.param(unbound(never_unschedulable=True), True, None, id="its ResourceClaim need not exist"),
        pytest.param(
            unbound(phase=Phase.LEAVING), True, None, id="it is being deleted, and a finalizer may keep it for good"
        ),
        pytest.param(
            replace(
                unbound(unschedulable_since=NOW - 5.0),
                moves=(a_move(phase=MovePhase.ARRIVING, replacement_uid=unbound().executors[0].uid),),
            ),
            False,
            None,
            id="none of a move's replacement",
        ),
    ],
)
def test_a_nomination_that_came_to_nothing_is_overdue(
    snapshot: Snapshot, *, overdue: bool, wake_at: float | None
) -> None:
    decided, _ = plan(snapshot, a_policy(), Memory(), NOW)
    assert decided.overdue_nominations == ((snapshot.executors[0].uid,) if overdue else ())
    assert decided.wake_at == wake_at


@pytest.mark.parametrize(
    ("misjudged", "overdue"),
    [((), False), (("other",), True), (("team",), False)],
    ids=["of no other namespace", "of another as well", "of its own"],
)
def test_nominations_in_several_namespaces_that_came_to_nothing_are_cleared_at_once(
    misjudged: tuple[str, ...], *, overdue: bool
) -> None:
    """A user with many namespaces kept the room of all nodes, for five seconds by each."""
    snapshot = replace(unbound(unschedulable_since=NOW - 0.5), misjudged_namespaces=misjudged)
    decided, _ = plan(snapshot, a_policy(), Memory(), NOW)
    assert decided.overdue_nominations == ((snapshot.executors[0].uid,) if overdue else ())


@pytest.mark.parametrize(
    ("changes", "expected"),
    [({}, True), ({"nominated": None}, False), ({"nominated": None, "pinned_at": NOW - 5.0}, True)],
    ids=["nominated", "not placed by Ballast", "its affinity is Ballast's"],
)
def test_an_executor_that_ballast_placed_for_a_named_scheduler_counts_until_it_is_bound(
    changes: dict[str, Any], *, expected: bool
) -> None:
    """Otherwise the next set was sent to the room that the first one is about to take."""
    (executor,) = unbound().executors
    named = replace(executor, scheduler="optimize-utilization", **changes)
    assert named.about_to_be_bound(NOW) is expected


def test_an_executor_whose_volume_does_not_come_counts_as_long_as_kube_scheduler_keeps_its_room() -> None:
    """For up to ten minutes kube-scheduler waits for the volume, and says nothing of the pod."""
    (executor,) = unbound(created_at=NOW - 500.0).executors
    assert executor.about_to_be_bound(NOW)
    assert not replace(executor, nominated=None).about_to_be_bound(NOW)
    assert not replace(executor, unschedulable_since=NOW - 300.0).about_to_be_bound(NOW)


@pytest.mark.parametrize(
    ("bound", "placed_at", "counts"),
    [("ghost", NOW - 60.0, True), ("default-scheduler", NOW - 60.0, False), ("default-scheduler", NOW - 5.0, True)],
    ids=["it has bound one", "it has bound none", "it was placed a moment ago"],
)
def test_a_named_scheduler_that_binds_nothing_keeps_no_room(bound: str, placed_at: float, *, counts: bool) -> None:
    """A policy may name one that does not run: its executors wait for good, and more can always be made."""
    (waiting,) = unbound().executors
    waiting = replace(waiting, scheduler="ghost", pinned_at=placed_at, created_at=placed_at)
    snapshot = replace(unbound(), executors=(waiting, an_executor("e-9", node="a", scheduler=bound)))
    assert [each.uid for each in about_to_be_bound(snapshot)] == ([waiting.uid] if counts else [])
