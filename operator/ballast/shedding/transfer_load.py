"""What TransferShedder looks at: nodes with smoothed load, and each one's report of its busiest executors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TopExecutor:
    name: str
    bytes_per_second: float
    """Bytes in and out; one without any is never moved."""
    movable: bool = True
    """False: moved recently, or of a kind that is not moved."""
    owned: bool = True
    """False: it has left the node since the report."""


@dataclass(frozen=True, slots=True)
class TransferNode:
    name: str
    score: float
    """Largest weighted resource usage now, percent of its own capacity."""
    bytes_per_second: float
    """Bytes in and out now."""
    reported: bool = True
    """False: nothing new since the last pass; the averages stay."""
    stored: bool = True
    """False: its figures are not to be had."""
    age_seconds: float = 0.0
    """Age of its figures."""
    since_unload_seconds: float | None = None
    """From its last unload to its figures; None when it was not unloaded recently."""
    top: tuple[TopExecutor, ...] = ()
    """Its busiest executors, idlest first."""
    receives: bool = True
    """False: nothing new may be sent there; it takes part while it is above the mean of the others, to give."""


@dataclass(frozen=True, slots=True)
class TransferPool:
    """One moment of a pool. Where figures tie, the node that stands first wins."""

    nodes: tuple[TransferNode, ...]
    registered: frozenset[str]
    """Nodes that are alive; one of them without figures stops the pass."""
    silent: frozenset[str] = frozenset()
    """Others that have no figures now and take no part: their averages stay as they are."""


Allowed = Callable[[str, str, str], bool]
"""Whether an executor may go from one node to another: `(executor, source, target)`."""


@dataclass(frozen=True, slots=True)
class Average:
    """One node's moving averages. Plain values, fit for JSON."""

    load_ratio: float
    bytes_per_second: float


def smoothed(pool: TransferPool, before: dict[str, Average], history_ratio: float) -> dict[str, Average]:
    """The averages with this pass added; a node that left loses its own."""
    found = {name: before[name] for name in pool.silent if name in before}
    for node in pool.nodes:
        old = before.get(node.name)
        if not node.reported:
            if old is not None:
                found[node.name] = old
            continue
        load, volume = node.score / 100, node.bytes_per_second
        if old is not None:
            load = old.load_ratio * history_ratio + (1 - history_ratio) * load
            volume = old.bytes_per_second * history_ratio + (1 - history_ratio) * volume
        found[node.name] = Average(load, volume)
    return found
