"""One real Prometheus that holds several clusters, replicas and the usual agents' labels, asked as by the operator."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from ballast.api import BalancingPolicy
from ballast.controller.metrics_reader import MetricsReader
from ballast.kube.nodes import NodeReader
from ballast.kube.pods import PodReader
from ballast.prometheus import Preset, Reading
from ballast.spark.history.signal import signals
from tests.spark.filled_prometheus import FilledPrometheus, holding
from tests.unit.kube.builders import driver, executor, node

pytestmark = pytest.mark.cluster

NOW, SPAN_SECONDS, STEP_SECONDS = 1_780_000_000, 600, 15
ADDRESS = "10.0.0.1"
CORES, BYTES = 4.0, 8 << 30
EXECUTOR_CORES = 1.0
PROD, TEST = 0.25, 0.75
"""How busy the node is, of its capacity."""

Lines = Iterator[tuple[str, Mapping[str, str], float, float]]
"""Name, labels, value at the end, and increase by second."""


@dataclass(frozen=True, slots=True)
class Source:
    """What one scrape of the node and one of its kubelet yield, labeled as an installation labels them."""

    exporter: Mapping[str, str]
    kubelet: Mapping[str, str]
    busy: float = PROD
    more: Mapping[str, str] = field(default_factory=dict)

    def lines(self) -> Lines:
        exporter, kubelet = {**self.exporter, **self.more}, {**self.kubelet, **self.more}
        for cpu in range(int(CORES)):
            yield "node_cpu_seconds_total", {**exporter, "cpu": f"{cpu}", "mode": "user"}, 9e6, self.busy
            yield "node_cpu_seconds_total", {**exporter, "cpu": f"{cpu}", "mode": "idle"}, 9e6, 1 - self.busy
        yield "node_memory_MemTotal_bytes", exporter, BYTES, 0
        yield "node_memory_MemAvailable_bytes", exporter, BYTES * (1 - self.busy), 0
        for device in ("eth0", "eth1"):
            for way in ("receive", "transmit"):
                yield f"node_network_{way}_bytes_total", {**exporter, "device": device}, 9e9, 1e6
        root = {**kubelet, "id": "/"}
        yield "container_cpu_usage_seconds_total", {**root, "cpu": "total"}, 9e6, self.busy * CORES
        yield "container_memory_working_set_bytes", root, BYTES * self.busy, 0
        pod = {**kubelet, "namespace": "analytics", "pod": "spark-1-exec-1"}
        for name, cores in (("spark-kubernetes-executor", EXECUTOR_CORES * 0.75), ("istio-proxy", EXECUTOR_CORES / 4)):
            container = {**pod, "container": name, "id": f"/kubepods/{name}", "image": name, "name": name}
            yield "container_cpu_usage_seconds_total", {**container, "cpu": "total"}, 9e6, cores
            yield "container_memory_working_set_bytes", container, 1 << 30, 0


STACK = Source(
    exporter={
        "job": "node-exporter", "instance": f"{ADDRESS}:9100", "namespace": "monitoring", "pod": "node-exporter-x",
        "container": "node-exporter", "endpoint": "http-metrics", "service": "node-exporter",
    },
    kubelet={
        "job": "kubelet", "metrics_path": "/metrics/cadvisor", "instance": f"{ADDRESS}:10250", "node": "n",
        "endpoint": "https-metrics", "service": "kubelet",
    },
)  # fmt: skip
ALLOY = Source(
    exporter={"job": "integrations/node_exporter", "instance": "n", "namespace": "monitoring", "pod": "exporter-x"},
    kubelet={"job": "integrations/kubernetes/cadvisor", "instance": "n"},
)
AGENT = Source(exporter={"job": "integrations/unix", "instance": "n"}, kubelet=ALLOY.kubelet)


def of(source: Source, busy: float = PROD, **more: str) -> Source:
    return Source(source.exporter, source.kubelet, busy, more)


WORLDS: Mapping[str, tuple[Source, ...]] = {
    "stack": (STACK,),
    "alloy": (ALLOY,),
    "agent": (AGENT,),
    "clusters": (of(STACK, cluster="prod"), of(STACK, TEST, cluster="test")),
    "unnamed": (STACK, of(STACK, TEST, cluster="test")),
    "replicas": (of(STACK, prometheus_replica="p-0"), of(STACK, prometheus_replica="p-1")),
    "both": (STACK, ALLOY),
}
"""By the label `world`, which keeps them apart in one server."""


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FilledPrometheus]:
    def exposed() -> Iterator[str]:
        every = [
            (name, {**labels, "world": world}, value, slope)
            for world, sources in WORLDS.items()
            for source in sources
            for name, labels, value, slope in source.lines()
        ]
        for name, labels, value, slope in sorted(every, key=lambda each: each[0]):
            written = ",".join(f'{key}="{text}"' for key, text in labels.items())
            for at in range(NOW - SPAN_SECONDS, NOW + 1, STEP_SECONDS):
                yield f"{name}{{{written}}} {value - slope * (NOW - at)} {at}\n"
        yield "# EOF\n"

    with holding(exposed(), tmp_path_factory.mktemp("prometheus")) as filled:
        yield filled


def read(prometheus: FilledPrometheus, matchers: Mapping[str, str], **spec: Any) -> Reading:
    policy = BalancingPolicy.parse(
        {
            "apiVersion": "ballast.dev/v1alpha1",
            "kind": "BalancingPolicy",
            "metadata": {"name": "streaming"},
            "spec": {"metrics": {"prometheus": {"url": prometheus.url, "matchers": dict(matchers)}, **spec}},
        }
    )
    machine = node("n")
    machine["status"]["addresses"] = [{"type": "InternalIP", "address": ADDRESS}]
    pods = [PodReader().read(pod) for pod in (driver(), executor(1))]
    figures = MetricsReader(None, namespace="none")  # the policy names no secret
    return figures.read(policy, [NodeReader().read(machine)], pods, now=float(NOW))


def expect(found: Reading, busy: float) -> None:
    assert (found.health.available, found.health.reason, found.health.message) == (True, "Available", "")
    assert found.nodes["n"].cpu_ratio == pytest.approx(busy, rel=0.02)
    assert found.nodes["n"].memory_ratio == pytest.approx(busy, rel=0.02)
    assert found.executors["analytics/spark-1-exec-1"].cpu_cores == pytest.approx(EXECUTOR_CORES, rel=0.02)


PRESETS = [preset.value for preset in Preset]


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("world", ["stack", "alloy", "agent"])
def test_the_usual_agents_labels_are_known(prometheus: FilledPrometheus, world: str, preset: str) -> None:
    expect(read(prometheus, {"world": world}, preset=preset), PROD)


AMBIGUOUS = {
    "clusters": 'differ by cluster: "prod", "test" (such as matchers: {cluster: "prod"})',
    "unnamed": 'differ by cluster: "", "test" (such as matchers: {cluster: "test"})',
    "replicas": 'differ by prometheus_replica: "p-0", "p-1" (such as matchers: {prometheus_replica: "p-0"})',
}


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("world", list(AMBIGUOUS))
def test_what_has_several_sources_has_no_values_and_the_remedy_is_named(
    prometheus: FilledPrometheus, world: str, preset: str
) -> None:
    found = read(prometheus, {"world": world}, preset=preset)
    assert (found.nodes, found.health.available, found.health.reason) == ({}, False, "MetricsAmbiguous")
    usage = found.executors["analytics/spark-1-exec-1"]
    assert (usage.cpu_cores, usage.memory_bytes) == (None, None)
    assert "the metrics of node n come from several sources" in found.health.message
    assert AMBIGUOUS[world] in found.health.message


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize(
    ("matchers", "busy"),
    [
        ({"world": "clusters", "cluster": "prod"}, PROD),
        ({"world": "clusters", "cluster": "test"}, TEST),
        ({"world": "unnamed", "cluster": ""}, PROD),
        ({"world": "replicas", "prometheus_replica": "p-1"}, PROD),
    ],
)
def test_matchers_choose_one_source(
    prometheus: FilledPrometheus, matchers: dict[str, str], busy: float, preset: str
) -> None:
    expect(read(prometheus, matchers, preset=preset), busy)


def test_two_agents_that_scrape_one_exporter_are_told_by_their_jobs_and_one_can_be_named(
    prometheus: FilledPrometheus,
) -> None:
    found = read(prometheus, {"world": "both"})
    assert (found.nodes, found.health.reason) == ({}, "MetricsAmbiguous")
    assert 'job: "integrations/node_exporter", "node-exporter"' in found.health.message
    assert "metrics.advanced.jobs" in found.health.message
    one = {"jobs": {"nodeExporter": ["node-exporter"], "cadvisor": ["kubelet"]}}
    expect(read(prometheus, {"world": "both"}, advanced=one), PROD)


def test_the_history_leaves_out_what_has_several_sources(prometheus: FilledPrometheus) -> None:
    def cores(**matchers: str) -> list[float]:
        every = signals(Preset.KUBE_PROMETHEUS_STACK, window_seconds=120, operator="ballast-system", matchers=matchers)
        query = next(signal.query for signal in every if signal.name == "nodeCpu")
        return [
            float(value)
            for series in prometheus.matrix(query, start=f"{NOW}", end=f"{NOW}", step="15s")
            for _, value in series["values"]
        ]

    assert cores(world="clusters") == []
    assert cores(world="clusters", cluster="test") == [pytest.approx(TEST * CORES, rel=0.02)]
