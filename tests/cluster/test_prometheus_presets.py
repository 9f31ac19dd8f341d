"""The presets' queries, asked of a real Prometheus that scrapes as the installation does for which they are meant."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import requests

from ballast.model import NodeUsage
from ballast.prometheus import Endpoint, ExecutorFrame, NodeFrame, Preset, Prometheus, Reading, queries, reading
from tests.testbed.nodes import NodeSpec
from tests.testbed.prometheus import ScrapeStyle
from tests.testbed.testbed import Testbed
from tests.testbed.waiting import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.soak]

CORES, HELD_BYTES, SENT_BYTES_PER_SECOND = 0.2, 96 << 20, 1_000_000
NODE_CORES, NODE_BYTES, WIRE_BITS = 1.0, 1 << 30, 80e6
WINDOW_SECONDS = 6.0
STYLES = {
    Preset.KUBE_PROMETHEUS_STACK: ScrapeStyle.KUBE_PROMETHEUS_STACK,
    Preset.CADVISOR: ScrapeStyle.CADVISOR,
}
SHOWN = ("health", "scrapeUrl", "lastScrape", "lastScrapeDuration", "lastError")
SENDER, RECEIVER = "load-exec-1", "load-exec-2"

RECEIVE = """
import socket
with socket.create_server(("", 7000)) as server:
    while True:
        connection, _ = server.accept()
        while connection.recv(1 << 16):
            pass
"""
# By the time that has passed, so that what a busy machine kept it from doing is made up for.
SEND = """
import socket, sys, time
address, cores, held, rate = sys.argv[1], *map(float, sys.argv[2:])
kept = b"x" * int(held)
begun, sent = time.monotonic(), 0
with socket.create_connection((address, 7000)) as connection:
    while True:
        elapsed = time.monotonic() - begun
        while time.process_time() < cores * elapsed:
            pass
        due = int(rate * elapsed) - sent
        connection.sendall(bytes(due))
        sent += due
        time.sleep(0.05)
"""


@dataclass(frozen=True, slots=True)
class Scraped:
    """A testbed of two nodes, the load between them, and the preset that fits how it is scraped."""

    testbed: Testbed
    preset: Preset

    def read(self) -> Reading:
        """All that the preset's queries tell now. No query may fail."""
        server = Prometheus(Endpoint(self.testbed.prometheus_url))
        answers, failures = server.query_all(queries(self.preset, {}).rendered(WINDOW_SECONDS))
        assert failures == {}
        return reading(
            answers,
            nodes=[self._frame(name, address) for name, address in self.testbed.node_addresses.items()],
            executors=[ExecutorFrame("jobs", name, "spark-1", name[-1]) for name in (SENDER, RECEIVER)],
            drivers={},
            max_age_seconds=10.0,
            failures=failures,
        )

    def targets(self) -> str:
        """What Prometheus scrapes, a line each: its state, its address, since when, and what is wrong."""
        with requests.Session() as session:
            session.trust_env = False
            told = session.get(f"{self.testbed.prometheus_url}/api/v1/targets", timeout=5).json()
        return "\n".join(" ".join(str(each[key]) for key in SHOWN) for each in told["data"]["activeTargets"])

    def run(self, pod: str, node: str, *command: str) -> str:
        """The address of a pod that runs Python with these arguments."""
        container = {"name": "main", "image": "host", "command": ["python3", "-c", *command]}
        spec = {"nodeName": node, "terminationGracePeriodSeconds": 1, "containers": [container]}
        metadata = {"name": pod, "namespace": "jobs"}
        self.testbed.apply({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
        self.testbed.kubectl("wait", "--for=condition=Ready", f"pod/{pod}", "-n", "jobs", "--timeout=30s")
        found: dict[str, Any] = json.loads(self.testbed.kubectl("get", "pod", pod, "-n", "jobs", "-o", "json"))
        return str(found["status"]["podIP"])

    def _frame(self, name: str, address: str) -> NodeFrame:
        return NodeFrame(name, (address,), NODE_CORES, NODE_BYTES, network_bits_per_second=WIRE_BITS)


@pytest.fixture(scope="module", params=list(Preset))
def scraped(request: pytest.FixtureRequest) -> Iterator[Scraped]:
    nodes = [NodeSpec(name, rack=rack, memory="1Gi") for name, rack in (("one", "r1"), ("two", "r2"))]
    style = STYLES[request.param]
    with Testbed(progress=print).up(nodes=nodes, network=True, scrape_style=style, scrape_interval_seconds=1) as up:
        up.create_namespace("jobs")
        found = Scraped(up, request.param)
        address = found.run(RECEIVER, "two", RECEIVE)
        load = map(str, (address, CORES, HELD_BYTES, SENT_BYTES_PER_SECOND))
        found.run(SENDER, "one", SEND, *load)
        yield found


def figures(found: Reading) -> dict[str, float]:
    """What is known of the sending node and executor, and what the receiving ones receive, by name."""
    one, two = found.nodes.get("one", NodeUsage()), found.nodes.get("two", NodeUsage())
    sender, receiver = found.executors[f"jobs/{SENDER}"], found.executors[f"jobs/{RECEIVER}"]
    told = {
        "node CPU": one.cpu_ratio,
        "node memory": one.memory_ratio,
        "node transmits": one.network_transmit_ratio,
        "node receives": two.network_receive_ratio,
        "executor CPU": sender.cpu_cores,
        "executor memory": sender.memory_bytes,
        "executor sends": sender.bytes_per_second,
        "executor receives": receiver.bytes_per_second,
    }
    return {name: value for name, value in told.items() if value is not None}


def test_every_figure_of_a_preset_is_what_the_load_really_uses(scraped: Scraped) -> None:
    wire = SENT_BYTES_PER_SECOND * 8 / WIRE_BITS
    used = {
        "node CPU": CORES / NODE_CORES,
        "node memory": HELD_BYTES / NODE_BYTES,
        "node transmits": wire,
        "node receives": wire,
        "executor CPU": CORES,
        "executor memory": HELD_BYTES,
        "executor sends": SENT_BYTES_PER_SECOND,
        "executor receives": SENT_BYTES_PER_SECOND,
    }
    wait_until(
        lambda: figures(scraped.read()) == pytest.approx(used, rel=0.3),
        what=f"the load in the figures of {scraped.preset}",
        poll_seconds=1,
        explain=lambda: f"{figures(scraped.read())}; targets:\n{scraped.targets()}",
    )


def test_what_idles_is_told_apart_from_what_works(scraped: Scraped) -> None:
    found = scraped.read()
    assert (found.nodes["two"].cpu_ratio or 0.0) < CORES / NODE_CORES / 2
    assert (found.nodes["two"].memory_ratio or 0.0) < HELD_BYTES / NODE_BYTES / 2
    assert (found.nodes["one"].network_receive_ratio or 0.0) < SENT_BYTES_PER_SECOND * 8 / WIRE_BITS / 2


def test_figures_are_as_old_as_their_last_scrape(scraped: Scraped) -> None:
    health = scraped.read().health
    assert (health.available, health.reason) == (True, "Available")
    assert health.age_seconds is not None
    assert 0.0 <= health.age_seconds < 10.0
