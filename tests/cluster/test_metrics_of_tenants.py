"""A tenant whose pod exports series about another tenant's application, scraped by a real Prometheus."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from ballast.api import BalancingPolicy
from ballast.cli.discover import QUERIES as DISCOVER
from ballast.controller.metrics_reader import MetricsReader
from ballast.kube.nodes import NodeReader
from ballast.kube.pods import PodReader
from ballast.prometheus import Endpoint, Preset, Prometheus, Queries, Reading, Series, queries
from ballast.sizing.executor_metrics import QUERIES as SIZE
from ballast.sizing.executor_metrics import WINDOW_SECONDS
from tests.loopback import EXPOSITION, Handler, Server
from tests.spark.filled_prometheus import running
from tests.testbed.waiting import wait_until
from tests.unit.kube.builders import driver, executor, node

pytestmark = pytest.mark.cluster

APPLICATION = "spark-1"
STATE = "metrics_orders_driver_spark_streaming_q_states_usedBytes_Value"
RATE = "metrics_orders_driver_spark_streaming_q_inputRate_total_Value"
LATENCY = "metrics_orders_driver_spark_streaming_q_latency_Value"
PROCESSING = "metrics_orders_driver_spark_streaming_q_processingRate_total_Value"
SEEN = (STATE, LATENCY, PROCESSING)
"""What a reading depends on."""
COUNTERS = ("totalDuration_seconds", "totalGCTime_seconds", "totalInputBytes_bytes", "totalShuffleRead_bytes")
ROOT = 'container_cpu_usage_seconds_total{id="/"}'
MEMORY = 'container_memory_working_set_bytes{id="/"}'
OWN_BYTES, OWN_MILLISECONDS, OWN_MEMORY = 5e6, 1500.0, float(2 << 30)


@dataclass
class Exporter:
    """What a pod shows to Prometheus. `labels`: those that the scrape puts on."""

    labels: Mapping[str, str]
    values: dict[str, float]
    address: str = field(default="", init=False)

    def page(self) -> str:
        return "".join(f"{series} {value!r}\n" for series, value in self.values.items())

    @contextmanager
    def serving(self) -> Iterator[None]:
        exporter = self

        class Page(Handler):
            def answer(self) -> None:
                self.reply(exporter.page().encode(), content_type=EXPOSITION)

        with Server(Page) as server:
            self.address = f"127.0.0.1:{server.server_port}"
            yield


@dataclass
class Scene:
    url: str
    attacker: Exporter
    unnamed: Exporter
    """Of the attacker's, too, by a scrape that puts no label `pod` on."""

    def read(self) -> Reading:
        """As the operator does, about one node and one executor of the victim."""
        policy = BalancingPolicy.parse(
            {
                "apiVersion": "ballast.dev/v1alpha1",
                "kind": "BalancingPolicy",
                "metadata": {"name": "streaming"},
                "spec": {
                    "nodeSelector": {},
                    "metrics": {
                        "prometheus": {"url": self.url},
                        "preset": "Cadvisor",
                        "window": "5s",
                    },
                },
            }
        )
        pods = [PodReader().read(pod) for pod in (driver(), executor(1))]
        figures = MetricsReader(None, namespace="none")  # type: ignore[arg-type]  # the policy names no secret
        return figures.read(policy, [NodeReader().read(node("n"))], pods, now=time.time())

    def answered(self, signal: str) -> tuple[Series, ...]:
        """The whole answer to a query of the preset."""
        return Prometheus(Endpoint(self.url)).query(queries(Preset.CADVISOR, {}).rendered(5.0)[signal]).series

    def await_answer(self, signal: str, holds: Callable[[tuple[Series, ...]], bool]) -> None:
        wait_until(lambda: holds(self.answered(signal)), what=f"the series of {signal}", timeout_seconds=60)

    def awaited(self, what: str, holds: Callable[[Reading], bool]) -> Reading:
        def found() -> Reading | None:
            reading = self.read()
            return reading if holds(reading) else None

        reading = wait_until(found, what=what, timeout_seconds=60, explain=lambda: f"{self.read()}")
        assert reading is not None
        return reading


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    kubelet = Exporter({"node": "n"}, {ROOT: 1.0, MEMORY: OWN_MEMORY})
    claim = f'{{application_id="{APPLICATION}"}}'
    own = {f"{STATE}{claim}": OWN_BYTES, f"{LATENCY}{claim}": OWN_MILLISECONDS, f"{PROCESSING}{claim}": 100.0}
    victim = Exporter({"namespace": "analytics", "pod": "spark-1-driver"}, own)
    attacker = Exporter({"namespace": "tenant-a", "pod": "evil"}, {})
    unnamed = Exporter({"namespace": "tenant-b"}, {})
    with ExitStack() as stack:
        jobs: list[dict[str, Any]] = []
        for exporter in (kubelet, victim, attacker, unnamed):
            stack.enter_context(exporter.serving())
            targets = [{"targets": [exporter.address], "labels": dict(exporter.labels)}]
            jobs.append({"job_name": "-".join(exporter.labels.values()), "static_configs": targets})
        config = {"global": {"scrape_interval": "1s", "scrape_timeout": "1s"}, "scrape_configs": jobs}
        prometheus = stack.enter_context(running(tmp_path, yaml.safe_dump(config)))
        yield Scene(prometheus.url, attacker, unnamed)


