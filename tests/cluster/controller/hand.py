"""The operator in this process, with the test's own clock and metrics. It can be stopped at any write."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeVar

from prometheus_client import CollectorRegistry

from ballast.api import BalancingPolicy
from ballast.api.topology import SparkTopology
from ballast.controller.actuator import Actuator
from ballast.controller.cluster_objects import ClusterLister
from ballast.controller.cluster_state import ClusterState
from ballast.controller.ends import Rates
from ballast.controller.failures import Failure
from ballast.controller.metrics_reader import NOT_CONFIGURED, MetricsReader
from ballast.controller.movers import Movers
from ballast.controller.reconciler import Parts, Reconciler
from ballast.controller.reporter import Reporter
from ballast.controller.switch import Switch
from ballast.controller.telemetry import Telemetry
from ballast.kube.client import Client, Limits
from ballast.kube.connection import Connection
from ballast.kube.events import EventRecorder
from ballast.kube.kinds import Kind
from ballast.kube.nodes import NodeFacts
from ballast.kube.pods import Pod
from ballast.model import ConditionReason, ExecutorUsage, MetricsHealth, NodeUsage
from ballast.prometheus import Reading
from tests.cluster.chart.installation import NAMESPACE, RELEASE
from tests.lanes import AtOnce
from tests.testbed.testbed import Testbed

JSON = dict[str, Any]
T = TypeVar("T")


AGE_SECONDS = 3.0
"""Of the figures that stand in for Prometheus'."""


class Died(BaseException):
    """The operator's process ended here."""


class When(Enum):
    BEFORE = "before"
    AFTER = "after"


@dataclass(slots=True)
class Fate:
    """At which write the process ends (1: the first), and whether the server has got it by then."""

    at: int | None = None
    when: When = When.BEFORE
    writes: list[str] = field(default_factory=list)
    """What was written, in words."""
    reconciles: list[int] = field(default_factory=list)
    """How many writes there had been when each reconcile began."""
    dead: bool = False

    def meet(self, words: str, write: Callable[[], T]) -> T:
        if self.dead:
            raise Died
        self.writes.append(words)
        fatal = len(self.writes) == self.at
        if fatal and self.when is When.BEFORE:
            self.dead = True
            raise Died
        answer = write()
        if fatal:
            self.dead = True
            raise Died
        return answer


class MortalClient(Client):
    """One connection, so that writes come one after the other."""

    def __init__(self, connection: Connection, fate: Fate) -> None:
        super().__init__(connection, Limits(connections=1))
        self._fate = fate

    def create(self, kind: Kind, body: Mapping[str, Any], **options: Any) -> JSON:
        words = f"create {kind.kind} {body.get('reason', '')}".strip()
        send = super().create
        return self._fate.meet(words, lambda: send(kind, body, **options))

    def act(self, kind: Kind, name: str, *, subresource: str, **options: Any) -> JSON:
        act = super().act
        return self._fate.meet(f"{subresource} {name}", lambda: act(kind, name, subresource=subresource, **options))

    def replace(self, kind: Kind, name: str, body: Mapping[str, Any], *, namespace: str | None = None) -> JSON:
        replace = super().replace
        return self._fate.meet(f"replace {kind.kind} {name}", lambda: replace(kind, name, body, namespace=namespace))

    def patch(self, kind: Kind, name: str, patch: Sequence[JSON] | Mapping[str, Any], **options: Any) -> JSON:
        words = f"patch {kind.kind} {options.get('subresource') or ''}".strip()
        send = super().patch
        return self._fate.meet(words, lambda: send(kind, name, patch, **options))

    def delete(self, kind: Kind, name: str, **options: Any) -> None:
        send = super().delete
        self._fate.meet(f"delete {kind.kind}", lambda: send(kind, name, **options))


@dataclass(slots=True)
class Clock:
    """The real time, moved on at will."""

    ahead_seconds: float = 0.0

    def __call__(self) -> float:
        return time.time() + self.ahead_seconds


