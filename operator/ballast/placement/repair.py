"""Room for executors that found no node, by sending others of the same pass elsewhere.

A pass places one set after the other, and cool nodes before hot ones: what comes first may take the only place of
what comes later. Here each executor that is left takes a node from others, which take one from others in turn
(ejection chains); where that is not enough, some nodes are emptied and filled again in another order. Counted in
steps, so that the same question has the same answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random

import numpy as np

from ballast.model import Executor
from ballast.model.arrays import BoolArray, FloatArray, IntArray
from ballast.placement.limit import kept_away, node_limits, separations, zone_limits
from ballast.placement.placement_view import Pool
from ballast.placement.room import fits
from ballast.placement.workload import Group, TopologyWorkload

_STEPS = 2000
_MOST_CELLS = 500_000
"""Executors times nodes that are repaired together; the namespaces with the fewest executors come first."""
_DEPTH = 3
"""How many executors in a row may each send the next one elsewhere."""
_MOST_EJECTED = 4
"""Of one kind, from one node."""


_Ejection = list[tuple[int, int]]
"""Kind and node, once for each executor that is to go elsewhere."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What single components may do; a row is a component of one topology, N nodes, Z zones."""

    node_left: IntArray
    """(rows, N): how many more of the component each node may take."""
    zone_left: IntArray
    """(rows, Z)"""
    present: IntArray
    """(rows, N): executors that are there, those that may be sent elsewhere included."""
    apart: tuple[tuple[int, IntArray], ...]
    """Level, rows that must not share a place of it."""


def seat(workload: TopologyWorkload, seats: Mapping[str, int]) -> IntArray:
    """Count executors of the workload as present where they are seated (positions by uid); (groups, N) of them."""
    placed = np.zeros((len(workload.groups), workload.present.shape[1]), dtype=np.int64)
    for index, group in enumerate(workload.groups):
        for executor in group.executors:
            if executor.uid in seats:
                placed[index, seats[executor.uid]] += 1
        workload.present[group.component] += placed[index]
    return placed


def repairable(executors: Sequence[Executor], nodes: int) -> list[Executor]:
    """The executors of the namespaces that have the fewest, as many namespaces as are repaired together."""
    counts = Counter(executor.namespace for executor in executors)
    few, left = set[str](), _MOST_CELLS // max(1, nodes)
    for name, count in sorted(counts.items(), key=lambda item: (item[1], item[0])):
        left -= count
        if left < 0:
            break
        few.add(name)
    return [executor for executor in executors if executor.namespace in few]


def repaired(
    pool: Pool, workloads: Iterable[TopologyWorkload], seats: Mapping[str, int], *, executors: int
) -> dict[str, int]:
    """Seats (positions by uid) for as many of the workloads' executors as possible, and the pool's room with them.

    An executor that has a seat may get another, or lose it where two others get one instead. `workloads`: as they were
    before any had a seat; `executors`: how many they have.
    """
    if not executors:
        return dict(seats)
    everyone = list(workloads)
    groups = [group for workload in everyone for group in workload.groups]
    assignment = _assignment(pool, everyone, seats)
    before = assignment.placed.copy()
    # Seeded by what is asked: the same question always has the same answer.
    assignment.improve(_STEPS, Random(executors))  # noqa: S311 -- draws, no secrets
    found: dict[str, int] = {}
    for group, was, now in zip(groups, before, assignment.placed, strict=True):
        demand = pool.room.vector(group.requests)
        for node in np.flatnonzero(now != was).tolist():
            change = int(now[node] - was[node])
            pool.room.take(node, demand, count=change, load_cores=group.load_cores)
        found |= _reseated(group, seats, now)
    return found


def _reseated(group: Group, seats: Mapping[str, int], counts: IntArray) -> dict[str, int]:
    """The final assignment: executors that can stay do."""
    left, found = counts.copy(), dict[str, int]()
    moved: list[Executor] = []
    for executor in group.executors:
        node = seats.get(executor.uid)
        if node is not None and left[node] > 0:
            left[node] -= 1
            found[executor.uid] = node
        else:
            # Those that had a seat come first.
            moved.insert(0, executor) if node is not None else moved.append(executor)
    places = np.repeat(np.arange(len(left)), left).tolist()
    return found | {executor.uid: node for executor, node in zip(moved, places, strict=False)}


