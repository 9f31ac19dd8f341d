"""The second look at a move that is about to leave, or whose replacement is about to be sent to its node."""

from __future__ import annotations

from typing import Any

import pytest

from ballast.model import Executor, MetricsHealth, Move, MovePhase, Node, Phase, Reason, Resources
from ballast.planner.candidates import Candidates
from ballast.planner.clearance import Clearance, clearance
from ballast.planner.load import loads
from tests.builders import GIB, NOW, a_move, a_node, a_policy, a_snapshot, an_executor, gated

SCORES = {"hot": 90.0, "cold": 20.0, "cool": 30.0, "warm": 85.0}
NODES = tuple(a_node(name) for name in SCORES)
LEAVER = an_executor("e1", node="hot", cpu=0.4)
POLICY = a_policy()
FULL = Resources(4.0, GIB, 1)


def approved(**changes: Any) -> Move:
    return a_move("m1", **{"phase": MovePhase.APPROVED, "ended_at": None, "executor_uid": LEAVER.uid, **changes})


def cleared(
    move: Move,
    *others: Move,
    nodes: tuple[Node, ...] = NODES,
    executors: tuple[Executor, ...] = (LEAVER,),
    metrics: MetricsHealth | None = None,
) -> Clearance:
    health = metrics or MetricsHealth(available=True, reason="Available")
    snapshot = a_snapshot(*nodes, executors=executors, moves=(move, *others), metrics=health)
    candidates = Candidates(snapshot, POLICY, loads(executors), booked={}, now=NOW - 9e5)
    return clearance(snapshot, POLICY, move, candidates=candidates, scores=SCORES, now=NOW)


def full(*names: str) -> tuple[Node, ...]:
    return tuple(a_node(node.name, requested=FULL if node.name in names else Resources()) for node in NODES)


def reason(found: Clearance) -> Reason | None:
    return found[0].reason if found[0] else None


def test_a_move_that_nothing_speaks_against_goes_on() -> None:
    assert cleared(approved()) == (None, None)


def test_there_is_nothing_to_forbid_once_the_executor_is_gone() -> None:
    assert cleared(approved(), executors=(), nodes=full(*SCORES)) == (None, None)


def test_without_figures_nothing_leaves() -> None:
    refusal, _ = cleared(approved(), metrics=MetricsHealth(reason="Unreachable", message="no route"))
    assert refusal is not None
    assert (refusal.subject, refusal.reason, refusal.detail) == (LEAVER.key, Reason.NO_METRICS, "Unreachable: no route")


def test_an_executor_that_may_no_longer_move_stays_with_the_words_of_the_rule() -> None:
    refusal, _ = cleared(approved(), executors=(an_executor("e1", node="hot", enforced=False),))
    assert refusal is not None
    assert refusal.reason is Reason.NOT_OPTED_IN
    assert refusal.detail


def test_a_paused_topology_stays() -> None:
    failed = (a_move(f"f{i}", phase=MovePhase.FAILED, ended_at=NOW - 9000 - i, started_at=NOW - 9900) for i in range(3))
    assert reason(cleared(approved(), *failed)) is Reason.PAUSED


@pytest.mark.parametrize(
    ("other", "found"),
    [
        pytest.param({"phase": MovePhase.LEAVING}, Reason.MAX_CONCURRENT, id="one that is leaving"),
        pytest.param({"phase": MovePhase.PROPOSED}, None, id="one that is only proposed"),
        pytest.param({"started_at": NOW - 301}, Reason.MAX_CONCURRENT, id="one approved before it"),
        pytest.param({"started_at": NOW - 299}, None, id="one approved after it"),
        pytest.param({"name": "m0"}, Reason.MAX_CONCURRENT, id="at the same moment, first by name"),
        pytest.param({}, None, id="at the same moment, later by name"),
    ],
)
def test_of_approved_moves_the_earliest_goes_first(other: dict[str, Any], found: Reason | None) -> None:
    move = a_move(**{"name": "m2", "phase": MovePhase.APPROVED, "ended_at": None, "source": "warm", **other})
    assert reason(cleared(approved(), move)) is found


def test_a_full_destination_is_exchanged_for_the_next_coldest() -> None:
    assert cleared(approved(), nodes=full("cold")) == (None, "cool")


@pytest.mark.parametrize(
    "closed",
    [
        pytest.param(("cold", "cool"), id="the next would become the hotter one"),
        pytest.param(("cold", "cool", "warm"), id="no other has room"),
    ],
)
def test_a_move_is_refused_when_no_colder_node_takes_it(closed: tuple[str, ...]) -> None:
    refusal, target = cleared(approved(), nodes=full(*closed))
    assert target is None
    assert refusal is not None
    assert (refusal.reason, refusal.target) == (Reason.NO_ROOM, "cold")


def arriving(**changes: Any) -> Move:
    return approved(phase=MovePhase.ARRIVING, **changes)


def test_a_replacement_that_has_not_come_yet_has_no_destination_to_look_at() -> None:
    assert cleared(arriving(replacement_uid=None), nodes=full(*SCORES)) == (None, None)


def test_a_replacement_goes_to_the_next_coldest_node_whatever_the_load_for_its_executor_has_left() -> None:
    replacement = gated("e9")
    found = cleared(arriving(replacement_uid=replacement.uid), nodes=full("cold", "cool"), executors=(replacement,))
    assert found == (None, "warm")


def test_a_replacement_takes_its_own_destination_where_there_is_room() -> None:
    replacement = gated("e9")
    busy = a_move("m2", phase=MovePhase.LEAVING, ended_at=None)
    assert cleared(arriving(replacement_uid=replacement.uid), busy, executors=(replacement,)) == (None, None)


def test_a_replacement_that_no_node_takes_is_refused() -> None:
    replacement = gated("e9", phase=Phase.GATED)
    found = cleared(arriving(replacement_uid=replacement.uid), nodes=full(*SCORES), executors=(replacement,))
    assert reason(found) is Reason.NO_ROOM
