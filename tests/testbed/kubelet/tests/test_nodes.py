"""Nodes on a real cluster: what they say of themselves, and a kubelet that is killed and comes back."""

import contextlib
import json
import signal
import ssl
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.testbed.errors import TestbedError
from tests.testbed.kubelet import cgroups
from tests.testbed.nodes import NodeSpec
from tests.testbed.procfs import ProcessId
from tests.testbed.teardown import KUBELET
from tests.testbed.testbed import Testbed
from tests.testbed.waiting import wait_until

Json = dict[str, Any]
Start = Callable[[list[str], dict[str, str]], "subprocess.Popen[str]"]
pytestmark = [pytest.mark.cluster, pytest.mark.soak]
QUOTA_CORES = 0.2


@pytest.fixture(scope="module")
def pair() -> Iterator[Testbed]:
    """A testbed of two nodes, of which one has little CPU."""
    nodes = [
        NodeSpec("slow", cpu_quota_cores=QUOTA_CORES, labels={"size": "small"}),
        NodeSpec("plain", taints=[{"key": "kept", "value": "free", "effect": "NoSchedule"}]),
    ]
    with Testbed(progress=print).up(nodes=nodes, prometheus=False) as testbed:
        testbed.create_namespace("work")
        yield testbed


def get(testbed: Testbed, *what: str) -> Json:
    found: Json = json.loads(testbed.kubectl("get", *what, "-o", "json"))
    return found


def run(testbed: Testbed, name: str, *command: str, node: str = "slow", **container: Any) -> None:
    """Start a pod and wait until it is ready."""
    main = {"name": "main", "image": "host", "command": list(command), **container}
    testbed.apply(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "work"},
            "spec": {
                "nodeName": node,
                "restartPolicy": "Never",
                "terminationGracePeriodSeconds": 3,
                "containers": [main],
            },
        }
    )
    testbed.kubectl("wait", "--for=condition=Ready", f"pod/{name}", "-n", "work", "--timeout=20s")


def metrics(testbed: Testbed, node: str, path: str = "/metrics") -> dict[str, float]:
    with urllib.request.urlopen(f"http://{testbed.node_addresses[node]}:9100{path}") as page:
        lines = page.read().decode().splitlines()
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if not line.startswith("#")}


def total(values: dict[str, float], name: str, *labels: str) -> float:
    """The sum of a metric's series that have all those labels."""
    return sum(v for key, v in values.items() if key.startswith(name) and all(label in key for label in labels))


def test_a_node_has_its_labels_taints_address_and_capacity(pair: Testbed) -> None:
    slow, plain = get(pair, "node", "slow"), get(pair, "node", "plain")
    labels = slow["metadata"]["labels"]
    assert (labels["kubernetes.io/hostname"], labels["size"]) == ("slow", "small")
    assert {"type": "InternalIP", "address": pair.node_addresses["slow"]} in slow["status"]["addresses"]
    assert slow["status"]["allocatable"]["cpu"] == "1"
    assert [taint["key"] for taint in plain["spec"]["taints"]] == ["kept"]


def test_a_node_renews_its_lease(pair: Testbed) -> None:
    def age_seconds() -> float:
        renewed = get(pair, "lease", "slow", "-n", "kube-node-lease")["spec"]["renewTime"]
        return (datetime.now(UTC) - datetime.fromisoformat(renewed)).total_seconds()

    first = age_seconds()
    wait_until(lambda: age_seconds() < first, what="a renewal", timeout_seconds=20)


def test_only_the_api_server_may_talk_to_the_kubelet(pair: Testbed) -> None:
    url = f"https://{pair.node_addresses['slow']}:10250/healthz"
    known_server = ssl.create_default_context(cafile=str(pair.ca))
    with pytest.raises((ssl.SSLError, ConnectionError)), urllib.request.urlopen(url, context=known_server) as page:
        page.read()


def test_a_used_up_quota_is_a_busy_node_and_a_throttled_container(pair: Testbed) -> None:
    run(pair, "noise", image="noise", args=["--cores", "0.9"])
    before = metrics(pair, "slow")
    begun = time.monotonic()
    time.sleep(3)  # what is measured is a rate
    after = metrics(pair, "slow")
    elapsed = time.monotonic() - begun
    name = "node_cpu_seconds_total"
    all_modes = total(after, name) - total(before, name)
    idle = total(after, name, 'mode="idle"') - total(before, name, 'mode="idle"')
    assert all_modes / elapsed == pytest.approx(QUOTA_CORES, rel=0.15)
    assert idle / all_modes < 0.2
    assert total(after, "node_pressure_cpu_waiting_seconds_total") > total(
        before, "node_pressure_cpu_waiting_seconds_total"
    )
    pair.kubectl("delete", "pod", "noise", "-n", "work")


def test_a_pods_use_is_its_own(pair: Testbed) -> None:
    run(pair, "noise", image="noise", args=["--cores", "0.1"])
    run(pair, "quiet", "sleep", "60")
    wait_until(lambda: used(pair, "noise") > 0.2, what="some use", timeout_seconds=30)
    assert used(pair, "quiet") < 0.1
    assert total(metrics(pair, "slow", "/metrics/resource"), "pod_cpu_usage_seconds_total", 'pod="noise"') > 0.2
    memory = total(metrics(pair, "slow", "/metrics/cadvisor"), "container_memory_working_set_bytes", 'container="main"')
    assert 1 << 20 < memory < 1 << 28
    pair.kubectl("delete", "pod", "noise", "quiet", "-n", "work")


