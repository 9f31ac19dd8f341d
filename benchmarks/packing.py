"""Node-hours, task time and cross-zone share of a simulated day, with an autoscaler that removes empty nodes.

Applications of 2 to 24 executors come and go, more of them by day, next to a few that run all day; the same ones for
kube-scheduler's default, for Ballast, and for Ballast with `packing: Pack`. Spark's executors are not evicted, so the
autoscaler removes a node only when the last one has left it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from itertools import count
from math import ceil, cos, pi
from random import Random
from statistics import fmean
from typing import Any

import numpy as np

from ballast.model import MovesMode, Packing, PlacementMode, Policy
from ballast.model.arrays import FloatArray
from ballast.simulation.cluster import Cluster, Lifetimes, State
from ballast.simulation.demand import Demand
from ballast.simulation.engine import EPOCH, Run, World
from ballast.simulation.inventory import executor_slots, fleet
from ballast.simulation.meter import Meter, Reading, Scraper
from ballast.simulation.policies import from_name
from ballast.simulation.ranking import Estimate
from ballast.simulation.recorder import Title
from ballast.simulation.scenario import Scenario
from benchmarks.report import Aim, Baseline, Result, machine, write

ZONES = ("a", "b", "c")
RACKS = tuple(f"{zone}{rack}" for zone in ZONES for rack in (1, 2))
NODES = 60
CORES = 16
DAY_HOURS = 24.0
EMPTY_SECONDS = 600.0
"""How long the autoscaler leaves a node empty."""
START_SECONDS = 90.0
"""From a pod that finds no room to a node for it."""
LONG_RUNNING = 4
JOBS_AN_HOUR = 14.0
"""Applications that start, in the mean over the day."""


def scenario(seed: int) -> Scenario:
    random = Random(seed)
    spec = {
        "duration": f"{DAY_HOURS:g}h",
        "seed": seed,
        "nodes": [
            {
                "name": "node",
                "count": NODES,
                "cores": CORES,
                "memory": "64Gi",
                "zones": [rack[0] for rack in RACKS],
                "racks": list(RACKS),
            }
        ],
        "applications": [*_long_running(random), *_jobs(random)],
        "metrics": {"scrapeInterval": "1m"},
    }
    return Scenario.parse({"metadata": {"name": "a day"}, "spec": spec})


def _long_running(random: Random) -> Iterator[dict[str, Any]]:
    for index in range(LONG_RUNNING):
        yield _application(f"stream-{index}", random, executors=random.choice((6, 8, 12)))


def _jobs(random: Random) -> Iterator[dict[str, Any]]:
    hour, index = 0.0, 0
    while True:
        # Twice as many as in the mean at noon, hardly any at midnight.
        hour += random.expovariate(2.0 * JOBS_AN_HOUR)
        if hour >= DAY_HOURS - 0.1:
            return
        if random.random() < 0.05 + 0.95 * (1.0 - cos(2.0 * pi * hour / DAY_HOURS)) / 2.0:
            start = hour * 3600.0
            stop = start + min(6.0 * 3600.0, max(300.0, random.lognormvariate(7.4, 0.9)))
            times = {"starts": f"{start:.0f}s", "stops": f"{stop:.0f}s"}
            yield _application(f"job-{index}", random, executors=random.choice((2, 4, 4, 8, 8, 12, 24))) | times
            index += 1


def _application(name: str, random: Random, *, executors: int) -> dict[str, Any]:
    noise = {"kind": "Noise", "deviation": 0.2}
    return {
        "name": name,
        "executors": executors,
        "cores": 2,
        "requests": {"cpu": "2", "memory": "6Gi"},
        "load": {"cores": round(random.uniform(0.7, 1.6), 2), "vary": [noise]},
        "taskSeconds": 1,
    }


# An autoscaler: nodes come for pods that find no room, and go when they have been empty for a while.


class Autoscaled:
    """What executors there are to be, and which nodes; one node is always left."""

    def __init__(self) -> None:
        self._lifetimes = Lifetimes()
        self._empty_since: FloatArray | None = None
        self._short_since: float | None = None

    def advance(self, cluster: Cluster, time: float) -> None:
        if self._empty_since is None:
            self._empty_since = np.full(len(cluster.fleet), np.nan)
            cluster.listed[len(RACKS) :] = cluster.ready[len(RACKS) :] = False
        self._lifetimes.advance(cluster, time)
        self._remove(cluster, self._empty_since, time)
        self._add(cluster, time)

    def _remove(self, cluster: Cluster, since: FloatArray, time: float) -> None:
        held = np.bincount(cluster.node[cluster.node >= 0], minlength=len(since))
        empty = cluster.listed & (held == 0)
        since[~empty] = np.nan
        since[empty & np.isnan(since)] = time
        for node in np.flatnonzero(empty & (time - since >= EMPTY_SECONDS)).tolist():
            if cluster.listed.sum() > 1:
                cluster.listed[node] = cluster.ready[node] = False
                since[node] = np.nan

    def _add(self, cluster: Cluster, time: float) -> None:
        short = (cluster.state == State.PENDING) & (cluster.node < 0)
        if not short.any():
            self._short_since = None
            return
        self._short_since = time if self._short_since is None else self._short_since
        if time - self._short_since < START_SECONDS:
            return
        for _ in range(ceil(cluster.executor_slots.requests[short, 0].sum() / CORES)):
            if cluster.listed.all():
                return
            node = _next_node(cluster)
            cluster.listed[node] = cluster.ready[node] = True
        self._short_since = None


def _next_node(cluster: Cluster) -> int:
    """One in the rack that has the fewest, as an autoscaler balances similar groups of nodes."""
    racks = np.array([RACKS.index(str(rack)) for rack in cluster.fleet.racks])
    there = np.bincount(racks[cluster.listed], minlength=len(RACKS))
    absent = np.flatnonzero(~cluster.listed)
    return int(absent[np.argmin(there[racks[absent]])])


class Watch:
    """A meter, and what was seen at each pass."""

    def __init__(self, meter: Meter, cluster: Cluster) -> None:
        self._meter, self._cluster, self.now = meter, cluster, meter.now
        self._zones = np.array([ZONES.index(str(zone)) for zone in cluster.fleet.zones])
        self.nodes: list[int] = []
        self.crossing: list[float] = []
        self.task_seconds: list[FloatArray] = []
        self.hottest: list[float] = []
        self.waiting: list[int] = []

    def scrape(self, time: float) -> None:
        self._meter.scrape(time)
        self.now = self._meter.now

    def query(self, time: float) -> Reading:
        reading, cluster = self._meter.query(time), self._cluster
        running = np.flatnonzero(cluster.working & (cluster.node >= 0))
        self.nodes.append(int(cluster.listed.sum()))
        self.waiting.append(int(((cluster.state == State.PENDING) & (cluster.node < 0)).sum()))
        slowdown = reading.slowdown[cluster.node[running]]
        self.task_seconds.append(slowdown[np.isfinite(slowdown)])
        self.hottest.append(float(np.nanmax(reading.node_cpu, initial=0.0)))
        if len(running):
            apps = cluster.executor_slots.app_of[running]
            spread = np.zeros((len(cluster.executor_slots.apps), len(ZONES)))
            np.add.at(spread, (apps, self._zones[cluster.node[running]]), 1.0)
            totals = spread.sum(axis=1)
            self.crossing.append(
                float((totals - (spread**2).sum(axis=1) / np.maximum(totals, 1.0)).sum() / len(running))
            )
        return reading


@dataclass(frozen=True, slots=True)
class Figures:
    """Of one day."""

    node_hours: float
    task_p95: float
    """In seconds, of tasks that take one on an idle node; by executor and time."""
    cross_zone: float
    """Share of the pairs of an application's executors that are in two zones, weighed by executors."""
    hottest: float
    """The 99th percentile of the hottest node's usage, percent."""
    waiting: float
    """Executors without a node, in the mean over the day."""


