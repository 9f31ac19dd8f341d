"""What one tenant's junk costs another tenant's executors: how long they wait at their gates, and the lease.

Executors come at a steady pace, three times in each round: alone; while a tenant pours junk (benchmarks/load/junk.py),
which a process of its own does; and once all of that junk stands. Two replicas run, with the chart's rights and a
policy that moves.

At the same pace, pods without a gate are created. Their time until they are bound shows how much the API server, which
has few cores here, slows down with any tenant's writes. The aim is about how much longer executors wait, over all
rounds; the lowest and the highest ratio of a single round are shown next to it.

`python -m benchmarks.junk --rounds 1 --seconds 30 --moves 300 --topologies 200 --pods 20` is a short form, for trying.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from statistics import quantiles

from ballast.kube.kinds import LEASE
from benchmarks.churn import CONNECTIONS
from benchmarks.load.churn import Churn, Churned, Gating, Pace, one_set
from benchmarks.load.junk import KINDS, Amounts, junk, pour
from benchmarks.load.pods import node
from benchmarks.load.replicas import NAMESPACE, RELEASE, Replica, install, replica
from benchmarks.load.server import Server
from benchmarks.load.sightings import Sighting, Sightings
from benchmarks.load.usage import Meter
from benchmarks.report import Aim, Baseline, Result, machine, write
from tests.testbed.apiserver import ApiServer
from tests.testbed.testbed import Testbed
from tests.testbed.waiting import wait_until

NODES = 60
ALONE, POURED, STANDS = "alone", "a tenant pours junk", "all junk stands"
CASES = (ALONE, POURED, STANDS)
MOST_RATIO = 1.10
RATE = 3.7
"""Executors created in a second. Waits count from creation times, which are whole seconds: so sets must not always be
complete at the same part of a second, or two runs differ by up to half a second."""
SETTLE_SECONDS = 30.0
OPTED_IN = {"ballast.dev/gate": "enabled"}
POLICY = """
apiVersion: ballast.dev/v1alpha1
kind: BalancingPolicy
metadata: {name: bench}
spec:
  nodeSelector: {matchLabels: {pool: bench}}
  placement: {mode: Enforce}
  moves: {mode: Enforce}
