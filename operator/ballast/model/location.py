"""Where a node is, level by level, and what it costs to cross between two places."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ballast.enums import Pin, Scope

Location = tuple[str | None, ...]
"""The value of each level, far to near; None where the node has no such label."""


@dataclass(frozen=True, slots=True)
class Level:
    """One level of the cluster's topology: a node label, and the distance of crossing it."""

    label: str
    distance: float


@dataclass(frozen=True, slots=True)
class Levels:
    """The levels, far to near. The nearest is the node itself, the farthest the zone, those between are racks."""

    ordered: tuple[Level, ...]

    def index_of(self, pin: Pin) -> int | None:
        """Position of the level that `pin` names; None for Pin.NONE or a level that the policy does not have."""
        last = len(self.ordered) - 1
        if pin is Pin.NONE or last < 0:
            return None
        if pin is Pin.NODE:
            return last
        if pin is Pin.ZONE:
            return 0 if last >= 1 else None
        return last - 1 if last >= 2 else None

    def distance(self, here: Sequence[str | None], there: Sequence[str | None]) -> float:
        """What crossing from `here` to `there` costs: the distance of the farthest level on which they differ.

        A level that either end has no value for is off and is passed over.
        """
        for level, one, other in zip(self.ordered, here, there, strict=False):
            if one is not None and other is not None and one != other:
                return level.distance
        return 0.0

    def scope(self, here: Sequence[str | None], there: Sequence[str | None]) -> Scope:
        """The nearest scope that holds both places."""
        last = len(self.ordered) - 1
        for index, (one, other) in enumerate(zip(here, there, strict=False)):
            if one is not None and other is not None and one != other:
                if index == 0:
                    return Scope.CLUSTER
                return Scope.RACK if index == last and last >= 2 else Scope.ZONE
        return Scope.NODE

    @property
    def steps(self) -> tuple[float, ...]:
        """What differing on each level adds to the distance that the nearer levels make."""
        distances = [level.distance for level in self.ordered]
        return tuple(here - nearer for here, nearer in zip(distances, [*distances, 0.0][1:], strict=True))


DEFAULT_LEVELS = Levels(
    (
        Level("topology.kubernetes.io/zone", 10.0),
        Level("topology.ballast.dev/rack", 3.0),
        Level("kubernetes.io/hostname", 1.0),
    )
)
