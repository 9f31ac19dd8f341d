from dataclasses import replace
from typing import Any

import pytest

from ballast.model import (
    MovePhase,
    MovesMode,
    MovesPolicy,
    PlacementMode,
    PlacementPolicy,
    PlannedMove,
    Policy,
    Reason,
    Snapshot,
)
from ballast.moves.rest import rest
from ballast.planner.arbiter import Arbiter
from tests.builders import NOW, a_move, a_policy, a_snapshot


def a_suggestion(name: str = "e-1", **changes: Any) -> PlannedMove:
    settings: dict[str, Any] = {
        "executor": f"team/{name}",
        "uid": f"uid-{name}",
        "topology": "team/clicks",
        "component": "ingest",
        "source": "n1",
        "target": "n2",
        "strategy": "AvgShedder",
        "hot_score": 90.0,
        "cold_score": 30.0,
        "hot_after": 70.0,
        "cold_after": 50.0,
        "gain": 40.0,
        "hits": 8,
        "load_cores": 0.5,
    }
    return PlannedMove(**{**settings, **changes})


def ruled(suggested: list[PlannedMove], snapshot: Snapshot, policy: Policy) -> list[Reason | None]:
    """For each suggestion why it is refused, or None."""
    arbiter = Arbiter(snapshot, policy, resting=rest(snapshot.moves, policy.moves, NOW), now=NOW)
    found = [arbiter.ruling(each) for each in suggested]
    return [objection[0] if objection else None for objection in found]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"target": "n1"}, Reason.NO_DESTINATION),
        ({"hot_after": 40.0, "cold_after": 61.0}, Reason.OVERSHOOT),
        ({"hot_after": 87.5, "cold_after": 32.4}, Reason.MIN_GAIN),
        ({"locality_delta_ratio": 0.11}, Reason.LOCALITY_LOSS),
    ],
)
def test_a_move_must_make_sense_by_its_own_figures(changes: dict[str, Any], reason: Reason) -> None:
    ruling = ruled([a_suggestion(**changes)], a_snapshot(), a_policy())
    assert ruling == [reason]


@pytest.mark.parametrize(
    ("moves", "placement", "reason"),
    [
        (MovesMode.ENFORCE, PlacementMode.RECOMMEND, Reason.NOT_ENFORCED),
        (MovesMode.APPROVE, PlacementMode.DISABLED, Reason.NOT_ENFORCED),
        (MovesMode.ENFORCE, PlacementMode.ENFORCE, None),
        (MovesMode.RECOMMEND, PlacementMode.RECOMMEND, None),
    ],
)
def test_nobody_is_sent_away_where_the_replacement_could_not_be_sent_anywhere(
    moves: MovesMode, placement: PlacementMode, reason: Reason | None
) -> None:
    policy = a_policy(moves=MovesPolicy(mode=moves), placement=PlacementPolicy(mode=placement))
    ruling = ruled([a_suggestion()], a_snapshot(), policy)
    assert ruling == [reason]


def test_one_approval_counts_against_the_next_suggestion() -> None:
    ruling = ruled([a_suggestion("e-1"), a_suggestion("e-2")], a_snapshot(), a_policy())
    assert ruling == [None, Reason.MAX_CONCURRENT]


def test_the_way_back_is_closed_after_a_move() -> None:
    policy = a_policy(moves=MovesPolicy(max_concurrent_per_node=9, max_concurrent_per_topology=9))
    there = a_move(source="n2", target="n1", phase=MovePhase.SETTLING, ended_at=None)
    ruling = ruled([a_suggestion()], a_snapshot(moves=(there,)), policy)
    assert ruling == [Reason.REVERSE]


def test_the_way_back_stays_closed_for_longer_than_the_nodes_rest() -> None:
    moves = MovesPolicy(cooldown_seconds=600.0, budgets=())
    there = a_move(source="n2", target="n1", topology="team/other", started_at=NOW - 3600, ended_at=NOW - 3000)
    assert ruled([a_suggestion()], a_snapshot(moves=(there,)), a_policy(moves=moves)) == [Reason.REVERSE]
    assert ruled([a_suggestion()], a_snapshot(moves=(replace(there, ended_at=NOW - 3600),)), a_policy(moves=moves)) == [
        None
    ]


def test_an_executor_has_one_move_at_a_time() -> None:
    policy = a_policy(moves=MovesPolicy(max_concurrent_per_node=9, max_concurrent_per_topology=9))
    mine = a_move(executor_uid="uid-e-1", phase=MovePhase.PROPOSED, ended_at=None)
    ruling = ruled([a_suggestion()], a_snapshot(moves=(mine,)), policy)
    assert ruling == [Reason.IN_FLIGHT]


@pytest.mark.parametrize(
    ("phase", "ago", "reason"),
    [
        (MovePhase.REFUSED, 599.0, Reason.COOLDOWN),
        (MovePhase.EXPIRED, 599.0, Reason.COOLDOWN),
        (MovePhase.REFUSED, 600.0, None),
        (MovePhase.EXPIRED, 600.0, None),
    ],
)
def test_what_came_to_nothing_is_tried_again_but_not_at_once(
    phase: MovePhase, ago: float, reason: Reason | None
) -> None:
    before = a_move(executor_uid="uid-e-1", phase=phase, helped=None, started_at=NOW - ago - 9, ended_at=NOW - ago)
    ruling = ruled([a_suggestion("e-1")], a_snapshot(moves=(before,)), a_policy())
    assert ruling == [reason]
    assert ruled([a_suggestion("e-2")], a_snapshot(moves=(before,)), a_policy()) == [None]


def test_without_a_cooldown_it_is_not_tried_again_before_it_could_have_left() -> None:
    eager = a_policy(moves=MovesPolicy(cooldown_seconds=0.0))
    before = a_move(executor_uid="uid-e-1", phase=MovePhase.REFUSED, helped=None, ended_at=NOW - 119)
    arbiter = Arbiter(a_snapshot(), eager, resting=rest((before,), eager.moves, NOW), now=NOW)
    assert arbiter.ruling(a_suggestion("e-1")) == (Reason.COOLDOWN, "its move m1 was refused; it rests 1 s more")


def test_a_topology_whose_last_moves_were_in_vain_rests() -> None:
    in_vain = tuple(a_move(f"m{i}", phase=MovePhase.FAILED, helped=False) for i in range(3))
    ruling = ruled([a_suggestion()], a_snapshot(moves=in_vain), a_policy())
    assert ruling == [Reason.PAUSED]
