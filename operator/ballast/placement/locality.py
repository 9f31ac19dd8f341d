"""How far a topology's traffic travels as it is placed, and what moving one executor changes.

The driver does not count: it takes part in no shuffle. Undeclared rates weigh as in `traffic`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

import numpy as np

from ballast.model import Executor, Levels, LocalityView, Location, Node, Phase, Topology
from ballast.model.arrays import BoolArray, FloatArray, IntArray
from ballast.placement.limit import node_allowance
from ballast.placement.workload import Traffic, traffic

Counts = Mapping[str, Mapping[Location, float]]
"""Executors of each component by location."""
_ALIKE: Mapping[str, float] = {}


def counts_by_topology(
    executors: Iterable[Executor], nodes: Iterable[Node], weights: Mapping[str, float] = _ALIKE
) -> dict[str, dict[str, dict[Location, float]]]:
    """Executors that run, or are bound and will, on the given nodes: by topology, component and location.

    `weights`: by uid, what an executor counts; 1 where it is not named.
    """
    places = {node.name: _full(node) for node in nodes}
    result: dict[str, dict[str, dict[Location, float]]] = defaultdict(lambda: defaultdict(lambda: defaultdict(float)))
    for executor in executors:
        if executor.node in places and executor.phase in (Phase.RUNNING, Phase.PENDING):
            result[executor.topology][executor.component][places[executor.node]] += weights.get(executor.uid, 1.0)
    return result


def _full(node: Node) -> Location:
    """The location with the node's own name where the nearest level has no label."""
    if not node.location or node.location[-1] is not None:
        return node.location
    return (*node.location[:-1], node.name)


def locality(topology: Topology, counts: Counts, levels: Levels, *, max_node_ratio: float = 1.0) -> LocalityView:
    """Shares of the traffic that leave the zone, the rack and the node; cost and a lower bound of it.

    Cost is Σ traffic × distance with the traffic normalized to 1. `max_node_ratio` is the policy's
    maxExecutorsPerNodePercent, which no placement may beat the bound with.
    """
    return _last(topology.key, levels, max_node_ratio).of(topology, counts)


class _Last:
    """The view of one topology as its executors were last found, and what it was made of."""

    def __init__(self, levels: Levels, max_node_ratio: float) -> None:
        self._levels, self._ratio = levels, max_node_ratio
        self._kept: tuple[Topology, dict[str, dict[Location, float]], LocalityView] | None = None

    def of(self, topology: Topology, counts: Counts) -> LocalityView:
        placed = {component: dict(places) for component, places in counts.items()}
        kept = self._kept
        if kept is not None and kept[1] == placed and kept[0] == topology:
            return kept[2]
        view = measure(topology, placed, self._levels).view(self._ratio)
        self._kept = topology, placed, view
        return view


@lru_cache(maxsize=4096)
def _last(_topology: str, levels: Levels, max_node_ratio: float) -> _Last:
    """Kept, because most passes find executors where the pass before has left them: a fifth of a pass is saved.

    One view for each topology, so that a pool of thousands of them does not drive out in one pass what the next one
    asks for. No caller owns this cache, and none can tell that it is there: all that the answer depends on is compared.
    """
    return _Last(levels, max_node_ratio)


def locality_delta_ratio(measured: Locality, component: str, *, source: Location, target: Location) -> float:
    """Growth of the topology's cost when one executor moves from source to target; negative = cheaper.

    Relative to the cost as it is, or to that of all traffic leaving its node if that is more: where everything is
    together, the first step apart would otherwise be infinitely dear.
    """
    delta = measured.delta(component, source=source, target=target)
    return delta / measured.base if measured.base > 0 else 0.0


def measure(topology: Topology, counts: Counts, levels: Levels) -> Locality:
    names = tuple(sorted(name for name, places in counts.items() if any(places.values())))
    places = tuple(sorted({place for name in names for place in counts[name]}, key=repr))
    table = np.array([[counts[name].get(place, 0) for place in places] for name in names], dtype=np.float64)
    table = table.reshape(len(names), len(places))
    flows = traffic(topology, names)
    return Locality(topology.key, flows, levels, places=places, table=table)


