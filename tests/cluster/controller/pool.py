"""A namespace, a pool of nodes and a policy of one test's own, on the real API server."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from ballast.kube import names
from ballast.kube.client import Client, Limits
from ballast.kube.connection import Connection
from ballast.kube.kinds import BALANCING_POLICY, NAMESPACE, NODE, POD, SPARK_TOPOLOGY, Kind
from ballast.kube.objects import Query, read_list
from tests.testbed.nodes import RACK_LABEL, ZONE_LABEL, NodeSpec
from tests.testbed.testbed import Testbed
from tests.testbed.waiting import wait_until

JSON = dict[str, Any]

POOL_LABEL = "ballast.test/pool"
OURS = {"name": names.GATE}
ENFORCE = {"mode": "Enforce", "debounce": "1s", "gateTimeout": "10s", "maxExecutorsPerNodePercent": 50}
"""Placement of what does not grow for a second. No gate may last longer: it is to run out on no slow machine."""
PATIENCE_SECONDS = 120.0
"""For what a test waits for: no bound that anything is held to, but an end to a test that would not have one."""


def zones(count: int = 2, *, per_zone: int = 2, cpu: str = "4") -> list[NodeSpec]:
    """Nodes a1, a2, … b1, …: each in its own rack."""
    return [
        NodeSpec(f"{zone}{number}", zone=zone, rack=f"{zone}-{number}", cpu=cpu)
        for zone in "abcdef"[:count]
        for number in range(1, per_zone + 1)
    ]


@dataclass(frozen=True, slots=True)
class Pool:
    """What one test has to itself; `name` is that of its namespace and policy, and the prefix of its nodes."""

    testbed: Testbed
    admin: Client
    name: str

    def node(self, short: str) -> str:
        return f"{self.name}-{short}"

    def add_nodes(self, specs: Sequence[NodeSpec]) -> None:
        """Fake nodes that take nobody but this test's pods; those run there as soon as they are bound."""
        taint = {"key": POOL_LABEL, "value": self.name, "effect": "NoSchedule"}
        named = [
            NodeSpec(
                self.node(spec.name),
                zone=spec.zone,
                rack=spec.rack,
                cpu=spec.cpu,
                labels={**spec.labels, POOL_LABEL: self.name},
                taints=[taint, *spec.taints],
            )
            for spec in specs
        ]
        self.testbed.add_fake_nodes(named)

    def apply(self, kind: Kind, name: str, spec: Mapping[str, Any], *, labels: Mapping[str, str] | None = None) -> JSON:
        namespace = self.name if kind.namespaced else None
        metadata = {"name": name, "labels": dict(labels or {})}
        body = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "spec": dict(spec)}
        return self.admin.create(kind, body, namespace=namespace)

    def policy(self, name: str | None = None, **spec: Any) -> JSON:
        """A policy over this test's nodes and namespace, that enforces placement unless `spec` says otherwise."""
        whole = {
            "nodeSelector": {"matchLabels": {POOL_LABEL: self.name}},
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": self.name}},
            "placement": ENFORCE,
            "shedding": {"strategy": "None"},
            **spec,
        }
        return self.apply(BALANCING_POLICY, name or self.name, whole)

    def topology(self, name: str, *components: JSON, **spec: Any) -> JSON:
        return self.apply(SPARK_TOPOLOGY, name, {"components": list(components), **spec})

    def executor(
        self,
        number: int,
        *,
        application: str = "spark-1",
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
        gates: Sequence[JSON] = (OURS,),
        cpu: str = "1",
        role: str = "executor",
        dry: bool = False,
        **spec: Any,
    ) -> JSON:
        """A pod as Spark's driver creates it, with our gate in its template; with `dry`, what would come of it."""
        spark = {
            names.SPARK_ROLE: role,
            names.SPARK_APPLICATION: application,
            **({names.SPARK_EXECUTOR_ID: str(number)} if role == "executor" else {}),
            names.SPARK_RESOURCE_PROFILE: "0",
        }
        body: JSON = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"{application}-{role[:4]}-{number}",
                "labels": {**spark, **(labels or {})},
                "annotations": dict(annotations or {}),
            },
            "spec": {
                "containers": [
                    {
                        "name": "spark-kubernetes-executor",
                        "image": "spark",
                        "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}},
                        "lifecycle": {"preStop": {"exec": {"command": ["/opt/decom.sh"]}}},
                    }
                ],
                "nodeSelector": {POOL_LABEL: self.name},
                "tolerations": [{"key": POOL_LABEL, "operator": "Exists"}],
                "terminationGracePeriodSeconds": 0,
                "schedulingGates": list(gates),
                **spec,
            },
        }
        path = f"{POD.path(namespace=self.name)}{'?dryRun=All' if dry else ''}"
        return self.testbed.api.post(path, body)

    def executors(self, count: int, *, first: int = 1, **options: Any) -> list[str]:
        """Several alike; their names."""
        return [self.executor(number, **options)["metadata"]["name"] for number in range(first, first + count)]

    def pod(self, name: str) -> JSON:
        return self.admin.get(POD, name, namespace=self.name)

    def pods(self) -> list[JSON]:
        return read_list(self.admin, Query(POD, namespace=self.name), lambda pod: pod).items

    def read(self, kind: Kind, name: str | None = None) -> JSON:
        return self.admin.get(kind, name or self.name, namespace=self.name if kind.namespaced else None)

    def delete(self, kind: Kind, name: str) -> None:
        self.admin.delete(kind, name, namespace=self.name if kind.namespaced else None)

    def events(self, reason: str) -> list[JSON]:
        query = Query(Kind("events.k8s.io/v1", "Event", "events"), namespace=self.name)
        return [event for event in read_list(self.admin, query, lambda e: e).items if event["reason"] == reason]

    def nodes_of(self, pods: Sequence[str], *, seconds: float = PATIENCE_SECONDS) -> Counter[str]:
        """How many of these pods run on each node (by its short name), once all of them run."""
        found = wait_until(lambda: self._running(pods), what=f"{', '.join(pods)} run", timeout_seconds=seconds)
        return Counter(name.removeprefix(f"{self.name}-") for name in found)

    def _running(self, wanted: Sequence[str]) -> list[str] | None:
        pods = {pod["metadata"]["name"]: pod for pod in self.pods()}
        running = [pods[n] for n in wanted if n in pods and (pods[n].get("status") or {}).get("phase") == "Running"]
        return [pod["spec"]["nodeName"] for pod in running] if len(running) == len(wanted) else None

    def gated(self, name: str) -> bool:
        return names.GATE in gates_of(self.pod(name))

    def await_gating(self, *, seconds: float = PATIENCE_SECONDS) -> None:
        """Until admission gates executors, which it does a moment after the switch shows that it is on."""

        def gates() -> bool:
            return names.GATE in gates_of(self.executor(1, application="probe", gates=(), dry=True))

        wait_until(gates, what="admission gates executors", timeout_seconds=seconds)

    def await_released(self, pods: Sequence[str], *, seconds: float = PATIENCE_SECONDS) -> float:
        """Seconds until none of these is held by our gate any more."""
        started = time.monotonic()
        released = partial(self._released, pods)
        wait_until(released, what=f"{', '.join(pods)} are released", timeout_seconds=seconds)
        return time.monotonic() - started

    def _released(self, pods: Sequence[str]) -> bool:
        return not any(self.gated(name) for name in pods)

    def condition(self, kind: Kind, type_: str, name: str | None = None) -> JSON | None:
        conditions = (self.read(kind, name).get("status") or {}).get("conditions") or ()
        return next((c for c in conditions if c["type"] == type_), None)


