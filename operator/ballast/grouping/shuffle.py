"""Locality-aware, load-aware shuffle: one sender's choice among the targets of a stream.

Source: Storm's `LoadAwareShuffleGrouping`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ballast.grouping.load import Loads
from ballast.grouping.place import Place
from ballast.grouping.reach import Reach, reach
from ballast.grouping.ring import Ring, capacity, spun
from ballast.grouping.scope_control import Bounds, LoadFigures, next_scope
from ballast.grouping.weights import Weights, adjusted, full
from ballast.model.location import Scope


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
