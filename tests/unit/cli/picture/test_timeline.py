from __future__ import annotations

import re

import pytest

from ballast.cli.picture.timeline import timeline
from ballast.simulation.trace import MoveRecord, Outcome
from tests.unit.simulation.traces import move


def drawn(*moves: MoveRecord, seconds: float = 3600.0) -> str:
    return timeline({"p": moves}, seconds=seconds, name="moves", title="t").drawings[0].marks


def spots(marks: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in re.findall(r"</title><path [^>]*translate\(([\d.]+) ([\d.]+)", marks)]


def test_every_move_tells_when_what_whence_where_to_and_how_it_ended() -> None:
    made = move(0, 1, 90.0, measured_hot_after=60.0, measured_cold_after=40.0)
    (told,) = re.findall(r"<title>(.*?)</title>", drawn(made))
    assert told == (
        "1m30s: simulation/e-90, node-0 → node-1, gap narrower by 20.0 points predicted, 40.0 measured, helped"
    )


@pytest.mark.parametrize("outcome", Outcome)
def test_an_outcome_has_a_shape_and_a_word_of_its_own(outcome: Outcome) -> None:
    others = {
        each: re.findall(r'<path class="(\w+)"[^>]* d="([^"]*)"', drawn(move(0, 1, 0.0, outcome=each)))[0]
        for each in Outcome
    }
    assert [each for each, shape in others.items() if shape == others[outcome]] == [outcome]


def test_what_comes_later_stands_further_to_the_right() -> None:
    (first, _), (second, _) = spots(drawn(move(0, 1, 60.0), move(0, 1, 1800.0)))
    assert first < second


def test_moves_of_one_pass_stand_below_each_other() -> None:
    (left, upper), (right, lower) = spots(drawn(move(0, 1, 60.0), move(2, 3, 60.0)))
    assert left == right
    assert lower - upper > 8.0


def test_few_moves_say_whence_and_where_to_next_to_them() -> None:
    assert "node-0 → node-1</text>" in drawn(move(0, 1, 60.0))
    assert '">node-0 → node-1</text>' in drawn(move(0, 1, 3599.0))
    assert 'text-anchor="end">node-0 → node-1' in drawn(move(0, 1, 3599.0))


def test_very_many_moves_say_so_in_their_titles_only() -> None:
    marks = drawn(*(move(0, 1, 60.0 * number) for number in range(60)))
    assert "→ node-1</text>" not in marks
    assert len(spots(marks)) == 60


def test_a_policy_without_moves_says_that() -> None:
    assert "p: no moves" in drawn()
    assert "p: 1 move<" in drawn(move(0, 1, 0.0))
