"""What happens on the nodes, and what of it is measured: scrapes, losses, delays and the metric window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ballast.model import Policy
from ballast.model.arrays import BoolArray, FloatArray
from ballast.simulation.cluster import Cluster, blackouts
from ballast.simulation.demand import Demand, random_for
from ballast.simulation.scenario import ScenarioSpec

# Samples of the last while, and their means: what a query over a metric window gives.


class Window:
    """A ring of samples, one row a scrape; NaN where a sample is missing."""

    def __init__(self, width: int, rows: int) -> None:
        self._values = np.full((rows, width), np.nan)
        self._times = np.full(rows, -np.inf)
        self._next = 0

    def add(self, time: float, values: FloatArray) -> None:
        self._values[self._next] = values
        self._times[self._next] = time
        self._next = (self._next + 1) % len(self._times)

    def forget(self, lanes: BoolArray) -> None:
        """What is sampled there from now on is something else."""
        self._values[:, lanes] = np.nan

    def mean(self, after: float, until: float) -> FloatArray:
        """Of the samples in (after, until]; NaN where there are none."""
        rows = self._values[(self._times > after) & (self._times <= until)]
        known = ~np.isnan(rows)
        counts = known.sum(axis=0)
        sums = np.where(known, rows, 0.0).sum(axis=0)
        means: FloatArray = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
        return means

    def newest(self, until: float) -> FloatArray:
        """When the last sample was taken that is known at `until`; -inf where there is none."""
        seen = ~np.isnan(self._values) & (self._times <= until)[:, None]
        times: FloatArray = np.where(seen, self._times[:, None], -np.inf).max(axis=0)
        return times


@dataclass(frozen=True, slots=True, eq=False)
class Moment:
    """The true state of load at one time."""

    work: FloatArray
    """By slot: what its executor is given to do, in cores of an ordinary machine; 0 where none works."""
    neighbors: FloatArray
    """By node: cores that others than executors would use."""
    wanted: FloatArray
    """By node: cores that everything there would use."""
    usage: FloatArray
    """The same in percent of the node's cores; NaN where the node is gone."""


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """What a query gives at one time."""

    available: bool
    node_cpu: FloatArray
    """By node: used cores to cores, 0…1; NaN where unknown."""
    node_age: FloatArray
    """Seconds since the newest sample."""
    executor_cpu: FloatArray
    """By slot: cores used; NaN where unknown."""
    slowdown: FloatArray
    """By node: how much longer tasks take there than on an idle node; at least 1, NaN where unknown."""
    node_memory: FloatArray
    """By node: used to whole memory, 0…1; NaN where unknown."""
    node_pressure: FloatArray | None = None
    """By node: share of time in which something waits for CPU, 0…1, NaN where unknown; None: not measured."""


class Meter(Protocol):
    """Looks at the cluster step by step; times must not go backwards."""

    now: Moment

    def scrape(self, time: float) -> None:
        """Take a sample of everything."""

    def query(self, time: float) -> Reading:
        """Means over the metric window, as they are known at `time`."""


