from __future__ import annotations

import re

import numpy as np
import pytest

from ballast.cli.picture.timeline import MOST_ROWS, Heat, heat_map, timeline
from ballast.simulation.trace import MoveRecord, Outcome, Trace
from tests.unit.simulation.traces import move, trace


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


NODE = re.compile(r'<g class="node">.*?</g>')
RECT = re.compile(r'<rect class="h(\d)" x="([\d.]+)" y="([\d.]+)" width="([\d.]+)"')


def wide(shown: Trace) -> str:
    return heat_map(Heat.of(shown), name="nodes", title="t").drawings[0].marks


def rects(shown: Trace) -> list[tuple[str, ...]]:
    """Shade, x, y and width of each stretch of a node."""
    return [rect for node in NODE.findall(wide(shown)) for rect in RECT.findall(node)]


def test_the_shade_is_the_usage_in_tens() -> None:
    assert [int(shade) for shade, *_ in rects(trace([[5.0, 55.0, 140.0]] * 3))] == [0, 5, 9]


def test_a_node_that_is_not_there_is_not_drawn() -> None:
    (_, always, _, _), (_, later, _, _) = rects(trace([[50.0, np.nan], [50.0, 20.0]]))
    assert float(later) > float(always)


def test_a_change_of_shade_is_where_the_usage_changed() -> None:
    (hot, x, _, width), (cold, at, _, _) = rects(trace([[80.0]] * 5 + [[30.0]] * 5))
    assert (hot, cold) == ("8", "3")
    assert float(x) + float(width) == pytest.approx(float(at), abs=0.2)


def test_every_move_is_an_arrow_between_its_nodes() -> None:
    drawn = wide(trace([[80.0, 20.0]] * 5, moves=(move(0, 1, 60.0), move(1, 0, 120.0))))
    down, up = re.findall(r'class="move" d="M[\d.]+ ([\d.]+)V([\d.]+)', drawn)
    assert float(down[0]) < float(down[1])
    assert float(up[0]) > float(up[1])


def test_of_very_many_nodes_those_with_moves_are_shown() -> None:
    crowd = trace([[50.0] * 500] * 3, moves=(move(400, 7, 60.0),))
    assert len(rects(crowd)) == MOST_ROWS
    assert 'class="move"' in wide(crowd)


def test_a_node_tells_its_name_and_its_figures() -> None:
    told = re.findall(r"<title>(.*?)</title>", wide(trace([[20.0, np.nan], [60.0, np.nan]])))
    assert told == ["node-0: 20 to 60 %, mean 40", "node-1: no metrics"]


def test_what_shades_stand_for_is_said_below() -> None:
    assert re.findall(r'class="tick"[^>]*>(\d+)</text><rect', wide(trace([[50.0]] * 2)))[:3] == ["0", "10", "20"]
