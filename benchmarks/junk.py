"""What one tenant's junk costs another tenant's executors: how long they wait at their gates, and the lease.

Executors come at a steady pace, four times: alone; while as many and as long objects come that nobody watches, which is
what the API server makes of any tenant's writes; while a tenant pours junk (benchmarks/load/junk.py) over the operator;
and once all of that junk stands. Two replicas run, with the chart's rights and a policy that moves.

`python -m benchmarks.junk --seconds 30 --moves 300 --topologies 200 --pods 20` is a short form, for trying.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import quantiles

from ballast.kube.kinds import LEASE
from benchmarks.churn import CONNECTIONS
from benchmarks.load.churn import Churn, Gating, Pace, one_set
from benchmarks.load.junk import Amounts, harmless, junk, pour
from benchmarks.load.pods import node
from benchmarks.load.replicas import NAMESPACE, RELEASE, Replica, install, replica
from benchmarks.load.server import Server
from benchmarks.load.sightings import Sightings
from benchmarks.report import Aim, Baseline, Result, machine, write
from tests.testbed.testbed import Testbed
from tests.testbed.waiting import wait_until

NODES = 60
JUNK, WRITES = "junk", "writes"
MOST_RATIO = 1.10
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
    """Of one run: seconds from the creation of each executor until its gate was lifted."""

    seconds: Sequence[float]
    placed: int
    left: int
    """Executors that were still gated in the end."""
    leader_cores: float
    """That the replicas used together."""


@dataclass(frozen=True, slots=True)
class Bench:
    testbed: Testbed
    server: Server
    replicas: Sequence[Replica]
    pace: Pace

    def run(self, name: str) -> Waits:
        """One run of the load, in a namespace of its own."""
        self.testbed.create_namespace(name, labels=OPTED_IN)
        sightings, used = Sightings(self.server, name), self._cpu_seconds()
        churned = Churn(self.server, name, self.pace, Gating.BALLAST, node(0)).run()
        cores = (self._cpu_seconds() - used) / (churned.ended_at - churned.started_at)
        pods = [pod for each in churned.sets for pod in each]
        time.sleep(self.pace.debounce_seconds + 1.0)  # the last sets' releases are yet to be seen
        seen = [each for each in sightings.of(pods) if each is not None and each.gated]
        waits = [each.released_at - each.created_at for each in seen if each.released_at is not None]
        for each in self.replicas:
            each.check()
        self.testbed.kubectl("delete", "pods", "--all", f"--namespace={name}", "--wait=false")
        return Waits(waits, sum(each.placed for each in seen), len(pods) - len(waits), cores)

    def transitions(self) -> int:
        """How often the lease has changed hands."""
        spec = self.server.get(LEASE.path(name=RELEASE, namespace=NAMESPACE))["spec"]
        return int(spec.get("leaseTransitions") or 0)

    def peak_bytes(self) -> int:
        return max(each.meter.peak_bytes() for each in self.replicas)

    def _cpu_seconds(self) -> float:
        return sum(each.meter.cpu_seconds() for each in self.replicas)


def run(pace: Pace, amounts: Amounts) -> list[Result]:
    with _bench(pace) as bench, ThreadPoolExecutor(1) as threads:
        print("load: alone", flush=True)
        alone, transitions = bench.run("alone"), bench.transitions()
        wicked = junk(amounts)
        runs = {}
        for namespace, bodies in ((WRITES, list(harmless(wicked))), (JUNK, wicked)):
            print(f"load: {namespace}", flush=True)
            bench.testbed.create_namespace(namespace, labels=OPTED_IN)
            pouring = threads.submit(pour, bench.server, namespace, bodies, seconds=pace.seconds)
            runs[namespace] = bench.run(f"during-{namespace}")
            pouring.result()
        print("load: junk stands", flush=True)
        afterwards = bench.run("afterwards")
        print("\n".join(each.log.read_text()[-2000:] for each in bench.replicas))
        return [
            *_results("alone", alone, None),
            *_results("others write harmless objects", runs[WRITES], alone),
            *_results("a tenant pours junk", runs[JUNK], alone, aim=Aim(MOST_RATIO, of_ratio=True)),
            *_results("all junk stands", afterwards, alone, aim=Aim(MOST_RATIO, of_ratio=True)),
            Result("all", "lease lost", float(bench.transitions() - transitions), "1", aim=Aim(0.0)),
            Result("all", "peak resident memory", bench.peak_bytes() / 1e6, "MB", aim=Aim(300.0)),
        ]


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


def _results(case: str, waits: Waits, alone: Waits | None, *, aim: Aim | None = None) -> Iterator[Result]:
    for percent in (50, 99):
        value = _quantile(waits.seconds, percent)
        baseline = Baseline("alone", _quantile(alone.seconds, percent)) if alone else None
        yield Result(case, f"created to released, p{percent}", value, "s", baseline, aim)
    yield Result(case, "the longest wait", max(waits.seconds), "s")
    yield Result(case, "executors released with a place", waits.placed / (len(waits.seconds) + waits.left), "1")
    yield Result(case, "executors still gated in the end", float(waits.left), "1", aim=Aim(0.0))
    yield Result(case, "both replicas", 100.0 * waits.leader_cores, "% of a core")


def _quantile(values: Sequence[float], percent: int) -> float:
    return quantiles(values, n=100, method="inclusive")[percent - 1]


def _options() -> tuple[Pace, Amounts]:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.junk", description=__doc__)
    usual = Amounts()
    parser.add_argument("--rate", type=float, default=4.0, help="executors created in a second (default 4)")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long each run of the load takes")
    for name in ("moves", "topologies", "pods"):
        parser.add_argument(f"--{name}", type=int, default=getattr(usual, name), help="of junk (default %(default)s)")
    asked = parser.parse_args(sys.argv[1:])
    pace = Pace(asked.rate, asked.seconds, set_size=4)
    return pace, Amounts(moves=asked.moves, topologies=asked.topologies, pods=asked.pods)


if __name__ == "__main__":
    at_start = machine()
    write("junk", run(*_options()), before=at_start)
