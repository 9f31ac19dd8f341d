"""The outcome of a placement strategy: the nodes that are equally right, of which one is drawn."""

from __future__ import annotations

from random import Random

from ballast.model.arrays import IntArray


def draw(possible: IntArray | list[int], random: Random) -> int:
    """One of the equally right positions, of which there is at least one; they must be in ascending order."""
    return int(possible[random.randrange(len(possible))])
