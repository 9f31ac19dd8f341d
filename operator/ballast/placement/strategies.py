"""The placement strategies by the names that policies use, and what they remember from pass to pass.

`proximity` and `resource_aware`, the two large ones, have separate modules.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import fsum, inf
from random import Random

import numpy as np

from ballast.model import Executor, Move, MovePhase, Phase, Snapshot
from ballast.model.arrays import FloatArray, IntArray
from ballast.placement.node_locations import NodeLocations
from ballast.placement.placement_view import PlacementView, Pool
from ballast.placement.proximity import Effort, Proximity
from ballast.placement.resource_aware import ResourceAware
from ballast.placement.strategy import ROUNDING, NodeValues, Seats, Strategy, draw, one_by_one
from ballast.placement.workload import TopologyWorkload

# Strategy LeastLongTermRate: the node with the least traffic in the long run that is not overloaded now.
#
# A node's traffic is that of its executors. Each counts with what executors of its component have had in the long run,
# from the moment it is sent to a node, so nothing has to be added, or taken off again, when values catch up. Overload
# is judged by the score, over the short window of the metrics. Source: Pulsar's `LeastLongTermMessageRate`.


@dataclass(frozen=True, slots=True)
class ComponentRate:
    """Traffic of one executor of a component in the long run."""

    topology: str
    component: str
    per_second: float
    samples: int
    """How many values are in it, at most as many as the long window holds."""


@dataclass(frozen=True, slots=True)
class Rates:
    unit: str = ""
    """What was counted: records, bytes or executors; rates in another unit are not compared."""
    components: tuple[ComponentRate, ...] = ()
    """Sorted by topology and component."""


_RATE_DIGITS = 4
_ON_NODES = (Phase.PENDING, Phase.RUNNING)


def rates_observed(snapshot: Snapshot, rates: Rates, *, most_samples: int) -> Rates:
    """The rates with the present values taken in, each with the weight of one of at most `most_samples` values.

    Records are counted where any executor has them, else bytes, else executors.
    """
    unit, values = _values(snapshot)
    before = {(each.topology, each.component): each for each in rates.components} if unit == rates.unit else {}
    known = {(executor.topology, executor.component) for executor in snapshot.executors}
    kept = {key: each for key, each in before.items() if key in known}
    for key, amounts in values.items():
        kept[key] = _averaged(kept.get(key), key, fsum(amounts) / len(amounts), most_samples)
    return Rates(unit, tuple(kept[key] for key in sorted(kept)))


def _averaged(before: ComponentRate | None, key: tuple[str, str], value: float, most_samples: int) -> ComponentRate:
    """As Pulsar's time averages: a plain mean until the window is full, then a moving one."""
    samples = 1 if before is None else min(before.samples + 1, max(1, most_samples))
    earlier = 0.0 if before is None else before.per_second
    mean = (earlier * (samples - 1) + value) / samples
    return ComponentRate(*key, float(f"{mean:.{_RATE_DIGITS}g}"), samples)


def _values(snapshot: Snapshot) -> tuple[str, dict[tuple[str, str], list[float]]]:
    """By component the values of its running executors, sorted for the sum's sake."""
    by_unit: dict[str, dict[tuple[str, str], list[float]]] = {"records": defaultdict(list), "bytes": defaultdict(list)}
    for executor in snapshot.executors:
        usage = executor.usage
        if executor.phase is Phase.RUNNING and usage is not None:
            for unit, value in (("records", usage.records_per_second), ("bytes", usage.bytes_per_second)):
                if value is not None:
                    by_unit[unit][executor.topology, executor.component].append(value)
    return next(((unit, values) for unit, values in by_unit.items() if values), ("executors", {}))


class LeastLongTermRate:
    """A node whose score is above `policy.max_score_percent` is chosen only when all are."""

    def __init__(self, pool: Pool, snapshot: Snapshot, rates: Rates, *, random: Random) -> None:
        self._each = {(each.topology, each.component): each.per_second for each in rates.components}
        self._usual = _usual(self._each.values())
        self._random = random
        self._load = self._loads(pool, snapshot)

    def seats(self, view: PlacementView, turns: Sequence[int]) -> Seats:
        key, names = view.workload.topology.key, view.workload.components
        rates = [self._rate(key, names[int(component)]) for component in view.component]
        scores = np.nan_to_num(view.pool.room.scores)
        overloaded = scores / 100 > view.pool.policy.max_score_percent / 100
        values = NodeValues(np.where(overloaded, inf, self._load))

        def choose(able: IntArray, row: int) -> int:
            values.of(able)
            node = int(able[draw(values.lowest(), self._random)])
            self._load[node] += rates[row]
            values.set(node, inf if overloaded[node] else self._load[node])
            return node

        return one_by_one(view, turns, choose)

    def took(self, executor: Executor, node: int) -> None:
        self._load[node] += self._rate(executor.topology, executor.component)

    def _rate(self, topology: str, component: str) -> float:
        """Of one executor; a component without metrics counts like an ordinary one."""
        return self._each.get((topology, component), self._usual)

    def _loads(self, pool: Pool, snapshot: Snapshot) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        moving = _heading_targets(snapshot)
        counts: dict[str, dict[tuple[str, str], int]] = defaultdict(lambda: defaultdict(int))
        for executor in snapshot.executors:
            home = moving.get(executor.uid, executor.node)
            if home in pool.locations.index and executor.phase in _ON_NODES:
                counts[home or ""][executor.topology, executor.component] += 1
        result = np.zeros(len(pool.locations.nodes))
        for node, by_component in counts.items():
            result[pool.locations.index[node]] = fsum(n * self._rate(*key) for key, n in by_component.items())
        return result