"""


@dataclass(frozen=True, slots=True)
class Waits:
    """Of one run, or of several."""

    gated: Sequence[float]
    """Seconds from the creation of each executor until its gate was lifted."""
    bare: Sequence[float]
    """From the creation of each bare pod until it was bound: as many requests, watched and sent by kube-scheduler."""
    placed: int
    left: int
    """Executors that were still gated in the end."""
    cores: Mapping[str, float]
    """That processes used, by what they are."""

    @classmethod
    def pooled(cls, runs: Sequence[Waits]) -> Waits:
        return cls(
            [wait for run in runs for wait in run.gated],
            [wait for run in runs for wait in run.bare],
            sum(run.placed for run in runs),
            sum(run.left for run in runs),
            {name: sum(run.cores[name] for run in runs) / len(runs) for name in runs[0].cores},
        )

    @property
    def beyond(self) -> float:
        """How much longer executors wait than bare pods, by the 99th percentiles."""
        return _quantile(self.gated, 99) - _quantile(self.bare, 99)


@dataclass(frozen=True, slots=True)
class Bench:
    testbed: Testbed
    server: Server
    replicas: Sequence[Replica]
    pace: Pace

    def run(self, name: str) -> Waits:
        """One run of the load, in namespaces of its own."""
        ours, others = name, f"{name}-bare"
        self.testbed.create_namespace(ours, labels=OPTED_IN)
        self.testbed.create_namespace(others)
        seen = {space: Sightings(self.server, space) for space in (ours, others)}
        meters = self._meters()
        used = {what: meter.cpu_seconds() for what, meter in meters.items()}
        began = time.monotonic()
        with ThreadPoolExecutor(2) as threads:
            loads = [
                threads.submit(Churn(self.server, space, self.pace, gating, node(0)).run)
                for space, gating in ((ours, Gating.BALLAST), (others, Gating.NONE))
            ]
            gated, bare = (load.result() for load in loads)
        seconds = time.monotonic() - began
        cores = {what: (meter.cpu_seconds() - used[what]) / seconds for what, meter in meters.items()}
        self._settle(seen[ours], gated)
        executors = _of(seen[ours], gated)
        waits = [each.released_at - each.created_at for each in executors if each.released_at is not None]
        bound = [each.bound_at - each.created_at for each in _of(seen[others], bare) if each.bound_at is not None]
        for each in self.replicas:
            each.check()
        for space in (ours, others):
            self.testbed.kubectl("delete", "pods", "--all", f"--namespace={space}", "--wait=false")
        return Waits(waits, bound, sum(each.placed for each in executors), len(executors) - len(waits), cores)

    def _settle(self, sightings: Sightings, churned: Churned) -> None:
        """The last sets' releases are yet to be seen."""
        pods = [pod for each in churned.sets for pod in each]
        until = time.monotonic() + SETTLE_SECONDS
        while time.monotonic() < until and not sightings.released(pods):
            time.sleep(0.2)

    def clear(self, namespace: str) -> None:
        """kubectl would take minutes, because it deletes one object after the other."""
        for kind in KINDS:
            path = kind.path(namespace=namespace)
            self.server.delete(path)
            wait_until(partial(self._is_empty, path), what=f"no {kind.plural} are left", timeout_seconds=300.0)

    def _is_empty(self, path: str) -> bool:
        return not self.server.get(f"{path}?limit=1")["items"]

    def transitions(self) -> int:
        """How often the lease has changed hands."""
        spec = self.server.get(LEASE.path(name=RELEASE, namespace=NAMESPACE))["spec"]
        return int(spec.get("leaseTransitions") or 0)

    def peak_bytes(self) -> int:
        return max(each.meter.peak_bytes() for each in self.replicas)

    def _meters(self) -> dict[str, Meter]:
        leader, standby = sorted(self.replicas, key=lambda each: not each.leads())
        return {
            "the leader": leader.meter,
            "the standby": standby.meter,
            "API server": Meter.of_part(self.testbed, "kube-apiserver"),
        }


def run(pace: Pace, amounts: Amounts, *, rounds: int) -> list[Result]:
    runs: dict[str, list[Waits]] = {case: [] for case in CASES}
    with _bench(pace) as bench, ProcessPoolExecutor(1, get_context("spawn")) as others:
        transitions = bench.transitions()
        for number in range(rounds):
            namespace = f"junk-{number}"
            bench.testbed.create_namespace(namespace, labels=OPTED_IN)
            print(f"load: round {number + 1} of {rounds}", flush=True)
            runs[ALONE].append(bench.run(f"alone-{number}"))
            pouring = others.submit(_pour, bench.testbed.api, namespace, amounts, pace.seconds)
            runs[POURED].append(bench.run(f"poured-{number}"))
            pouring.result()
            runs[STANDS].append(bench.run(f"stands-{number}"))
            if number + 1 < rounds:
                bench.clear(namespace)
        print("\n".join(each.log.read_text()[-2000:] for each in bench.replicas))
        return [
            *(result for case in CASES for result in _results(case, runs)),
            Result("all", "lease lost", float(bench.transitions() - transitions), "1", aim=Aim(0.0)),
            Result("all", "peak resident memory", bench.peak_bytes() / 1e6, "MB", aim=Aim(300.0)),
        ]