def day(described: Scenario, policy: Policy) -> Figures:
    spec = described.spec
    nodes = fleet(spec.nodes)
    slots = executor_slots(spec, nodes)
    cluster = Cluster(nodes, slots, moving=spec.moving, changes=(), life=Autoscaled())
    demand = Demand(spec, nodes, slots, spec.seed)
    watch = Watch(Scraper(spec, policy, cluster, demand, spec.seed), cluster)
    title = Title(described.name, policy.name, spec.seed, spec.duration.seconds, policy.window_seconds, 15.0)
    step = spec.metrics.scrape_interval.seconds
    world = World(
        title=title,
        cluster=cluster,
        meter=watch,
        topologies=(),
        moving=spec.moving,
        epoch=EPOCH,
        passes=count(0.0, policy.interval_seconds),
        step_seconds=step,
        scrape_seconds=step,
    )
    Run(world, policy).to_the_end(None)
    return Figures(
        node_hours=fmean(watch.nodes) * DAY_HOURS,
        task_p95=float(np.percentile(np.concatenate(watch.task_seconds), 95)),
        cross_zone=fmean(watch.crossing),
        hottest=100.0 * float(np.percentile(watch.hottest, 99)),
        waiting=fmean(watch.waiting),
    )


def contestants(described: Scenario) -> dict[str, Policy]:
    """All with the same autoscaler, and without moves."""
    base = from_name("AvgShedder", described)
    base = replace(base, interval_seconds=60.0, moves=replace(base.moves, mode=MovesMode.DISABLED))
    alone = replace(base.placement, mode=PlacementMode.DISABLED)
    packed = replace(base.placement, packing=Packing.PACK)
    return {
        KUBE: replace(base, placement=alone),
        SPREAD: base,
        PACK: replace(base, placement=packed),
    }


