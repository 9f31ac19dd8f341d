"""How much room each node has left in this pass.

Allocatable, minus what is bound, minus what is on its way, minus pending pods (put where kube-scheduler would put
them, for it binds them first), minus what this pass has placed. Next to it the measured usage: a node above the
policy's score takes no new executors while others have room.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import copy

import numpy as np

from ballast.model import KUBE_SCHEDULER, Constraints, Demand, Executor, Levels, Phase, Resources, Snapshot, Weights
from ballast.model.arrays import BoolArray, FloatArray, IntArray
from ballast.placement.admission import Admission
from ballast.placement.node_locations import NodeLocations, node_locations

UNBOUNDED = 1 << 40
"""Stands for `as many as you like` where counts are compared."""
_NOT_OFFERED = "what no node offers"
"""Stands for all kinds of which no node has any: pods may ask for any number of them."""
_PLAIN = Weights()
_NOTHING = Resources()
_NOWHERE: Mapping[str, str] = {}
_FORGIVEN = {"cpu": 1e-6, "memory": 1.0}
_FORGIVEN_OTHERWISE = 1e-6


class Room:
    """Amounts by node (in the locations's order) and kind of resource; changes while a pass places executors.

    `kinds`: those that may be asked for, as `kinds` returns them. Those that no node offers share one column.
    """

    def __init__(self, locations: NodeLocations, kinds: Sequence[str], weights: Weights = _PLAIN) -> None:
        offered = {name for node in locations.nodes for name, _ in node.allocatable.extended}
        self.kinds = (*kinds[:3], *(kind for kind in kinds[3:] if kind in offered))
        if len(self.kinds) < len(kinds):
            self.kinds += (_NOT_OFFERED,)
        self.slack = np.array([_FORGIVEN.get(kind, _FORGIVEN_OTHERWISE) for kind in self.kinds])
        nodes = locations.nodes
        self.offered = self._table([node.allocatable for node in nodes])
        self.free = self.offered - self._table([node.requested for node in nodes])
        self.scores = np.full(len(nodes), np.nan)
        """Percent, with what this pass adds; NaN without a value."""
        self.points_per_core = np.array([weights.points_per_core(node.allocatable.cpu_cores) for node in nodes])

    def vector(self, amounts: Resources) -> FloatArray:
        extended = {name if name in self.kinds else _NOT_OFFERED: amount for name, amount in amounts.extended}
        fixed = {"cpu": amounts.cpu_cores, "memory": amounts.memory_bytes, "pods": amounts.pods}
        return np.array([fixed[kind] if kind in fixed else extended.get(kind, 0.0) for kind in self.kinds])

    def _table(self, amounts: Sequence[Resources]) -> FloatArray:
        table = np.zeros((len(amounts), len(self.kinds)))
        table[:, 0] = [amount.cpu_cores for amount in amounts]
        table[:, 1] = [amount.memory_bytes for amount in amounts]
        table[:, 2] = [amount.pods for amount in amounts]
        for column, kind in enumerate(self.kinds[3:], start=3):
            table[:, column] = [dict(amount.extended).get(kind, 0.0) for amount in amounts]
        return table

    def capacity(self, demand: FloatArray) -> IntArray:
        """How many executors of this demand each node could take by requests."""
        return counts_that_fit(self.free, demand, self.slack)

    def headroom(self, max_score: float) -> FloatArray:
        """CPU cores until a node reaches the score; infinite where nothing is measured, -1 where it is above."""
        with np.errstate(invalid="ignore", divide="ignore"):
            cores = (max_score - self.scores) / self.points_per_core
        cores = np.where(np.isnan(self.scores) | np.isnan(cores), np.inf, cores)
        return np.where(self.scores > max_score, -1.0, cores)

    def take(self, node: int, demand: FloatArray, *, count: int = 1, load_cores: float = 0.0) -> None:
        self.free[node] -= demand * count
        self.heat(node, load_cores * count)

    def heat(self, node: int, load_cores: float) -> None:
        self.scores[node] += self.points_per_core[node] * load_cores

    def copy(self) -> Room:
        """One that changes by itself."""
        other = copy(self)
        other.free, other.scores = self.free.copy(), self.scores.copy()
        return other


def counts_that_fit(free: FloatArray, demand: FloatArray, slack: FloatArray) -> IntArray:
    """How often a demand fits into each row of `free`; UNBOUNDED where nothing is asked for."""
    ratios = np.full(len(free), float(UNBOUNDED))
    # Kind by kind: the minimum over rows of three or four takes many times as long.
    for kind, amount in enumerate(demand.tolist()):
        if amount > 0:
            np.minimum(ratios, (free[:, kind] + slack[kind]) / amount, out=ratios)
    counts: IntArray = np.maximum(ratios, 0.0, out=ratios).astype(np.int64)
    return counts


def fits(free: FloatArray, demand: FloatArray, slack: FloatArray) -> BoolArray:
    """Where it fits once; what is not asked for may be overdrawn already."""
    result: BoolArray = np.logical_and.reduce((free + slack >= demand) | (demand <= 0), axis=1)
    return result


def room(
    snapshot: Snapshot,
    locations: NodeLocations,
    *,
    gated: Iterable[Executor],
    scores: Mapping[str, float],
    reserved: Mapping[str, Resources],
    unbound: Mapping[str, Resources] | None = None,
    weights: Weights = _PLAIN,
) -> Room:
    """The room before anything of this pass is placed. `weights`: those of the scores.

    `unbound`: what `expected` says of the same snapshot; worked out if None.
    """
    result = Room(locations, kinds(executor.requests for executor in gated), weights)
    for name, score in scores.items():
        if name in locations.index:
            result.scores[locations.index[name]] = score
    take_off(result, locations, reserved)
    take_off(result, locations, expected(snapshot, locations.levels) if unbound is None else unbound)
    return result


def expected(snapshot: Snapshot, levels: Levels, *, sent: Mapping[str, str] = _NOWHERE) -> dict[str, Resources]:
    """Amounts by node of pods that are pending and not bound, put where kube-scheduler would put them.

    They are foreign demands, and executors that were released earlier. Nothing is kept free of them for moves under
    way: kube-scheduler knows of none. Nominated executors keep the room of their nodes. `sent`: node by uid of those
    that Ballast made prefer it, and that go there if it has room.
    """
    released = about_to_be_bound(snapshot)
    waiting = [*snapshot.pending, *(Demand(each.requests, each.constraints) for each in released)]
    if not waiting:
        return {}
    places = node_locations(snapshot.nodes, levels)
    admission = Admission(places.nodes)
    space = Room(places, kinds(demand.requests for demand in waiting))
    result: dict[str, Resources] = {}
    others = [*snapshot.pending]
    for executor in sorted(released, key=lambda each: each.nominated is None):
        chosen = executor.nominated or sent.get(executor.uid, "")
        position, demand = places.index.get(chosen), space.vector(executor.requests)
        if position is None or not fits(space.free[position : position + 1], demand, space.slack)[0]:
            others.append(Demand(executor.requests, executor.constraints))
        else:
            space.take(position, demand)
            _add(result, places.nodes[position].name, executor.requests)
    for (requests, constraints), count in by_shape(others):
        bound = _bind(space, space.vector(requests), admission.mask(constraints), count)
        for position, times in bound.items():
            _add(result, places.nodes[position].name, requests.times(times))
    return result


def about_to_be_bound(snapshot: Snapshot) -> list[Executor]:
    """The executors that kube-scheduler is likely to bind next.

    Those that it has found no node for count only as far as executors of their namespace that run request as much.
    Otherwise a user could keep all room from others by executors that never get a node (a host port, an affinity to
    no pod), made again and again. So could a user with a scheduler that a policy names and that does not run: one
    that has bound no executor is waited for only for a moment. A pod that its author binds to a node need never
    run, and the node need not exist.
    """
    now = snapshot.taken_at
    bind = {KUBE_SCHEDULER, *(each.scheduler for each in snapshot.executors if each.node is not None)}
    likely = [
        each
        for each in snapshot.executors
        if each.about_to_be_bound(now) and (each.scheduler in bind or each.was_just_placed(now))
    ]
    if all(each.unschedulable_since is None for each in likely):
        return likely
    left: dict[str, Resources] = {}
    for each in snapshot.executors:
        if each.phase is Phase.RUNNING:
            _add(left, each.namespace, each.requests)
    found: list[Executor] = []
    for each in sorted(likely, key=lambda executor: executor.key):
        if each.unschedulable_since is not None:
            if not each.requests.fits_in(left.get(each.namespace, _NOTHING)):
                continue
            left[each.namespace] = left[each.namespace].minus(each.requests)
        found.append(each)
    return found


def _add(amounts: dict[str, Resources], node: str, more: Resources) -> None:
    amounts[node] = amounts.get(node, Resources()).plus(more)


def take_off(space: Room, places: NodeLocations, amounts: Mapping[str, Resources]) -> None:
    for name, taken in amounts.items():
        if name in places.index:
            space.free[places.index[name]] -= space.vector(taken)


def kinds(demands: Iterable[Resources]) -> list[str]:
    """The kinds of resources that any of the demands asks for; the first three always."""
    extended = {name for demand in set(demands) for name, _ in demand.extended}
    return ["cpu", "memory", "pods", *sorted(extended)]


def by_shape(demands: Iterable[Demand]) -> list[tuple[tuple[Resources, Constraints], int]]:
    """Largest requests first; the order of the input does not matter."""
    counts = Counter((demand.requests, demand.constraints) for demand in demands)
    return sorted(counts.items(), key=lambda item: (-item[0][0].cpu_cores, -item[0][0].memory_bytes, repr(item[0])))


def _bind(result: Room, demand: FloatArray, mask: BoolArray, count: int) -> Counter[int]:
    """One by one to the node with the largest mean share of CPU and memory left, as kube-scheduler scores them.

    How many go to each node.
    """
    bound: Counter[int] = Counter()
    able = np.flatnonzero(mask & fits(result.free, demand, result.slack))
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = np.nan_to_num(result.free[able, :2] / result.offered[able, :2]).mean(axis=1)
        each = np.nan_to_num(demand[:2] / result.offered[able, :2], posinf=0.0).mean(axis=1)
    # So many pods go to no more nodes. Any user may create thousands of pods, each of another size.
    order = np.argsort(-shares, kind="stable")[:count]
    heap = list(zip((-shares[order]).tolist(), able[order].tolist(), each[order].tolist(), strict=True))
    while heap and count:
        share, node, step = heap[0]
        result.take(node, demand)
        bound[node] += 1
        count -= 1
        if fits(result.free[node : node + 1], demand, result.slack)[0]:
            heapq.heapreplace(heap, (share + step, node, step))
        else:
            heapq.heappop(heap)
    return bound


def in_flight(snapshot: Snapshot) -> dict[str, Resources]:
    """What moves under way will need on their targets: the requests of the executor that leaves, as they were then.

    Whatever its replacement asks for, or executors that are given its labels, could keep a whole node for good. A
    replacement that has been released counts by itself, and so does nothing here; one that is still gated will be
    sent to the target by its move. A move by hand keeps room only while its replacement waits for Ballast alone: its
    executor may never go, and its replacement never come, which its author chooses as well as the node.
    """
    present = {executor.uid: executor for executor in snapshot.executors}
    reserved: dict[str, Resources] = {}
    for move in snapshot.moves:
        replacement = present.get(move.replacement_uid or "")
        if not move.phase.traveling or (replacement is not None and replacement.phase is not Phase.GATED):
            continue
        if move.by_hand and (replacement is None or replacement.gates):
            continue
        leaving = present.get(move.executor_uid)
        requests = leaving.requests if move.requests is None and leaving is not None else move.requests
        if requests is not None:
            _add(reserved, move.target, requests)
    return reserved


def nominated_while_gated(snapshot: Snapshot, leaving: Collection[str]) -> dict[str, Resources]:
    """What kube-scheduler keeps free on nodes for executors that are nominated and stay gated.

    An operator that crashed between the two writes leaves them so. `leaving`: uids of those that are released in this
    pass, which replaces or clears their nominations. Replacements of moves count in `in_flight`.
    """
    others = {move.replacement_uid for move in snapshot.moves if move.phase.traveling}.union(leaving)
    kept: dict[str, Resources] = {}
    for executor in snapshot.executors:
        if executor.phase is Phase.GATED and executor.nominated is not None and executor.uid not in others:
            _add(kept, executor.nominated, executor.requests)
    return kept