def _usual(rates: Iterable[float]) -> float:
    known = sorted(rates)
    return fsum(known) / len(known) if known and known[-1] > 0 else 1.0


def _heading_targets(snapshot: Snapshot) -> Mapping[str, str]:
    """Where executors that are about to leave count: where their replacements will be."""
    return {move.executor_uid: move.target for move in snapshot.moves if move.phase.departing}


# Strategy LeastResourceUsage: a node whose smoothed score is clearly below the mean.
#
# What values do not show yet, executors on their way and those of this very pass, is added to the averages. These take
# in a pass once, in `usage_observed`; placing only reads them, so that placing many executors does not smooth faster.
# Source: Pulsar's two `LeastResourceUsageWithWeight` (with and without the extensible load manager).


@dataclass(frozen=True, slots=True)
class Averages:
    """Smoothed usage by node as a ratio, sorted by name. Plain values, fit for JSON."""

    by_node: tuple[tuple[str, float], ...] = ()


def far_below(usage: FloatArray, mean: float, difference: float) -> IntArray:
    """Positions of those that are so much or more below this mean; of all when there is none."""
    best = np.flatnonzero(usage + difference <= mean)
    return best if len(best) else np.arange(len(usage))


_USAGE_DIGITS = 4
"""Ten-thousandths are finer than any value, and keep the memory short."""


def usage_observed(
    snapshot: Snapshot, scores: Mapping[str, float], averages: Averages, *, history_ratio: float
) -> Averages:
    """The averages with measured scores (percent) taken in, the past with the weight `history_ratio`.

    A node without executors starts again; one that has left is forgotten.
    """
    serving = {executor.node for executor in snapshot.executors if executor.phase is Phase.RUNNING}
    present = {node.name for node in snapshot.nodes}
    usage = {name: ratio for name, ratio in averages.by_node if name in present}
    for name, score in scores.items():
        now = score / 100
        before = usage.get(name, now) if name in serving else now
        usage[name] = round(before * history_ratio + (1 - history_ratio) * now, _USAGE_DIGITS)
    return Averages(tuple(sorted(usage.items())))


class LeastResourceUsage:
    """`measured`: scores by node, percent, as they were measured."""

    def __init__(self, pool: Pool, averages: Averages, measured: Mapping[str, float], *, random: Random) -> None:
        names = [node.name for node in pool.locations.nodes]
        known = dict(averages.by_node)
        scores = np.array([measured.get(name, np.nan) for name in names]) / 100.0
        smoothed = np.array([known.get(name, np.nan) for name in names])
        self._random = random
        self._lag = np.where(np.isnan(smoothed), 0.0, smoothed - scores)
        """Average less measured, as a ratio."""

    def seats(self, view: PlacementView, turns: Sequence[int]) -> Seats:
        space = view.pool.room
        values = NodeValues(space.scores / 100.0 + np.nan_to_num(self._lag))
        cores = [view.workload.groups[int(group)].load_cores for group in view.groups]

        threshold = view.pool.policy.min_difference / 100

        def choose(able: IntArray, row: int) -> int:
            usage = values.of(able)
            if usage.min() + threshold > values.rough_mean() + ROUNDING:
                node = draw(able, self._random)
            else:
                node = int(able[draw(far_below(usage, values.mean(), threshold), self._random)])
            values.set(node, values.all[node] + space.points_per_core[node] * cores[row] / 100.0)
            return node

        return one_by_one(view, turns, choose)

    def took(self, executor: Executor, node: int) -> None:
        """The pool's scores show it."""


def chosen(
    pool: Pool,
    snapshot: Snapshot,
    state: PlacementState,
    *,
    gated: Sequence[Executor],
    measured: Mapping[str, float],
    effort: Effort | None = None,
) -> Strategy:
    """The strategy that the pool's policy names, for one pass; Proximity for a name that is not known."""
    policy = pool.policy
    # Seeded by what is asked: the same question always has the same answer.
    random = Random(f"{min(e.uid for e in gated)} and {len(gated)}")  # noqa: S311 -- draws, no secrets
    if policy.strategy == "LeastLongTermRate":
        return LeastLongTermRate(pool, snapshot, state.rates, random=random)
    if policy.strategy == "LeastResourceUsage":
        return LeastResourceUsage(pool, state.usage, measured, random=random)
    if policy.strategy == "AvgShedder":
        return AvgShedder(random)
    if policy.strategy == "RoundRobin":
        return RoundRobin(pool.locations, state.turn)
    if policy.strategy == "ResourceAware":
        return ResourceAware(pool)
    executors = Counter(executor.namespace for executor in gated)
    kinds = Counter(key.partition("/")[0] for key, *_ in {(e.topology, e.component, e.requests) for e in gated})
    return Proximity(executors, kinds=kinds, search_seconds=policy.search_seconds, effort=effort)


