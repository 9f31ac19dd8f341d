from collections.abc import Iterator

import pytest
import requests

from tests.loopback import EXPOSITION, Handler, Server
from tests.testbed import instance as instances
from tests.testbed.nodes import METRICS_PORT, NodeSpec, PlacedNode
from tests.testbed.process import Supervisor
from tests.testbed.prometheus import PrometheusFolder, PrometheusSetup, ScrapeStyle, Target
from tests.testbed.teardown import tear_down
from tests.testbed.waiting import wait_until

pytestmark = pytest.mark.soak

PAGES = {
    "/metrics/cadvisor": [
        'container_cpu_usage_seconds_total{id="/",namespace="",pod=""} 1',
        'container_cpu_usage_seconds_total{id="/p",namespace="jobs",pod="a",container="main"} 2',
        'container_spec_memory_limit_bytes{id="/p",namespace="jobs",pod="a"} 3',
    ],
    "/metrics/resource": ['container_cpu_usage_seconds_total{namespace="jobs",pod="a",container="main"} 2'],
    "/metrics": ['node_cpu_seconds_total{cpu="0",mode="user"} 4'],
    "/later": ["added_later 5"],
}


class Pages(Handler):
    def answer(self) -> None:
        self.reply(("\n".join(PAGES[self.path]) + "\n").encode(), content_type=EXPOSITION)


@pytest.fixture
def supervisor() -> Iterator[Supervisor]:
    supervisor = Supervisor(instances.reserve(instances.default_root()))
    yield supervisor
    tear_down(supervisor.instance)
    supervisor.reap()


@pytest.fixture
def node(supervisor: Supervisor) -> Iterator[PlacedNode]:
    """A node whose metrics are the pages above."""
    instance = supervisor.instance
    placed = PlacedNode(NodeSpec("node-1"), instance.node_address(0), instance.pod_network(0))
    with Server(Pages, address=placed.address, port=METRICS_PORT):
        yield placed


def labels_of(url: str, metric: str) -> list[dict[str, str]]:
    """The label sets of the series, once there are any."""

    def query() -> list[dict[str, str]]:
        answer = requests.get(f"{url}/api/v1/query", params={"query": metric}, timeout=5).json()
        return [each["metric"] for each in answer["data"]["result"]]

    return wait_until(query, what=f"series of {metric}", timeout_seconds=30)


def start(supervisor: Supervisor, node: PlacedNode, style: ScrapeStyle) -> str:
    address = supervisor.instance.control_address
    setup = PrometheusSetup(supervisor, address, [node], scrape_interval_seconds=0.5, style=style)
    return setup.start()


def test_series_are_labeled_and_dropped_as_by_kube_prometheus_stack(supervisor: Supervisor, node: PlacedNode) -> None:
    url = start(supervisor, node, ScrapeStyle.KUBE_PROMETHEUS_STACK)

    (exporter,) = labels_of(url, "node_cpu_seconds_total")
    assert exporter["instance"] == f"{node.address}:9100"
    assert exporter["job"] == "node-exporter"
    assert "node" not in exporter

    labels_of(url, 'container_cpu_usage_seconds_total{metrics_path="/metrics/resource"}')
    (container,) = labels_of(url, 'container_cpu_usage_seconds_total{metrics_path="/metrics/cadvisor"}')
    assert container["node"] == "node-1"
    assert container["pod"] == "a"
    assert container["namespace"] == "jobs"
    assert container["instance"] == f"{node.address}:10250"
    names = requests.get(f"{url}/api/v1/label/__name__/values", timeout=5).json()["data"]
    assert "container_spec_memory_limit_bytes" not in names


def test_plain_cadvisor_drops_nothing_and_names_the_node_as_instance(supervisor: Supervisor, node: PlacedNode) -> None:
    url = start(supervisor, node, ScrapeStyle.CADVISOR)

    series = labels_of(url, "container_cpu_usage_seconds_total")

    assert {each["id"] for each in series} == {"/", "/p"}
    assert {each["instance"] for each in series} == {"node-1"}
    assert {each["topology_kubernetes_io_zone"] for each in series} == {"zone-a"}
    assert labels_of(url, "container_spec_memory_limit_bytes")


def test_targets_may_be_added_while_it_runs(supervisor: Supervisor, node: PlacedNode) -> None:
    url = start(supervisor, node, ScrapeStyle.KUBE_PROMETHEUS_STACK)
    files = PrometheusFolder(supervisor.instance.folder / "prometheus")

    files.set_targets("operator", [Target(f"{node.address}:{METRICS_PORT}", {"replica": "1"}, "/later")])

    (added,) = labels_of(url, "added_later")
    assert (added["job"], added["replica"]) == ("operator", "1")
