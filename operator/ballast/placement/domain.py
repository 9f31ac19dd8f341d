"""Where to look: the zone first, the racks within it, and only then single nodes.

A set that fits into one place is kept in one place: shares p over places cost 1 − Σp² of an exchange.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ballast.model.arrays import BoolArray, FloatArray, IntArray
from ballast.placement.placement_view import PlacementView

_LARGEST = 256
"""Nodes that a search looks at, unless fewer would not hold the set."""
_AMPLE = 2
"""How many times the set must fit into the nodes that are considered."""
_ALTERNATIVES = 4
_ENDS = [0, 1, 4]
"""Of a standing's keys, those that ends other than the set's own executors have a part in."""


@dataclass(frozen=True, slots=True)
class Standing:
    """The places of one level, each with what speaks for it; lower is better, earlier fields weigh more."""

    keys: FloatArray
    """(fields, places): distance from those that run, from outer ends; whether a nearer place holds the set; what is
    lacking to hold it; distance from the driver, room, what is left.

    Of places that hold the set the tightest is best, so that the next set finds a whole one; of others the roomiest,
    and of zones where nothing says how large the set will be.
    The driver, which takes no part in a shuffle, is not worth splitting the set for.
    """
    fits: BoolArray
    """(places,): where all executors that are there fit."""
    holds_all: BoolArray
    """(places,): where those to come fit, too, and what is reserved for other topologies is left free. The zone of
    those that run need not leave it free, and none need where otherwise no zone would hold the set."""

    def ranked(self) -> IntArray:
        """Places from best to worst."""
        return np.lexsort(self.keys[::-1])

    def equals(self, one: int, other: int) -> bool:
        """Whether nothing but room speaks for one rather than the other."""
        return bool((self.keys[_ENDS, one] == self.keys[_ENDS, other]).all())


def domains(view: PlacementView, *, thorough: bool) -> Iterator[IntArray]:
    """Sets of nodes to try, in this order; the last one is the whole pool as far as it is of use.

    The first that holds all executors is good; `thorough` offers more of them, of which the cheapest is to be taken.
    """
    everywhere = np.arange(len(view.pool.locations.nodes))
    found: list[IntArray] = []
    for nodes in _narrowing(view, everywhere, 0, thorough=thorough):
        useful = _useful(view, nodes)
        if len(useful) and not any(np.array_equal(useful, other) for other in found):
            found.append(useful)
            yield useful


def nodes_for_all(view: PlacementView) -> BoolArray | None:
    """(N,): where to place a set so that those to come find room next to it; None where it may be placed anywhere.

    A set that grows has one zone: that of its executors that run, otherwise one that holds all that are expected, or
    the roomiest. In it a rack by the same rule, where it is known how many are to come. A complete set has all zones
    that hold it without what is reserved for other topologies.
    """
    locations = view.pool.locations
    if not locations.last or not (view.growing or view.reserved is not None) or not settles_for_one_place(view):
        return None
    result = np.ones(len(locations.nodes), dtype=np.bool_)
    for level in range(locations.last if view.growing else 1):
        standing = _standing(view, np.flatnonzero(result), level)
        best = int(standing.ranked()[0])
        if not standing.fits[best] or not (view.growing or standing.holds_all[best]):
            break
        result &= locations.codes[level] == best if view.growing else standing.holds_all[locations.codes[level]]
        if view.open_ended:
            break
    return None if result.all() else result


def _narrowing(view: PlacementView, nodes: IntArray, level: int, *, thorough: bool) -> Iterator[IntArray]:
    """Within `nodes`: places of this level that hold everything, narrowed further, then themselves, then `nodes`."""
    if level >= view.pool.locations.last:
        yield nodes
        return
    standing = _standing(view, nodes, level)
    fitting = standing.fits & standing.holds_all
    order = [int(place) for place in standing.ranked() if (fitting if fitting.any() else standing.fits)[place]]
    if thorough:
        order = [place for place in order if standing.equals(order[0], place)][:_ALTERNATIVES]
    codes = view.pool.locations.codes[level][nodes]
    for place in order[: _ALTERNATIVES if thorough else 2]:
        yield from _narrowing(view, nodes[codes == place], level + 1, thorough=thorough)
    yield nodes


def settles_for_one_place(view: PlacementView) -> bool:
    """Whether every component is drawn to the same farthest place, so that nothing is won by splitting the set."""
    if not view.outer.any():
        return True
    locations = view.pool.locations
    places = locations.codes[0]
    best = set()
    for component in set(view.component.tolist()):
        pull = _least(view.outer[component], places, locations.sizes[0])
        if np.ptp(pull[np.isfinite(pull)]) > 1e-9:
            best.add(int(np.argmin(pull)))
    return len(best) <= 1


def _standing(view: PlacementView, nodes: IntArray, level: int) -> Standing:
    locations, workload = view.pool.locations, view.workload
    # All nodes as a slice: nothing is copied then.
    part = slice(None) if len(nodes) == len(locations.nodes) else nodes
    places, size = locations.codes[level][part], locations.sizes[level]
    wanted = view.component_counts.astype(np.float64)
    traffic, outer = np.zeros(size), np.zeros(size)
    if workload.present.any():
        involved = view.involved
        traffic = -(wanted @ view.weights)[involved] @ _sums(workload.present[involved], part, places, size)
    if view.outer.any():
        outer = _least((wanted @ view.outer)[part], places, size)
    driver = _least(view.driver[part], places, size)
    holds = _sums(view.capacity, part, places, size)
    offered = _sums(view.capacity_for_all, part, places, size) if view.growing else holds
    room = (offered / view.counts[:, None]).min(axis=0)
    left = np.bincount(places, weights=view.free_share[part], minlength=size).astype(np.float64)
    fits = _fitting(view, part, places, holds, level)
    fits_unreserved, holds_all, may_outgrow = fits, fits, level == 0 and view.open_ended
    if may_outgrow or (level == 0 and view.reserved is not None):
        # How many one node may host depends on how many there will be.
        unreserved = _unreserved(view, part, places)
        room = unreserved if may_outgrow else np.minimum(room, unreserved)
    if view.growing or (level == 0 and view.reserved is not None):
        fits_unreserved = holds_all = fits & _fitting(view, part, places, offered, level, expected=True, reserved=True)
    if level == 0 and view.reserved is not None:
        whole = fits & _fitting(view, part, places, offered, level, expected=True)
        runs = _sums(workload.present[view.component], part, places, size).any(axis=0)
        holds_all = fits_unreserved | (whole & (runs if fits_unreserved.any() else True))
    tightest = fits_unreserved & (not may_outgrow)
    sense = np.where(tightest, 1.0, -1.0)
    split = np.zeros(size) if may_outgrow else 1.0 - _whole_within(view, part, places, size, level)
    lacking = np.where(tightest, 0.0, 1.0 + room.max() - room) + np.where(holds_all, 0.0, 1.0 + room.max())
    keys = np.stack([_rounded(traffic), _rounded(outer), split, lacking, driver, room, sense * _rounded(left)])
    return Standing(keys, fits, holds_all)


def _unreserved(view: PlacementView, part: _Part, places: IntArray) -> FloatArray:
    """(zones,): how often the set fits into what is not reserved for others, by amounts."""
    result = np.full(view.pool.locations.sizes[0], np.inf)
    for kind, needed in enumerate((view.counts @ view.demand)[:-1].tolist()):
        if needed > 0:
            offered = np.bincount(places, weights=view.usable[part, kind], minlength=len(result))
            result = np.minimum(result, np.maximum(offered - _reserved(view, kind), 0.0) / needed)
    return result


def _reserved(view: PlacementView, kind: int) -> FloatArray | float:
    """(zones,): of one kind. Nothing is reserved of the score."""
    return 0.0 if view.reserved is None or kind >= view.reserved.shape[1] else view.reserved[:, kind]


def _whole_within(view: PlacementView, part: _Part, places: IntArray, size: int, level: int) -> FloatArray:
    """(places,): 1 where one place of the next nearer level holds the whole set, too."""
    locations, nearer = view.pool.locations, level + 1
    result = np.zeros(size)
    if nearer < locations.last and size > 1:
        inside, count = locations.codes[nearer][part], locations.sizes[nearer]
        sums = _sums(view.capacity_for_all if view.growing else view.capacity, part, inside, count)
        able = _fitting(view, part, inside, sums, nearer, expected=view.growing)
        result[places[able[inside]]] = 1.0
    return result


_Part = IntArray | slice
"""Some of the pool's nodes, or all of them."""