def values(reading: Reading) -> tuple[float | None, Mapping[tuple[str, str], float]]:
    (usage,) = reading.executors.values()
    return usage.state_bytes, reading.batch_p95_seconds


OWN = (OWN_BYTES, {("analytics", APPLICATION): OWN_MILLISECONDS / 1000})


def test_no_series_of_another_tenants_pod_changes_what_is_known_of_an_application(scene: Scene) -> None:
    scene.awaited("the victim's own values", lambda reading: values(reading) == OWN)
    claims = f'{{application_id="{APPLICATION}",namespace="analytics",pod="spark-1-driver"}}'
    for value in (-9e15, 9e15):
        scene.attacker.values = {f"{name}{claims}": value for name in SEEN}
        attacked = scene.awaited("the forged series to be seen", lambda reading: bool(reading.dropped))
        assert values(attacked) == OWN
        assert attacked.health.available
        assert "pod tenant-a/evil, which is not its driver" in attacked.health.message
        scene.attacker.values = {}
        scene.awaited("the forged series to be gone", lambda reading: not reading.dropped)


def test_a_tenants_pod_can_not_export_the_values_of_a_node(scene: Scene) -> None:
    scene.awaited("the node's own memory", lambda reading: memory(reading) == 0.25)
    scene.attacker.values = {
        'container_memory_working_set_bytes{id="/",node="n"}': 8.0 * (1 << 30),
        f'{STATE}{{application_id="{APPLICATION}"}}': 1.0,
    }
    attacked = scene.awaited("the forged series to be seen", lambda reading: bool(reading.dropped))
    assert memory(attacked) == 0.25


@pytest.mark.soak
def test_a_tenants_pod_that_exports_very_much_keeps_no_signal_of_others_from_being_read(scene: Scene) -> None:
    """An answer that is too long is not read, whosever series are in it."""
    many, long = 6000, "x" * 10_000
    scene.attacker.values = {
        f'{name}{{application_id="spark-2",executor_id="{number}"}}': 1.0
        for number in range(many)
        for name in ("metrics_executor_totalDuration_seconds_total", "metrics_executor_maxTasks")
    }
    scene.attacker.values |= {f'{name}{{application_id="spark-2",much="{long}"}}': 1.0 for name in SEEN}
    scene.attacker.values |= {f'{name}{{application_id="{long}"}}': 1.0 for name in SEEN}
    slots = wait_until(lambda: scene.answered("executorSlots"), what="its executors in the answer", timeout_seconds=60)
    assert len(slots or ()) == 5000
    shorter = queries(Preset.CADVISOR, {}).shortened(5.0)["executorSlots"]
    assert [len(Prometheus(Endpoint(scene.url)).query(text).series) for text in shorter] == [500, 50]
    for signal in ("stateBytes", "batchMilliseconds"):
        found = scene.answered(signal)
        assert sorted(series.labels["application_id"] for series in found) == [APPLICATION, "spark-2"]
        assert all(len(value) < 100 for series in found for value in series.labels.values())
    scene.awaited("the victim's own values", lambda reading: values(reading) == OWN)


