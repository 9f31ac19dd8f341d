"""Whatever is killed, nothing of a testbed stays."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import requests

from tests.testbed import instance as instances
from tests.testbed.errors import TestbedError
from tests.testbed.instance import Instance
from tests.testbed.nodes import NodeSpec
from tests.testbed.process import REPOSITORY, Supervisor
from tests.testbed.procfs import belonging_to, identify, this_process
from tests.testbed.teardown import tear_down, tear_down_abandoned
from tests.testbed.testbed import Testbed
from tests.testbed.traces import traces_of
from tests.testbed.waiting import wait_until

pytestmark = pytest.mark.cluster

ONE_POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "burning", "namespace": "default"},
    "spec": {"containers": [{"name": "main", "image": "noise", "args": ["--cores", "0.05"]}]},
}
PARTS = [
    "etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "prometheus", "pod-discovery",
]  # fmt: skip


@pytest.fixture
def reserved() -> Iterator[Instance]:
    instance = instances.reserve(instances.default_root())
    yield instance
    tear_down(instance)


def with_a_pod() -> Testbed:
    """One node with a running pod."""
    testbed = Testbed().up(nodes=[NodeSpec("node-1", cpu_quota_cores=0.5)])
    try:
        testbed.apply(ONE_POD)
        testbed.kubectl("wait", "pod/burning", "--for=condition=Ready", "--timeout=60s")
    except TestbedError:
        testbed.down()
        raise
    return testbed


@pytest.mark.soak
def test_down_leaves_nothing_and_may_be_called_twice() -> None:
    testbed = with_a_pod()
    instance = testbed.instance
    assert traces_of(instance)

    testbed.down()
    assert traces_of(instance) == []
    testbed.down()
    tear_down(instance)


@pytest.mark.soak
@pytest.mark.parametrize("part", PARTS)
def test_down_leaves_nothing_after_a_part_was_killed(part: str) -> None:
    testbed = with_a_pod()
    instance = testbed.instance
    (killed,) = (each.process for each in instance.manifest.parts() if each.name == part)

    killed.send(signal.SIGKILL)
    wait_until(lambda: not killed.is_alive(), what=f"the end of {part}")
    testbed.down()

    assert traces_of(instance) == []


@pytest.mark.soak
def test_down_leaves_nothing_after_a_pod_was_killed() -> None:
    testbed = with_a_pod()
    instance = testbed.instance
    parts = {part.process for part in instance.manifest.parts()}
    pod = set(belonging_to(instance.folder)) - parts
    assert pod

    for process in pod:
        process.send(signal.SIGKILL)
    testbed.down()

    assert traces_of(instance) == []


@pytest.mark.soak
def test_the_next_one_ends_a_testbed_whose_starter_was_killed() -> None:
    program = (
        "import time; from tests.testbed.testbed import Testbed;"
        "testbed = Testbed().up(kubelet=False, prometheus=False);"
        "print(testbed.instance.id, flush=True); time.sleep(600)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], cwd=REPOSITORY, stdout=subprocess.PIPE, text=True
    ) as starter:
        assert starter.stdout
        testbed_id = starter.stdout.readline().strip()
        starter.kill()
    root = instances.default_root()
    instance = Instance(int(testbed_id), root / testbed_id)
    assert traces_of(instance)

    assert instance in tear_down_abandoned(root)
    assert traces_of(instance) == []


def test_a_testbed_that_is_being_taken_is_not_abandoned(tmp_path: Path) -> None:
    instance = Instance(99, tmp_path / "99")
    with ThreadPoolExecutor(1) as pool:
        with instances.root_locked(tmp_path):
            instance.folder.mkdir()
            ended = pool.submit(tear_down_abandoned, tmp_path)
            wait_until(lambda: ended.done() or is_waited_for(tmp_path), what="another start's look at it")
            instance.manifest.record_owner(this_process())
        assert ended.result() == []
    assert instance.folder.exists()


def test_a_testbed_that_was_given_the_number_since_is_no_trace(tmp_path: Path) -> None:
    instance = Instance(99, tmp_path / "99")
    instance.folder.mkdir()
    assert traces_of(instance) == [f"folder {instance.folder}"]

    with subprocess.Popen(["sleep", "600"]) as other:
        instance.manifest.record_owner(identify(other.pid))
        assert traces_of(instance) == []
        other.kill()
    assert traces_of(instance) == [f"folder {instance.folder}"]


def is_waited_for(folder: Path) -> bool:
    """Whether someone wants the lock of the folder, which another has."""
    inode = f":{folder.stat().st_ino} "
    return any("-> FLOCK" in line and inode in line for line in Path("/proc/locks").read_text().splitlines())


def test_a_start_that_fails_leaves_nothing_and_names_the_log() -> None:
    before = instances.existing(instances.default_root())

    with pytest.raises(TestbedError, match="kube-apiserver ended with 1") as caught:
        Testbed().up(kubelet=False, prometheus=False, apiserver_arguments=["--no-such-flag"])

    assert "unknown flag: --no-such-flag" in str(caught.value)
    assert "all logs of the testbed are in" in caught.value.__notes__[0]
    assert instances.existing(instances.default_root()) == before


@pytest.mark.soak
def test_two_testbeds_run_side_by_side_and_end_apart() -> None:
    with with_a_pod() as one, with_a_pod() as other:
        lasting = other.instance
        one.create_namespace("only-here")
        assert "only-here" not in other.kubectl("get", "namespaces")
        assert set(one.node_addresses.values()).isdisjoint(other.node_addresses.values())
        ended = one.instance
        one.down()
        assert traces_of(ended) == []
        used = burnt(other)
        wait_until(lambda: burnt(other) > used, what="the other's pod burning on in its own Prometheus' eyes")
    assert traces_of(lasting) == []


def burnt(testbed: Testbed) -> float:
    """CPU seconds of the pod, as the testbed's Prometheus has them; 0 while it has none."""
    query = 'container_cpu_usage_seconds_total{pod="burning",container="main"}'
    found = requests.get(f"{testbed.prometheus_url}/api/v1/query", params={"query": query}, timeout=5).json()
    return sum(float(each["value"][1]) for each in found["data"]["result"])