class Locality:
    """One topology's placement with what is needed to price moves in a few look-ups each."""

    def __init__(
        self, key: str, flows: Traffic, levels: Levels, *, places: tuple[Location, ...], table: FloatArray
    ) -> None:
        self.key, self.flows, self.levels, self.places, self.table = key, flows, levels, places, table
        self._row = {name: position for position, name in enumerate(flows.components)}
        self._weights = flows.per_pair(table.sum(axis=1))
        self._sizes = table.sum(axis=1)
        self._ends = tuple(dict.fromkeys(anchor.location for anchor in flows.ends))
        self._pulls = np.zeros((len(flows.components), len(self._ends)))
        """(components, ends): rate between one executor of the component and the fixed end."""
        column = {end: position for position, end in enumerate(self._ends)}
        for anchor, rates in zip(flows.ends, flows.pulls.T, strict=True):
            self._pulls[:, column[anchor.location]] += rates / self._sizes
        self._outer_costs: dict[Location, FloatArray] = {}
        self._apart = [_differs_at(places, places, level) for level in range(len(levels.ordered))]
        self._even = _labeled_evenly(places, len(levels.ordered))
        self._near: list[dict[Location, FloatArray]] = []
        self._steps = levels.steps
        self.cost = self._cost()
        """Σ traffic × distance, in the unit of the rates."""
        nearest = levels.ordered[-1].distance if levels.ordered else 0.0
        self.base = max(self.cost, flows.total * nearest)

    def _nearness(self, level: int) -> dict[Location, FloatArray]:
        """Per place of the level: how much one executor of each component exchanges with those in it."""
        sums: dict[Location, FloatArray] = {}
        for column, place in enumerate(self.places):
            prefix = place[: level + 1]
            share = self._weights @ self.table[:, column]
            sums[prefix] = sums[prefix] + share if prefix in sums else share
        return sums

    def _cost(self) -> float:
        distances = np.zeros((len(self.places), len(self.places)))
        for level, apart in reversed(list(zip(self.levels.ordered, self._apart, strict=True))):
            # Farther levels are written last, and so prevail.
            distances[apart] = level.distance
        return self._between(distances) + float((self.table * self._outer(self.places)).sum())

    def _between(self, values: FloatArray) -> float:
        """Σ over pairs of executors of weight × the value of their two places."""
        return 0.5 * float((self._weights * (self.table @ values @ self.table.T)).sum())

    def _outer(self, places: Sequence[Location]) -> FloatArray:
        """(components, places): cost of one executor there towards the fixed ends."""
        found = np.zeros((len(self._pulls), len(places)))
        for part in _parts(self._ends, places):
            distances = np.zeros((len(self._ends), len(places[part])))
            for level in reversed(range(len(self.levels.ordered))):
                # Farther levels are written last, and so prevail.
                distances[_differs_at(self._ends, places[part], level)] = self.levels.ordered[level].distance
            found[:, part] = self._pulls @ distances
        return found

    def _outer_at(self, row: int, place: Location) -> float:
        if place not in self._outer_costs:
            self._outer_costs[place] = self._outer((place,))[:, 0]
        return float(self._outer_costs[place][row])

    def delta(self, component: str, *, source: Location, target: Location) -> float:
        """Change of `cost` when one executor of the component moves."""
        row = self._row.get(component)
        if row is None or source == target:
            return 0.0
        apart = self.levels.distance(source, target)
        inner = self._inner(row, target) - self._inner(row, source) - float(self._weights[row, row]) * apart
        return inner + self._outer_at(row, target) - self._outer_at(row, source)

    def _inner(self, row: int, place: Location) -> float:
        """Cost of one executor of the component at the place towards all executors as they are."""
        if self._even and _alike(place, self.places):
            self._near = self._near or [self._nearness(level) for level in range(len(self._steps))]
            partners = float(self._weights[row] @ self._sizes)
            near = sum(
                float(step) * (float(sums[place[: level + 1]][row]) if place[: level + 1] in sums else 0.0)
                for level, (step, sums) in enumerate(zip(self._steps, self._near, strict=True))
            )
            return partners * float(sum(self._steps)) - near
        exchanged = self._weights[row] @ self.table
        return sum(
            float(amount) * self.levels.distance(place, other)
            for amount, other in zip(exchanged, self.places, strict=True)
        )

    def view(self, max_node_ratio: float = 1.0) -> LocalityView:
        if not self.places:
            return LocalityView(self.key, None, None, None, None, 0.0)
        total = self.flows.total
        zone, rack, node = (self._crossing(nearest) / total if total else 0.0 for nearest in self._crossed_levels())
        return LocalityView(
            topology=self.key,
            cross_zone_ratio=zone,
            cross_rack_ratio=rack,
            cross_node_ratio=node,
            cross_zone_bytes_per_second=zone * total if self.flows.known else None,
            cost=self.cost / total if total else 0.0,
            lower_bound=self._lower_bound(max_node_ratio) / total if total else 0.0,
        )

    def _crossed_levels(self) -> tuple[int, int, int]:
        """How many of the levels count as far for the zone, rack and node shares."""
        depth = len(self.levels.ordered)
        return (1 if depth > 1 else 0), max(0, depth - 1), depth

    def _crossing(self, levels: int) -> float:
        """Traffic between ends that differ in one of the farthest `levels` levels."""
        apart = np.zeros((len(self.places), len(self.places)), dtype=np.bool_)
        for differs in self._apart[:levels]:
            apart |= differs
        crossing = self._between(apart.astype(np.float64))
        for part in _parts(self._ends, self.places):
            away = np.zeros((len(self._ends), len(self.places[part])), dtype=np.bool_)
            for level in range(levels):
                away |= _differs_at(self._ends, self.places[part], level)
            crossing += float(((self._pulls @ away) * self.table[:, part]).sum())
        return crossing

    def _lower_bound(self, max_node_ratio: float) -> float:
        """What no placement of these executors can get below.

        An exchange stays within a node for at most the share that the spread limit leaves there, two components
        for at most the smaller of their shares; outer traffic is least at one of its own ends.
        """
        nearest = self.levels.ordered[-1].distance if self.levels.ordered else 0.0
        shares = np.array([min(1.0, node_allowance(size, max_node_ratio) / max(1.0, size)) for size in self._sizes])
        between = self.flows.between
        together = np.array([_together(share) for share in shares.tolist()])
        bound = float((between.diagonal() * (1.0 - together)).sum()) * nearest
        bound += float(np.tril(between * (1.0 - np.minimum.outer(shares, shares)), -1).sum()) * nearest
        # A place without a label is near to every end, so those that are in use have a say as well.
        there, elsewhere = self._outer(self.places), self._outer(self._ends)
        least = np.where(self._pulls > 0, elsewhere, np.inf).min(axis=1, initial=np.inf)
        bound += float(
            (self._sizes * np.minimum(least, there.min(axis=1, initial=np.inf)))[self._pulls.any(axis=1)].sum()
        )
        return bound


