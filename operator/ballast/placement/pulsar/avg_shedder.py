"""AvgShedder's own placement: what it shed goes where the decision said, everything else is spread at random.

Source: Pulsar's `AvgShedder.selectBroker`. Random on purpose and not a hash of the executor: so the executors of a
node that died do not all land on one other node.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Destinations:
    """Where executors were told to go, by key, sorted. Plain values, fit for JSON."""

    by_key: tuple[tuple[str, str], ...] = ()

    def of(self, key: str) -> str | None:
        return dict(self.by_key).get(key)

    def noting(self, decided: Iterable[tuple[str, str]]) -> Destinations:
        """These, with the decided ones (key, node) added or changed. Start from `Destinations()` at each planning."""
        return Destinations(tuple(sorted({**dict(self.by_key), **dict(decided)}.items())))


def possible(key: str, candidates: Sequence[str], destinations: Destinations) -> tuple[str, ...]:
    """The nodes that may take the executor: its destination if that is a candidate, else any of them.

    The one drawn should be noted, so that asking again gives the same answer.
    """
    planned = destinations.of(key)
    return (planned,) if planned is not None and planned in candidates else tuple(candidates)