def _assignment(pool: Pool, workloads: Sequence[TopologyWorkload], seats: Mapping[str, int]) -> Assignment:
    locations, rows, apart, first = pool.locations, [], [], 0
    allowed, placed, limits = [], [], []
    for workload in workloads:
        kept = separations(workload.topology, workload.components, locations)
        for group in workload.groups:
            away = kept_away(locations, workload.present, kept, group.component)
            allowed.append(pool.admission.mask(group.constraints) & ~away)
        placed.append(seat(workload, seats))
        limits.append(
            (node_limits(workload, pool.policy), zone_limits(workload, locations, pool.policy), workload.present)
        )
        rows += [first + group.component for group in workload.groups]
        apart += [(level, members + first) for level, members in kept]
        first += len(workload.components)
    groups = [group for workload in workloads for group in workload.groups]
    counts = np.array([len(group.executors) for group in groups])
    table = np.concatenate(placed)
    return Assignment(
        codes=locations.codes,
        rows=rows,
        demand=np.array([pool.room.vector(group.requests) for group in groups]),
        allowed=np.array(allowed),
        placed=table,
        missing=counts - table.sum(axis=1),
        free=pool.room.free,
        slack=pool.room.slack,
        limits=Limits(
            node_left=np.concatenate([each for each, _, _ in limits]),
            zone_left=np.concatenate([each for _, each, _ in limits]),
            present=np.concatenate([each for _, _, each in limits]),
            apart=tuple(apart),
        ),
        owners=[group.executors[0].namespace for group in groups],
    )