def _sums(rows: IntArray, nodes: _Part, places: IntArray, size: int) -> FloatArray:
    """(rows, places): what is in each place, of `nodes` alone."""
    result = np.zeros((len(rows), size))
    for index, row in enumerate(rows):
        result[index] = np.bincount(places, weights=row[nodes], minlength=size)
    return result


def _rounded(values: FloatArray) -> FloatArray:
    """Equal except for the last bits is equal."""
    if not values.any():
        return values
    finite = np.abs(values[np.isfinite(values)])
    scale = float(finite.max(initial=0.0)) or 1.0
    result: FloatArray = np.round(values / scale, 9)
    return result


def _least(values: FloatArray, places: IntArray, size: int) -> FloatArray:
    if not values.any():
        return np.zeros(size)
    result = np.full(size, np.inf)
    np.minimum.at(result, places, values)
    return result


def _fitting(
    view: PlacementView,
    nodes: _Part,
    places: IntArray,
    holds: FloatArray,
    level: int,
    *,
    expected: bool = False,
    reserved: bool = False,
) -> BoolArray:
    """Places that may hold everything: each group by count, and all groups together by amounts.

    `expected`: with those to come; `reserved`: without what is reserved for others, by zone.
    """
    counts = view.counts + view.to_come if expected else view.counts
    for apart_level, members in view.apart:
        if apart_level <= level and (view.component_counts[members] > 0).sum() > 1:
            return np.zeros(holds.shape[1], dtype=np.bool_)
    able: BoolArray = np.logical_and.reduce(holds >= counts[:, None])
    usable = view.usable[nodes]
    for kind, needed in enumerate((counts @ view.demand).tolist()):
        if needed > 0:
            taken = _reserved(view, kind) if reserved and level == 0 else 0.0
            offered = np.bincount(places, weights=usable[:, kind], minlength=len(able)) - taken
            able &= offered + 1e-6 * max(1.0, needed) >= needed
    if level == 0:
        able &= np.logical_and.reduce(view.zone_limit >= view.component_counts[:, None])
    return able


