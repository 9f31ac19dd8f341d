"""Strategy Proximity: a whole set of executors at once, close to each other and to what they talk to.

The zone is chosen first, then racks within it, then nodes within the spread limits (after Storm's resource-aware
scheduling: executors in the order of proximity needs, each to the nearest node with room).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, isfinite
from random import Random

import numpy as np

from ballast.model import Executor
from ballast.model.arrays import FloatArray, IntArray
from ballast.placement.domain import domains, nodes_for_all, settles_for_one_place
from ballast.placement.lower_bound import least_cost, towards
from ballast.placement.node_locations import NodeLocations
from ballast.placement.packing import Fill, pack, pack_freely
from ballast.placement.parts import orders, parts
from ballast.placement.placement_view import PlacementView
from ballast.placement.problem import Layout, Problem, construct, construct_by_zone, hardest_first
from ballast.placement.refinement import Budget, descend, refine
from ballast.placement.resource_aware import ResourceAware
from ballast.placement.spreading import spread
from ballast.placement.strategy import Seats
from ballast.placement.workload import TopologyWorkload

# From a view to a layout: look where it is best first, wider when that does not hold the set.

_FIRST_LOOK = 40
"""Steps of descent before places are compared."""
_MOST_CELLS = 4_000_000
"""Executors times nodes up to which several orders are tried."""
_ROUNDING = 1e-9
"""Share of a cost."""
_PACKING = 5
"""How many times the steps for a set that should fit by amounts, and does not yet."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How hard to look. Counted in steps, not seconds, so that the same question always has the same answer."""

    steps: int = 200
    """Steps of refinement for each set that is placed together."""
    thorough: bool = True
    """Compare several places instead of taking the first that holds the set."""
    orders: bool = True
    """Try several orders of placing where there are several components or templates."""
    seed: int = 0


def search(view: PlacementView, sequence: Sequence[int], effort: Effort) -> Layout | None:
    """The best layout found; `sequence` are positions in the view's groups, one per executor.

    None when no node can take any of them. Executors may be missing from it when the pool does not hold them.
    """
    if not view.capacity.any():
        return None
    enough = least_cost(view) if effort.thorough else -inf
    best = _first_look(view, sequence, effort, enough=enough)
    return best if best is None or _settled(best, effort, enough=enough) else _refined(best, effort)


def _refined(layout: Layout, effort: Effort) -> Layout:
    if not effort.steps:
        return layout
    steps = effort.steps * (_PACKING if effort.thorough and _may_hold_more(layout) else 1)
    # Seeded by the caller: the same question always has the same answer.
    return refine(layout, steps, Random(effort.seed))  # noqa: S311 -- draws, no secrets


def together(view: PlacementView, sequence: Sequence[int], effort: Effort) -> Layout | None:
    """As `search`, of several parts: one after the other in several orders; the best is improved as a whole."""
    rows = {int(group): row for row, group in enumerate(view.groups)}
    found = [[rows[group] for group in part if group in rows] for part in parts(view.workload)]
    found = [part for part in found if part]
    if len(found) < 2:
        return search(view, sequence, effort)
    quick = replace(effort, steps=min(effort.steps, _FIRST_LOOK))
    tried = [layout for order in orders(found) if (layout := _in_turn(view, order, sequence, quick)) is not None]
    return _refined(min(tried, key=_rank), effort) if tried else None


def no_dearer_than_storms(view: PlacementView, sequence: Sequence[int], found: Layout, effort: Effort) -> Layout:
    """The layout that was found, or what comes of Storm's order of nodes where that costs less."""
    if not effort.thorough or len(view.groups) < 2:
        return found
    seats = ResourceAware(view.pool).seats(view, sequence)
    chosen = np.array([node for nodes in seats for node in nodes], dtype=np.int64)
    storms = Layout(problem(view, np.union1d(found.problem.nodes, chosen)))
    column = {int(node): position for position, node in enumerate(storms.problem.nodes)}
    for row, nodes in enumerate(seats):
        for node in nodes:
            storms.add(row, column[node])
    return _refined(storms, effort) if _rank(storms) < _rank(found) else found


