from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ballast.shedding.victims_and_destination import Combination, Item, closest


def names(combination: Combination) -> list[str]:
    return sorted(combination.names)


def items(*loads: float) -> list[Item]:
    return [Item(f"e{index}", load) for index, load in enumerate(loads)]


@pytest.mark.parametrize(
    ("loads", "wanted", "most", "chosen"),
    [
        ((3.0, 2.0, 2.0), 4.0, 2, ["e1", "e2"]),
        ((3.0, 2.0, 2.0), 4.0, 1, ["e0"]),
        ((5.0, 4.5), 4.0, 3, []),
        ((4.0, 2.0, 2.0), 4.0, 3, ["e0"]),
        ((0.0, 1.0), 4.0, 3, ["e1"]),
        ((), 4.0, 3, []),
        ((1.0,), 4.0, 0, []),
    ],
    ids=[
        "not the largest first",
        "within the number allowed",
        "never more than wanted",
        "fewer moves where both level",
        "idle ones change nothing",
        "nobody there",
        "no move allowed",
    ],
)
def test_the_closest_combination(loads: tuple[float, ...], wanted: float, most: int, chosen: list[str]) -> None:
    assert names(closest(items(*loads), wanted=wanted, most=most, slack=0.0)) == chosen


def test_within_the_slack_the_cheaper_one_goes() -> None:
    offered = [Item("near", 4.0, cost=5.0), Item("nearly", 3.8, cost=1.0), Item("far", 2.0, cost=0.0)]
    assert names(closest(offered, wanted=4.0, most=1, slack=0.5)) == ["nearly"]


def test_within_the_slack_one_dear_move_is_better_than_two_cheap_ones() -> None:
    offered = [Item("a", 3.8, cost=5.0), Item("b", 2.0), Item("c", 2.0)]
    assert names(closest(offered, wanted=4.0, most=2, slack=0.5)) == ["a"]


@given(
    st.lists(st.floats(0.1, 10.0), max_size=7),
    st.floats(0.5, 20.0),
    st.integers(1, 4),
)
def test_no_combination_comes_much_closer(loads: list[float], wanted: float, most: int) -> None:
    """Sums are told apart in 256 steps; that is how much closer another one may be, once for each item."""
    offered = items(*loads)
    found = closest(offered, wanted=wanted, most=most, slack=0.0)
    sums = [sum(item.load for item in group) for size in range(1, most + 1) for group in combinations(offered, size)]
    best = max((total for total in sums if total <= wanted), default=0.0)
    assert found.load <= wanted * (1 + 1e-9)
    assert found.load >= best - wanted * most / 256
    assert len(found.items) <= most
    assert found.load == pytest.approx(sum(item.load for item in found.items))


@given(st.permutations(items(3.0, 2.0, 2.0, 1.5, 0.5)))
def test_the_order_decides_nothing(offered: list[Item]) -> None:
    assert closest(offered, wanted=4.2, most=3, slack=0.1) == closest(
        items(3.0, 2.0, 2.0, 1.5, 0.5), wanted=4.2, most=3, slack=0.1
    )
