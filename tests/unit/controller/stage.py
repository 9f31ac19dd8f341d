"""One pool with ExecutorMoves on a server on loopback: what is written is kept, what is asked is on record."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry

from ballast.api import BalancingPolicy
from ballast.controller.cluster_objects import ClusterObjects, OpenMove, Read, read_moves
from ballast.controller.cluster_view import ClusterView, pools_of
from ballast.controller.context import Context
from ballast.controller.gateclock import GateClock
from ballast.controller.movers import Movers
from ballast.controller.observe import Lists
from ballast.controller.telemetry import Telemetry
from ballast.kube.constraint_reader import Volumes
from ballast.kube.document import text
from ballast.kube.events import EventRecorder
from ballast.kube.nodes import NodeReader
from ballast.kube.pods import PodReader
from ballast.model import ConditionReason, ExecutorUsage, Memory, MetricsHealth, NodeUsage
from ballast.prometheus import Reading
from tests.apiserver import Answer, ApiServer, Asked, scripted
from tests.unit.kube.builders import CREATED, CREATED_AT, NOMINATED_BY_US, container, executor, node

JSON = dict[str, Any]
NOW = CREATED_AT + 3600.0
NAMESPACES = {"analytics": {"ballast.dev/gate": "enabled"}}
HOOK = {"preStop": {"exec": {"command": ["/opt/decom.sh"]}}}
CPU = {"hot": 0.9, "mild": 0.5, "cold": 0.2}
"""Measured ratio of each node's CPU."""


def streaming(number: int, *, created: float = CREATED_AT, **more: Any) -> JSON:
    """An executor of a streaming application that may be moved."""
    labels = {"ballast.dev/workload": "Streaming", **more.pop("labels", {})}
    status = {"startTime": CREATED, **more.pop("status", {})}
    found = executor(number, labels=labels, containers=[container(lifecycle=HOOK)], status=status, **more)
    found["metadata"]["creationTimestamp"] = text(created)
    return found


def move(number: int, *, source: str = "hot", target: str = "cold", approved: bool = True) -> JSON:
    """The order to move executor `number` of application spark-1."""
    return {
        "metadata": {
            "name": f"m{number}",
            "namespace": "analytics",
            "uid": f"uid-m{number}",
            "resourceVersion": "1",
            "generation": 1,
            "creationTimestamp": text(NOW - 10.0),
        },
        "spec": {
            "policyName": "streaming",
            "topologyName": "spark-1",
            "component": "profile-0",
            "executor": {"pod": f"spark-1-exec-{number}", "uid": f"uid-spark-1-exec-{number}"},
            "sourceNodeName": source,
            "targetNodeName": target,
            "approved": approved,
            "reason": {"strategy": "AvgShedder", "scores": {"from": "90", "to": "20"}},
            "predicted": {"hotAfter": "65", "coldAfter": "45"},
        },
    }