class Assignment:
    """Executors by kind and node, some of them still missing; changes in place.

    K kinds of executors: of one component and template each, in `rows`. `demand` is (K, R), `allowed` (K, N), `placed`
    (K, N) those that may be sent elsewhere, `free` (N, R) what they leave, `missing` (K,). `owners`: namespaces of the
    kinds, none of which loses a place to another.
    """

    def __init__(
        self,
        *,
        codes: IntArray,
        rows: Sequence[int],
        demand: FloatArray,
        allowed: BoolArray,
        placed: IntArray,
        missing: IntArray,
        free: FloatArray,
        slack: FloatArray,
        limits: Limits,
        owners: Sequence[str] = (),
    ) -> None:
        self._codes, self._rows = codes, np.array(rows, dtype=np.int64)
        self._demand, self._allowed = demand, allowed
        self.placed, self.missing, self._free, self._slack = placed.copy(), missing.copy(), free.copy(), slack
        self._node_left, self._zone_left = limits.node_left.copy(), limits.zone_left.copy()
        self._present, self._apart = limits.present.copy(), limits.apart
        self._owners = np.unique(list(owners) or [""] * len(placed), return_inverse=True)[1]
        self._log: list[tuple[int, int, int]] = []
        self._left = 0

    def improve(self, steps: int, random: Random) -> None:
        """Find nodes for as many of the missing as possible; executors that have one keep it or get another.

        Namespaces have their turn one after the other, that with the fewest missing first. Each gets an equal part of
        the steps, and what those before it did not need: a user may have any number of executors that nothing helps.
        """
        counts = self._by_owner(self.missing)
        owners = sorted(np.flatnonzero(counts).tolist(), key=lambda owner: (counts[owner], owner))
        everyone = self.missing
        for place, owner in enumerate(owners):
            mine = self._owners == owner
            self.missing = np.where(mine, everyone, 0)
            part = steps // (len(owners) - place)
            self._improve(part, random)
            steps -= part - max(0, self._left)
            everyone = np.where(mine, self.missing, everyone)
        self.missing = everyone

    def _improve(self, steps: int, random: Random) -> None:
        self._left = steps
        self._insert_missing()
        if self.missing.any():
            # Where nothing fits even by amounts, one that is placed may still give its room to two that are not.
            self._left = self._left if self._could_fit() else min(self._left, steps // 4)
            self._shake(random)

    def _insert_missing(self) -> None:
        for kind in self._hardest_first():
            while self.missing[kind] and self._left > 0:
                if not self._insert(kind, _DEPTH, frozenset()):
                    break
                self.missing[kind] -= 1

    def _hardest_first(self) -> list[int]:
        largest = np.maximum(self._free.max(axis=0, initial=0.0), 1e-9)
        size = (self._demand / np.maximum(largest, self._demand.max(axis=0, initial=1e-9))).sum(axis=1)
        choice = self._allowed.sum(axis=1)
        return sorted(np.flatnonzero(self.missing).tolist(), key=lambda kind: (choice[kind], -size[kind], kind))

    def _could_fit(self) -> bool:
        """Whether any of the missing would fit by amounts if room were divisible."""
        for kind in np.flatnonzero(self.missing):
            room = np.maximum(self._free[self._allowed[kind]], 0.0).sum(axis=0)
            if (room + self._slack >= self._demand[kind]).all():
                return True
        return False

    def _shake(self, random: Random) -> None:
        """Empty a few nodes and fill them again in another order, as long as there are steps.

        Nothing changes but to place more: after the last gain, all is as it was then.
        """
        best = len(self._log), self.missing.copy()
        while self._left > 0 and self.missing.any() and self.placed.any():
            mark, before = len(self._log), self.missing.copy()
            taken = np.repeat(np.arange(len(before)), before).tolist()
            useful = self.placed.any(axis=0) & self._allowed[before > 0].any(axis=0)
            nodes = np.flatnonzero(useful if useful.any() else self.placed.any(axis=0)).tolist()
            for node in random.sample(nodes, min(len(nodes), random.choice((2, 3, 4, 12)))):
                for kind in np.repeat(np.arange(len(before)), self.placed[:, node]).tolist():
                    self._put(kind, node, -1)
                    taken.append(kind)
            left = self._fill(taken, random)
            if left > before.sum() or (self._by_owner(self.missing) > self._by_owner(before)).any():
                self._undo(mark)
                self.missing = before
            elif left < before.sum():
                self._insert_missing()
                best = len(self._log), self.missing.copy()
        self._undo(best[0])
        self.missing = best[1]

    def _by_owner(self, counts: IntArray) -> IntArray:
        return np.bincount(self._owners, weights=counts).astype(np.int64)

    def _fill(self, kinds: list[int], random: Random) -> int:
        """Place these in some order, large ones rather before small ones or the other way round; how many are left."""
        self.missing[:] = 0
        size, sense = self._demand[:, 0] + self._demand[:, 1] / (1 << 32), random.choice((-1.0, -1.0, 0.0, 1.0))
        for kind in sorted(kinds, key=lambda kind: (sense * size[kind] * random.uniform(0.5, 1.5), random.random())):
            if not self._insert(int(kind), 1, frozenset()):
                self.missing[kind] += 1
        return int(self.missing.sum())

    def _insert(self, kind: int, depth: int, passed: frozenset[int]) -> bool:
        """Place one more of the kind, on a node that is not passed over; False, and nothing changed, if in vain."""
        self._left -= 1
        node = self._nearest(kind, passed)
        if node is not None:
            self._put(kind, node, 1)
            return True
        if depth == 0 or self._left <= 0:
            return False
        return any(self._take_over(kind, node, out, depth, passed) for node, out in self._ways(kind, passed))

    def _take_over(self, kind: int, node: int, out: _Ejection, depth: int, passed: frozenset[int]) -> bool:
        """Put one of the kind on the node in place of `out` (kind, node), which find other nodes."""
        if self._left <= 0:
            return False
        mark = len(self._log)
        for other, place in out:
            self._put(other, place, -1)
        if self._open(kind)[node]:
            self._put(kind, node, 1)
            if all(self._insert(other, depth - 1, passed | {place}) for other, place in out):
                return True
        self._undo(mark)
        return False

    def _ways(self, kind: int, passed: frozenset[int]) -> Iterator[tuple[int, _Ejection]]:
        """Nodes that the kind could have, and which executors would have to go; the fewest first."""
        able = [node for node in np.flatnonzero(self._allowed[kind]).tolist() if node not in passed]
        ways = [(node, out) for node in able for out in self._ejections(kind, node)]
        return iter(sorted(ways, key=lambda way: len(way[1])))

    def _ejections(self, kind: int, node: int) -> list[_Ejection]:
        """Sets of executors without which the node may be open to the kind."""
        row = self._rows[kind]
        must = self._in_the_way(row, node)
        if self._node_left[row, node] <= 0:
            kin = [(other, node) for other in np.flatnonzero(self.placed[:, node]).tolist()]
        elif self._zone_left[row, self._codes[0, node]] <= 0:
            zone = self._codes[0] == self._codes[0, node]
            kin = [(int(other), int(place)) for other, place in zip(*np.nonzero(self.placed * zone), strict=True)]
        else:
            return [[*must, *out] for out in self._for_room(kind, node, must)]
        return [
            [*must, (other, place)]
            for other, place in kin
            if self._rows[other] == row and (other, place) != (kind, node)
        ]

    def _for_room(self, kind: int, node: int, must: _Ejection) -> list[_Ejection]:
        """Executors of the node that have enough room for the kind, once those of `must` are gone."""
        freed = sum((self._demand[other] for other, place in must if place == node), np.zeros_like(self._slack))
        lacking = np.where(self._demand[kind] > 0, self._demand[kind] - self._free[node] - self._slack - freed, 0.0)
        if (lacking <= 0).all():
            return [[]]
        there = [other for other in np.flatnonzero(self.placed[:, node]).tolist() if other != kind]
        found = [[(other, node)] * count for other in there if (count := self._enough(other, node, lacking))]
        pairs = ((one, other) for position, one in enumerate(there) for other in there[:position])
        enough = ((a, b) for a, b in pairs if (self._demand[a] + self._demand[b] >= lacking).all())
        return found + [[(one, node), (other, node)] for one, other in enough]

    def _enough(self, kind: int, node: int, lacking: FloatArray) -> int:
        """How many of the kind, of those on the node, free what is lacking; 0 when they don't, or are too many."""
        short = lacking > 0
        demand = self._demand[kind][short]
        if (demand <= 0).any():
            return 0
        count = int(np.ceil((lacking[short] / demand).max() - 1e-9))
        return count if count <= min(int(self.placed[kind, node]), _MOST_EJECTED) else 0

    def _in_the_way(self, row: int, node: int) -> _Ejection:
        """Those that may be sent elsewhere and must not share a place with the row's component."""
        found: set[tuple[int, int]] = set()
        for level, members in self._apart:
            if row in members:
                near = np.flatnonzero(self._codes[level] == self._codes[level, node])
                others = np.flatnonzero(np.isin(self._rows, members[members != row]))
                kinds, places = self.placed[np.ix_(others, near)].nonzero()
                found |= set(zip(others[kinds].tolist(), near[places].tolist(), strict=True))
        return [(other, near) for other, near in sorted(found) for _ in range(int(self.placed[other, near]))]

    def _nearest(self, kind: int, passed: frozenset[int]) -> int | None:
        """Of the nodes that are open to the kind, the one with its own kin nearest, then with the least room."""
        able = np.flatnonzero(self._open(kind))
        able = able[[node not in passed for node in able.tolist()]] if passed else able
        if not len(able):
            return None
        largest = np.maximum(self._free.max(axis=0), 1e-9)
        room = (self._free[able] / largest).sum(axis=1)
        kin = self._present[self._rows[kind]]
        # The last key counts first: the zone's.
        near = [-np.bincount(codes, weights=kin)[codes[able]] for codes in self._codes[-2::-1]]
        return int(able[np.lexsort((room, *near))[0]])

    def _open(self, kind: int) -> BoolArray:
        row = self._rows[kind]
        mask: BoolArray = self._allowed[kind] & fits(self._free, self._demand[kind], self._slack)
        mask &= (self._node_left[row] > 0) & (self._zone_left[row] > 0)[self._codes[0]]
        for level, members in self._apart:
            if row in members:
                there = self._present[members[members != row]].any(axis=0)
                mask &= ~np.isin(self._codes[level], self._codes[level][there])
        return mask

    def _put(self, kind: int, node: int, count: int) -> None:
        row = self._rows[kind]
        self._log.append((kind, node, count))
        self.placed[kind, node] += count
        self._free[node] -= count * self._demand[kind]
        self._node_left[row, node] -= count
        self._zone_left[row, self._codes[0, node]] -= count
        self._present[row, node] += count

    def _undo(self, mark: int) -> None:
        for kind, node, count in reversed(self._log[mark:]):
            self._put(kind, node, -count)
        del self._log[mark:]
