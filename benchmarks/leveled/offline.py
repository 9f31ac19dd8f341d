"""Leveling by foresight: the moves of one that knows every load beforehand.

At the beginning of each stretch of the run, it takes the mean loads of that stretch and moves, one after the other,
the executor that best levels the hottest and the coldest node, until all nodes are level. It makes no move for what
averages out within a stretch. No planner can know as much; how many moves it needs is what others are compared with.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ballast.model import Executor, Memory, Phase, Plan, PlannedMove, Policy, Snapshot
from ballast.model.arrays import FloatArray, IntArray
from ballast.planner.arbiter import planned
from ballast.planner.plan import plan
from ballast.shedding.load import Suggestion
from ballast.simulation.cluster import slot_of
from ballast.simulation.engine import EPOCH
from ballast.simulation.trace import Stretch

_MOST_MOVES = 1000


@dataclass(slots=True)
class Foresight:
    """A planner for one run. `stretches`: of a run of the same scenario and seed in which nothing was moved."""

    stretches: tuple[Stretch, ...]
    level_points: float
    planned_until: float = 0.0
    """Seconds since the run began."""

    def __call__(self, snapshot: Snapshot, policy: Policy, memory: Memory, now: float) -> tuple[Plan, Memory]:
        calm = replace(policy, shedding=replace(policy.shedding, strategy="None"))
        decided, memory = plan(snapshot, calm, memory, now)
        time = now - EPOCH
        coming = next((each for each in self.stretches if each.until > time), None)
        if coming is None or time < self.planned_until:
            return decided, memory
        self.planned_until = coming.until
        return replace(decided, moves=tuple(self._moves(snapshot, coming))), memory

    def _moves(self, snapshot: Snapshot, stretch: Stretch) -> Iterator[PlannedMove]:
        names = [node.name for node in snapshot.nodes]
        running = {slot_of(e.uid): e for e in snapshot.executors if e.phase is Phase.RUNNING and e.node is not None}
        homes = np.full(len(stretch.homes), -1)
        for slot, executor in running.items():
            homes[slot] = names.index(executor.node or "")
        for slot, source, target in leveled(stretch, homes, level_points=self.level_points):
            yield _move(running[slot], names[source], names[target])


def leveled(stretch: Stretch, homes: IntArray, *, level_points: float) -> Iterator[tuple[int, int, int]]:
    """Slot, node that it leaves, node that it goes to, until no two nodes are farther apart than `level_points`."""
    at = homes.copy()
    for _ in range(_MOST_MOVES):
        scores = _scores(stretch, at)
        cold = int(scores.argmin())
        found = _best(stretch, at, scores, cold)
        if scores.max() - scores[cold] <= level_points or found is None:
            return
        yield found, int(at[found]), cold
        at[found] = cold


def _scores(stretch: Stretch, homes: IntArray) -> FloatArray:
    placed = homes >= 0
    held = np.bincount(homes[placed], weights=stretch.loads[placed], minlength=len(stretch.capacity))
    scores: FloatArray = 100.0 * (held + stretch.others) / stretch.capacity
    return scores


def _best(stretch: Stretch, homes: IntArray, scores: FloatArray, cold: int) -> int | None:
    """On the hottest node that can be relieved, the executor after whose move the hotter of both is coolest."""
    for hot in np.argsort(-scores, kind="stable").tolist():
        slots = np.flatnonzero((homes == hot) & (stretch.loads > 0))
        left = scores[hot] - 100.0 * stretch.loads[slots] / stretch.capacity[hot]
        came = scores[cold] + 100.0 * stretch.loads[slots] / stretch.capacity[cold]
        fits = slots[came <= left]
        if hot != cold and len(fits):
            return int(fits[np.maximum(left, came)[came <= left].argmin()])
    return None


def _move(executor: Executor, source: str, target: str) -> PlannedMove:
    suggestion = Suggestion(executor=executor.key, source=source, target=target, hot_score=0.0)
    return planned(suggestion, executor, strategy="None", load_cores=0.0)