def _in_turn(view: PlacementView, order: Sequence[list[int]], sequence: Sequence[int], effort: Effort) -> Layout | None:
    """Each part where it is best for it, given those before it."""
    placed = np.zeros_like(view.capacity)
    looked = np.zeros(placed.shape[1], dtype=np.bool_)
    for part in order:
        own = {row: position for position, row in enumerate(part)}
        layout = search(view.after(placed, part), [own[row] for row in sequence if row in own], effort)
        if layout is not None:
            looked[layout.problem.nodes] = True
            for row, counts in zip(part, layout.placed, strict=True):
                placed[row, layout.problem.nodes] = counts
    if not looked.any():
        return None
    whole = Layout(problem(view, np.flatnonzero(looked)))
    placed = placed[:, whole.problem.nodes]
    for row, column in np.argwhere(placed).tolist():
        whole.add(row, column, count=int(placed[row, column]))
    return whole


def _settled(layout: Layout, effort: Effort, *, enough: float) -> bool:
    """Whether refinement is not worth it: one executor is on the best node already, one kind of many nearly so."""
    counts = layout.problem.counts
    return len(counts) == 1 and (int(counts[0]) == 1 or not effort.thorough or _is_best(layout, enough))


def _is_best(layout: Layout, enough: float) -> bool:
    """`enough`: a cost that no layout is below."""
    return isfinite(enough) and not layout.missing.any() and layout.cost() <= enough + _ROUNDING * abs(enough)


def _first_look(view: PlacementView, sequence: Sequence[int], effort: Effort, *, enough: float) -> Layout | None:
    best, widest = None, None
    compare = effort.thorough or not settles_for_one_place(view)
    look = _Look(effort)
    for nodes in domains(view, thorough=compare):
        widest = problem(view, nodes)
        for layout in _different(_constructed(widest, order) for order in look.orders(widest, sequence)):
            best = look.better(best, layout)
        if best is not None and _is_best(best, enough):
            return best
        if not compare and best is not None and not best.missing.any() and not _split(best):
            return best
    if best is not None and widest is not None and _split(best):
        # A component at a time where there is little time: sorted, groups of one component stand together.
        few = [sequence if effort.orders else sorted(sequence)]
        for order in look.orders(widest, sequence) if effort.thorough else few:
            best = look.better(best, _constructed(widest, order, by_zone=True))
    if best is not None and widest is not None and best.missing.any():
        for order in _every_order(widest, sequence):
            best = look.better(best, _constructed(widest, order))
        best = look.better(best, _constructed(widest, hardest_first(widest), tightest=True))
    return best


class _Look:
    """Compares layouts. All of them together take no more steps than the one that is found may take afterwards.

    Each of many small sets of a pass is tried in many places and orders, which would take longer than all the rest.
    """

    def __init__(self, effort: Effort) -> None:
        self._effort, self._left = effort, effort.steps

    def orders(self, problem: Problem, sequence: Sequence[int]) -> list[Sequence[int]]:
        spent = self._effort.steps > 0 >= self._left
        if spent or len(problem.counts) == 1 or not self._effort.orders:
            return [sequence]
        return _every_order(problem, sequence)

    def better(self, best: Layout | None, layout: Layout) -> Layout:
        # Placing a kind of executors takes as long as a step.
        self._left -= len(layout.problem.counts)
        if self._left > 0:
            steps = min(_FIRST_LOOK, self._left)
            budget = Budget(steps, nodes=len(layout.problem.nodes))
            descend(layout, budget)
            self._left -= steps - max(0, budget.left)
        return layout if best is None or _rank(layout) < _rank(best) else best


def _every_order(problem: Problem, sequence: Sequence[int]) -> list[Sequence[int]]:
    if len(sequence) * len(problem.nodes) > _MOST_CELLS:
        return [sequence]
    return [sequence, sequence[::-1], sorted(sequence), hardest_first(problem)]


def _different(layouts: Iterable[Layout]) -> Iterator[Layout]:
    """Without those that are as one before: several orders often lead to one layout, and descent is what takes time."""
    seen = set[bytes]()
    for layout in layouts:
        placed = layout.placed.tobytes()
        if placed not in seen:
            seen.add(placed)
            yield layout


def _rank(layout: Layout) -> tuple[int, float]:
    return int(layout.missing.sum()), round(layout.cost(), 9)


def _may_hold_more(layout: Layout) -> bool:
    """Whether what is missing would fit if room were divisible."""
    missing = layout.missing
    if not missing.any():
        return False
    left = np.maximum(layout.room, 0.0).sum(axis=0)
    return bool((missing @ layout.problem.demand <= left + layout.problem.slack).all())


def _constructed(problem: Problem, order: Sequence[int], *, tightest: bool = False, by_zone: bool = False) -> Layout:
    layout = Layout(problem)
    if by_zone:
        construct_by_zone(layout, order)
    else:
        construct(layout, order, tightest=tightest)
    return layout


