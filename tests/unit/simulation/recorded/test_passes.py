from __future__ import annotations

from itertools import islice

import pytest

from ballast.simulation.replay import due


@pytest.mark.parametrize(
    ("recorded", "passes"),
    [
        ((), [0, 10, 20, 30, 40]),
        ((3,), [0, 10, 20, 30, 40]),
        ((3, 13, 24, 36), [3, 13, 24, 36, 46]),
        ((12, 22, 33), [0, 12, 22, 33, 43]),
        ((3, 13, 43, 53, 63), [3, 13, 23, 33, 43]),
        ((3, 13, 25, 29, 39), [3, 13, 25, 29, 39]),
    ],
)
def test_passes_are_the_operators_and_at_the_interval_where_it_had_none(
    recorded: tuple[float, ...], passes: list[float]
) -> None:
    assert list(islice(due(recorded, 10.0), 5)) == passes


@pytest.mark.parametrize("interval", [4.0, 20.0])
def test_a_policy_that_looks_more_or_less_often_has_passes_of_its_own(interval: float) -> None:
    assert list(islice(due((3.0, 13.0, 23.0), interval), 3)) == [0.0, interval, 2 * interval]
