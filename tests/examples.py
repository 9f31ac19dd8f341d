"""How many examples a property is tried with, and how many seeds."""

from __future__ import annotations

import pytest
from hypothesis import settings

USUAL = 100
"""Of Hypothesis; also those of a property that names no number, in a run that leaves nothing out."""
FEWEST = 5


def examples(count: int) -> settings:
    """So many in a run that leaves nothing out, and in a shorter one its profile's share of them."""
    return settings(max_examples=max(FEWEST, count * settings().max_examples // USUAL))


def seeds(count: int, *, always: int = 2) -> tuple[object, ...]:
    """For `parametrize`: the first ones are tried in every run, the others in `make soak`."""
    later = (pytest.param(seed, marks=pytest.mark.soak) for seed in range(always, count))
    return (*range(always), *later)
