"""One control plane on which every peer places the same applications next to the same background."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import count

from benchmarks.compared import kueue
from benchmarks.compared.case import BROKERS, Case, Step
from benchmarks.compared.figures import Figures, Homes, figures, mean
from benchmarks.compared.peers import GROUP_API, Asked, Peer
from benchmarks.compared.pool import EXECUTOR_CORES, FilledPool
from benchmarks.load.churn import create_all
from benchmarks.load.pods import JSON, driver, executor, foreign
from benchmarks.load.server import RefusedError, Server
from benchmarks.load.sightings import EXECUTORS
from tests.testbed.testbed import Testbed
from tests.testbed.waiting import wait_until

BACKGROUND = "services"
PATIENCE_SECONDS = 60.0
REFUSED_SECONDS = 3.0
_AT_ONCE = "gracePeriodSeconds=0"
_PART = 200
"""Pods that one request deletes."""

Cell = dict[str, Figures]
"""By row of the table, what one peer came to with one seed."""


@dataclass(slots=True)
class Run:
    """One peer with one case: the applications that are there, by name, and their executors' names."""

    peer: Peer
    pool: FilledPool
    case: Case
    name: str
    executors: dict[str, dict[int, str]] = field(default_factory=dict)
    drivers: dict[str, str] = field(default_factory=dict)
    specs: dict[str, JSON] = field(default_factory=dict)
    """By application: what the peer adds, decided when the application starts."""

    def asked(self, application: str, taken: Counter[str]) -> Asked:
        return Asked(self.pool, self.case, self.name, application, taken)


@dataclass(slots=True)
class Arena:
    testbed: Testbed
    server: Server
    numbers: count[int] = field(default_factory=count)

    def open_to(self, peers: Iterable[Peer]) -> None:
        for namespace in (BACKGROUND, BROKERS):
            self.testbed.create_namespace(namespace)
        for peer in peers:
            labels = {"ballast.dev/gate": "enabled"} if peer.gated else {}
            self.testbed.create_namespace(peer.namespace, labels=labels)

    def fill(self, pool: FilledPool) -> None:
        """The background of this pool instead of any other."""
        self._empty(BACKGROUND)
        pods = list(pool.background(BACKGROUND))
        create_all(self.server, BACKGROUND, iter(pods), count=len(pods))

    def play(self, peer: Peer, pool: FilledPool, case: Case) -> Cell:
        """Every step of the case; nothing of it is left on return."""
        run = Run(peer, pool, case, f"{next(self.numbers)}")
        self._begin(run)
        try:
            by_row: dict[str, list[Figures]] = defaultdict(list)
            for step in case.steps:
                seconds = self._take(run, step)
                if step.measured:
                    by_row[step.measured].append(self._figures(run, step, seconds))
            return {row: mean(several) for row, several in by_row.items()}
        finally:
            self._end(run)

    def _begin(self, run: Run) -> None:
        for number, node in enumerate(run.case.brokers):
            pod = foreign(number, namespace=BROKERS, node_name=node)
            pod["metadata"] |= {"name": f"kafka-{number}", "labels": {"app": BROKERS}}
            pod["spec"]["containers"][0]["resources"] = {}
            self.server.post(f"/api/v1/namespaces/{BROKERS}/pods", pod)
        if run.peer.gated and run.case.flows:
            path = f"/apis/ballast.dev/v1alpha1/namespaces/{run.peer.namespace}/sparktopologies"
            self.server.post(path, _topology(run))

    def _end(self, run: Run) -> None:
        if run.peer.gated and run.case.flows:
            path = f"/apis/ballast.dev/v1alpha1/namespaces/{run.peer.namespace}/sparktopologies"
            self.server.delete(f"{path}/{run.asked('', Counter()).topology}")
        also = kueue.WORKLOADS if run.peer.queued_by else ""
        self._empty(run.peer.namespace, also=also)
        self._empty(BROKERS)

    def _empty(self, namespace: str, *, also: str = "") -> None:
        """Without its pods, and without the objects of the API `also`, which keep pods from going."""
        path = f"/api/v1/namespaces/{namespace}/pods"
        if also:
            group, kind = also.rsplit("/", 1)
            self.server.delete(f"/apis/{group}/namespaces/{namespace}/{kind}")

        def empty() -> bool:
            # In parts, because the API server answers no request for longer than a minute.
            self.server.delete(f"{path}?{_AT_ONCE}&limit={_PART}")
            return not self.server.get(f"{path}?limit=1")["items"]

        wait_until(
            empty,
            what=f"{namespace} is empty",
            timeout_seconds=PATIENCE_SECONDS,
        )

    def _take(self, run: Run, step: Step) -> float:
        """Seconds from the last creation until all are bound that can be."""
        pods = f"/api/v1/namespaces/{run.peer.namespace}/pods"
        gone = [run.executors[name].pop(number) for name, numbers in step.ends.items() for number in numbers]
        bodies = [body for name, numbers in step.starts.items() for body in self._bodies(run, name, numbers)]
        with ThreadPoolExecutor(self.server.connections) as threads:
            list(threads.map(lambda name: self.server.delete(f"{pods}/{name}?{_AT_ONCE}"), gone))
            list(threads.map(lambda body: self.server.post(pods, body), bodies))
        return self._settled_after(run, time.monotonic())

    def _bodies(self, run: Run, application: str, numbers: Sequence[int]) -> list[JSON]:
        namespace = run.peer.namespace
        asked = run.asked(application, Counter())
        if application not in run.drivers:
            asked = run.asked(application, self._taken(run))
            body = driver(asked.spark_application, namespace=namespace)
            body["spec"]["nodeName"] = run.pool.driver_node(application)
            answer = self.server.post(f"/api/v1/namespaces/{namespace}/pods", body)
            run.drivers[application] = answer["metadata"]["uid"]
            run.specs[application] = run.peer.spec(asked)
            if run.peer.grouped_by:
                group = _pod_group(asked.spark_application, run.peer, len(numbers))
                self.server.post(f"/apis/{GROUP_API}/namespaces/{namespace}/podgroups", group)
                run.specs[application] |= {"schedulingGroup": {"podGroupName": asked.spark_application}}
        bodies = []
        for number in numbers:
            body = executor(
                number + 1,
                asked.spark_application,
                namespace=namespace,
                driver_uid=run.drivers[application],
                gated=False,
            )
            _adapt(body, run.specs[application], asked.metadata(run.peer, size=len(numbers)))
            run.executors.setdefault(application, {})[number] = body["metadata"]["name"]
            bodies.append(body)
        if run.peer.queued_by and bodies:
            self._await_driver_known(namespace, bodies[0])
        return bodies

    def _await_driver_known(self, namespace: str, body: JSON) -> None:
        """Kueue's webhook asks its cache for an executor's owner, and refuses the executor until the driver is there.
        Spark's driver is there for seconds before it asks for executors."""

        def accepted() -> bool:
            try:
                self.server.post(f"/api/v1/namespaces/{namespace}/pods?dryRun=All", body)
            except RefusedError:
                return False
            return True

        wait_until(accepted, what="Kueue knows the driver", timeout_seconds=PATIENCE_SECONDS)

    def _settled_after(self, run: Run, created: float) -> float:
        """Seconds until the last one was bound; returns when no more are going to be."""
        path = f"/api/v1/namespaces/{run.peer.namespace}/pods?{EXECUTORS}&fieldSelector=spec.nodeName%3D"
        waiting, changed_at = -1, created

        def settled() -> bool:
            nonlocal waiting, changed_at
            unbound = self.server.get(path)["items"]
            if len(unbound) != waiting:
                waiting, changed_at = len(unbound), time.monotonic()
            # Refused once may be tried again: after what else the scheduler is about to bind.
            patient = time.monotonic() - changed_at > REFUSED_SECONDS
            return not unbound or (patient and all(map(_refused, unbound)))

        wait_until(settled, what=f"{run.peer.name}: {run.case.name} is placed", timeout_seconds=PATIENCE_SECONDS)
        return changed_at - created

    def _homes(self, run: Run) -> dict[str, list[str | None]]:
        items = self.server.get(f"/api/v1/namespaces/{run.peer.namespace}/pods?{EXECUTORS}")["items"]
        nodes = {pod["metadata"]["name"]: pod["spec"].get("nodeName") for pod in items}
        return {name: [nodes.get(pod) for pod in pods.values()] for name, pods in run.executors.items()}

    def _taken(self, run: Run) -> Counter[str]:
        return Counter(node for places in self._homes(run).values() for node in places if node is not None)

    def _figures(self, run: Run, step: Step, seconds: float) -> Figures:
        """Of the applications that the step starts."""
        homes: Homes = {name: places for name, places in self._homes(run).items() if name in step.starts}
        if run.case.brokers:
            homes = {**homes, BROKERS: run.case.brokers}
        return figures(homes, run.case.flows, run.pool.nodes, seconds=seconds)


