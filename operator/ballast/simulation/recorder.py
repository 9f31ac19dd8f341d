"""Takes down what happens in a run, pass by pass."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from ballast.model import Plan
from ballast.model.arrays import BoolArray, FloatArray, IntArray
from ballast.simulation.cluster import Cluster, State
from ballast.simulation.meter import Moment
from ballast.simulation.trace import MoveRecord, PlacementRecord, Stretch, Trace

_STRETCHES = 8
"""Parts of a run for which the fewest moves possible are worked out."""


@dataclass(frozen=True, slots=True)
class Title:
    """What a trace is called, and what holds for the whole of it."""

    scenario: str
    policy: str
    seed: int
    duration_seconds: float
    window_seconds: float
    level_points: float


class Recorder:
    def __init__(self, title: Title, cluster: Cluster) -> None:
        self._title, self._cluster = title, cluster
        self._times: list[float] = []
        self._scores: list[FloatArray] = []
        self._usage: list[FloatArray] = []
        self._executors: list[IntArray] = []
        self._open: list[BoolArray] = []
        self._locality: list[float] = []
        self._gated: list[int] = []
        self._refusals: list[Counter[str]] = []
        self._stretches: list[Stretch] = []
        self.placements: list[PlacementRecord] = []
        self._start_stretch()

    def _start_stretch(self) -> None:
        self._work = np.zeros(len(self._cluster.executor_slots))
        self._others = np.zeros(len(self._cluster.fleet))
        self._steps = 0

    def step(self, moment: Moment, time: float) -> None:
        """Every step of the simulation, between passes too."""
        self._work += moment.work
        self._others += moment.neighbors * self._cluster.fleet.speed
        self._steps += 1
        if time >= self._title.duration_seconds * (len(self._stretches) + 1) / _STRETCHES:
            self._end_stretch(time)

    def _end_stretch(self, time: float) -> None:
        cluster = self._cluster
        self._stretches.append(
            Stretch(
                until=time,
                loads=self._work / self._steps,
                homes=np.where(cluster.alive, cluster.homes, -1),
                movable=(cluster.executor_slots.movable > 0) & cluster.alive,
                others=self._others / self._steps,
                capacity=cluster.fleet.capacity,
                up=cluster.open,
            )
        )
        self._start_stretch()

    def pass_(self, plan: Plan, moment: Moment, time: float) -> None:
        """One pass of the planner, before anything of it is done."""
        cluster = self._cluster
        scores = np.full(len(cluster.fleet), np.nan)
        scores[cluster.listed] = [np.nan if view.score is None else view.score for view in plan.pool.nodes]
        self._times.append(time)
        self._scores.append(scores)
        self._usage.append(moment.usage)
        self._executors.append(np.bincount(cluster.node[cluster.node >= 0], minlength=len(cluster.fleet)))
        self._open.append(cluster.open)
        self._locality.append(_mean([view.cost for view in plan.locality]))
        self._gated.append(int((cluster.state == State.GATED).sum()))
        self._refusals.append(Counter(refusal.reason.value for refusal in plan.refusals))

    def trace(self, moves: tuple[MoveRecord, ...]) -> Trace:
        reasons = tuple(sorted({reason for counts in self._refusals for reason in counts}))
        refusals = [[counts.get(reason, 0) for reason in reasons] for counts in self._refusals]
        return Trace(
            scenario=self._title.scenario,
            policy=self._title.policy,
            seed=self._title.seed,
            duration_seconds=self._title.duration_seconds,
            window_seconds=self._title.window_seconds,
            level_points=self._title.level_points,
            nodes=self._cluster.fleet.names,
            capacity=self._cluster.fleet.capacity,
            times=np.array(self._times),
            scores=np.array(self._scores),
            usage=np.array(self._usage),
            executors=np.array(self._executors),
            open=np.array(self._open),
            locality=np.array(self._locality),
            gated=np.array(self._gated, dtype=np.int64),
            reasons=reasons,
            refusals=np.array(refusals, dtype=np.int64).reshape(len(self._times), len(reasons)),
            moves=moves,
            placements=tuple(self.placements),
            stretches=tuple(self._stretches),
        )


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else float("nan")
