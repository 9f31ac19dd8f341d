from __future__ import annotations

from random import Random

from ballast.placement.pulsar.choice import draw


def test_one_of_the_possible_ones_is_drawn_whatever_their_order() -> None:
    assert draw(("c", "a", "b"), Random(3)) == draw(("a", "b", "c"), Random(3))
    assert {draw(("a", "b"), Random(seed)) for seed in range(20)} == {"a", "b"}


def test_of_none_none_is_drawn() -> None:
    assert draw((), Random(3)) is None