KUBE, SPREAD, PACK = "kube-scheduler", "Spread", "Pack"


def run(seeds: int) -> list[Result]:
    days: dict[str, list[Figures]] = {KUBE: [], SPREAD: [], PACK: []}
    asked = [(seed, name) for seed in range(1, seeds + 1) for name in days]
    with ProcessPoolExecutor() as workers:
        for (seed, name), found in zip(asked, workers.map(_day_of, *zip(*asked, strict=True)), strict=True):
            days[name].append(found)
            print(f"seed {seed}: {name}: {found}", flush=True)
    case = f"{seeds} days, at most {NODES} nodes of {CORES} cores"

    def compared(
        metric: str, field: str, unit: str, other: str, aim: Aim | None = None, *, name: str = PACK
    ) -> Iterator[Result]:
        ours, theirs = ([getattr(each, field) for each in days[who]] for who in (name, other))
        yield Result(case, f"{name}: {metric}", fmean(ours), unit, Baseline(other, fmean(theirs)), aim)
        ratios = Estimate.of([one / another for one, another in zip(ours, theirs, strict=True)])
        yield Result(case, f"{name}: {metric} ÷ {other}'s, half a 95 % interval", ratios.half_width, "ratio")

    return [
        *compared("node-hours", "node_hours", "h", KUBE, Aim(0.85, of_ratio=True)),
        *compared("node-hours", "node_hours", "h", KUBE, name=SPREAD),
        *compared("task time, p95", "task_p95", "s", KUBE, Aim(1.02, of_ratio=True)),
        *compared("task time, p95", "task_p95", "s", KUBE, name=SPREAD),
        *compared("cross-zone share", "cross_zone", "1", SPREAD, Aim(1.0, of_ratio=True)),
        *compared("cross-zone share", "cross_zone", "1", KUBE),
        *compared("hottest node, p99", "hottest", "%", KUBE),
        *compared("executors without a node", "waiting", "1", KUBE),
        *compared("executors without a node", "waiting", "1", KUBE, name=SPREAD),
    ]


def _day_of(seed: int, name: str) -> Figures:
    described = scenario(seed)
    return day(described, contestants(described)[name])


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.packing", description=__doc__)
    parser.add_argument("--seeds", type=int, default=3, choices=range(1, 6), help="how many days")
    before = machine()
    write("packing", run(parser.parse_args().seeds), before=before)
    return 0


if __name__ == "__main__":
    sys.exit(main())
