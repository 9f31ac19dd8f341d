"""A zone for every set whose time is up and that no plan has placed: the path that must not fail or take long.

It looks at room by zone and rack only: no score, no traffic, no limit or separation within a zone. kube-scheduler
chooses the node. One pass over nodes and executors, and for each set a few array operations over the nodes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence

import numpy as np

from ballast.model import (
    Constraints,
    Demand,
    Executor,
    Location,
    Memory,
    Phase,
    Pin,
    Placement,
    Policy,
    Reason,
    Resources,
    Snapshot,
)
from ballast.model.arrays import BoolArray, FloatArray, IntArray
from ballast.placement.admission import Admission
from ballast.placement.expectation import COMPLETE, expectations
from ballast.placement.limit import zone_allowance
from ballast.placement.node_locations import node_locations
from ballast.placement.reasons import common_refusal, no_room_words
from ballast.placement.room import Room, about_to_be_bound, kinds
from ballast.placement.shortage import Round, rounds

_LATE = "no plan was made in time; "

_Template = tuple[Resources, Constraints]
_Left = dict[_Template, list[Executor]]
"""The executors of a set that have no zone yet."""


def fallback(snapshot: Snapshot, policy: Policy, *, gated: Sequence[Executor]) -> list[Placement]:
    """One placement without a node for each of `gated`, in that order.

    A set is the executors of `gated` of one topology, component and application. Its zone is the one in which most of
    its component (then most of its topology) is, if that zone has room for the whole set; otherwise the tightest zone
    that has room for all executors that are expected; otherwise, or where nothing says how many these are, the roomiest
    that has room for those of `gated`; otherwise the zones that hold most of it, one after the other. Where racks of
    the zone hold the set, the tightest of them is chosen.

    `snapshot`: its nodes, executors and pending pods are read, and its topologies for components that must not share
    a zone. `gated`: some of its gated executors, those that the operator may place: mode, namespaces and foreign gates
    are the caller's business.

    Returned: `location` is (zone, rack or None, …, None), `reason` GateTimeout. `pin` is Zone: the zone is required,
    the rack preferred. Where the policy pins nothing, where the executor is not labeled (nothing may be required of
    it), or where the zone has no name, `pin` is None and the location is preferred only. An executor that no zone can
    take has `pin` None, an empty location, and the reason why no zone can. A policy without zones gives no location.
    """
    if len(policy.levels.ordered) < 2:
        why = f"{_LATE}the policy names no level above the node"
        return [Placement(e.key, e.uid, None, (), Pin.NONE, Reason.GATE_TIMEOUT, why) for e in gated]
    zones = _Zones(snapshot, policy, {executor.topology for executor in gated})
    found: dict[str, Placement] = {}
    for part in zones.rounds(gated):
        for members in _sets(part.executors):
            found.update((placement.uid, placement) for placement in zones.place(members))
    return [found[executor.uid] for executor in gated]


def _sets(gated: Iterable[Executor]) -> list[list[Executor]]:
    """The largest set first: it is the hardest to keep in one zone."""
    sets: dict[tuple[str, str, str], list[Executor]] = defaultdict(list)
    for executor in gated:
        sets[executor.topology, executor.component, executor.application].append(executor)
    cores = {key: sum(executor.requests.cpu_cores for executor in members) for key, members in sets.items()}
    return [sets[key] for key in sorted(sets, key=lambda key: (-cores[key], key))]


class _Zones:
    """Room and executors by node, while one set after the other is sent to its zone."""

    def __init__(self, snapshot: Snapshot, policy: Policy, topologies: Collection[str]) -> None:
        self._policy = policy.placement
        self._grid = node_locations(snapshot.nodes, policy.levels)
        self._admission = Admission(self._grid.nodes)
        asked = [*(e.requests for e in snapshot.executors), *(e.requests for e in snapshot.pending)]
        self._room = Room(self._grid, kinds(asked))
        self._staff: dict[str, dict[str, IntArray]] = {topology: {} for topology in topologies}
        """By topology and component: executors on each node."""
        self._totals: Counter[tuple[str, str]] = Counter()
        self._expected = expectations(snapshot, Memory())
        self._apart = {
            topology.key: [set(separation.components) for separation in topology.separate if separation.by == "Zone"]
            for topology in snapshot.topologies
        }
        self._take_in(snapshot)

    def rounds(self, gated: Sequence[Executor]) -> list[Round]:
        """As `shortage.rounds`, before any is placed."""
        return rounds(gated, self._room, self._admission)

    def _take_in(self, snapshot: Snapshot) -> None:
        waiting: Counter[Demand] = Counter(snapshot.pending)
        for executor in snapshot.executors:
            if executor.phase in (Phase.GATED, Phase.PENDING, Phase.RUNNING):
                self._totals[executor.topology, executor.component] += 1
            if executor.phase not in (Phase.PENDING, Phase.RUNNING):
                continue
            node = self._grid.index.get(executor.node or "")
            if node is not None and executor.topology in self._staff:
                self._on(executor)[node] += 1
        for executor in about_to_be_bound(snapshot):
            waiting[Demand(executor.requests, executor.constraints)] += 1
        for demand, count in waiting.items():
            self._expect(demand, count)

    def _on(self, executor: Executor) -> IntArray:
        """(N,): executors of its component."""
        components = self._staff[executor.topology]
        return components.setdefault(executor.component, np.zeros(len(self._grid.nodes), dtype=np.int64))

    def _expect(self, demand: Demand, count: int) -> None:
        """Take off what kube-scheduler will give to pending pods: everywhere, in proportion to what there is."""
        capacity = self._capacity((demand.requests, demand.constraints))
        total = int(capacity.sum())
        if total:
            shares = np.floor(min(count, total) * np.cumsum(capacity) / total)
            self._room.free -= np.outer(np.diff(shares, prepend=0.0), self._room.vector(demand.requests))

    def _capacity(self, template: _Template) -> IntArray:
        """(N,): how many executors of the template each node could take."""
        requests, constraints = template
        return self._room.capacity(self._room.vector(requests)) * self._admission.mask(constraints)

    def place(self, members: Sequence[Executor]) -> list[Placement]:
        """Send one set to its zone, or to as many zones as it takes."""
        left: _Left = defaultdict(list)
        for executor in sorted(members, key=lambda e: (-e.requests.cpu_cores, e.key, e.uid)):
            left[executor.requests, executor.constraints].append(executor)
        found: list[Placement] = []
        while left and (choice := self._choose(left, members[0])) is not None:
            nodes, location = choice
            chosen = self._send(left, nodes, most=int(self._limits(members[0])[self._grid.codes[0, nodes[0]]]))
            share = "the whole set" if len(chosen) == len(members) else f"{len(chosen)} of {len(members)} of its set"
            detail = f"{_LATE}{location[0] or 'the zone without a name'} has room for {share}"
            found += [self._placement(executor, location, detail) for executor in chosen]
        return found + [self._left_out(executor) for waiting in left.values() for executor in waiting]

    def _choose(self, left: _Left, one: Executor) -> tuple[IntArray, Location] | None:
        """The nodes of the best place, and as much of their location as is chosen; None when no zone is of use."""
        nodes, depth, fits = np.arange(len(self._grid.nodes)), 0, True
        while fits and depth < self._grid.last:
            best, fits = self._best(left, one, nodes, depth)
            if best is None:
                return None
            if fits or depth == 0:
                nodes, depth = nodes[self._grid.codes[depth, nodes] == best], depth + 1
        named = self._grid.nodes[nodes[0]].location
        return nodes, (*named[:depth], *(None for _ in named[depth:]))

    def _best(self, left: _Left, one: Executor, nodes: IntArray, level: int) -> tuple[int | None, bool]:
        """The best place of the level among `nodes`, and whether it has room for all that is left."""
        places, size = self._grid.codes[level, nodes], self._grid.sizes[level]
        counts = np.array([len(waiting) for waiting in left.values()])[:, None]
        capacity = np.array([self._capacity(template)[nodes] for template in left])
        holds = np.array([np.bincount(places, weights=row, minlength=size) for row in capacity])
        taken = np.minimum(holds, counts).sum(axis=0)
        if level == 0:
            taken = np.minimum(taken, self._limits(one))
        demand = np.array([self._room.vector(requests) for requests, _ in left])
        offered = np.where(capacity.any(axis=0), np.maximum(self._room.free[nodes], 0.0).T, 0.0)
        free = np.array([np.bincount(places, weights=row, minlength=size) for row in offered])
        fits = (taken >= counts.sum()) & self._have(free, holds, counts, demand)
        rows = self._on(one), np.sum(list(self._staff[one.topology].values()), axis=0)
        own, kin = (np.bincount(places, weights=row[nodes], minlength=size) for row in rows)
        expected = self._expected.get((one.topology, one.component), COMPLETE)
        later = counts + expected.to_come * (np.arange(len(counts)) == counts.argmax())[:, None]
        whole = fits & self._have(free, holds, later, demand)
        # Those that come later are no reason to leave those that are there.
        fits = whole if whole.any() and not own[fits].any() else fits
        able = np.flatnonzero(fits if fits.any() else taken > 0)
        if not len(able):
            return None, False
        room = (holds / counts).min(axis=0)
        keys = (
            (room if whole.any() and (expected.known or level) else -room, -kin, -own)
            if fits.any()
            else (-kin, -own, -taken)
        )
        return int(able[np.lexsort([key[able] for key in keys])[0]]), bool(fits.any())

    def _have(self, free: FloatArray, holds: IntArray, counts: IntArray, demand: FloatArray) -> BoolArray:
        """(places,): whether each has room for so many, of each template by itself and of all together."""
        needed = (counts * demand).sum(axis=0)[:, None]
        result: BoolArray = (holds >= counts).all(axis=0) & (free + self._room.slack[:, None] >= needed).all(axis=0)
        return result

    def _limits(self, one: Executor) -> IntArray:
        """(zones,): how many more of its component each zone may hold, by the policy and by what it must avoid."""
        zones, size = self._grid.codes[0], self._grid.sizes[0]
        ratio = self._policy.max_executors_per_zone_ratio if size > 1 else 1.0
        most = zone_allowance(self._totals[one.topology, one.component], ratio)
        result = np.maximum(0, most - np.bincount(zones, weights=self._on(one), minlength=size)).astype(np.int64)
        result[list(self._barred(one))] = 0
        return result

    def _barred(self, one: Executor) -> set[int]:
        """Zones that hold a component which must be in another zone."""
        apart = [names for names in self._apart.get(one.topology, ()) if one.component in names]
        staff = self._staff[one.topology]
        others = set().union(*apart).intersection(staff) - {one.component}
        return {int(zone) for name in others for zone in self._grid.codes[0, staff[name] > 0]}

    def _send(self, left: _Left, nodes: IntArray, *, most: int) -> list[Executor]:
        """Take up to `most` of the set, and their room on these nodes, node by node."""
        sent: list[Executor] = []
        for template, waiting in list(left.items()):
            capacity = self._capacity(template)[nodes]
            before = np.cumsum(capacity) - capacity
            taken = np.clip(min(len(waiting), most - len(sent)) - before, 0, capacity)
            self._room.free[nodes] -= np.outer(taken, self._room.vector(template[0]))
            self._on(waiting[0])[nodes] += taken
            count = int(taken.sum())
            sent += waiting[:count]
            left[template] = waiting[count:]
            if not left[template]:
                del left[template]
        return sent

    def _placement(self, executor: Executor, location: Location, detail: str) -> Placement:
        may_be_tied = executor.labeled and not (executor.by_other_pods or executor.late_claims)
        ties = may_be_tied and self._policy.pin is not Pin.NONE and location[0] is not None
        pin = Pin.ZONE if ties else Pin.NONE
        return Placement(executor.key, executor.uid, None, location, pin, Reason.GATE_TIMEOUT, detail)

    def _left_out(self, executor: Executor) -> Placement:
        reason, detail = self._why_not(executor)
        return Placement(executor.key, executor.uid, None, (), Pin.NONE, reason, _LATE + detail)

    def _why_not(self, executor: Executor) -> tuple[Reason, str]:
        admitted = self._admission.mask(executor.constraints)
        if not admitted.any():
            return common_refusal(executor, self._grid.nodes, self._admission)
        zones = set(self._grid.codes[0, self._capacity((executor.requests, executor.constraints)) > 0].tolist())
        if not zones:
            return Reason.POOL_FULL, no_room_words(int(admitted.sum()))
        if zones <= self._barred(executor):
            return (
                Reason.SEPARATED,
                f"every zone with room holds a component that must be apart from {executor.component}",
            )
        return Reason.SPREAD_LIMIT, f"every zone with room holds as many of {executor.component} as the policy allows"