@pytest.mark.soak
def test_series_that_name_an_application_twice_end_no_query(scene: Scene) -> None:
    """Once in a label, and once in their own name."""
    named = "metrics_spark_" + 32 * "a"
    scene.attacker.values = {
        f"{name.replace('metrics_orders', named)}{{{labels}}}": 1.0
        for name in (*SEEN, RATE)
        for labels in ("", 'application_id="spark-2"', f'application_id="spark-{32 * "a"}"', 'query="q"')
    }
    for signal in ("stateBytes", "batchMilliseconds"):
        scene.await_answer(signal, lambda found: len(found) == 3)
    scene.awaited("the victim's own values", lambda reading: values(reading) == OWN)
    for asked in (SIZE, DISCOVER):
        _, failures = Prometheus(Endpoint(scene.url)).ask(Queries.of_each_namespace(asked), WINDOW_SECONDS)
        assert failures == {}


@pytest.mark.soak
def test_long_ids_of_applications_are_not_in_the_answers_that_size_and_discover_read(scene: Scene) -> None:
    long = "x" * 9000
    for known_as in ("unknown", long):
        for metric in ("totalCores", *(f"{each}_total" for each in COUNTERS)):
            scene.attacker.values[f'metrics_executor_{metric}{{application_id="{known_as}",executor_id="1"}}'] = 4.0
        scene.attacker.values[f'{RATE}{{application_id="{known_as}"}}'] = 1.0
        scene.attacker.values[RATE.replace("orders", known_as)] = 1.0
    server = Prometheus(Endpoint(scene.url))
    asked = Queries.of_each_namespace({**SIZE, **DISCOVER})

    def answered() -> list[tuple[Series, ...]]:
        answers, failures = server.ask(asked, WINDOW_SECONDS)
        assert failures == {}
        return [each.series for each in answers.values()]

    wait_until(
        lambda: all("unknown" in str(series) for series in answered()),
        what="the series with short labels in all answers",
        timeout_seconds=60,
    )
    assert all(len(text) <= 300 for found in answered() for series in found for text in series.labels.values())


@pytest.mark.soak
def test_of_series_that_come_and_go_with_each_scrape_only_the_last_are_in_an_answer(scene: Scene) -> None:
    class Fleeting(dict[str, float]):
        scrapes = 0

        def items(self) -> Any:
            self.scrapes += 1
            labels = [f'{{application_id="spark-{self.scrapes}-{number}"}}' for number in range(5)]
            return [(f"{name}{each}", 1.0) for name in (LATENCY, PROCESSING) for each in labels]

    scene.attacker.values = fleeting = Fleeting()
    wait_until(lambda: fleeting.scrapes >= 5, what="five scrapes", timeout_seconds=60)
    scene.await_answer("batchMilliseconds", lambda found: len(found) == 5 + 1)
    scene.awaited("the victim's own values", lambda reading: values(reading) == OWN)


@pytest.mark.soak
def test_series_of_nodes_and_executors_with_long_names_are_not_in_the_answers(scene: Scene) -> None:
    long = "x" * 9000
    for known_as in ("unknown", long):
        scene.unnamed.values[f'container_memory_working_set_bytes{{id="/",node="{known_as}"}}'] = 1.0
        name = f'pod="{known_as}-exec-1",container="c"'
        scene.unnamed.values[f"container_memory_working_set_bytes{{{name}}}"] = 1.0
    for signal in ("nodeMemory", "executorMemory"):
        scene.await_answer(signal, lambda found: "unknown" in str(found))
        assert all(len(value) <= 300 for series in scene.answered(signal) for value in series.labels.values())
    scene.awaited("the node's own memory", lambda reading: memory(reading) == 0.25)


def memory(reading: Reading) -> float | None:
    return reading.nodes["n"].memory_ratio if "n" in reading.nodes else None