def _adapt(body: JSON, spec: JSON, metadata: Mapping[str, Mapping[str, str]]) -> None:
    """Make a pod as Spark's driver creates it one as the peer's pod template makes it."""
    for name, added in metadata.items():
        body["metadata"].setdefault(name, {}).update(added)
    selector = {**body["spec"]["nodeSelector"], **spec.get("nodeSelector", {})}
    body["spec"] |= {**spec, "nodeSelector": selector}
    resources = {"requests": {"cpu": f"{int(1000 * EXECUTOR_CORES)}m", "memory": "4Gi"}}
    body["spec"]["containers"][0]["resources"] = resources


def _refused(pod: JSON) -> bool:
    """Whether kube-scheduler has said that no node can take it."""
    conditions = pod.get("status", {}).get("conditions", ())
    return any(each["type"] == "PodScheduled" and each.get("reason") == "Unschedulable" for each in conditions)


def _pod_group(name: str, peer: Peer, size: int) -> JSON:
    """`size`: so many must be there before any is scheduled; more may come later."""
    spec = {
        "schedulingPolicy": {"gang": {"minCount": size}},
        "schedulingConstraints": {"topology": [{"key": peer.grouped_by}]},
    }
    return {"apiVersion": GROUP_API, "kind": "PodGroup", "metadata": {"name": name}, "spec": spec}


def _topology(run: Run) -> JSON:
    sizes, flows = run.case.sizes, run.case.flows
    shuffles = {flow.source: flow.bytes_per_second for flow in flows if flow.source == flow.target}
    components: list[JSON] = [
        {"name": BROKERS, "external": {"namespace": BROKERS, "selector": {"matchLabels": {"app": BROKERS}}}},
        *(
            {"name": name, "executors": size, "exchange": {"bytesPerSecond": f"{shuffles[name]:.0f}"}}
            for name, size in sizes.items()
        ),
    ]
    streams = [
        {"from": flow.source, "to": flow.target, "rate": {"bytesPerSecond": f"{flow.bytes_per_second:.0f}"}}
        for flow in flows
        if flow.source != flow.target
    ]
    return {
        "apiVersion": "ballast.dev/v1alpha1",
        "kind": "SparkTopology",
        "metadata": {"name": run.asked("", Counter()).topology, "namespace": run.peer.namespace},
        "spec": {"components": components, "streams": streams},
    }
