"""What a running operator costs: memory and start-up with many executors, and what it uses while nothing happens."""

from __future__ import annotations

import http.client
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from ballast.kube import kinds
from ballast.kube.client import Client, Limits
from ballast.kube.connection import Connection
from benchmarks.gates import CONNECTIONS, NODES, PODS, POLICY, create_all, fake_node, until_bound
from benchmarks.report import Aim, Result, machine, write
from tests.testbed.testbed import Testbed
from tests.testbed.waiting import wait_until

SETTLE_SECONDS = 60.0
"""What starting leaves behind lasts for so long; idling is what comes after."""
IDLE_SECONDS = 120.0
HEALTH_PORT, METRICS_PORT = 18080, 19464


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
    testbed.up(nodes=[], kubelet=False, prometheus=False, kwok=True)
    try:
        testbed.kubectl("apply", "--server-side", "-f", "crds")
        testbed.kubectl("wait", "--for=condition=Established", "crd/balancingpolicies.ballast.dev", "--timeout=60s")
        testbed.apply(POLICY)
        testbed.add_fake_nodes([fake_node(i) for i in range(NODES)])
        testbed.create_namespace("bench")
        client = Client(Connection.from_kubeconfig(testbed.kubeconfig), Limits(connections=CONNECTIONS))
        create_all(client, "bench", gated=False)
        until_bound(client, "bench")
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
            time.sleep(SETTLE_SECONDS)
            seen = psutil.Process(process.pid)
            before, since = _cpu(seen), time.perf_counter()
            time.sleep(IDLE_SECONDS)
            used = (_cpu(seen) - before) / (time.perf_counter() - since)
            resident, peak = seen.memory_info().rss, _peak_bytes(process.pid)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=30)
    return [
        Result(case, "start until the first round is done", startup, "s", aim=Aim(10.0)),
        Result(case, "resident memory while idle", resident / 2**20, "MiB"),
        Result(case, "peak resident memory", peak / 2**20, "MiB", aim=Aim(300e6 / 2**20)),
        Result(case, "idle, share of a core", 100.0 * used, "%", aim=Aim(1.0)),
        Result(case, "machine's cores", float(os.cpu_count() or 0), "1"),
    ]


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
