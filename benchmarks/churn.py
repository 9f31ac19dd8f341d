"""What Ballast costs a cluster in which executors come and go, and how soon it releases them.

One control plane, nodes that exist in it alone, thousands of running pods that are not Ballast's, and the same load
four times: executors without a gate, executors whose gate a plain loop patches away (what any gate costs), executors
that Ballast gates and releases, and the plain loop again without Ballast. Between the last two, a quiet minute with two
replicas. CPU seconds depend on what else the machine does: the API server's are compared with the mean of the two plain
loops, one before and one after, and how far these two differ says how far the comparison can be trusted.

`python -m benchmarks.churn --nodes 100 --pods 500 --rate 5 --seconds 40` is a short form, for trying.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from statistics import quantiles

from benchmarks.load import usage
from benchmarks.load.churn import Churn, Churned, Gating, Pace, create_all, one_set
from benchmarks.load.idle import Idle, quiet
from benchmarks.load.pods import foreign, node
from benchmarks.load.replicas import NAMESPACE, RELEASE, Replica, install, replica, uninstall
from benchmarks.load.resident import resident_bytes_with
from benchmarks.load.server import Server
from benchmarks.load.sightings import Sightings
from benchmarks.load.usage import Meter
from benchmarks.report import Aim, Baseline, Result, machine, write
from tests.testbed.audit import Request
from tests.testbed.testbed import Testbed
from tests.testbed.waiting import wait_until

CONNECTIONS = 16
SETTLE_SECONDS = 60.0
"""What starting and churning leave behind lasts for so long; idling is what comes after."""
IDLE_SECONDS = 60.0
MANY_PODS = 100_000
FOREIGN = "services"
POLICY = """
apiVersion: ballast.dev/v1alpha1
kind: BalancingPolicy
metadata: {name: bench}
spec:
  nodeSelector: {matchLabels: {pool: bench}}
  placement: {mode: Enforce}
  moves: {mode: Recommend}
