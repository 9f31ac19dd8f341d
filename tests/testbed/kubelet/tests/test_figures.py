from tests.testbed.kubelet.cgroups import CpuUse, MemoryUse
from tests.testbed.kubelet.exposition import Sample
from tests.testbed.kubelet.figures import (
    ContainerFigures,
    InterfaceFigures,
    NodeFigures,
    PodFigures,
    cadvisor,
    resource,
)

MEMORY = MemoryUse(usage_bytes=500, working_set_bytes=300)
CONTAINER = ContainerFigures(
    name="main",
    image="host",
    identifier="process://abc",
    cgroup="t/n/podu/main-0",
    started=10.0,
    restarts=0,
    cpu=CpuUse(used_seconds=2.0, periods=10, throttled_periods=4, throttled_seconds=0.5),
    memory=MEMORY,
    cpu_limit_cores=0.5,
    oom_kills=0,
)
POD = PodFigures(
    "shop", "web-0", "t/n/podu", CpuUse(2.5), MEMORY, [CONTAINER], [InterfaceFigures("eth0", received_bytes=7)]
)
NODE = NodeFigures("t/n", CpuUse(3.0), MEMORY, [POD], [InterfaceFigures("eth0", received_bytes=9)])


def of(samples: list[Sample], name: str, /, **labels: str) -> list[float]:
    return [s.value for s in samples if s.name == name and labels.items() <= s.labels.items()]


def test_containers_pods_and_the_node_are_told_apart_as_cadvisor_does() -> None:
    samples = list(cadvisor(NODE))
    name = "container_cpu_usage_seconds_total"
    assert of(samples, name, namespace="shop", pod="web-0", container="main", name="abc") == [2.0]
    assert of(samples, name, pod="web-0", container="", image="") == [2.5]
    assert of(samples, name, id="/") == [3.0]


def test_throttling_is_there_where_there_is_a_quota() -> None:
    samples = list(cadvisor(NODE))
    assert of(samples, "container_cpu_cfs_throttled_periods_total") == [4]
    assert of(samples, "container_spec_cpu_quota") == [50_000]


def test_network_figures_belong_to_the_pod_and_to_the_node() -> None:
    name, samples = "container_network_receive_bytes_total", list(cadvisor(NODE))
    assert of(samples, name, pod="web-0", interface="eth0", container="") == [7]
    assert of(samples, name, id="/", interface="eth0") == [9]


def test_the_resource_page_has_the_names_that_metrics_server_reads() -> None:
    samples = list(resource(NODE))
    assert of(samples, "node_cpu_usage_seconds_total") == [3.0]
    assert of(samples, "pod_memory_working_set_bytes", namespace="shop", pod="web-0") == [300]
    assert of(samples, "container_cpu_usage_seconds_total", container="main") == [2.0]