def test_a_child_that_left_its_process_group_is_found(reserved: Instance) -> None:
    supervisor = Supervisor(reserved)
    script = "import os, time; os.fork() or os.setsid(); time.sleep(600)"
    started = supervisor.start("forking", [sys.executable, "-c", script])
    wait_until(lambda: len(traces_of(reserved)) == 3, what="the child")

    tear_down(reserved)
    supervisor.reap()

    assert not started.is_alive()
    assert traces_of(reserved) == []


def test_a_process_in_mounts_of_the_testbed_is_found_without_its_mark(reserved: Instance) -> None:
    pods = reserved.folder / "pods"
    pods.mkdir()
    script = f"mount --bind {pods} /mnt && exec sleep 600"
    with subprocess.Popen(["unshare", "--mount", "sh", "-c", script], start_new_session=True) as pod:
        wait_until(lambda: f"process {pod.pid}" in traces_of(reserved), what="the mount")

        tear_down(reserved)
        assert pod.wait() == -signal.SIGKILL
    assert traces_of(reserved) == []


def test_a_number_that_a_new_process_got_does_not_make_it_the_old_one() -> None:
    old = identify(os.getpid())
    assert old.is_alive()

    reused = type(old)(old.pid, old.start_ticks - 1)
    assert not reused.is_alive()


def test_a_process_lives_as_long_as_any_of_its_threads() -> None:
    script = "import ctypes, sys, threading; threading.Thread(target=sys.stdin.read).start();"
    command = [sys.executable, "-c", f"{script} ctypes.CDLL(None).pthread_exit(None)"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as started:
        process = identify(started.pid)
        wait_until(lambda: "State:\tZ" in Path(f"/proc/{process.pid}/status").read_text(), what="the main thread's end")
        assert process.is_alive()

        assert started.stdin is not None
        started.stdin.close()
        wait_until(lambda: not process.is_alive(), what="the other thread's end")
