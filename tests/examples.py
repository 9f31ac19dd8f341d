"""How many examples a property is tried with."""

from __future__ import annotations

from hypothesis import settings

USUAL = 100
"""Of Hypothesis; also those of a property that names no number, in a run that leaves nothing out."""
FEWEST = 5


def examples(count: int) -> settings:
    """So many in a run that leaves nothing out, and in a shorter one its profile's share of them."""
    return settings(max_examples=max(FEWEST, count * settings().max_examples // USUAL))