class Scraper:
    """Measures what a described demand makes of the cluster."""

    def __init__(self, spec: ScenarioSpec, policy: Policy, cluster: Cluster, demand: Demand, seed: int) -> None:
        self._cluster, self._demand = cluster, demand
        self._delay, self._loss = spec.metrics.delay.seconds, spec.metrics.loss
        every = spec.metrics.scrape_interval.seconds
        given = spec.metrics.window
        self._window = max(given.seconds if given is not None else policy.window_seconds, every)
        self._blackouts = blackouts(spec.events)
        self._random = random_for(seed, "scrapes")
        rows = int((self._window + self._delay) / every) + 2
        nodes, slots = len(cluster.fleet), len(cluster.executor_slots)
        self._node_cpu, self._slowdown = Window(nodes, rows), Window(nodes, rows)
        self._executor_cpu = Window(slots, rows)
        self._pressure = Window(nodes, rows) if spec.metrics.pressure else None
        self._contention = np.zeros(nodes)
        for each in spec.nodes:
            self._contention[list(cluster.fleet.groups[each.name])] = each.contention
        self.now = self._moment(0.0)

    def scrape(self, time: float) -> None:
        cluster = self._cluster
        if cluster.renewed.any():
            self._executor_cpu.forget(cluster.renewed)
            cluster.renewed[:] = False
        self.now = self._moment(time)
        cores, speed = cluster.fleet.cores, cluster.fleet.speed
        ratio = self.now.wanted / cores
        seen = cluster.listed & cluster.ready
        if self._loss > 0:
            seen = seen & (self._random.random(len(seen)) >= self._loss)
        self._node_cpu.add(time, np.where(seen, np.minimum(ratio, 1.0), np.nan))
        self._slowdown.add(time, np.where(seen, _slowdown(ratio, self._contention), np.nan))
        if self._pressure is not None:
            self._pressure.add(time, np.where(seen, _pressure(self.now.wanted, cores), np.nan))
        node = cluster.node
        used = self.now.work / speed[node] / np.maximum(ratio, 1.0)[node]
        self._executor_cpu.add(time, np.where(cluster.working & seen[node], used, np.nan))

    def _moment(self, time: float) -> Moment:
        cluster = self._cluster
        work = self._given(self._demand.work(time))
        works = work > 0
        speed = cluster.fleet.speed
        cores = np.bincount(
            cluster.node[works], weights=work[works] / speed[cluster.node[works]], minlength=len(cluster.fleet)
        )
        neighbors = self._demand.neighbors(time)
        wanted = cores + neighbors
        there = cluster.listed & cluster.ready
        return Moment(work, neighbors, wanted, np.where(there, 100.0 * wanted / cluster.fleet.cores, np.nan))

    def _given(self, demand: FloatArray) -> FloatArray:
        """The driver hands the work of missing executors to the others, as far as they have cores for it."""
        cluster, app_of = self._cluster, self._cluster.executor_slots.app_of
        working = cluster.working
        own = np.where(working, demand, 0.0)
        if (working == cluster.alive).all():
            return own
        count = len(cluster.executor_slots.apps)
        whole = np.bincount(app_of, weights=np.where(cluster.alive, demand, 0.0), minlength=count)
        present = np.bincount(app_of, weights=own, minlength=count)
        factor = np.divide(whole, present, out=np.ones(count), where=present > 0)
        given: FloatArray = np.minimum(
            own * factor[app_of], np.maximum(own, np.where(working, cluster.executor_slots.cores, 0.0))
        )
        return given

    def query(self, time: float) -> Reading:
        until = time - self._delay + 1e-9
        after = until - self._window
        return Reading(
            available=not any(start <= time < end for start, end in self._blackouts),
            node_cpu=self._node_cpu.mean(after, until),
            node_age=time - self._node_cpu.newest(until),
            executor_cpu=self._executor_cpu.mean(after, until),
            slowdown=self._slowdown.mean(after, until),
            node_memory=self._cluster.requested()[:, 1] / self._cluster.allocatable[:, 1],
            node_pressure=self._pressure.mean(after, until) if self._pressure is not None else None,
        )


def _slowdown(ratio: FloatArray, contention: FloatArray) -> FloatArray:
    """`ratio`: wanted cores to cores. Tasks wait for missing cores, and busy cores slow each other."""
    slowed: FloatArray = np.maximum(ratio, 1.0) / (1.0 - contention * np.minimum(ratio, 1.0))
    return slowed


_STEEPNESS = 1.702
"""Makes the logistic curve follow the normal distribution, to a hundredth."""
_MOST_DEVIATIONS = 30.0


def _pressure(wanted: FloatArray, cores: FloatArray) -> FloatArray:
    """How often more tasks than cores want to run when they come independently: a Poisson number, about normal."""
    deviations = (cores + 0.5 - wanted) / np.sqrt(np.maximum(wanted, 1e-9))
    waiting: FloatArray = 1.0 / (1.0 + np.exp(_STEEPNESS * np.clip(deviations, -_MOST_DEVIATIONS, _MOST_DEVIATIONS)))
    return waiting
