"""What a set of executors finds in the whole pool, node by node, before it is decided where to look closer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf

import numpy as np

from ballast.model import LoadUnit, Packing, PlacementPolicy, SheddingPolicy
from ballast.model.arrays import BoolArray, FloatArray, IntArray
from ballast.model.shedders import OverloadSettings, ThresholdSettings, TransferSettings
from ballast.placement.admission import Admission
from ballast.placement.expectation import ReservedRoom
from ballast.placement.limit import kept_away, node_limits, separations, zone_limits
from ballast.placement.node_locations import NodeLocations
from ballast.placement.room import Room, counts_that_fit
from ballast.placement.workload import TopologyWorkload

# Which nodes the shedder would unload: nothing is placed there that would have to move again.


def would_be_unloaded(scores: FloatArray, shedding: SheddingPolicy) -> BoolArray:
    """(nodes,): hot by the shedder's own measure, were it to see these scores for long enough. NaN scores are not.

    Of strategies that go by traffic, nothing is known to be hot; nor is a node that is unloaded because the hottest
    one can't spare an executor.
    """
    result: BoolArray = np.nan_to_num(scores, nan=-np.inf) >= hot_score(scores, shedding)
    return result


def hot_score(scores: FloatArray, shedding: SheddingPolicy) -> float:
    """The score from which a node is unloaded, given these; infinite where scores do not tell."""
    known = scores[~np.isnan(scores)]
    return _limit(known, shedding) if len(known) else inf


def _limit(known: FloatArray, shedding: SheddingPolicy) -> float:
    """The score from which a node is unloaded; infinite where scores do not tell."""
    rules = shedding.avg_shedder
    if shedding.strategy == "AvgShedder" and rules.unit is LoadUnit.USAGE:
        return max(rules.min_hot_score, float(known.min()) + rules.low_threshold)
    match shedding.chosen:
        case OverloadSettings(threshold=threshold):
            return threshold
        case ThresholdSettings(threshold=threshold, lower_boundary=lower_boundary):
            return _above_mean(known, threshold, lower_boundary=lower_boundary)
        case TransferSettings(target_std_ratio=target, overload_threshold=overload):
            return _apart(known, target * 100, overload)
    return inf


def _above_mean(known: FloatArray, threshold: float, *, lower_boundary: bool) -> float:
    """Where no node is too far above the mean, one that is too far below it has the hottest unloaded."""
    mean, hottest = float(known.mean()), float(known.max())
    too_cold = lower_boundary and float(known.min()) < mean - threshold
    return hottest if too_cold and hottest < mean + threshold else mean + threshold


def _apart(known: FloatArray, target: float, overload: float) -> float:
    """While the scores as a whole are too far apart, the hottest node is unloaded, one after the other."""
    mean = float(known.mean())
    return float(np.nextafter(mean, inf)) if float(known.std()) > target else max(overload, mean + target)


TIERS = 3
"""0: nodes that are neither hot nor unfavored; 1: unfavored ones too; 2: every node that admits the executor."""

_DRIVER_OF_A_DIVIDED_SET = 0.1
"""How much of its weight the driver keeps where a set is in several zones: what the parts exchange decides."""
_LOAD_WEIGHT = 0.5
"""Cost of a node at a score of 100 against one at 0, in units of leaving the node with all of one's traffic."""
_UNMEASURED_SCORE = 50.0
_OVERSHOOT = 0.25
"""Share of its CPU by which a node that is below the score limit may be expected to end above it: an executor whose
application has no metrics yet counts with what it asks for, which is more than it will use."""
_PLENTY = 1e6
_BELOW = 1e-6
"""Points of score: a node at the limit is hot already."""


@dataclass(frozen=True, slots=True)
class Pool:
    """The nodes during one pass; `room` changes as executors are placed."""

    locations: NodeLocations
    room: Room
    admission: Admission
    policy: PlacementPolicy
    hot: BoolArray
    """(N,): nodes that would be unloaded as they are."""
    hot_score: float = inf
    """The score from which a node would be unloaded."""
    reserved: ReservedRoom | None = None
    """For executors to come."""

    def named(self, names: tuple[str, ...]) -> BoolArray:
        mask = np.zeros(len(self.locations.nodes), dtype=np.bool_)
        mask[[self.locations.index[name] for name in names if name in self.locations.index]] = True
        return mask


