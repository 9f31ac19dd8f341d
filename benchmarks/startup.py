"""CPU seconds (user and system) that starting costs: the operator until it is ready, and short commands.

Measured with compiled bytecode, as an image or an installed package has it. CPU seconds say how long a start takes
where there is less than a core: at a tenth of a core ten times as long.
"""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

from benchmarks.operator import HEALTH_PORT, METRICS_PORT, until_ready
from benchmarks.report import Aim, Result, machine, write
from tests.testbed.nodes import NodeSpec
from tests.testbed.testbed import Testbed

RUNS = 5
NODES = 20
POLICY = """
apiVersion: ballast.dev/v1alpha1
kind: BalancingPolicy
metadata: {name: bench}
spec:
  nodeSelector: {matchLabels: {pool: bench}}
  placement: {mode: Enforce}
"""
COMMANDS: Mapping[tuple[str, ...], Aim | None] = {
    ("--help",): None,
    ("status",): Aim(1.0),
    ("plan",): None,
    ("release", "--stale"): None,
    ("release", "--all"): Aim(0.8),
}


def run() -> list[Result]:
    testbed = Testbed(progress=lambda text: print(text, flush=True))
    testbed.up(nodes=[], kubelet=False, prometheus=False, kwok=True)
    try:
        testbed.kubectl("apply", "--server-side", "-f", "crds")
        testbed.kubectl("wait", "--for=condition=Established", "crd/balancingpolicies.ballast.dev", "--timeout=60s")
        testbed.apply(POLICY)
        testbed.add_fake_nodes([NodeSpec(f"node-{i:02}", labels={"pool": "bench"}) for i in range(NODES)])
        with tempfile.TemporaryDirectory() as folder:
            return _measured(testbed, Path(folder))
    finally:
        testbed.down()


def _measured(testbed: Testbed, folder: Path) -> list[Result]:
    environ = {**os.environ, "PYTHONPYCACHEPREFIX": str(folder / "bytecode")}
    environ.pop("PYTHONDONTWRITEBYTECODE", None)
    ready = [_until_ready(testbed, folder / "operator.log", environ) for _ in range(RUNS + 1)][1:]
    results = [Result("ballast run", "CPU until it is ready", statistics.median(ready), "s", aim=Aim(0.8))]
    for arguments, aim in COMMANDS.items():
        reaching = () if arguments == ("--help",) else (f"--kubeconfig={testbed.kubeconfig}",)
        used = [_used([*arguments, *reaching], environ) for _ in range(RUNS + 1)][1:]  # the first writes bytecode
        results.append(Result(f"ballast {' '.join(arguments)}", "CPU", statistics.median(used), "s", aim=aim))
    return results


def _used(arguments: Sequence[str], environ: Mapping[str, str]) -> float:
    process = subprocess.Popen(
        [sys.executable, "-m", "ballast", *arguments], env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    assert process.stderr is not None
    words = process.stderr.read().decode(errors="replace")
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stderr.close()
    if process.returncode:
        raise RuntimeError(f"ballast {' '.join(arguments)} ended with {process.returncode}:\n{words}")
    return usage.ru_utime + usage.ru_stime


def _until_ready(testbed: Testbed, log: Path, environ: Mapping[str, str]) -> float:
    command = [
        sys.executable, "-m", "ballast", "run", "--kubeconfig", str(testbed.kubeconfig), "--namespace", "default",
        "--host", "127.0.0.1", "--health-port", str(HEALTH_PORT), "--metrics-port", str(METRICS_PORT),
    ]  # fmt: skip
    with log.open("wb") as out:
        process = subprocess.Popen(command, env=environ, stdout=out, stderr=subprocess.STDOUT)
    try:
        until_ready(process, log)
        times = psutil.Process(process.pid).cpu_times()
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=30)
    return float(times.user + times.system)


if __name__ == "__main__":
    at_start = machine()
    write("startup", run(), before=at_start)
