from __future__ import annotations

from dataclasses import replace

import pytest

from ballast.controller.cluster_objects import OpenMove
from ballast.controller.deleted_moves import DeletedMoves
from ballast.model import MovePhase
from ballast.moves import MoveState, record
from tests.unit.controller.stage import move as a_move
from tests.unit.moves.builders import leaving, orders, proposed

NOW = 1000.0
DAYS = 25 * 3600.0
POLICIES = {"streaming", ""}


def seen(state: MoveState, *, by_hand: bool = False) -> OpenMove:
    state = replace(state, orders=replace(state.orders, by_hand=by_hand))
    return OpenMove({"metadata": {"uid": "u"}}, state)


@pytest.mark.parametrize(
    ("state", "phase", "blocked"),
    [
        pytest.param(proposed(), MovePhase.REFUSED, True, id="nothing had left: its namespace rests"),
        pytest.param(leaving(), MovePhase.FAILED, True, id="it had begun: budgets count it"),
    ],
)
def test_a_move_that_is_deleted_goes_on_counting(state: MoveState, phase: MovePhase, blocked: bool) -> None:
    moves = DeletedMoves()
    assert moves.look([seen(state)], NOW, policies=POLICIES) == []
    (kept,) = moves.look([], NOW + 1.0, policies=POLICIES)
    told = record.to_move(kept.state, source_points_per_core=0.0)
    assert (told.phase, told.ended_at, told.blocked) == (phase, NOW + 1.0, blocked)
    assert moves.look([], NOW + DAYS, policies=POLICIES) == [kept]
    assert moves.look([], NOW + 1.0 + DAYS, policies=POLICIES) == []


def test_one_by_hand_counts_only_once_its_executor_was_asked_to_go() -> None:
    moves = DeletedMoves()
    moves.look([seen(proposed(), by_hand=True)], NOW, policies=POLICIES)
    assert moves.look([], NOW, policies=POLICIES) == []
    moves.look([seen(leaving(), by_hand=True)], NOW, policies=POLICIES)
    assert len(moves.look([], NOW, policies=POLICIES)) == 1


@pytest.mark.parametrize("by_hand", [True, False])
def test_a_move_that_is_deleted_right_after_its_eviction_goes_on_counting(by_hand: bool) -> None:
    moves = DeletedMoves()
    moves.look([seen(proposed(), by_hand=by_hand)], NOW, policies=POLICIES)
    moves.advanced([seen(leaving(), by_hand=by_hand)])
    (kept,) = moves.look([], NOW + 1.0, policies=POLICIES)
    assert kept.state.phase is MovePhase.FAILED


def test_a_new_move_of_the_same_name_does_not_hide_the_deleted_one() -> None:
    moves = DeletedMoves()
    moves.look([seen(leaving())], NOW, policies=POLICIES)
    second = OpenMove({"metadata": {"uid": "other"}}, proposed())
    (kept,) = moves.look([second], NOW + 1.0, policies=POLICIES)
    assert kept.key != second.key


def test_one_that_had_ended_stays_as_it_was() -> None:
    ended = replace(leaving(orders=orders()), phase=MovePhase.SUCCEEDED)
    ended = replace(ended, timings=replace(ended.timings, ended_at=NOW))
    moves = DeletedMoves()
    moves.look([seen(ended)], NOW, policies=POLICIES)
    (kept,) = moves.look([], NOW + 5.0, policies=POLICIES)
    assert kept.state.timings.ended_at == NOW
    assert kept.state.phase is MovePhase.SUCCEEDED


def test_one_that_is_deleted_before_it_was_ever_seen_counts_as_well() -> None:
    moves = DeletedMoves()
    moves.look([], NOW, policies=POLICIES)
    moves.created([{**a_move(1), "metadata": {**a_move(1)["metadata"], "uid": "u"}}])
    (kept,) = moves.look([], NOW + 1.0, policies=POLICIES)
    assert kept.state.phase is MovePhase.REFUSED


def test_one_of_a_policy_that_is_gone_counts_for_no_other() -> None:
    state = replace(leaving(), orders=replace(leaving().orders, policy="first"))
    moves = DeletedMoves()
    moves.look([seen(state)], NOW, policies={"first"})
    assert moves.look([], NOW, policies={"second"}) == []
