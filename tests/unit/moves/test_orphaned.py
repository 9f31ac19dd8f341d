from __future__ import annotations

import pytest

from ballast.model import MovePhase
from ballast.moves import MoveState, turned_away
from tests.unit.moves.builders import NOW, approved, arriving, leaving, proposed, settling


@pytest.mark.parametrize("move", [proposed(created_at=NOW - 60), proposed(created_at=NOW - 60, approved=False)])
def test_a_move_that_no_policy_answers_for_ends_with_the_remedy(move: MoveState) -> None:
    step = turned_away(move, NOW)
    assert step is not None
    assert (step.move.phase, step.move.reason) == (MovePhase.REFUSED, "NoPolicy")
    assert "hot is in no BalancingPolicy's pool" in step.move.message
    assert step.move.timings.ended_at == NOW
    assert len(step.actions) == 1


@pytest.mark.parametrize(
    "move", [proposed(created_at=NOW - 59), leaving(), arriving(), settling(since=9)], ids=lambda move: move.phase
)
def test_it_is_waited_for_a_policy_and_what_has_begun_is_left_for_the_next_one(move: MoveState) -> None:
    assert turned_away(move, NOW + (0 if move.phase is MovePhase.PROPOSED else 9000)) is None


def test_one_that_was_approved_and_has_not_begun_ends_too() -> None:
    step = turned_away(approved(), NOW + 60)
    assert step is not None
    assert step.move.phase is MovePhase.REFUSED
