"""What a running operator costs: memory and start-up with many executors, and what it uses while nothing happens.

While idle it is measured twice: without metrics, and with a Prometheus that has the CPU of every node and executor.
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from ballast.kube import kinds
from ballast.kube.client import Client, Limits
from ballast.kube.connection import Connection
from benchmarks.gates import CONNECTIONS, NODES, PODS, POLICY, create_all, executor, fake_node, until_bound
from benchmarks.report import Aim, Result, machine, write
from tests.loopback import EXPOSITION, Handler, Server
from tests.testbed.prometheus import Target
from tests.testbed.testbed import Testbed
from tests.testbed.waiting import wait_until

SETTLE_SECONDS = 60.0
"""What starting leaves behind lasts for so long; idling is what comes after."""
IDLE_SECONDS = 120.0
HEALTH_PORT, METRICS_PORT = 18080, 19464
NAMESPACE = "bench"
NODE_CORES, EXECUTOR_CORES = 8.0, 0.8
QUERIES = {
    "nodeCpu": "bench_node_cores",
    "nodeAge": "time() - timestamp(bench_node_cores)",
    "executorCpu": "bench_executor_cores",
}


def start(testbed: Testbed, log: Path) -> subprocess.Popen[bytes]:
    command = [
        sys.executable, "-m", "ballast", "run", "--kubeconfig", str(testbed.kubeconfig), "--namespace", "default",
        "--host", "127.0.0.1", "--health-port", str(HEALTH_PORT), "--metrics-port", str(METRICS_PORT),
    ]  # fmt: skip
    with log.open("wb") as out:
        return subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)


def until_ready(process: subprocess.Popen[bytes], log: Path, *, timeout_seconds: float = 120.0) -> None:
    def ready_or_dead() -> bool:
        return _ready() or process.poll() is not None

    def end_of_log() -> str:
        return log.read_text()[-2000:]

    wait_until(ready_or_dead, what="the operator is ready", timeout_seconds=timeout_seconds, explain=end_of_log)
    if process.poll() is not None:
        raise RuntimeError(f"the operator did not get ready:\n{end_of_log()}")


def _ready() -> bool:
    link = http.client.HTTPConnection("127.0.0.1", HEALTH_PORT, timeout=2)
    try:
        link.request("GET", "/readyz")
        return link.getresponse().status == 200
    except OSError:
        return False
    finally:
        link.close()


def run() -> list[Result]:
    testbed = Testbed(progress=lambda text: print(text, flush=True))
    testbed.up(nodes=[], kubelet=False, prometheus=True, kwok=True)
    try:
        testbed.kubectl("apply", "--server-side", "-f", "crds")
        testbed.kubectl("wait", "--for=condition=Established", "crd/balancingpolicies.ballast.dev", "--timeout=60s")
        testbed.apply(POLICY)
        testbed.add_fake_nodes([fake_node(i) for i in range(NODES)])
        testbed.create_namespace(NAMESPACE)
        client = Client(Connection.from_kubeconfig(testbed.kubeconfig), Limits(connections=CONNECTIONS))
        create_all(client, NAMESPACE, gated=False)
        until_bound(client, NAMESPACE)
        _until_running(client)
        return _measured(testbed)
    finally:
        testbed.down()


def _until_running(client: Client) -> None:
    """Idling begins when the pods do not change any more."""

    def all_run() -> bool:
        pending = {"fieldSelector": "status.phase=Pending", "limit": "1"}
        return not client.get_page(kinds.POD, pending, metadata_only=True).items

    wait_until(all_run, what="all pods are running", timeout_seconds=600.0, poll_seconds=2.0)


def _measured(testbed: Testbed) -> list[Result]:
    case = f"{PODS} executors on {NODES} nodes"
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "operator.log"
        started = time.perf_counter()
        process = start(testbed, log)
        try:
            until_ready(process, log)
            startup = time.perf_counter() - started
            seen = psutil.Process(process.pid)
            used, resident = _idle(seen), seen.memory_info().rss
            with exported() as address:
                _observe(testbed, address)
                used_observing = _idle(seen)
            peak = _peak_bytes(process.pid)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=30)
    return [
        Result(case, "start until the first round is done", startup, "s", aim=Aim(10.0)),
        Result(case, "resident memory while idle", resident / 2**20, "MiB"),
        Result(case, "peak resident memory", peak / 2**20, "MiB", aim=Aim(300e6 / 2**20)),
        Result(case, "idle, share of a core", 100.0 * used, "%", aim=Aim(1.0)),
        Result(case, "idle with metrics, share of a core", 100.0 * used_observing, "%", aim=Aim(1.0)),
        Result(case, "machine's cores", float(os.cpu_count() or 0), "1"),
    ]


def _idle(process: psutil.Process) -> float:
    """The share of a core that it uses once it has settled."""
    time.sleep(SETTLE_SECONDS)
    before, since = _cpu(process), time.perf_counter()
    time.sleep(IDLE_SECONDS)
    return (_cpu(process) - before) / (time.perf_counter() - since)


def _observe(testbed: Testbed, address: str) -> None:
    """Let the policy read metrics of all nodes and executors; returns when it does."""
    testbed.set_targets("bench", [Target(address)])
    metrics = {"prometheus": {"url": testbed.prometheus_url}, "advanced": {"queries": QUERIES}}
    testbed.kubectl(
        "patch", "balancingpolicy", "bench", "--type=merge", f"--patch={json.dumps({'spec': {'metrics': metrics}})}"
    )

    def scored() -> bool:
        status: dict[str, Any] = json.loads(testbed.kubectl("get", "balancingpolicy", "bench", "--output=json"))[
            "status"
        ]
        return any(each["type"] == "MetricsAvailable" and each["status"] == "True" for each in status["conditions"])

    wait_until(scored, what="the operator has metrics", timeout_seconds=180.0, poll_seconds=2.0)


@contextmanager
def exported() -> Iterator[str]:
    """An address from which Prometheus gets the CPU that each node and executor uses, always the same."""
    lines = [f'bench_node_cores{{node="{fake_node(index).name}"}} {NODE_CORES}' for index in range(NODES)]
    for index in range(PODS):
        name = executor(NAMESPACE, index, gated=False)["metadata"]["name"]
        lines.append(f'bench_executor_cores{{namespace="{NAMESPACE}",pod="{name}"}} {EXECUTOR_CORES}')
    body = "\n".join([*lines, ""]).encode()

    class Answering(Handler):
        def answer(self) -> None:
            self.reply(body, content_type=EXPOSITION)

    with Server(Answering) as server:
        yield f"127.0.0.1:{server.server_port}"


def _peak_bytes(process_id: int) -> float:
    """The most that has been resident since the process began."""
    status = Path(f"/proc/{process_id}/status").read_text(encoding="ascii", errors="replace")
    (kibibytes,) = (line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:"))
    return 1024.0 * float(kibibytes)


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


if __name__ == "__main__":
    at_start = machine()
    write("operator", run(), before=at_start)