def _split(layout: Layout) -> bool:
    """Whether it is in several zones."""
    zones = layout.problem.places[0][layout.placed.any(axis=0)]
    return bool(len(zones)) and bool((zones != zones[0]).any())


def problem(view: PlacementView, nodes: IntArray) -> Problem:
    """The view cut to some nodes, in an order that their names have no part in as long as they differ otherwise."""
    nodes = nodes[np.lexsort(_canonical(view, nodes))]
    locations, rows = view.pool.locations, view.involved
    codes = locations.codes[:, nodes]
    renumbered = np.full(len(view.workload.components), -1, dtype=np.int64)
    renumbered[rows] = np.arange(len(rows))
    return Problem(
        nodes=nodes,
        places=codes,
        near=_near(locations, codes),
        weights=view.weights[rows][:, rows],
        pull=view.pull(nodes)[rows] + towards(view, _elsewhere(view, nodes), nodes),
        settled=view.workload.present[rows][:, nodes],
        component=renumbered[view.component],
        counts=view.counts,
        demand=view.demand,
        allowed=view.allowed[:, nodes],
        room=view.room[nodes],
        slack=view.slack,
        node_limit=view.node_limit[np.ix_(rows, nodes)],
        zone_limit=view.zone_limit[rows],
        apart=tuple((level, renumbered[members]) for level, members in view.apart if (renumbered[members] >= 0).all()),
        preference=view.preference[nodes],
    )


def _near(locations: NodeLocations, codes: IntArray) -> FloatArray:
    """(K, K): `Problem.near` of nodes in canonical order, in which those of one place stand together."""
    count = codes.shape[1]
    near = np.zeros((count, count))
    for step, row in zip(locations.steps, codes, strict=True):
        bounds = np.flatnonzero(row[1:] != row[:-1]) + 1
        if len(bounds) == count - 1:
            near[np.diag_indices(count)] += step if count > 1 else 0.0
        elif len(bounds):
            for start, end in zip([0, *bounds], [*bounds, count], strict=True):
                near[start:end, start:end] += step
    return near


def _canonical(view: PlacementView, nodes: IntArray) -> tuple[FloatArray | IntArray, ...]:
    """Sort keys, the last one first."""
    workload, locations = view.workload, view.pool.locations
    keys: list[FloatArray | IntArray] = [nodes]
    keys += list(workload.present[view.involved][:, nodes])
    keys += list(view.room[nodes].T)
    keys.append((view.allowed[:, nodes] * (1 + np.arange(len(view.groups)))[:, None] ** 2).sum(axis=0))
    keys.append(-view.preference[nodes])
    keys += [locations.codes[level][nodes] for level in range(locations.last - 1, -1, -1)]
    return tuple(keys)


def _elsewhere(view: PlacementView, nodes: IntArray) -> IntArray:
    """(C, N): executors that run, of the components involved, without those on `nodes`."""
    result = view.workload.present[view.involved]
    result[:, nodes] = 0
    return result


def _within_racks(view: PlacementView, layout: Layout) -> Layout:
    """Which nodes of its racks a set uses, as far as they are equally near; `layout` may be changed."""
    implicit, node_distance = view.workload.topology.implicit, float(view.pool.locations.steps[-1])
    if implicit:
        spread(layout, node_distance)
    if not view.packs:
        return layout
    # Within its racks a packed set is not drawn to cool nodes: those are the ones that are to become empty.
    nodes = layout.problem.nodes
    layout.problem = replace(layout.problem, pull=layout.problem.pull - view.tempering(nodes)[view.involved])
    fill = Fill(view.pool.room.offered[nodes, :2], view.spare[nodes], view.load_cores)
    if implicit:
        pack_freely(layout, fill, node_distance)
        return layout
    return pack(layout, fill)


_STEPS_PER_SECOND = 6000
"""Of search time: about what one core does on a set of ordinary size. Fixed, so that every machine plans alike."""
_MOST_SHARE = 2 / 3
"""Of a pass's steps, for one topology."""
_STEPS_OF_AN_EXECUTOR = 100
"""For each kind (component and size) in its set: the more kinds, the more there is to exchange."""
_SMALL, _SMALL_POOL = 24, 64
"""Executors and nodes up to which a step takes a third of its ordinary time, or less."""
_QUICKER = 3
_ORDINARY_KINDS = 3
"""Each step looks at all kinds, so with more of them it takes longer."""
_LEAST_STEPS = 10
_FEW = 200
_FEW_PARTS = 5
"""Of one topology, up to which they are weighed against each other."""
_FEW_CELLS = 10_000
"""Executors of a topology times nodes, up to which its parts are weighed."""
_FEW_TOPOLOGIES = 4
"""Of a pass, up to which each may have its parts weighed."""
_MANY = 5000
_MANY_KINDS = 200
"""Of a pass, as `_MANY`: each executor may have its own size."""


