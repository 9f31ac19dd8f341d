"""Random search and hill climbing for the cases that are worst."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Generic, TypeVar

T = TypeVar("T")

_DRAWN = 6
"""Cases drawn at random, of which the worst is climbed from."""
_PATIENCE = 20
"""Changes in a row that make a case no worse, after which a climb ends."""


@dataclass(frozen=True, slots=True)
class Found(Generic[T]):
    case: T
    badness: float


@dataclass(frozen=True, slots=True)
class Hunted(Generic[T]):
    worst: tuple[Found[T], ...]
    """The end of each climb, the worst first."""
    judged: int
    """Cases that were looked at."""


def hunt(
    draw: Callable[[Random], T],
    change: Callable[[T, Random], T],
    badness: Callable[[T], float],
    *,
    random: Random,
    in_time: Callable[[], bool],
) -> Hunted[T]:
    """Climb again and again from another place, as long as there is time. At least one case is judged."""
    summits: list[Found[T]] = []
    judged = 0

    def look(case: T) -> Found[T]:
        nonlocal judged
        judged += 1
        return Found(case, badness(case))

    while not judged or in_time():
        best = look(draw(random))
        for _ in range(_DRAWN - 1):
            if in_time():
                best = max(best, look(draw(random)), key=lambda found: found.badness)
        idle = 0
        while idle < _PATIENCE and in_time():
            other = look(change(best.case, random))
            idle = 0 if other.badness > best.badness else idle + 1
            # A case that is as bad takes the place of the other: so the search leaves plateaus.
            best = other if other.badness >= best.badness else best
        summits.append(best)
    return Hunted(tuple(sorted(summits, key=lambda found: -found.badness)), judged)
