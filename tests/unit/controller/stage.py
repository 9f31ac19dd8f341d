"""One pool with ExecutorMoves on the fake API server, whose clock is the scene's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from threading import Event
from typing import Any

from prometheus_client import CollectorRegistry

from ballast.api import BalancingPolicy
from ballast.controller.cluster_objects import ClusterObjects, OpenMove, Read, read_moves
from ballast.controller.cluster_view import ClusterView, pools_of
from ballast.controller.context import Context
from ballast.controller.gateclock import GateClock
from ballast.controller.movers import Movers, Reread
from ballast.controller.observe import Lists
from ballast.controller.telemetry import Telemetry
from ballast.kube.document import text
from ballast.kube.events import EventRecorder
from ballast.kube.nodes import NodeReader
from ballast.kube.pods import Pod, PodReader
from ballast.kube.volumes import Volumes
from ballast.model import ConditionReason, ExecutorUsage, Memory, MetricsHealth, NodeUsage
from ballast.prometheus import Reading
from ballast.tenancy.lane import Lane
from tests.apiserver import Answer, ApiServer, Asked, Watch, serving
from tests.lanes import AtOnce
from tests.unit.kube.builders import CREATED, CREATED_AT, container, executor, node

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
    """The executors' metrics say nothing against moving them."""

    server: ApiServer
    telemetry: Telemetry = field(default_factory=lambda: Telemetry(CollectorRegistry()))
    events: EventRecorder = field(init=False)
    movers: Movers = field(init=False)
    lane: Lane = field(init=False)
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

    def __post_init__(self) -> None:
        self.server.now = lambda: datetime.fromtimestamp(self.now, UTC)
        client = self.server.client()
        self.events = EventRecorder(client, AtOnce(), instance="one", clock=lambda: self.now, on_error=_fail)
        self.restart()

    def restart(self, *, lane: Lane | None = None, reread: Reread | None = None) -> None:
        """The operator, with nothing known of the moves."""
        self.lane = lane or AtOnce()
        self.movers = Movers(
            self.server.client(),
            self.lane,
            events=self.events,
            telemetry=self.telemetry,
            clock=lambda: self.now,
            reread=reread,
        )

    def keep_back(self, kept: Callable[[Asked], bool]) -> Event:
        """Such requests are answered once the event is set."""
        let, by = Event(), self.server.by

        def late(asked: Asked) -> Answer | Watch:
            assert not kept(asked) or let.wait(30), "this answer was waited for"
            return by(asked)

        self.server.by = late
        return let

    def add(self, *pods: JSON) -> None:
        self.server.put("pods", *pods)

    def order(self, *moves: JSON) -> None:
        self.server.put("executormoves", *moves)

    def gone(self, number: int) -> None:
        """That executor's pod has ended."""
        self.server.remove("pods", f"spark-1-exec-{number}", "analytics")

    @property
    def pods(self) -> dict[str, JSON]:
        """By name, as the server has them."""
        return {each["metadata"]["name"]: each for each in self.server.all("pods")}

    @property
    def moves(self) -> dict[str, JSON]:
        """By name, as the server has them."""
        return {each["metadata"]["name"]: each for each in self.server.all("executormoves")}

    def opened(self) -> list[OpenMove]:
        found, broken = read_moves(tuple(self.moves.values()))
        assert not broken
        return found

    def read_pods(self) -> list[Pod]:
        return [PodReader().read(pod) for pod in self.pods.values()]

    def versions(self, pod: str) -> list[str]:
        """All that this pod ever had."""
        changes = [each for each in self.server.changes if each.key[::2] == ("pods", pod)]
        return [str(each.version) for each in changes]

    def begin(self) -> None:
        """A reconcile begins with the moves that there are."""
        self.movers.keep(self.opened())

    def run(self) -> float | None:
        """One look and one walk over the moves; when to look again."""
        found = self.movers.as_they_count(self.opened())
        context = self.context([*found, *self.deleted])
        if self.watch_lags:
            context = self.context(found, only_old=True).with_pods("analytics", "spark-1", self.read_pods())
        return self.movers.run(context, found)[1]

    def phase(self, name: str) -> tuple[str, str]:
        status = self.moves[name].get("status") or {}
        return status.get("phase", ""), status.get("reason", "")

    def metric(self, name: str, **labels: str) -> float | None:
        """Of the policy, as Prometheus would scrape it."""
        return self.telemetry.registry.get_sample_value(name, {"policy": "streaming", **labels})

    def done(self) -> list[str]:
        """What was written, in order, in short; Events aside."""
        written = [(each.method, each.route.split("/analytics/")[-1]) for each in self.server.writes]
        return [f"{method} {path}" for method, path in written if path != "events"]

    def context(self, moves: list[OpenMove], *, only_old: bool = False) -> Context:
        node_reader = NodeReader()
        pods = [pod for pod in self.read_pods() if not only_old or pod.created_at < NOW]
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


def _of_the_application(seconds: float | None) -> dict[tuple[str, str], float]:
    return {} if seconds is None else {("analytics", "spark-1"): seconds}


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
def stage() -> Iterator[Stage]:
    with serving(ApiServer()) as server:
        yield Stage(server)


def _fail(error: Exception) -> None:
    raise error
