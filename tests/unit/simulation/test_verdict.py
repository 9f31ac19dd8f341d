from __future__ import annotations

import pytest

from ballast.simulation.ranking import verdict
from tests.unit.simulation.studies import CAREFUL, EAGER, STILL, result


def test_points_that_are_left_are_those_beyond_what_is_level() -> None:
    still = verdict([result(STILL)])
    assert still.points_left == pytest.approx(90.0 - 30.0 - 15.0)
    assert verdict([result(CAREFUL)]).points_left == 0.0


def test_needless_moves_are_counted_by_the_day() -> None:
    """The hand-made runs last an hour and say nothing of how few moves were needed."""
    assert verdict([result(CAREFUL)]).needless_moves == pytest.approx(24.0 * 2)
    assert verdict([result(STILL)]).needless_moves == 0.0


def test_slow_is_what_is_not_level_in_the_end_then_what_took_many_rounds() -> None:
    still, careful, eager = (verdict([result(policy)]) for policy in (STILL, CAREFUL, EAGER))
    assert still.slowness == (1, 0.0)
    assert careful.slowness == (0, 2.0)
    assert careful.slowness < eager.slowness < still.slowness


def test_cases_are_averaged() -> None:
    both = verdict([result(STILL), result(CAREFUL)])
    assert both.points_left == pytest.approx(45.0 / 2)
    assert both.slowness == (1, 2.0)