def gates_of(pod: Mapping[str, Any]) -> list[str]:
    return [gate["name"] for gate in pod["spec"].get("schedulingGates") or ()]


def gated_seconds(pod: Mapping[str, Any]) -> float:
    """From its creation to its release, each in whole seconds by the API server's clock.

    The operator writes nothing else to an executor before its release, and only moves it afterwards.
    """
    metadata = pod["metadata"]
    writes = [each["time"] for each in metadata["managedFields"] if each["manager"] == names.FIELD_MANAGER]
    created = datetime.fromisoformat(metadata["creationTimestamp"])
    return (max(map(datetime.fromisoformat, writes)) - created).total_seconds()


def required(*expressions: JSON) -> JSON:
    """An affinity with one required node selector term."""
    term = {"matchExpressions": list(expressions)}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}


def required_labels(pod: Mapping[str, Any]) -> dict[str, list[str]]:
    """What the pod's first required node selector term asks for."""
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    terms = (affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}).get("nodeSelectorTerms") or [{}]
    return {e["key"]: e["values"] for e in terms[0].get("matchExpressions") or ()}


def preferred_labels(pod: Mapping[str, Any]) -> dict[str, list[str]]:
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    terms = affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
    return {e["key"]: e["values"] for term in terms for e in term["preference"]["matchExpressions"]}


@contextmanager
def pool(testbed: Testbed, name: str, nodes: Sequence[NodeSpec] = ()) -> Iterator[Pool]:
    """A pool whose namespace has opted in; all of it is gone afterwards, except for what the server takes time for."""
    testbed.create_namespace(name, labels={names.GATE_CHOICE: "enabled"})
    admin = Client(Connection.from_kubeconfig(testbed.kubeconfig), Limits(connections=8))
    found = Pool(testbed, admin, name)
    try:
        if nodes:
            found.add_nodes(nodes)
        yield found
    finally:
        _clear(found)
        admin.close()


def _clear(found: Pool) -> None:
    """The policies first, so that an operator leaves alone what goes."""
    for kind, mine in ((BALANCING_POLICY, found.name), (NODE, f"{found.name}-")):
        for item in read_list(found.admin, Query(kind), lambda each: each).items:
            if item["metadata"]["name"].startswith(mine):
                found.admin.delete(kind, item["metadata"]["name"])
    found.admin.delete(NAMESPACE, found.name)


__all__ = ["RACK_LABEL", "ZONE_LABEL"]