def used(testbed: Testbed, pod: str) -> float:
    name = "container_cpu_usage_seconds_total"
    return total(metrics(testbed, "slow", "/metrics/cadvisor"), name, f'pod="{pod}"', 'container="main"')


def living(testbed: Testbed, part: str) -> ProcessId:
    """The process of a part of the testbed, the latest of that name."""
    found = [p.process for p in testbed.instance.manifest.parts() if p.name == part and p.process.is_alive()]
    return found[-1]


def killed(process: ProcessId) -> tuple[list[str], dict[str, str]]:
    """SIGKILL a process: its command line and environment, to start another like it."""
    folder = Path(f"/proc/{process.pid}")
    command = (folder / "cmdline").read_text().split("\0")[:-1]
    lines = (folder / "environ").read_text().split("\0")
    environment = dict(line.split("=", 1) for line in lines if "=" in line)
    process.send(signal.SIGKILL)
    wait_until(lambda: not process.is_alive(), what="the end of the process")
    return command, environment


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts processes that end with the test."""
    started: list[subprocess.Popen[str]] = []

    def start_one(command: list[str], environment: dict[str, str]) -> "subprocess.Popen[str]":
        made = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        started.append(made)
        return made

    yield start_one
    for made in started:
        made.terminate()
        made.communicate()


def test_an_api_server_that_comes_back_finds_the_nodes_at_work(start: Start) -> None:
    with Testbed(progress=print).up(nodes=[NodeSpec("slow")], prometheus=False) as testbed:
        testbed.create_namespace("work")
        run(testbed, "before", "sh", "-c", "trap 'exit 0' TERM; while :; do sleep 0.1; done")
        start(*killed(living(testbed, "kube-apiserver")))
        wait_until(lambda: answers(testbed), what="the API server's return", timeout_seconds=60)
        run(testbed, "after", "sh", "-c", "trap 'exit 0' TERM; while :; do sleep 0.1; done")
        assert get(testbed, "pod", "before", "-n", "work")["status"]["containerStatuses"][0]["restartCount"] == 0
        testbed.kubectl("delete", "pod", "before", "after", "-n", "work")


def answers(testbed: Testbed) -> bool:
    with contextlib.suppress(TestbedError):
        return "ok" in testbed.kubectl("get", "--raw", "/readyz")
    return False


def test_a_killed_kubelet_comes_back_to_its_containers(pair: Testbed, start: Start) -> None:
    run(pair, "stays", "sh", "-c", "trap 'exit 0' TERM; while :; do sleep 0.1; done")
    run(pair, "ends", "sh", "-c", "while [ ! -e /go ]; do sleep 0.1; done; exit 6")
    run(pair, "removed", "sh", "-c", "while :; do sleep 0.1; done")
    before = get(pair, "pod", "stays", "-n", "work")["status"]
    pair.kubectl("exec", "ends", "-n", "work", "--", "true")
    command, environment = killed(living(pair, KUBELET))
    groups = cgroups.detect(Path("/proc/self/mounts").read_text())
    prefix = f"{pair.instance.cgroup_prefix}/slow/pod"
    release(groups, prefix + get(pair, "pod", "ends", "-n", "work")["metadata"]["uid"])
    removed = prefix + get(pair, "pod", "removed", "-n", "work")["metadata"]["uid"]
    pair.kubectl("delete", "pod", "removed", "-n", "work", "--force", "--grace-period=0")
    assert groups.members(removed)
    another = start(command, environment)
    assert another.stdout is not None
    assert another.stdout.readline() == "ready\n"
    wait_until(lambda: phase(pair, "ends") == "Failed", what="the exit code of who ended meanwhile", timeout_seconds=20)
    ended = get(pair, "pod", "ends", "-n", "work")["status"]["containerStatuses"][0]["state"]["terminated"]
    assert ended["exitCode"] == 6
    assert not groups.members(removed)
    after = get(pair, "pod", "stays", "-n", "work")["status"]
    assert after["podIP"] == before["podIP"]
    assert after["containerStatuses"] == before["containerStatuses"]
    pair.kubectl("delete", "pod", "stays", "-n", "work")


def phase(testbed: Testbed, name: str) -> str:
    return str(get(testbed, "pod", name, "-n", "work")["status"]["phase"])


def release(groups: cgroups.Cgroups, group: str) -> None:
    """Give a container, by its own process root, the file that it waits for."""
    pid = min(groups.members(group))
    Path(f"/proc/{pid}/root/go").touch()


def test_a_kubelet_that_is_told_to_end_leaves_nothing() -> None:
    nodes = [NodeSpec("alone")]
    with Testbed(progress=print).up(nodes=nodes, prometheus=False) as other:
        other.create_namespace("work")
        run(other, "lasting", "sh", "-c", "sleep 7533 & wait", node="alone")
        process = living(other, KUBELET)
        process.send(signal.SIGTERM)
        wait_until(lambda: not process.is_alive(), what="the kubelet's end", timeout_seconds=10)
        groups = cgroups.detect(Path("/proc/self/mounts").read_text())
        assert not Path(groups.entry_files(other.instance.cgroup_prefix)[0]).exists()
        assert list((other.instance.folder / "kubelet" / "pods").iterdir()) == []
