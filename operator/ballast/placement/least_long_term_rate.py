"""Strategy LeastLongTermRate: the node with the least traffic in the long run that is not overloaded now.

A node's traffic is that of its executors. Each counts with what executors of its component have had in the long run,
from the moment it is sent to a node, so nothing has to be added, or taken off again, when figures catch up. Overload
is judged by the score, over the short window of the metrics. Source: Pulsar's `LeastLongTermMessageRate`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum, inf
from random import Random

import numpy as np

from ballast.model import Executor, Phase, Snapshot
from ballast.model.arrays import IntArray
from ballast.placement.placement_view import PlacementView, Pool
from ballast.placement.strategy import NodeValues, Seats, draw, one_by_one


@dataclass(frozen=True, slots=True)
class ComponentRate:
    """Traffic of one executor of a component in the long run."""

    topology: str
    component: str
    per_second: float
    samples: int
    """How many figures are in it, at most as many as the long window holds."""


@dataclass(frozen=True, slots=True)
class Rates:
    unit: str = ""
    """What was counted: records, bytes or executors; rates in another unit are not compared."""
    components: tuple[ComponentRate, ...] = ()
    """Sorted by topology and component."""


_DIGITS = 4
_ON_NODES = (Phase.PENDING, Phase.RUNNING)


def observed(snapshot: Snapshot, rates: Rates, *, most_samples: int) -> Rates:
    """The rates with the present figures taken in, each with the weight of one of at most `most_samples` figures.

    Records are counted where any executor has them, else bytes, else executors.
    """
    unit, figures = _figures(snapshot)
    before = {(each.topology, each.component): each for each in rates.components} if unit == rates.unit else {}
    known = {(executor.topology, executor.component) for executor in snapshot.executors}
    kept = {key: each for key, each in before.items() if key in known}
    for key, amounts in figures.items():
        kept[key] = _averaged(kept.get(key), key, fsum(amounts) / len(amounts), most_samples)
    return Rates(unit, tuple(kept[key] for key in sorted(kept)))


def _averaged(before: ComponentRate | None, key: tuple[str, str], figure: float, most_samples: int) -> ComponentRate:
    """As Pulsar's time averages: a plain mean until the window is full, then a moving one."""
    samples = 1 if before is None else min(before.samples + 1, max(1, most_samples))
    earlier = 0.0 if before is None else before.per_second
    mean = (earlier * (samples - 1) + figure) / samples
    return ComponentRate(*key, float(f"{mean:.{_DIGITS}g}"), samples)


def _figures(snapshot: Snapshot) -> tuple[str, dict[tuple[str, str], list[float]]]:
    """By component the figures of its running executors, sorted for the sum's sake."""
    by_unit: dict[str, dict[tuple[str, str], list[float]]] = {"records": defaultdict(list), "bytes": defaultdict(list)}
    for executor in snapshot.executors:
        usage = executor.usage
        if executor.phase is Phase.RUNNING and usage is not None:
            for unit, figure in (("records", usage.records_per_second), ("bytes", usage.bytes_per_second)):
                if figure is not None:
                    by_unit[unit][executor.topology, executor.component].append(figure)
    return next(((unit, figures) for unit, figures in by_unit.items() if figures), ("executors", {}))


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
        figures = NodeValues(np.where(overloaded, inf, self._load))

        def choose(able: IntArray, row: int) -> int:
            figures.of(able)
            node = int(able[draw(figures.lowest(), self._random)])
            self._load[node] += rates[row]
            figures.set(node, inf if overloaded[node] else self._load[node])
            return node

        return one_by_one(view, turns, choose)

    def took(self, executor: Executor, node: int) -> None:
        self._load[node] += self._rate(executor.topology, executor.component)

    def _rate(self, topology: str, component: str) -> float:
        """Of one executor; a component without metrics counts like an ordinary one."""
        return self._each.get((topology, component), self._usual)

    def _loads(self, pool: Pool, snapshot: Snapshot) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        moving = _targets(snapshot)
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


def _targets(snapshot: Snapshot) -> Mapping[str, str]:
    """Where executors that are about to leave count: where their replacements will be."""
    return {move.executor_uid: move.target for move in snapshot.moves if move.phase.departing}
