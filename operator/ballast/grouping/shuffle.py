"""Locality-aware, load-aware shuffle: one sender's choice among the targets of a stream.

Source: Storm's `LoadAwareShuffleGrouping`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ballast.grouping.scopes import (
    Bounds,
    LoadFigures,
    Place,
    Positions,
    Reach,
    Weights,
    adjusted,
    full,
    next_scope,
    reach,
)
from ballast.model.location import Scope

# How busy a target is, 0…1, from its receive queue and from what waits on the way to it.
#
# Source: Storm's `JCQueue.getQueueLoad`, netty `Client.getLoad`, `Load` and `LoadMapping`.

UNKNOWN_LOAD = 1.0
"""A target of which nothing is known counts as full, so that it draws no traffic that nearer ones could take."""

PENDING_MESSAGES_AT_FULL = 1024


def queue_capacity(configured_messages: int) -> int:
    """Slots that a ring-buffer queue really has: the configured size, rounded up to a power of two."""
    return 1 << max(configured_messages - 1, 0).bit_length()


def queue_load(*, waiting_messages: int, capacity_messages: int) -> float:
    """Share of the queue that is taken. What overflows beyond it does not count."""
    return waiting_messages / capacity_messages


def connection_load(pending_messages: int) -> float:
    """What waits to be sent on the connection, as a share of what counts as full."""
    return min(pending_messages, PENDING_MESSAGES_AT_FULL) / PENDING_MESSAGES_AT_FULL


def _known(load: float) -> float:
    """One that is no number would take the weight of all those that it is compared with."""
    return load if math.isfinite(load) else UNKNOWN_LOAD


@dataclass(frozen=True, slots=True)
class RemoteLoad:
    """A target in another process: what its process reported, and what waits on our side."""

    queue: float
    connection: float = 0.0

    @property
    def value(self) -> float:
        return max(_known(self.queue), _known(self.connection))


@dataclass(frozen=True, slots=True)
class Loads:
    """The latest figures, by target. What is measured in our own process wins over what a peer reported."""

    local: Mapping[int, float] = field(default_factory=dict)
    remote: Mapping[int, RemoteLoad] = field(default_factory=dict)

    def of(self, target: int) -> float:
        if target in self.local:
            return _known(self.local[target])
        known = self.remote.get(target)
        return UNKNOWN_LOAD if known is None else known.value


# The choice ring: a shuffled round of targets in which each appears as often as its weight says.
#
# Source: `updateRing` in Storm's `LoadAwareShuffleGrouping`.

Ring = npt.NDArray[np.int32]
"""Positions of targets in the order in which they are chosen; read-only."""

LEAST_SLOTS = 1000
LEAST_SLOTS_PER_TARGET = 5


def capacity(targets: int) -> int:
    """Slots of a ring for so many targets, whether in scope or not."""
    return 1 if targets == 1 else max(LEAST_SLOTS, LEAST_SLOTS_PER_TARGET * targets)


def certain_slots(weights: Weights, in_scope: Positions, slots: int) -> npt.NDArray[np.int64]:
    """Slots of each target in scope that don't depend on chance; they sum to at most `slots`. None without weight."""
    mine = weights[in_scope]
    shares: npt.NDArray[np.float64] = mine / max(mine.sum(), 1) * slots
    return shares.astype(np.int64)


def spun(weights: Weights, in_scope: Positions, *, slots: int, random: np.random.Generator) -> Ring:
    """A ring of `slots` choices. What rounding leaves over goes to copies of slots already filled.

    If no target in scope has any weight, all targets take turns, those out of scope too.
    """
    ring = np.empty(slots, dtype=np.int32)
    certain = np.repeat(in_scope, certain_slots(weights, in_scope, slots))
    if not certain.size:
        certain = np.arange(slots) % weights.size
    ring[: certain.size] = certain
    # Each copy may be copied in turn, so these can't be drawn at once.
    for slot in range(certain.size, slots):
        ring[slot] = ring[random.integers(slot)]
    random.shuffle(ring)
    ring.flags.writeable = False
    return ring


@dataclass(frozen=True, slots=True)
class Route:
    """What one refresh decided, until the next one."""

    scope: Scope
    weights: Weights
    ring: Ring


def first_route(around: Reach, targets: int, bounds: Bounds, random: np.random.Generator) -> Route:
    """The nearest scope that holds a target, every weight at its highest.

    Raises InvalidField if there is no target at all.
    """
    nearest = Route(around.scopes[0], full(targets), np.empty(0, dtype=np.int32))
    return next_route(nearest, around, None, bounds=bounds, random=random)


def next_route(
    route: Route,
    around: Reach,
    loads: LoadFigures | None,
    *,
    bounds: Bounds,
    random: np.random.Generator,
) -> Route:
    """One refresh: control of the scope, then of the weights within it, then a new ring.

    A change of scope puts every weight back to its highest before this refresh adjusts it.
    """
    scope = next_scope(route.scope, around, loads, bounds)
    before = route.weights if scope == route.scope else full(route.weights.size)
    in_scope = around.within[scope]
    weights = adjusted(before, in_scope, loads)
    return Route(scope, weights, spun(weights, in_scope, slots=capacity(weights.size), random=random))


class Shuffle:
    """Chooses among `targets` (their ids, as in `Loads`) for a sender at `source`. For one thread."""

    def __init__(
        self,
        source: Place,
        targets: Sequence[int],
        places: Sequence[Place | None],
        *,
        random: np.random.Generator,
        bounds: Bounds | None = None,
    ) -> None:
        self._source = source
        self._targets = tuple(targets)
        self._random = random
        self._bounds = bounds or Bounds()
        self._around = reach(source, places)
        self.route = first_route(self._around, len(self._targets), self._bounds, random)
        self._next = 0

    def refresh(self, loads: Loads | None) -> None:
        """Takes the latest loads into account (about once a second); None when there are none yet."""
        figures = None if loads is None else np.array([loads.of(target) for target in self._targets])
        self.route = next_route(self.route, self._around, figures, bounds=self._bounds, random=self._random)
        self._next = 0

    def targets_moved(self, places: Sequence[Place | None]) -> None:
        """New places of the targets, in their order; they count from the next refresh on."""
        self._around = reach(self._source, places)

    def choose_one(self) -> int:
        """Position of the next target in `targets`."""
        ring = self.route.ring
        chosen = int(ring[self._next])
        self._next = (self._next + 1) % ring.size
        return chosen

    def choose(self, n: int) -> npt.NDArray[np.int32]:
        """Positions of the next `n` targets: what `n` single choices would have given."""
        ring = self.route.ring
        rounds = -(-(self._next + n) // ring.size)
        chosen = np.tile(ring, rounds)[self._next : self._next + n]
        self._next = (self._next + n) % ring.size
        return chosen
