"""A pod that exports series about another namespace's application, scraped by a real Prometheus."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from ballast.api import BalancingPolicy
from ballast.controller.metrics_reader import MetricsReader
from ballast.kube.nodes import NodeReader
from ballast.kube.pods import PodReader
from ballast.prometheus import Endpoint, Preset, Prometheus, Reading, Series, queries
from tests.loopback import EXPOSITION, Handler, Server
from tests.spark.filled_prometheus import running
from tests.testbed.waiting import wait_until
from tests.unit.kube.builders import driver, executor, node

APPLICATION = "spark-1"
STATE = "metrics_orders_driver_spark_streaming_q_states_usedBytes_Value"
RATE = "metrics_orders_driver_spark_streaming_q_inputRate_total_Value"
LATENCY = "metrics_orders_driver_spark_streaming_q_latency_Value"
PROCESSING = "metrics_orders_driver_spark_streaming_q_processingRate_total_Value"
SEEN = (STATE, LATENCY, PROCESSING)
"""What a reading depends on."""
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
        figures = MetricsReader(None, namespace="none")  # the policy names no secret
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


@contextmanager
def forging(folder: Path) -> Iterator[Scene]:
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
        prometheus = stack.enter_context(running(folder, yaml.safe_dump(config)))
        yield Scene(prometheus.url, attacker, unnamed)


def values(reading: Reading) -> tuple[float | None, Mapping[tuple[str, str], float]]:
    (usage,) = reading.executors.values()
    return usage.state_bytes, reading.batch_p95_seconds


OWN = (OWN_BYTES, {("analytics", APPLICATION): OWN_MILLISECONDS / 1000})


def claims() -> str:
    """Labels by which a series names the victim's driver."""
    return f'{{application_id="{APPLICATION}",namespace="analytics",pod="spark-1-driver"}}'