def _useful(view: PlacementView, nodes: IntArray) -> IntArray:
    """The nodes that can take something, cut to the most promising ones where there are very many."""
    nodes = nodes[(view.capacity[:, nodes] > 0).any(axis=0)]
    if len(nodes) <= _LARGEST:
        return nodes
    ordered = nodes[np.lexsort(_promise(view, nodes))]
    # From each zone, for a limit may keep the best one from taking all; from each place that must be kept apart, too.
    level = max([0, *(level for level, _ in view.apart if level < view.pool.locations.last)])
    places = view.pool.locations.codes[level][ordered]
    present = np.unique(places)
    chosen = [_first_ample(view, ordered[places == place], _LARGEST // len(present)) for place in present]
    return np.sort(np.concatenate(chosen))


def _first_ample(view: PlacementView, ordered: IntArray, least: int) -> IntArray:
    """As many of the first nodes as hold the set amply, and not fewer than `least` if there are so many."""
    reached = (np.cumsum(view.capacity[:, ordered], axis=1) >= _AMPLE * view.counts[:, None]).all(axis=0)
    # Each group alone may fit where all of them together do not.
    wanted = _AMPLE * (view.counts @ view.demand)
    reached &= ((np.cumsum(view.usable[ordered], axis=0) >= wanted) | (wanted <= 0)).all(axis=1)
    first = int(np.argmax(reached)) + 1 if reached.any() else len(ordered)
    return ordered[: max(first, least)]


def _promise(view: PlacementView, nodes: IntArray) -> tuple[FloatArray | IntArray, ...]:
    """Sort keys, the last one first: racks by rank, then nodes by those that run, by liking, by room."""
    keys: list[FloatArray | IntArray] = [nodes]
    room = view.room[nodes, : view.demand.shape[1] - 1]
    keys += [-room[:, kind] for kind in range(room.shape[1])]
    keys.append(-view.preference[nodes])
    keys.append(-(view.workload.present[:, nodes] > 0).sum(axis=0))
    for level in range(view.pool.locations.last - 1, 0, -1):
        ranks = np.empty(view.pool.locations.sizes[level], dtype=np.int64)
        ranks[_standing(view, nodes, level).ranked()] = np.arange(len(ranks))
        keys.append(ranks[view.pool.locations.codes[level][nodes]])
    return tuple(keys)
