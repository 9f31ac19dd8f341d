from __future__ import annotations

import pytest

from ballast.placement.least_long_term_rate import RateSettings, possible
from ballast.placement.strategy import Arrival, Candidate


def rated(*rates: float, hot: tuple[str, ...] = (), score: float = 85.1) -> list[Candidate]:
    return [
        Candidate(str(index), score if str(index) in hot else 50.0, rate) for index, rate in enumerate(rates, start=1)
    ]


@pytest.mark.parametrize(
    ("candidates", "best"),
    [
        (rated(100, 200, 300), ("1",)),
        (rated(400, 200, 300), ("2",)),
        (rated(100, 200, 300, hot=("1",)), ("2",)),
        (rated(200, 200, 300), ("1", "2")),
        (rated(100, 200, hot=("1", "2")), ("1", "2")),
        (rated(100, 200, hot=("1",), score=85.0), ("1",)),
        ([], ()),
    ],
    ids=["least", "least again", "not overloaded", "tie", "all overloaded", "at the threshold", "nobody"],
)
def test_the_node_with_the_fewest_records(candidates: list[Candidate], best: tuple[str, ...]) -> None:
    assert possible(candidates, RateSettings()) == best


def test_what_is_on_its_way_counts() -> None:
    first = Candidate("1", 50, 100, arriving=(Arrival("e", 150.0),))
    assert possible([first, Candidate("2", 50, 200)], RateSettings()) == ("2",)


def test_what_has_arrived_counts_once_unless_asked_to_do_as_pulsar() -> None:
    first = Candidate("1", 50, 150, executors=frozenset({"e"}), arriving=(Arrival("e", 150.0),))
    nodes = [first, Candidate("2", 50, 200)]
    assert possible(nodes, RateSettings()) == ("1",)
    assert possible(nodes, RateSettings(count_twice=True)) == ("2",)