def _small(view: PlacementView) -> bool:
    return int(view.counts.sum()) <= _SMALL and len(view.pool.locations.nodes) <= _SMALL_POOL


def _fairly(by_namespace: Mapping[str, int], workload: TopologyWorkload) -> int:
    """Their sum if no namespace had more than the workload's."""
    own = by_namespace.get(workload.topology.namespace, 0)
    return min(sum(by_namespace.values()), own * len(by_namespace))


class Proximity:
    """`executors`, `kinds`: those of the pass, counted by namespace; kinds differ in topology, component or requests.

    `effort`: how hard to look, by their numbers if None.
    """

    def __init__(
        self,
        executors: Mapping[str, int],
        *,
        kinds: Mapping[str, int],
        search_seconds: float,
        effort: Effort | None = None,
    ) -> None:
        self._executors, self._kinds, self._search_seconds, self._effort = executors, kinds, search_seconds, effort

    def _reckoned(self, workload: TopologyWorkload) -> int:
        """How many executors the pass would have if no namespace had more than the workload's.

        Thousands of one user's executors must not shorten the search for places of others.
        """
        return _fairly(self._executors, workload)

    def sets(self, workload: TopologyWorkload) -> list[list[int]]:
        """Groups to place together: those that exchange something, or all where there is time to weigh them jointly."""
        found = parts(workload)
        if workload.growing:
            # What is improved as a whole could leave the zones that are chosen for those to come.
            return found
        own = sum(len(group.executors) for group in workload.groups)
        # In a large pool, or for many topologies in a pass, trying orders would take longer than the pass may.
        few = own * workload.present.shape[1] <= _FEW_CELLS and own * _FEW_TOPOLOGIES >= self._reckoned(workload)
        thorough = self._reckoned(workload) <= _FEW if self._effort is None else self._effort.thorough
        return [[*range(len(workload.groups))]] if few and thorough and len(found) <= _FEW_PARTS else found

    def seats(self, view: PlacementView, turns: Sequence[int]) -> Seats:
        layout = self._layout(view, turns)
        if layout is None:
            return [[] for _ in view.groups]
        layout = _within_racks(view, layout)
        nodes = [int(node) for node in layout.problem.nodes]
        return [
            [nodes[column] for column in row.nonzero()[0] for _ in range(int(row[column]))] for row in layout.placed
        ]

    def _layout(self, view: PlacementView, turns: Sequence[int]) -> Layout | None:
        """Next to where those to come will find room, unless some of those that are there find none."""
        effort = self._effort or self._shared(view)
        near = nodes_for_all(view)
        if near is not None:
            layout = together(view.limited_to(near), turns, effort)
            if layout is not None and not layout.missing.any():
                return layout
        layout = together(view, turns, effort)
        return layout if layout is None else no_dearer_than_storms(view, turns, layout, effort)

    def took(self, executor: Executor, node: int) -> None:
        """The workload shows it."""

    def _shared(self, view: PlacementView) -> Effort:
        """A pass's steps shared out by size, so that it stays short; few executors get a thorough search.

        Of very many executors in small sets, each set's share is none: then sets are constructed and nothing more.
        """
        own, kinds, executors = int(view.counts.sum()), len(view.groups), self._reckoned(view.workload)
        price = max(1.0, kinds / _ORDINARY_KINDS)
        steps = round(_STEPS_PER_SECOND * self._search_seconds * (_QUICKER if _small(view) else 1) / price)
        most = _STEPS_OF_AN_EXECUTOR * own * kinds
        # Of many sets, each is compared in as many steps as it is improved in.
        whole = steps if own * _FEW_TOPOLOGIES >= executors else steps // 2
        share = min(whole * own // max(1, executors), round(steps * _MOST_SHARE), most)
        return Effort(
            steps=share if executors > _MANY else max(min(steps, _LEAST_STEPS), share),
            thorough=executors * price <= _FEW,
            orders=executors <= _MANY and _fairly(self._kinds, view.workload) <= _MANY_KINDS,
        )