@dataclass(frozen=True)
class PlacementView:
    """Rows of groups follow `groups`; N is the number of nodes of the pool.

    Without slots: what only some strategies ask for is worked out when it is first asked for, and kept; so a view must
    not outlive what it saw of the pool.
    """

    pool: Pool
    workload: TopologyWorkload
    groups: IntArray
    """(G,): indices of the workload's groups."""
    counts: IntArray
    """(G,)"""
    component: IntArray
    """(G,)"""
    demand: FloatArray
    """(G, R + 1): the last column is the load in CPU cores."""
    room: FloatArray
    """(N, R + 1): the last column is what is left of the score, in CPU cores."""
    slack: FloatArray
    allowed: BoolArray
    """(G, N)"""
    capacity: IntArray
    """(G, N): how many of the group the node could take, taken alone."""
    node_limit: IntArray
    zone_limit: IntArray
    apart: tuple[tuple[int, IntArray], ...]
    tier: int
    within: BoolArray | None

    def after(self, placed: IntArray, rows: Sequence[int]) -> PlacementView:
        """What these groups find once others have gone where `placed` (G, N) says."""
        pool, workload = self.pool, self.workload
        if placed.any():
            pool = replace(pool, room=pool.room.copy())
            workload = replace(workload, present=workload.present.copy())
        for row, node in np.argwhere(placed).tolist():
            members, count = workload.groups[int(self.groups[row])], int(placed[row, node])
            demand = pool.room.vector(members.requests)
            pool.room.take(node, demand, count=count, load_cores=members.load_cores)
            workload.present[members.component, node] += count
        counts = {int(self.groups[row]): int(self.counts[row]) for row in rows}
        return placement_view(pool, workload, counts, self.tier, within=self.within)

    @property
    def growing(self) -> bool:
        """Whether more executors of these components will come, or may."""
        return bool(self.to_come.any()) or self.open_ended

    @property
    def open_ended(self) -> bool:
        """Whether nothing says how many executors some component will have."""
        return bool(self.workload.open_ended[self.component].any())

    @cached_property
    def to_come(self) -> IntArray:
        """(G,): executors that are expected later, all of a component as ones of its largest group."""
        result = np.zeros(len(self.groups), dtype=np.int64)
        for component in set(self.component.tolist()):
            rows = np.flatnonzero(self.component == component)
            result[rows[self.counts[rows].argmax()]] = self.workload.to_come[component]
        return result

    @cached_property
    def capacity_for_all(self) -> IntArray:
        """(G, N): `capacity` by the limits that will hold once all that are expected are there."""
        if not self.to_come.any():
            return self.capacity
        complete = replace(self.workload, totals=self.workload.sizes)
        fitting = np.array([counts_that_fit(self.room, row, self.slack) for row in self.demand]) * self.allowed
        in_zone = zone_limits(complete, self.pool.locations, self.pool.policy)[:, self.pool.locations.codes[0]] > 0
        most = np.maximum(node_limits(complete, self.pool.policy), 0) * in_zone
        result: IntArray = np.minimum(fitting, most[self.component])
        return result

    @cached_property
    def reserved(self) -> FloatArray | None:
        """(zones, R): what is reserved for executors of other topologies; None if that is nothing."""
        reserved = self.pool.reserved
        return None if reserved is None else reserved.by_others(self.workload.topology.key)

    def limited_to(self, nodes: BoolArray) -> PlacementView:
        """The same with only these nodes, (N,)."""
        within = np.tile(nodes, (len(self.workload.components), 1))
        counts = dict(zip(self.groups.tolist(), self.counts.tolist(), strict=True))
        if self.within is not None:
            within &= self.within
        return placement_view(self.pool, self.workload, counts, self.tier, within=within)

    @cached_property
    def weights(self) -> FloatArray:
        """(C, C): weight of each pair of executors."""
        return self.workload.traffic.per_pair(self.workload.totals)

    @property
    def outer(self) -> FloatArray:
        """(C, N): pull of fixed ends outside on one executor."""
        return self.workload.outer

    @cached_property
    def driver(self) -> FloatArray:
        """(N,): distance to the driver; zeros without one."""
        locations, anchor = self.pool.locations, self.workload.traffic.driver
        return np.zeros(len(locations.nodes)) if anchor is None else locations.anchor_distance(anchor)

    @cached_property
    def divided(self) -> bool:
        """Whether no zone holds the executors of each group."""
        zones, size = self.pool.locations.codes[0], self.pool.locations.sizes[0]
        holds = np.stack([np.bincount(zones, weights=row, minlength=size) for row in self.capacity])
        return bool((holds < self.counts[:, None]).any(axis=0).all())

    @cached_property
    def packs(self) -> bool:
        return self.pool.policy.packing is Packing.PACK

    @cached_property
    def spare(self) -> FloatArray:
        """(N,): CPU cores until the node counts as hot."""
        limit = min(self.pool.policy.max_score_percent, self.pool.hot_score)
        return np.minimum(self.pool.room.headroom(limit - _BELOW), _PLENTY)

    @cached_property
    def load_cores(self) -> FloatArray:
        """(G,): expected load of one executor."""
        return np.array([self.workload.groups[group].load_cores for group in self.groups.tolist()])

    @cached_property
    def preference(self) -> FloatArray:
        """(N,): coolness and favor, 0 … 2."""
        return _preference(self.pool, max(self.workload.groups[group].load_cores for group in self.groups.tolist()))

    @cached_property
    def involved(self) -> IntArray:
        """Components that a placement of the groups depends on: their own, and what these exchange with or avoid."""
        own = np.zeros(len(self.workload.components), dtype=np.bool_)
        own[self.component] = True
        result = own | (self.weights[own] != 0).any(axis=0)
        for _, members in self.apart:
            result[members] |= bool(own[members].any())
        return np.flatnonzero(result)

    @cached_property
    def component_counts(self) -> IntArray:
        """(C,): executors to place of each component."""
        result = np.zeros(len(self.workload.components), dtype=np.int64)
        np.add.at(result, self.component, self.counts)
        return result

    @cached_property
    def usable(self) -> FloatArray:
        """(N, R + 1): the room of nodes that could take any of the groups, none of the others."""
        result: FloatArray = np.maximum(self.room, 0.0)
        result[~(self.capacity > 0).any(axis=0)] = 0.0
        return result

    @cached_property
    def free_share(self) -> FloatArray:
        """(N,): what is left of each node, in units of the largest that any node has left, of the scarcest kind."""
        cpu, memory = (np.maximum(self.room[:, kind], 0.0) for kind in (0, 1))
        result: FloatArray = np.minimum(
            cpu / max(cpu.max(initial=0.0), 1e-9), memory / max(memory.max(initial=0.0), 1e-9)
        )
        return result

    def pull(self, nodes: IntArray) -> FloatArray:
        """(C, K): all that each of these nodes costs one executor, whatever the other executors do."""
        each = self.workload.traffic.driver_rate / max(1.0, float(self.workload.totals.sum()))
        if self.divided:
            each *= _DRIVER_OF_A_DIVIDED_SET
        steps = self.pool.locations.steps
        partners = (self.weights * self.workload.totals).sum(axis=1)
        liking = np.outer(partners, np.maximum(self.preference[nodes] - 1.0, 0.0)) * float(steps[1:].sum())
        result: FloatArray = self.outer[:, nodes] + each * self.driver[nodes] + self.tempering(nodes) - liking
        return result

    def tempering(self, nodes: IntArray) -> FloatArray:
        """(C, K): the part of `pull` that draws executors to cool nodes."""
        partners = (self.weights * self.workload.totals).sum(axis=1)
        warmth = 1.0 - np.minimum(self.preference[nodes], 1.0)
        result: FloatArray = _LOAD_WEIGHT * self.pool.locations.steps[-1] * np.outer(partners, warmth)
        return result


