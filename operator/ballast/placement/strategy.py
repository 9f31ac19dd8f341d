"""What every placement strategy answers: where executors go, of the nodes that admit them and have room."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ballast.model import Executor
from ballast.placement.outlook import Outlook

Seats = list[list[int]]
"""For each row of an outlook's groups, the nodes (positions in the pool) of as many executors as find one."""


class Strategy(Protocol):
    """One strategy during one pass; what it knows of the nodes changes as executors are placed."""

    def seats(self, view: Outlook, turns: Sequence[int]) -> Seats:
        """`turns`: rows of the outlook's groups, one per executor, in the order of placing."""

    def took(self, executor: Executor, node: int) -> None:
        """An executor is going there, for a reason that is not the strategy's: a move, or because it was there."""