@dataclass(slots=True)
class FakeFigures:
    """In place of Prometheus: each node's own noise, and what each running executor adds to it."""

    noise: Mapping[str, float] = field(default_factory=dict)
    """Ratio of the node's capacity by its name; without any there are no metrics at all."""
    cores: float = 0.9
    """CPU that each executor uses."""

    def read(self, policy: BalancingPolicy, nodes: list[NodeFacts], executors: list[Pod], *, now: float) -> Reading:
        del policy, now
        if not self.noise:
            return Reading(health=NOT_CONFIGURED)
        busy = [pod for pod in executors if pod.status_phase == "Running"]
        return Reading(
            nodes={node.name: NodeUsage(cpu_ratio=self._ratio(node, busy)) for node in nodes},
            executors={pod.key: ExecutorUsage(cpu_cores=self.cores) for pod in busy},
            health=MetricsHealth(available=True, reason=ConditionReason.AVAILABLE, age_seconds=AGE_SECONDS),
        )

    def forget(self, policy: str) -> None:
        del policy

    def _ratio(self, node: NodeFacts, busy: list[Pod]) -> float:
        here = sum(pod.node == node.name for pod in busy)
        return self.noise.get(node.name, 0.0) + here * self.cores / node.allocatable.cpu_cores

    def rates(self, policy: BalancingPolicy, topologies: list[SparkTopology], *, now: float) -> Rates:
        del policy, topologies, now
        return {}


@dataclass(frozen=True, slots=True)
class Hand:
    """One life of the operator."""

    reconciler: Reconciler
    client: Client
    fate: Fate
    telemetry: Telemetry

    def reconcile(self) -> None:
        self.fate.reconciles.append(len(self.fate.writes))
        self.reconciler.run()

    def metric(self, name: str, **labels: str) -> float | None:
        """As Prometheus would scrape it."""
        return self.telemetry.registry.get_sample_value(name, labels)

    def close(self) -> None:
        self.reconciler.close()
        self.client.close()


def hand(
    testbed: Testbed,
    *,
    clock: Clock,
    metrics: FakeFigures | MetricsReader | None = None,
    fate: Fate | None = None,
    identity: str = "x",
    reported: Callable[[], Iterable[Failure]] = tuple,
) -> Hand:
    """An operator with its own account's rights, that leads."""
    found = fate or Fate()
    config = testbed.service_account_kubeconfig(NAMESPACE, RELEASE)
    client = MortalClient(Connection.from_kubeconfig(config), found)
    telemetry = Telemetry(CollectorRegistry())
    lane = AtOnce()
    events = EventRecorder(client, lane, instance=identity, clock=clock, on_error=_raise)
    parts = Parts(
        observer=ClusterLister(client),
        metrics=metrics or FakeFigures(),  # type: ignore[arg-type]  # what reconciles call of it
        movers=Movers(client, lane, events=events, telemetry=telemetry, clock=clock),
        actuator=Actuator(client, lane, events=events, telemetry=telemetry, clock=clock),
        reporter=Reporter(client, lane, events=events, clock=clock),
        switch=Switch(client, name=RELEASE, identity=identity, clock=clock, monotonic=clock),
        telemetry=telemetry,
    )
    reconciler = Reconciler(parts, clock=clock, monotonic=clock, leading=lambda: True, reported=reported)
    return Hand(reconciler, client, found, telemetry)


@contextmanager
def watching(testbed: Testbed, failed: Callable[[Failure], None]) -> Iterator[None]:
    """The operator's own watches; they wake nothing."""
    client = Client(Connection.from_kubeconfig(testbed.service_account_kubeconfig(NAMESPACE, RELEASE)))
    state = ClusterState(client, monotonic=time.monotonic, notify=lambda: None, gated=lambda: None, failed=failed)
    state.start()
    state.look()
    try:
        yield
    finally:
        state.stop()
        client.close()


def _raise(error: Exception) -> None:
    """A namespace that an earlier test deletes takes no Event any more."""
    if "because it is being terminated" not in str(error):
        raise error
