"""Strategy ResourceAware: to the first node that can take the executor, in Storm's order of nodes.

From zone to rack to node, the place that already runs most of its topology, then the one with the largest part of what
is free there. Extended resources (GPUs) attract those that ask for them and repel all others.
Source: Storm's node order under its rule COMMON.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from ballast.model import Executor, Phase
from ballast.model.arrays import FloatArray, IntArray
from ballast.placement.placement_view import PlacementView, Pool
from ballast.placement.room import Room
from ballast.placement.strategy import Seats, one_by_one

_PODS = 2
"""Column of a room; how many pods a node may run is no resource that speaks for it."""
_ORDINARY = 2
"""CPU and memory, the first columns, which count for all."""


class ResourceAware:
    def __init__(self, pool: Pool) -> None:
        self._layout = Layout(pool.locations.paths())
        offered = Counter(name for node in pool.locations.nodes for name, _ in node.allocatable.extended)
        # A GPU also repels if no executor in this pass asks for one; what all nodes have (ephemeral storage) does not.
        rare = {name for name, count in offered.items() if count < len(pool.locations.nodes)}
        self._whole = Room(pool.locations, ("cpu", "memory", "pods", *sorted(rare.union(pool.room.kinds[3:]))))
        columns = [kind for kind in self._whole.kinds if kind != "pods"]
        self._rare = np.array([kind in rare for kind in columns])
        self._common = ~self._rare
        self._common[:_ORDINARY] = False
        self._sent: dict[str, Counter[int]] = defaultdict(Counter)

    def seats(self, view: PlacementView, turns: Sequence[int]) -> Seats:
        demands = [self._whole.vector(view.workload.groups[int(group)].requests) for group in view.groups]
        demand = np.delete(np.array(demands), _PODS, axis=1)
        left = Availability(
            free=np.maximum(self._free(view.pool.room), 0.0),
            placed=self._placed(view),
            rare=self._rare,
        )

        latest = (-1, -1)

        def choose(able: IntArray, row: int) -> int:
            nonlocal latest
            node = latest[1]
            # The last executor has made its places the fullest at every level: they stay the first for equal ones.
            if row != latest[0] or not _holds(able, node):
                mask = np.zeros(len(left.placed), dtype=np.bool_)
                mask[able] = True
                seen = self._seen(left, demand[row])
                node = next(able_in_order(self._layout, seen, mask, requested=demand[row] > 0))
            latest = (row, node)
            left.free[node] = np.maximum(left.free[node] - demand[row], 0.0)
            left.placed[node] += 1
            return node

        return one_by_one(view, turns, choose)

    def _seen(self, left: Availability, demand: FloatArray) -> Availability:
        """What counts for that demand: of what all nodes have, only what it asks for."""
        unasked = self._common & (demand <= 0)
        return replace(left, free=np.where(unasked, 0.0, left.free)) if unasked.any() else left

    def took(self, executor: Executor, node: int) -> None:
        """Only those that were sent before and are not bound yet: all others are present in their workload."""
        if executor.phase is Phase.PENDING:
            self._sent[executor.topology][node] += 1

    def _free(self, space: Room) -> FloatArray:
        """(nodes, kinds except for pods)"""
        free = self._whole.free.copy()
        free[:, [self._whole.kinds.index(kind) for kind in space.kinds]] = space.free
        return np.delete(free, _PODS, axis=1)

    def _placed(self, view: PlacementView) -> IntArray:
        """(nodes,): executors of the topology that are there, or will be."""
        placed: IntArray = view.workload.present.sum(axis=0)
        for node, count in self._sent[view.workload.topology.key].items():
            placed[node] += count
        return placed


def _holds(ascending: IntArray, value: int) -> bool:
    at = int(np.searchsorted(ascending, value))
    return at < len(ascending) and int(ascending[at]) == value


Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


class NodeRule(StrEnum):
    """What decides between items that run equally many executors of the topology."""

    COMMON = "Common"
    """Mean share, then the scarcest resource's; rare resources attract those that ask for them and repel others."""
    GENERIC = "Generic"
    """Mean share, with the same attraction."""
    DEFAULT = "Default"
    """The scarcest resource's share, then the mean; rare resources count like all others."""


@dataclass(frozen=True, slots=True)
class Shares:
    """An item's part of what is free at its level, in per cent of each resource (those of which nothing is free at
    all are passed over; if that is every one, 100). Negative where rare resources repel.
    """

    mean_percent: Floats
    scarcest_percent: Floats


@dataclass(frozen=True, slots=True)
class _Members:
    """Which rows belong to which group; every group has at least one."""

    of_row: Ints
    """The group of each row."""
    order: npt.NDArray[np.intp]
    """The rows, group by group."""
    starts: npt.NDArray[np.intp]
    """Where each group starts in `order`."""

    @classmethod
    def by(cls, of_row: Ints) -> _Members:
        order = np.argsort(of_row, kind="stable")
        starts = np.flatnonzero(np.diff(of_row[order], prepend=-1))
        return cls(of_row, order, starts)

    def rows_of(self, groups: slice) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """The rows of consecutive groups, and where each group starts among them."""
        first = self.starts[groups.start]
        end = self.starts[groups.stop] if groups.stop < len(self.starts) else len(self.order)
        return self.order[first:end], self.starts[groups] - first


