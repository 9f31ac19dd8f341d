"""Replicas of the operator as the chart starts them, as processes of this machine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests

from benchmarks.load.usage import Meter
from tests.testbed.instance import free_port
from tests.testbed.testbed import Testbed

CHART = Path(__file__).parents[2] / "charts" / "ballast"
RELEASE, NAMESPACE = "ballast", "ballast-system"
_NEVER = "0 0 29 2 *"
_STOP_SECONDS = 30


def install(testbed: Testbed) -> None:
    """The chart with its defaults but no pods of its own: here replicas are processes, and Jobs have no kubelet."""
    testbed.create_namespace(NAMESPACE)
    where = f"--namespace={NAMESPACE}"
    testbed.helm("install", RELEASE, str(CHART), where, f"--set=staleRelease.schedule={_NEVER}")
    testbed.kubectl("scale", f"deployment/{RELEASE}", "--replicas=0", where)
    for what in ("jsonpath={.status.conditions}", "condition=Established"):
        testbed.kubectl("wait", f"--for={what}", "crd/balancingpolicies.ballast.dev", "crd/gateswitches.ballast.dev")


def uninstall(testbed: Testbed) -> None:
    """Without the chart's hooks, whose Jobs would wait for a kubelet."""
    testbed.helm("uninstall", RELEASE, f"--namespace={NAMESPACE}", "--no-hooks")


@dataclass(frozen=True, slots=True)
class Replica:
    process: subprocess.Popen[bytes]
    metrics_port: int
    log: Path
    started_at: float
    """Monotonic seconds."""

    @property
    def meter(self) -> Meter:
        return Meter(self.process.pid)

    def leads(self) -> bool:
        try:
            text = requests.get(f"http://127.0.0.1:{self.metrics_port}/metrics", timeout=5).text
        except requests.ConnectionError:
            return False
        return "ballast_leading 1.0" in text.splitlines()

    def check(self) -> None:
        if self.process.poll() is not None:
            raise RuntimeError(f"a replica ended early:\n{self.log.read_text()[-4000:]}")


@contextmanager
def replica(testbed: Testbed, identity: str, folder: Path) -> Iterator[Replica]:
    """Started with the Deployment's arguments and its ServiceAccount's rights; stopped in the end."""
    deployment = json.loads(testbed.kubectl("get", "deployment", RELEASE, f"--namespace={NAMESPACE}", "--output=json"))
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    config = testbed.service_account_kubeconfig(NAMESPACE, RELEASE)
    metrics_port = free_port("127.0.0.1")
    own = [f"--kubeconfig={config}", "--host=127.0.0.1", f"--metrics-port={metrics_port}"]
    own.append(f"--health-port={free_port('127.0.0.1')}")
    program = str(Path(sys.executable).with_name("ballast"))
    log = folder / f"{identity}.log"
    with log.open("wb") as output:
        started = time.monotonic()
        process = subprocess.Popen(
            [program, *_arguments(container, identity), *own],
            stdout=output,
            stderr=output,
            env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", **_plain_variables(container)},
        )
        try:
            yield Replica(process, metrics_port, log, started)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=_STOP_SECONDS)


def _arguments(container: dict[str, Any], identity: str) -> list[str]:
    replaced = {"$(POD_NAMESPACE)": NAMESPACE, "$(POD_NAME)": identity}
    found = []
    for argument in container["args"]:
        if not argument.startswith(("--health-port", "--metrics-port", "--host")):
            for variable, value in replaced.items():
                argument = argument.replace(variable, value)  # noqa: PLW2901 -- step by step
            found.append(argument)
    return found


def _plain_variables(container: dict[str, Any]) -> dict[str, str]:
    return {each["name"]: each["value"] for each in container.get("env", ()) if "value" in each}