def placement_view(
    pool: Pool, workload: TopologyWorkload, counts: Mapping[int, int], tier: int, *, within: BoolArray | None = None
) -> PlacementView:
    """`counts`: executors to place by group; `within`: (components, nodes), where each may go at most."""
    groups = [index for index, count in sorted(counts.items()) if count > 0]
    members = [workload.groups[index] for index in groups]
    demand = np.array([[*pool.room.vector(group.requests), group.load_cores] for group in members])
    headroom = np.minimum(pool.room.headroom(pool.policy.max_score_percent), _PLENTY)
    if tier == TIERS - 1:
        demand[:, -1] = 0.0
    left = np.where(headroom >= 0, headroom + _OVERSHOOT * pool.room.offered[:, 0], -1.0)
    room, slack = np.column_stack([pool.room.free, left]), np.append(pool.room.slack, 1e-9)
    allowed = np.array([pool.admission.mask(group.constraints) for group in members]) & _of_tier(pool, headroom, tier)
    component = np.array([group.component for group in members], dtype=np.int64)
    apart = separations(workload.topology, workload.components, pool.locations)
    for row, own in enumerate(component):
        if apart:
            allowed[row] &= ~kept_away(pool.locations, workload.present, apart, int(own))
        if within is not None:
            allowed[row] &= within[own]
    node_limit = node_limits(workload, pool.policy)
    # Components often share one template: each distinct demand is compared with all nodes once.
    distinct = {row.tobytes(): row for row in demand}
    fitting = {key: counts_that_fit(room, row, slack) for key, row in distinct.items()}
    capacity = np.array([fitting[row.tobytes()] for row in demand])
    zone_limit = zone_limits(workload, pool.locations, pool.policy)
    within_zone = zone_limit[component][:, pool.locations.codes[0]] > 0
    capacity = np.minimum(capacity, np.maximum(node_limit[component], 0)) * (allowed & within_zone)
    return PlacementView(
        pool=pool,
        workload=workload,
        groups=np.array(groups, dtype=np.int64),
        counts=np.array([counts[index] for index in groups], dtype=np.int64),
        component=component,
        demand=demand,
        room=room,
        slack=slack,
        allowed=allowed,
        capacity=capacity,
        node_limit=node_limit,
        zone_limit=zone_limit,
        apart=apart,
        tier=tier,
        within=within,
    )


def _of_tier(pool: Pool, headroom: FloatArray, tier: int) -> BoolArray:
    if tier == TIERS - 1:
        return np.ones(len(headroom), dtype=np.bool_)
    cool = (headroom >= 0) & ~pool.hot
    return cool & ~pool.named(pool.policy.unfavored_nodes) if tier == 0 else cool


def _preference(pool: Pool, load_cores: float) -> FloatArray:
    """Coolness once an executor of this load is there, 0…1, plus 1 where it is favored."""
    scores = np.where(np.isnan(pool.room.scores), _UNMEASURED_SCORE, pool.room.scores)
    scores = scores + pool.room.points_per_core * load_cores
    coolness = 1.0 - np.clip(scores, 0.0, 100.0) / 100.0
    return coolness + pool.named(pool.policy.favored_nodes)
