"""What placement strategies remember from pass to pass. Plain values, fit for JSON."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ballast.model import Phase, Snapshot
from ballast.placement.least_resource_usage import Averages


@dataclass(frozen=True, slots=True)
class ComponentRate:
    """Traffic of one executor of a component in the long run."""

    topology: str
    component: str
    per_second: float
    samples: int
    """How many figures are in it, at most as many as the long window holds."""


@dataclass(frozen=True, slots=True)
class Rates:
    unit: str = ""
    """What was counted: records, bytes or executors; figures of another unit say nothing."""
    components: tuple[ComponentRate, ...] = ()
    """Sorted by topology and component."""


@dataclass(frozen=True, slots=True)
class PlacementState:
    turn: str = ""
    """The node that was chosen last, for RoundRobin."""
    usage: Averages = field(default_factory=Averages)
    """Smoothed scores, for LeastResourceUsage."""
    rates: Rates = field(default_factory=Rates)
    """For LeastLongTermRate."""
    observed_at: float = 0.0
    """When figures were last added, seconds since the epoch."""
    sent: tuple[tuple[str, str], ...] = ()
    """Executor's uid and node, of those that were released and are not bound yet: nothing else shows them."""


# Where executors go that have been released and are not bound yet: no node shows them, but their places are taken.


def headings(snapshot: Snapshot, sent: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Node by uid, where it is known: by the move that they are the replacement of, or by `sent`.

    `sent`: uid and node of those that earlier passes released.
    """
    replacing = {m.replacement_uid: m.target for m in snapshot.moves if m.phase.traveling and m.replacement_uid}
    known = replacing | dict(sent)
    unbound = (e.uid for e in snapshot.executors if e.phase is Phase.PENDING and e.node is None) if known else ()
    return {uid: known[uid] for uid in unbound if uid in known}
