from __future__ import annotations

from ballast.shedding.avg_shedder_traffic import pairs
from tests.unit.shedding.builders import busy, pool


def names(*scores: float, middle: bool = False) -> list[tuple[str, str]]:
    nodes = [busy(f"n{index}", score) for index, score in enumerate(scores)]
    return [(pair.cold.name, pair.hot.name) for pair in pairs(pool(*nodes), middle=middle)]


def test_the_coldest_meets_the_hottest_and_so_on_inwards() -> None:
    assert names(80, 20, 51, 80, 52, 80) == [("n1", "n5"), ("n2", "n3"), ("n4", "n0")]


def test_the_middle_one_has_no_partner() -> None:
    assert names(10, 50, 90) == [("n0", "n2")]


def test_the_middle_one_meets_itself_when_asked_for() -> None:
    assert names(10, 50, 90, middle=True) == [("n0", "n2"), ("n1", "n1")]


def test_one_node_makes_no_pair() -> None:
    assert names(10) == []


def test_the_difference_is_in_points() -> None:
    (pair,) = pairs(pool(busy("a", 30.5), busy("b", 80.0)))
    assert pair.difference == 49.5