"""


@dataclass(frozen=True, slots=True)
class Size:
    nodes: int
    pods: int
    pace: Pace

    @property
    def case(self) -> str:
        pace = self.pace
        return f"{self.nodes} nodes, {self.pods} pods, {pace.executors_per_second:g} executors/s for {pace.seconds:g} s"


@dataclass(frozen=True, slots=True)
class Costs:
    """Of one run of the load."""

    churned: Churned
    since: datetime
    until: datetime
    apiserver_cpu_seconds: float
    replica_cpu_seconds: list[float]
    replica_memory: list[tuple[int, int]]
    """Of each, bytes that are resident in the end, and the most that ever were."""
    sightings: Sightings

    @property
    def seconds(self) -> float:
        return self.churned.ended_at - self.churned.started_at


@dataclass(frozen=True, slots=True)
class Started:
    """How the first replica began."""

    wall_seconds: float
    cpu_seconds: float
    placed: int


@dataclass(frozen=True, slots=True)
class Bench:
    testbed: Testbed
    server: Server
    size: Size
    namespaces: list[str] = field(default_factory=list)
    """Of the runs so far."""

    def prepare(self) -> None:
        size = self.size
        self.testbed.add_fake_nodes([node(index) for index in range(size.nodes)])
        self.testbed.create_namespace(FOREIGN)
        bodies = (
            foreign(index, namespace=FOREIGN, node_name=node(index % size.nodes).name) for index in range(size.pods)
        )
        create_all(self.server, FOREIGN, bodies, count=size.pods)
        self._until_no_pod("status.phase!=Running", FOREIGN, "all foreign pods run")

    def load(self, gating: Gating, *, replicas: Sequence[Replica] = ()) -> Costs:
        """One run, in its own namespace, from which nothing is left on return."""
        namespace = f"churn-{len(self.namespaces)}"
        self.namespaces.append(namespace)
        opted_in = {"ballast.dev/gate": "enabled"} if gating is Gating.BALLAST else {}
        self.testbed.create_namespace(namespace, labels=opted_in)
        sightings = Sightings(self.server, namespace)
        churn = Churn(self.server, namespace, self.size.pace, gating, node(0))
        meters = [Meter.of_part(self.testbed, "kube-apiserver"), *(each.meter for each in replicas)]
        before, since = [meter.cpu_seconds() for meter in meters], usage.now()
        churned = churn.run()
        until = usage.now()
        apiserver, *others = (meter.cpu_seconds() - was for meter, was in zip(meters, before, strict=True))
        for each in replicas:
            each.check()
        time.sleep(self.size.pace.debounce_seconds + 1.0)  # the last sets' releases are yet to be seen
        memory = [(each.meter.resident_bytes(), each.meter.peak_bytes()) for each in replicas]
        self.testbed.kubectl("delete", "pods", "--all", f"--namespace={namespace}", "--wait=false")
        self._until_no_pod("", namespace, "all executors are gone")
        return Costs(churned, since, until, apiserver, others, memory, sightings)

    def start(self, first: Replica, sightings: Sightings, waiting: Sequence[str]) -> Started:
        """Return when the first replica leads and has released the set that waited for it."""

        def leads_and_released() -> bool:
            first.check()
            return sightings.released(waiting) and first.leads()

        wait_until(leads_and_released, what="a replica leads and has released a set", timeout_seconds=120.0)
        released = [each.released_at for each in sightings.of(waiting) if each and each.released_at is not None]
        placed = sum(each.placed for each in sightings.of(waiting) if each)
        return Started(max(released) - first.started_at, first.meter.cpu_seconds(), placed)

    def _until_no_pod(self, fields: str, namespace: str, what: str) -> None:
        path = f"/api/v1/namespaces/{namespace}/pods?limit=1&fieldSelector={fields}"

        def none_left() -> bool:
            return not self.server.get(path)["items"]

        wait_until(none_left, what=what, timeout_seconds=600.0, poll_seconds=1.0)


def run(size: Size) -> list[Result]:
    testbed = Testbed(progress=lambda text: print(text, flush=True))
    testbed.up(nodes=[], kubelet=False, prometheus=False, kwok=True)
    server = Server(testbed.api, connections=CONNECTIONS)
    try:
        with tempfile.TemporaryDirectory() as folder:
            return _measured(Bench(testbed, server, size), Path(folder))
    finally:
        server.close()
        testbed.down()


def _measured(bench: Bench, folder: Path) -> list[Result]:
    testbed = bench.testbed
    bench.prepare()
    print("load: no gates, then a plain loop", flush=True)
    none, loop = bench.load(Gating.NONE), bench.load(Gating.LOOP)
    install(testbed)
    testbed.apply(POLICY)
    testbed.create_namespace("waiting", labels={"ballast.dev/gate": "enabled"})
    sightings = Sightings(bench.server, "waiting")
    waiting = one_set(bench.server, "waiting", "app-first", size=bench.size.pace.set_size)
    time.sleep(bench.size.pace.debounce_seconds)
    with replica(testbed, "replica-1", folder) as first:
        started = bench.start(first, sightings, waiting)
        with replica(testbed, "replica-2", folder) as second:
            _until_gated(bench)
            time.sleep(SETTLE_SECONDS / 4)
            print("load: ballast", flush=True)
            costs = bench.load(Gating.BALLAST, replicas=(first, second))
            time.sleep(SETTLE_SECONDS)
            print("idle", flush=True)
            idle = quiet(bench.server, [first, second], seconds=IDLE_SECONDS)
            logs = [each.log.read_text()[-2000:] for each in (first, second)]
    print("\n".join(logs))
    asked = testbed.requests_of(NAMESPACE, RELEASE)
    uninstall(testbed)
    print("load: the plain loop again", flush=True)
    again = bench.load(Gating.LOOP)
    return [
        *_release_results(bench.size, costs, loop),
        *_cost_results(bench.size, costs, none=none, loops=(loop, again)),
        *_operator_results(bench.size, costs),
        *_request_results(bench.size, usage.between(asked, costs.since, costs.until), costs.seconds),
        *_idle_results(idle, usage.between(asked, idle.since, idle.until)),
        Result(bench.size.case, "start until it leads and has released a set", started.wall_seconds, "s", aim=Aim(3.0)),
        Result(bench.size.case, "CPU until then", started.cpu_seconds, "s"),
        Result(bench.size.case, "of that set released with a place", started.placed / len(waiting), "1"),
    ]


def _until_gated(bench: Bench) -> None:
    """The switch is on, and the admission policy follows it."""
    bench.testbed.create_namespace("probe", labels={"ballast.dev/gate": "enabled"})
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "probe", "labels": {"spark-role": "executor"}},
        "spec": {"containers": [{"name": "main", "image": "pause"}]},
    }

    def gated() -> bool:
        return "schedulingGates" in bench.server.post("/api/v1/namespaces/probe/pods?dryRun=All", body)["spec"]

    wait_until(gated, what="executors are gated", poll_seconds=0.5)


def _release_results(size: Size, costs: Costs, loop: Costs) -> list[Result]:
    """Of sets that had the time to be released: until each executor is, and until the whole set is bound."""
    debounce = size.pace.debounce_seconds
    waits, binds, placed, left, ungated = [], [], 0, 0, 0
    for pods in costs.churned.sets:
        seen = [each for each in costs.sightings.of(pods) if each is not None]
        complete_at = max((each.created_at for each in seen), default=0.0)
        for each in seen:
            ungated += not each.gated
            placed += each.placed
            left += each.released_at is None
            if each.gated and each.released_at is not None:
                waits.append(each.released_at - each.created_at)
            if each.bound_at is not None:
                binds.append(each.bound_at - complete_at)
    baseline = _binding_seconds(loop)
    count = sum(map(len, costs.churned.sets))
    case = size.case
    return [
        Result(case, "created to released, p50", _quantile(waits, 50), "s", aim=Aim(debounce + 0.2)),
        Result(case, "created to released, p99", _quantile(waits, 99), "s", aim=Aim(debounce + 1.2)),
        Result(case, "last of a set created to bound, p99", _quantile(binds, 99), "s",
               Baseline("plain loop", _quantile(baseline, 99))),
        Result(case, "executors released with a place", placed / count, "1", aim=Aim(0.99, at_least=True)),
        Result(case, "executors never gated", float(ungated), "1", aim=Aim(0.0)),
        Result(case, "executors still gated in the end", float(left), "1"),
        Result(case, "load generator late, p99", _quantile(costs.churned.late_seconds, 99), "s",
               Baseline("plain loop", _quantile(loop.churned.late_seconds, 99))),
    ]  # fmt: skip


def _binding_seconds(costs: Costs) -> list[float]:
    found = []
    for pods in costs.churned.sets:
        seen = [each for each in costs.sightings.of(pods) if each is not None]
        complete_at = max((each.created_at for each in seen), default=0.0)
        found += [each.bound_at - complete_at for each in seen if each.bound_at is not None]
    return found


def _cost_results(size: Size, costs: Costs, *, none: Costs, loops: tuple[Costs, Costs]) -> list[Result]:
    used, (before, after) = costs.apiserver_cpu_seconds, (each.apiserver_cpu_seconds for each in loops)
    without, case = Baseline("plain loop", (before + after) / 2.0), size.case
    return [
        Result(case, "API server's CPU", used, "s", without, Aim(1.10, of_ratio=True)),
        Result(case, "API server's CPU, the plain loop afterwards", after, "s", Baseline("before", before)),
        Result(case, "API server's CPU, next to no gates", used, "s", Baseline("no gates", none.apiserver_cpu_seconds)),
    ]


def _operator_results(size: Size, costs: Costs) -> list[Result]:
    leader, standby = (100.0 * used / costs.seconds for used in costs.replica_cpu_seconds)
    resident, peak = costs.replica_memory[0]
    case = size.case
    return [
        Result(case, "leader, share of a core", leader, "%", aim=Aim(25.0)),
        Result(case, "standby, share of a core", standby, "%"),
        Result(case, "leader, resident memory", resident / 1e6, "MB", aim=Aim(300.0)),
        Result(case, "leader, peak resident memory", peak / 1e6, "MB"),
    ]


def _request_results(size: Size, asked: Sequence[Request], seconds: float) -> list[Result]:
    full = sum(map(usage.is_full_pod_list, asked))
    minutes = seconds / 60.0
    counted = usage.by_verb_and_resource(asked).most_common()
    return [
        Result(size.case, "full LISTs of pods in 5 minutes", full / minutes * 5.0, "1", aim=Aim(1.0)),
        Result(size.case, "requests, both replicas", len(asked) / minutes, "1/min"),
        *(Result(size.case, what, count / minutes, "1/min") for what, count in counted),
    ]


def _idle_results(idle: Idle, asked: Sequence[Request]) -> list[Result]:
    case = f"idle, two replicas, {idle.seconds:g} s"
    leader, standby = (100.0 * used / idle.seconds for used in idle.replica_cpu_seconds)
    minutes = idle.seconds / 60.0
    counted = usage.by_verb_and_resource(asked).most_common()
    return [
        Result(case, "leader, share of a core", leader, "%", aim=Aim(0.5)),
        Result(case, "standby, share of a core", standby, "%", aim=Aim(0.5)),
        Result(case, "requests", len(asked) / minutes, "1/min", aim=Aim(40.0)),
        Result(case, "writes that change nothing", float(idle.vain(asked)), "1", aim=Aim(0.0)),
        *(Result(case, what, count / minutes, "1/min") for what, count in counted),
    ]


def _quantile(values: Sequence[float], percent: int) -> float:
    if len(values) < 2:
        return float("nan")
    return quantiles(values, n=100, method="inclusive")[percent - 1]


def _options() -> Size:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.churn", description=__doc__)
    parser.add_argument("--nodes", type=int, default=1_000)
    parser.add_argument("--pods", type=int, default=5_000, help="running pods that are not Ballast's")
    parser.add_argument("--rate", type=float, default=20.0, help="executors created, and deleted, in a second")
    parser.add_argument("--seconds", type=float, default=180.0, help="how long each run of the load takes")
    asked = parser.parse_args(sys.argv[1:])
    return Size(asked.nodes, asked.pods, Pace(asked.rate, asked.seconds))


def _with_many_pods() -> list[Result]:
    resident, peak = resident_bytes_with(MANY_PODS)
    return [
        Result(f"{MANY_PODS} generated pods", "resident memory", resident / 1e6, "MB", aim=Aim(1000.0)),
        Result(f"{MANY_PODS} generated pods", "peak resident memory", peak / 1e6, "MB"),
    ]


if __name__ == "__main__":
    at_start = machine()
    write("churn", [*run(_options()), *_with_many_pods()], before=at_start)