def _pour(api: ApiServer, namespace: str, amounts: Amounts, seconds: float) -> None:
    server = Server(api, connections=CONNECTIONS // 2)
    try:
        pour(server, namespace, junk(amounts), seconds=seconds)
    finally:
        server.close()


@contextmanager
def _bench(pace: Pace) -> Iterator[Bench]:
    testbed = Testbed(progress=lambda text: print(text, flush=True))
    testbed.up(nodes=[], kubelet=False, prometheus=False, kwok=True)
    server = Server(testbed.api, connections=CONNECTIONS)
    try:
        testbed.add_fake_nodes([node(index) for index in range(NODES)])
        install(testbed)
        testbed.apply(POLICY)
        with (
            tempfile.TemporaryDirectory() as folder,
            replica(testbed, "replica-1", Path(folder)) as first,
            replica(testbed, "replica-2", Path(folder)) as second,
        ):
            bench = Bench(testbed, server, (first, second), pace)
            _until_placing(bench)
            yield bench
    finally:
        server.close()
        testbed.down()


def _until_placing(bench: Bench) -> None:
    """The switch is on, the admission policy follows it, and sets are released."""
    bench.testbed.create_namespace("probe", labels=OPTED_IN)
    sightings = Sightings(bench.server, "probe")

    def leads() -> bool:
        for each in bench.replicas:
            each.check()
        return any(each.leads() for each in bench.replicas)

    wait_until(leads, what="a replica leads", timeout_seconds=60.0)
    waiting = one_set(bench.server, "probe", "app-probe", size=bench.pace.set_size)
    wait_until(lambda: sightings.released(waiting), what="a set is released", timeout_seconds=60.0)


def _of(sightings: Sightings, churned: Churned) -> list[Sighting]:
    found = sightings.of([pod for each in churned.sets for pod in each])
    return [each for each in found if each is not None]


def _results(case: str, runs: Mapping[str, Sequence[Waits]]) -> Iterator[Result]:
    """`runs`: of each case, one of each round."""
    waits, alone = Waits.pooled(runs[case]), Waits.pooled(runs[ALONE])
    for percent in (50, 99):
        yield Result(case, f"created to released, p{percent}", _quantile(waits.gated, percent), "s")
        yield Result(case, f"bare pods, created to bound, p{percent}", _quantile(waits.bare, percent), "s")
    if case == ALONE:
        yield Result(case, "beyond bare pods, p99", waits.beyond, "s")
    else:
        aim = Aim(MOST_RATIO, of_ratio=True)
        yield Result(case, "beyond bare pods, p99", waits.beyond, "s", Baseline(ALONE, alone.beyond), aim)
        ratios = [mine.beyond / before.beyond for mine, before in zip(runs[case], runs[ALONE], strict=True)]
        yield Result(case, "… lowest ratio of a round", min(ratios), "1")
        yield Result(case, "… highest ratio of a round", max(ratios), "1")
    yield Result(case, "the longest wait", max(waits.gated), "s")
    yield Result(case, "executors released with a place", waits.placed / (len(waits.gated) + waits.left), "1")
    yield Result(case, "executors still gated in the end", float(waits.left), "1", aim=Aim(0.0))
    for what, cores in waits.cores.items():
        yield Result(case, what, 100.0 * cores, "% of a core")


def _quantile(values: Sequence[float], percent: int) -> float:
    return quantiles(values, n=100, method="inclusive")[percent - 1]


def _options() -> tuple[Pace, Amounts, int]:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.junk", description=__doc__)
    usual = Amounts()
    parser.add_argument("--rate", type=float, default=RATE, help="executors created in a second (default %(default)s)")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long each run of the load takes")
    parser.add_argument("--rounds", type=int, default=3, help="how often (default 3)")
    for name in ("moves", "topologies", "pods"):
        parser.add_argument(f"--{name}", type=int, default=getattr(usual, name), help="of junk (default %(default)s)")
    asked = parser.parse_args(sys.argv[1:])
    amounts = Amounts(moves=asked.moves, topologies=asked.topologies, pods=asked.pods)
    return Pace(asked.rate, asked.seconds, set_size=4), amounts, asked.rounds


if __name__ == "__main__":
    at_start = machine()
    pace, amounts, rounds = _options()
    found = run(pace, amounts, rounds=rounds)
    write("junk", found, before=at_start)
    sys.exit(any(result.met is False for result in found))