def sets(strategy: Strategy, workload: TopologyWorkload) -> list[list[int]]:
    """Groups to place together."""
    return strategy.sets(workload) if isinstance(strategy, Proximity) else [list(range(len(workload.groups)))]


def after(strategy: Strategy, state: PlacementState) -> PlacementState:
    """What the strategy itself adds to what is remembered."""
    return replace(state, turn=strategy.turn) if isinstance(strategy, RoundRobin) else state


@dataclass(frozen=True, slots=True)
class PlacementState:
    turn: str = ""
    """The node that was chosen last, for RoundRobin."""
    usage: Averages = field(default_factory=Averages)
    """Smoothed scores, for LeastResourceUsage."""
    rates: Rates = field(default_factory=Rates)
    """For LeastLongTermRate."""
    observed_at: float = 0.0
    """When values were last added, seconds since the epoch."""
    sent: tuple[tuple[str, str], ...] = ()
    """Executor's uid and node, of those that were released and are not bound yet: nothing else shows them."""


class RoundRobin:
    """One node after the other, by name, going on after the one chosen last: one that joins or leaves shifts no turn.

    `turn`: name of the node that was chosen last; it need not exist any more. Source: Pulsar's
    `RoundRobinBrokerSelector`.
    """

    def __init__(self, locations: NodeLocations, turn: str) -> None:
        self._names = [node.name for node in locations.nodes]
        self.turn = turn

    def seats(self, view: PlacementView, turns: Sequence[int]) -> Seats:
        return one_by_one(view, turns, self._choose)

    def took(self, executor: Executor, node: int) -> None:
        """No turn was used."""

    def _choose(self, able: IntArray, _row: int) -> int:
        position = int(np.searchsorted(able, bisect_right(self._names, self.turn)))
        node = int(able[position % len(able)])
        self.turn = self._names[node]
        return node


class AvgShedder:
    """At random, except for what a move has decided, which no strategy is asked.

    So that the executors of a node that died do not all land on one other; drawn from a seed that the executors give,
    so that the same question has the same answer. Source: Pulsar's `AvgShedder.selectBroker`.
    """

    def __init__(self, random: Random) -> None:
        self._random = random

    def seats(self, view: PlacementView, turns: Sequence[int]) -> Seats:
        return one_by_one(view, turns, self._choose)

    def took(self, executor: Executor, node: int) -> None:
        """Chance has no memory."""

    def _choose(self, able: IntArray, _row: int) -> int:
        return draw(able, self._random)


def awaited_by_moves(snapshot: Snapshot, gated: Collection[Executor]) -> dict[str, Move]:
    """Moves by the uid of the gated executor that is their replacement, or likely to be.

    A move usually places its replacement itself. Where it has not done so in time, the executor goes to its target as
    well. Of those that no move has recognized yet, the earliest of the same application and profile do.
    """
    moves = [move for move in snapshot.moves if move.phase in (MovePhase.LEAVING, MovePhase.ARRIVING)]
    if not moves:
        return {}
    claims = {move.replacement_uid: move for move in moves if move.replacement_uid is not None}
    found = {executor.uid: claims[executor.uid] for executor in gated if executor.uid in claims}
    waiting: dict[tuple[str, str, str], list[Executor]] = defaultdict(list)
    for executor in sorted(gated, key=lambda e: (e.created_at, e.key)):
        if executor.uid not in found:
            waiting[executor.namespace, executor.application, executor.resource_profile].append(executor)
    for move in sorted(moves, key=lambda m: (m.started_at, m.namespace, m.name)):
        alike = waiting[move.namespace, move.application, move.resource_profile]
        if move.replacement_uid is None and alike:
            found[alike.pop(0).uid] = move
    return found


# Where executors go that have been released and are not bound yet: no node shows them, but their places are taken.


def headings(snapshot: Snapshot, sent: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Node by uid, where it is known: by the move that they are the replacement of, or by `sent`.

    `sent`: uid and node of those that earlier passes released.
    """
    replacing = {m.replacement_uid: m.target for m in snapshot.moves if m.phase.traveling and m.replacement_uid}
    known = replacing | dict(sent)
    unbound = (e.uid for e in snapshot.executors if e.phase is Phase.PENDING and e.node is None) if known else ()
    return {uid: known[uid] for uid in unbound if uid in known}
