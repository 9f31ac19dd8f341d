"""The scenario's events as single changes of single nodes, in the order of time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto

import numpy as np

from ballast.simulation.fleet import Fleet
from ballast.simulation.scenario_pool import Event


class Kind(Enum):
    BACK = auto()
    """The node is there, ready and open."""
    WARNED = auto()
    """It takes nothing new and will be gone soon."""
    DEAD = auto()
    """It does nothing any more, and is still listed."""
    GONE = auto()
    """It is not listed any more."""


@dataclass(frozen=True, slots=True)
class Change:
    at: float
    """Seconds since the run began."""
    node: int
    """Index in the fleet."""
    kind: Kind


def changes(events: tuple[Event, ...], fleet: Fleet) -> list[Change]:
    """What the events do to nodes, and the nodes that join later; the earliest first."""
    found = [change for event in events for change in _of(event, fleet)]
    found += [Change(float(fleet.joins_at[i]), i, Kind.BACK) for i in np.flatnonzero(fleet.joins_at > 0).tolist()]
    return sorted(found, key=lambda change: change.at)


def blackouts(events: tuple[Event, ...]) -> list[tuple[float, float]]:
    """When there are no metrics: from and until, in seconds since the run began."""
    return [(e.at.seconds, e.at.seconds + e.lasts.seconds) for e in events if e.blackout and e.lasts is not None]


def _of(event: Event, fleet: Fleet) -> Iterator[Change]:
    nodes = [node for subject in event.subjects for node in fleet.named(subject)]
    away = event.lasts.seconds if event.lasts is not None else None
    for position, node in enumerate(nodes):
        start = event.at.seconds + (position * event.every_seconds if event.restart else 0.0)
        if event.fail:
            gone = start
            yield Change(start, node, Kind.DEAD)
        else:
            gone = start + event.notice_seconds
            yield Change(start, node, Kind.WARNED)
            yield Change(gone, node, Kind.GONE)
        if away is not None:
            yield Change(gone + away, node, Kind.BACK)
