"""The outcome of a placement strategy: the nodes that are equally right, of which one is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random


def draw(possible: Sequence[str], random: Random) -> str | None:
    """One of the equally right nodes, whatever order they come in; None when there is none."""
    return random.choice(sorted(possible)) if possible else None