@dataclass
class Stage:
    """`pods` and `moves` are the objects by name; the executors' metrics say nothing against moving them."""

    script: ApiServer
    movers: Movers
    telemetry: Telemetry
    pods: dict[str, JSON] = field(default_factory=dict)
    moves: dict[str, JSON] = field(default_factory=dict)
    refusals: dict[str, Answer] = field(default_factory=dict)
    """What is answered instead to a request whose path ends so."""
    now: float = NOW
    spec: JSON = field(default_factory=dict)
    """Of the policy's moves."""
    cpu: dict[str, float] = field(default_factory=lambda: dict(CPU))
    task_seconds: dict[str, float] = field(default_factory=dict)
    """By pod; an executor that is not named has no task metrics."""
    batch_p50_seconds: float | None = None
    batch_p95_seconds: float | None = None
    volumes: Volumes = field(default_factory=Volumes)
    deleted: list[OpenMove] = field(default_factory=list)
    """Moves that go on counting."""
    watch_lags: bool = False
    """What is added is seen only by a move that reads its pods again."""

    def add(self, *pods: JSON) -> None:
        self.pods |= {pod["metadata"]["name"]: pod for pod in pods}

    def order(self, *moves: JSON) -> None:
        self.moves |= {each["metadata"]["name"]: each for each in moves}

    def begin(self) -> None:
        """A reconcile begins with the moves that there are."""
        found, _ = read_moves(tuple(self.moves.values()))
        self.movers.keep(found)

    def run(self) -> float | None:
        """One look and one walk over the moves; when to look again."""
        found, broken = read_moves(tuple(copy.deepcopy(list(self.moves.values()))))
        assert not broken
        context = self.context([*found, *self.deleted])
        if self.watch_lags:
            seen, reader = self.context(found, only_old=True), PodReader()
            pods = [reader.read(pod) for pod in self.pods.values()]
            context = seen.with_pods("analytics", "spark-1", pods)
        return self.movers.run(context, found)[1]

    def phase(self, name: str) -> tuple[str, str]:
        status = self.moves[name].get("status") or {}
        return status.get("phase", ""), status.get("reason", "")

    def metric(self, name: str, **labels: str) -> float | None:
        """Of the policy, as Prometheus would scrape it."""
        return self.telemetry.registry.get_sample_value(name, {"policy": "streaming", **labels})

    def done(self) -> list[str]:
        """What was written, in order, in short; Events aside."""
        written = [(each.method, each.path.split("?")[0].split("/analytics/")[-1]) for each in self.script.writes]
        return [f"{method} {path}" for method, path in written if path != "events"]

    def context(self, moves: list[OpenMove], *, only_old: bool = False) -> Context:
        reader, node_reader = PodReader(), NodeReader()
        read_pods = [reader.read(pod) for pod in self.pods.values()]
        pods = [pod for pod in read_pods if not only_old or pod.created_at < NOW]
        nodes = [node_reader.read(node(name)) for name in CPU]
        read = _policy(self.spec)
        objects = ClusterObjects(Lists(pods, nodes, NAMESPACES, self.volumes), (read,), (), ())
        cluster_view = ClusterView(objects, pools_of([read], nodes), GateClock().after(pods, self.now), self.now)
        figures = Reading(
            nodes={name: NodeUsage(cpu_ratio=ratio) for name, ratio in self.cpu.items()},
            executors={pod.key: self._usage(pod.name) for pod in pods},
            batch_p50_seconds=_of_the_application(self.batch_p50_seconds),
            batch_p95_seconds=_of_the_application(self.batch_p95_seconds),
            health=MetricsHealth(available=True, reason=ConditionReason.AVAILABLE),
        )
        return cluster_view.context(read, Memory(), figures, moves)

    def _usage(self, pod: str) -> ExecutorUsage:
        seconds = self.task_seconds.get(pod)
        return ExecutorUsage(cpu_cores=0.5, state_bytes=1024.0, task_seconds=seconds, task_bytes=seconds and 1.0)

    def answer(self, asked: Asked) -> Answer:
        path = asked.path.split("?")[0]
        for ending, answer in self.refusals.items():
            if path.endswith(ending):
                return answer
        if asked.method == "PATCH" and "/executormoves/" in path:
            return self._write(self.moves[path.split("/")[-2]], asked.body)
        if asked.method == "PATCH" and "/pods/" in path and path.endswith("/status"):
            return self._nominate(self.pods[path.split("/")[-2]], asked.body)
        if asked.method == "DELETE" and "/executormoves/" in path:
            del self.moves[path.split("/")[-1]]
        return Answer(body={"metadata": {}})

    def _write(self, stored: JSON, patch: Mapping[str, Any]) -> Answer:
        """A merge patch, guarded by the version that was read."""
        if patch["metadata"]["resourceVersion"] != stored["metadata"]["resourceVersion"]:
            return Answer(409, {"reason": "Conflict", "message": "the object has been modified"})
        stored["metadata"]["resourceVersion"] = str(int(stored["metadata"]["resourceVersion"]) + 1)
        merge(stored.setdefault("status", {}), patch["status"])
        return Answer(body=stored)

    def _nominate(self, stored: JSON, patch: list[JSON]) -> Answer:
        """A patch of operations that are guarded by the uid and the version that was read."""
        *guards, change = patch
        metadata = stored["metadata"]
        assert [each["value"] for each in guards] == [metadata["uid"], metadata["resourceVersion"]]
        metadata["resourceVersion"] = str(int(metadata["resourceVersion"]) + 1)
        metadata["managedFields"] = [NOMINATED_BY_US]
        stored["status"].pop("nominatedNodeName", None)
        if change["op"] == "add":
            stored["status"]["nominatedNodeName"] = change["value"]
        return Answer(body=stored)


def _of_the_application(seconds: float | None) -> dict[tuple[str, str], float]:
    return {} if seconds is None else {("analytics", "spark-1"): seconds}


def merge(target: JSON, changes: Mapping[str, Any]) -> None:
    for key, value in changes.items():
        if value is None:
            target.pop(key, None)
        elif isinstance(value, dict):
            merge(target.setdefault(key, {}), value)
        else:
            target[key] = value


def _policy(moves: Mapping[str, Any]) -> Read[BalancingPolicy]:
    raw: JSON = {
        "apiVersion": "ballast.dev/v1alpha1",
        "kind": "BalancingPolicy",
        "metadata": {"name": "streaming", "uid": "u1"},
        "spec": {
            "nodeSelector": {"matchLabels": {"pool": "streaming"}},
            "placement": {"mode": "Enforce"},
            "moves": {"mode": "Enforce", "maxLocalityLossPercent": 100, **moves},
        },
    }
    return Read(raw, BalancingPolicy.parse(raw))


@contextmanager
def stage(folder: Path) -> Iterator[Stage]:
    with scripted() as script:
        client = script.client(folder)

        def clock() -> float:
            return found.now

        events = EventRecorder(client, instance="one", clock=clock, on_error=_fail)
        telemetry = Telemetry(CollectorRegistry())
        found = Stage(script, Movers(client, events=events, telemetry=telemetry, clock=clock), telemetry)
        script.by = found.answer
        yield found


def _fail(error: Exception) -> None:
    raise error
