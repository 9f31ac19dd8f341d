"""Strategy Proximity: a whole set of executors at once, close to each other and to what they talk to.

The zone is chosen first, then racks within it, then nodes within the spread limits (after Storm's resource-aware
scheduling: executors in the order of proximity needs, each to the nearest node with room).
"""

from __future__ import annotations

from collections.abc import Sequence

from ballast.model import Executor
from ballast.placement.outlook import Outlook
from ballast.placement.search import Effort, search
from ballast.placement.strategy import Seats

_STEPS_PER_SECOND = 6000
"""Of search time: about what one core does on a set of ordinary size. Fixed, so that every machine plans alike."""
_MOST_SHARE = 2 / 3
"""Of a pass's steps, for one topology."""
_STEPS_OF_AN_EXECUTOR = 40
_LEAST_STEPS = 10
_FEW = 200
_MANY = 5000


class Proximity:
    """`executors`: how many the pass has to place; `effort`: how hard to look, by their number if None."""

    def __init__(self, executors: int, *, search_seconds: float, effort: Effort | None = None) -> None:
        self._executors, self._search_seconds, self._effort = executors, search_seconds, effort

    def seats(self, view: Outlook, turns: Sequence[int]) -> Seats:
        layout = search(view, turns, self._effort or self._shared(view))
        if layout is None:
            return [[] for _ in view.groups]
        nodes = [int(node) for node in layout.problem.nodes]
        return [
            [nodes[column] for column in row.nonzero()[0] for _ in range(int(row[column]))] for row in layout.placed
        ]

    def took(self, executor: Executor, node: int) -> None:
        """The crew shows it."""

    def _shared(self, view: Outlook) -> Effort:
        """A pass's steps shared out by size, so that it stays short; few executors get a thorough search.

        Of very many executors in small sets, each set's share is none: then sets are constructed and nothing more.
        """
        own = int(view.counts.sum())
        steps = round(_STEPS_PER_SECOND * self._search_seconds)
        share = min(steps * own // max(1, self._executors), round(steps * _MOST_SHARE), _STEPS_OF_AN_EXECUTOR * own)
        return Effort(
            steps=share if self._executors > _MANY else max(min(steps, _LEAST_STEPS), share),
            thorough=self._executors <= _FEW,
            orders=self._executors <= _MANY,
        )