def _together(share: float) -> float:
    """Largest possible Σ p² when no p exceeds the share."""
    whole = int(1.0 / share + 1e-9)
    rest = max(0.0, 1.0 - whole * share)
    return whole * share**2 + rest**2


def _labeled_evenly(places: Sequence[Location], depth: int) -> bool:
    """Whether each level is labeled everywhere or nowhere, so that places nest."""
    return all(len(place) == depth for place in places) and all(
        len({place[level] is None for place in places}) <= 1 for level in range(depth)
    )


def _alike(place: Location, places: Sequence[Location]) -> bool:
    first = places[0] if places else place
    return len(place) == len(first) and all((a is None) == (b is None) for a, b in zip(place, first, strict=True))


_MOST_CELLS = 1_000_000
"""Ends times places that are compared at once: a user may name very many ends."""


def _parts(ends: Sequence[Location], places: Sequence[Location]) -> Iterator[slice]:
    """Of the places, as many at a time as may be compared with all the ends."""
    count = max(1, _MOST_CELLS // max(1, len(ends)))
    return (slice(first, first + count) for first in range(0, len(places) if ends else 0, count))


def _differs_at(ones: Sequence[Location], others: Sequence[Location], level: int) -> BoolArray:
    codes: dict[str | None, int] = {None: -1}
    one = _codes(ones, level, codes)
    other = one if others is ones else _codes(others, level, codes)
    known = (one >= 0)[:, None] & (other >= 0)[None, :]
    result: BoolArray = known & (one[:, None] != other[None, :])
    return result


def _codes(places: Sequence[Location], level: int, codes: dict[str | None, int]) -> IntArray:
    labels = [place[level] if level < len(place) else None for place in places]
    return np.array([codes.setdefault(label, len(codes)) for label in labels], dtype=np.int64)
