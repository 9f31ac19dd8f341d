"""Storm's locality-aware, load-aware shuffle: one sender's choice among the targets of a stream.

It is held to recorded cases of Storm's `LoadAwareShuffleGrouping`, and is what Ballast's own routing is compared with.
Kubernetes' zone is a fifth scope.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ballast.enums import Scope
from ballast.errors import InvalidField
from ballast.grouping.place import Place, Positions, Reach, reach

# Bang-bang control of how far a sender looks: wider when those within reach are busy, narrower when nearer ones idle.
#
# Source: `transition` in Storm's `LoadAwareShuffleGrouping`.

LoadValues = npt.NDArray[np.float64]
"""One load per target, in the order of the targets."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Mean loads, 0…1, beyond which the scope changes; both comparisons are strict."""

    widen_above: float = 0.8
    narrow_below: float = 0.2


def next_scope(current: Scope, around: Reach, loads: LoadValues | None, bounds: Bounds) -> Scope:
    """One step of control. Empty scopes are skipped first; widening wins; `loads` None leaves the rest as it is.

    Widening looks at all targets within the current scope, narrowing at those within the next narrower one alone, and
    a narrower scope without targets is never entered. Raises InvalidField when there is no target at all.
    """
    current = _first_with_targets(current, around)
    if loads is None:
        return current
    if _mean(loads, around.within[current]) > bounds.widen_above:
        return around.wider(current)
    narrower = around.narrower(current)
    nearer = around.within[narrower]
    return narrower if nearer.size and _mean(loads, nearer) < bounds.narrow_below else current


def _first_with_targets(scope: Scope, around: Reach) -> Scope:
    for candidate in around.scopes[around.scopes.index(scope) :]:
        if around.within[candidate].size:
            return candidate
    raise InvalidField("targets", [], "give at least one: the tasks of the receiving component")


def _mean(loads: LoadValues, members: Positions) -> float:
    # Rounding of a plain sum can land on the wrong side of a bound.
    return math.fsum(loads[members]) / members.size


# What share of the traffic each target gets: busy ones lose quickly, the others recover slowly.
#
# Source: `updateRing` in Storm's `LoadAwareShuffleGrouping`.

Weights = npt.NDArray[np.int64]
"""One weight per target, 0…`HIGHEST`."""

HIGHEST = 100
GAIN = 1
LOSS = 10
TOLERATED_LOAD = 0.05
"""How far above the least loaded target in scope one may be and still gain."""


def full(targets: int) -> Weights:
    return np.full(targets, HIGHEST, dtype=np.int64)


def adjusted(weights: Weights, in_scope: Positions, loads: LoadValues | None) -> Weights:
    """Weights after one refresh; those out of scope stay. `loads` None counts all as idle."""
    after = weights.copy()
    mine = weights[in_scope]
    if loads is None:
        gains = np.ones(mine.size, dtype=np.bool_)
    else:
        here = loads[in_scope]
        gains = here <= here.min() + TOLERATED_LOAD
    after[in_scope] = np.where(gains, np.minimum(mine + GAIN, HIGHEST), np.maximum(mine - LOSS, 0))
    return after


# How busy a target is, 0…1, from its receive queue and from what waits on the way to it.
#
# Source: Storm's `Load` and `LoadMapping`.

UNKNOWN_LOAD = 1.0
"""A target of which nothing is known counts as full, so that it draws no traffic that nearer ones could take."""


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
    """The latest loads, by target. What is measured in our own process wins over what a peer reported."""

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
    loads: LoadValues | None,
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
        values = None if loads is None else np.array([loads.of(target) for target in self._targets])
        self.route = next_route(self.route, self._around, values, bounds=self._bounds, random=self._random)
        self._next = 0

    def targets_moved(self, places: Sequence[Place | None]) -> None:
        """New places of the targets, in their order; they count from the next refresh on."""
        self._around = reach(self._source, places)

    def targets_replaced(self, targets: Sequence[int], places: Sequence[Place | None]) -> None:
        """Other targets, from now on. Those that remain keep their weights; new ones get the highest.

        Raises InvalidField if there is no target at all, and then keeps the former ones.
        """
        around = reach(self._source, places)
        known = dict(zip(self._targets, self.route.weights.tolist(), strict=True))
        weights = np.array([known.get(target, HIGHEST) for target in targets], dtype=np.int64)
        scope = next_scope(self.route.scope, around, None, self._bounds)
        ring = spun(weights, around.within[scope], slots=capacity(weights.size), random=self._random)
        self._targets, self._around, self.route, self._next = tuple(targets), around, Route(scope, weights, ring), 0

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