class Layout:
    """Where the nodes are: `paths` holds per node its item at each level, far to near, the node itself last.

    An item is identified by its whole path, so racks of two zones may have the same name.
    """

    def __init__(self, paths: Sequence[Sequence[str]]) -> None:
        depth = len(paths[0]) if paths else 0
        self.names: list[list[str]] = []
        """Items of each level; an item's code is its position here. Below one parent they go by name."""
        self.members: list[_Members] = []
        """Per level, how the nodes are grouped into items."""
        for level in range(1, depth + 1):
            prefixes = [tuple(path[:level]) for path in paths]
            items = {prefix: code for code, prefix in enumerate(sorted(set(prefixes)))}
            codes = np.array([items[prefix] for prefix in prefixes], dtype=np.int64)
            self.names.append([prefix[-1] for prefix in items])
            self.members.append(_Members.by(codes))

    def below(self, level: int, item: int) -> slice:
        """Codes of the next level's items that belong to an item; they are consecutive."""
        rows, _ = self.members[level].rows_of(slice(item, item + 1))
        codes = self.members[level + 1].of_row[rows]
        return slice(int(codes.min()), int(codes.max()) + 1)


@dataclass(frozen=True, slots=True)
class Availability:
    """What the nodes have, one row per node of the layout."""

    free: Floats
    """Nodes × resources, none below zero."""
    placed: Ints
    """Executors of the topology that each node runs already."""
    rare: Flags
    """Per resource: not every node has it (GPUs, say), so those that don't need it keep away."""


def able_in_order(
    layout: Layout, room: Availability, able: Flags, *, requested: Flags | None, rule: NodeRule = NodeRule.COMMON
) -> Iterator[int]:
    """Positions of the nodes of `able` in the order of trying them, computed only as far as the caller iterates.

    `requested`: per resource, whether the executor to be placed asks for it; None: rare resources neither attract nor
    repel. The room must not change in between.
    """
    if layout.members and able.any():
        yield from _within(_Question(layout, room, able, requested, rule), 0, slice(0, len(layout.names[0])))


@dataclass(frozen=True, slots=True)
class _Question:
    layout: Layout
    room: Availability
    able: Flags
    requested: Flags | None
    rule: NodeRule


def _within(question: _Question, level: int, items: slice) -> Iterator[int]:
    """Able nodes below these items of a level, all of one parent."""
    members = question.layout.members[level]
    rows, starts = members.rows_of(items)
    useful = np.flatnonzero(np.logical_or.reduceat(question.able[rows], starts))
    for item in _in_order(question, rows, starts, useful) if len(useful) > 1 else useful.tolist():
        if level == len(question.layout.members) - 1:
            yield int(rows[item])
        else:
            yield from _within(question, level + 1, question.layout.below(level, items.start + item))


def _in_order(
    question: _Question, rows: npt.NDArray[np.intp], starts: npt.NDArray[np.intp], useful: npt.NDArray[np.intp]
) -> Iterator[int]:
    """The useful items: where most are already needs no metrics when it stands alone."""
    placed = np.add.reduceat(question.room.placed[rows], starts)
    most = useful[placed[useful] == placed[useful].max()]
    if len(most) == 1:
        yield int(most[0])
        useful = useful[useful != most[0]]
    free = np.add.reduceat(question.room.free[rows], starts, axis=0, dtype=np.float64)
    shares = shares_of(free, free.sum(axis=0), question.room.rare, question.requested, question.rule)
    rank = _rank(shares, placed, question.rule)
    yield from useful[np.argsort(rank[useful])].tolist()


def shares_of(free: Floats, total: Floats, rare: Flags, requested: Flags | None, rule: NodeRule) -> Shares:
    """`total`: what is free below the parent, of each item or of all together."""
    if requested is not None and rule is not NodeRule.DEFAULT:
        free = np.where(rare & ~requested, -free, free)
    counted = np.broadcast_to(total > 0, free.shape)
    shares = np.divide(free, total, out=np.zeros_like(free), where=counted)
    resources = counted.sum(axis=1)
    mean = np.divide(shares.sum(axis=1) * 100.0, resources, out=np.full(len(free), 100.0), where=resources > 0)
    scarcest = np.where(counted, shares, 1.0).min(axis=1, initial=1.0) * 100.0
    return Shares(mean_percent=mean, scarcest_percent=scarcest)


def _rank(shares: Shares, placed: Floats, rule: NodeRule) -> Ints:
    """Each item's place among all of its level; ties go by name, which is the order of the codes."""
    mean, scarcest = -shares.mean_percent, -shares.scarcest_percent
    values = {
        NodeRule.COMMON: (mean, scarcest),
        NodeRule.GENERIC: (mean,),
        NodeRule.DEFAULT: (scarcest, mean),
    }[rule]
    order = np.lexsort((*values[::-1], -placed))
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return rank
