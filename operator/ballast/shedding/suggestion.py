"""What a strategy answers: one executor, where it is, where it should go, and the figures behind it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Suggestion:
    executor: str
    source: str
    target: str | None
    """None: the strategy unloads without naming a destination; placement has to find one."""
    hot_score: float
    """Score of the source, percent; where moves are predicted, once the suggestions before this one are done."""
    cold_score: float | None = None
    difference: float | None = None
    """Points between the two (or between the source and what the strategy compares it with)."""
    hits: int = 0
    """How often in a row the condition had been seen."""
    hot_after: float | None = None
    """The same once this one is done, too; None = not predictable."""
    cold_after: float | None = None
    cause: str = ""
    """What the strategy saw, where it tells several conditions apart."""
