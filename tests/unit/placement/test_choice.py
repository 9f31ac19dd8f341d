from __future__ import annotations

from random import Random

import numpy as np

from ballast.placement.strategy import draw


def test_one_of_the_possible_ones_is_drawn() -> None:
    assert {draw(np.array([3, 8]), Random(seed)) for seed in range(20)} == {3, 8}


def test_the_same_randomness_draws_the_same() -> None:
    positions = np.arange(50)
    assert draw(positions, Random(3)) == draw(positions, Random(3))
