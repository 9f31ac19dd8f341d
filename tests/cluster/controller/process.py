"""`ballast run` as a process, as its Deployment would run it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests

from ballast.kube.kinds import GATE_SWITCH
from tests.cluster.chart.installation import NAMESPACE, RELEASE, Installation
from tests.cluster.controller.pool import PATIENCE_SECONDS
from tests.testbed.audit import Request
from tests.testbed.instance import free_port
from tests.testbed.testbed import Testbed
from tests.testbed.waiting import wait_until

BALLAST = Path(sys.executable).with_name("ballast")


@dataclass(frozen=True, slots=True)
class Replica:
    """One replica of the operator, with its own ServiceAccount's rights."""

    identity: str
    process: subprocess.Popen[bytes]
    health_port: int
    metrics_port: int
    log: Path

    def answers(self, path: str, *, port: int | None = None) -> str | None:
        """What it serves there; None unless it is a success."""
        try:
            found = requests.get(f"http://127.0.0.1:{port or self.health_port}{path}", timeout=5)
        except requests.ConnectionError:
            return None
        return found.text if found.ok else None

    def await_unready(self, words: str, *, seconds: float) -> None:
        """Until its probe fails and says so."""
        wait_until(lambda: words in self._unready(), what=words, timeout_seconds=seconds, explain=self._unready)

    def _unready(self) -> str:
        try:
            found = requests.get(f"http://127.0.0.1:{self.health_port}/readyz", timeout=5)
        except requests.ConnectionError:
            return ""
        return found.text if found.status_code == 503 else ""

    def metric(self, series: str) -> float | None:
        for line in (self.answers("/metrics", port=self.metrics_port) or "").splitlines():
            if line.startswith(f"{series} "):
                return float(line.rsplit(" ", 1)[1])
        return None

    def leads(self) -> bool:
        return self.metric("ballast_leading") == 1.0

    def await_ready(self) -> None:
        wait_until(self._ready_or_dead, what=f"{self.identity} is ready", timeout_seconds=PATIENCE_SECONDS)

    def _ready_or_dead(self) -> str | None:
        assert self.process.poll() is None, f"{self.identity} ended early:\n{self.log.read_text()[-4000:]}"
        return self.answers("/readyz")

    def kill(self) -> None:
        """As if its machine had gone."""
        self.process.kill()
        self.process.wait(timeout=60)

    def stop(self) -> int:
        """As the kubelet does; its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=120)


def command(
    testbed: Testbed,
    *arguments: str,
    account: str = "",
    config: Path | None = None,
    name: str = RELEASE,
    namespace: str = NAMESPACE,
) -> list[str]:
    """The program of that release, with that ServiceAccount's rights (by default its own), or as `config` says."""
    config = config or testbed.service_account_kubeconfig(namespace, account or name)
    return [str(BALLAST), *arguments, f"--name={name}", f"--namespace={namespace}", f"--kubeconfig={config}"]


@contextmanager
def replica(
    testbed: Testbed,
    identity: str,
    folder: Path,
    *,
    lease_seconds: int = 6,
    config: Path | None = None,
    program: Sequence[str] = (),
    name: str = RELEASE,
    namespace: str = NAMESPACE,
) -> Iterator[Replica]:
    """Started, not yet ready; killed in the end if it still runs. `program`: what runs it, instead of `ballast`.

    `name`, `namespace`: of the release.
    """
    health_port, metrics_port = free_port("127.0.0.1"), free_port("127.0.0.1")
    log = folder / f"{identity}.log"
    line = command(testbed, "run", config=config, name=name, namespace=namespace)
    line = [*program, *line[1:]] if program else line
    line += [f"--identity={identity}", "--host=127.0.0.1", "--log-format=json", f"--lease-duration={lease_seconds}s"]
    line += [f"--health-port={health_port}", f"--metrics-port={metrics_port}"]
    with log.open("wb") as output:
        process = subprocess.Popen(line, stdout=output, stderr=output, env=_environment())
        try:
            yield Replica(identity, process, health_port, metrics_port, log)
        finally:
            if process.poll() is None:
                process.kill()
            process.wait(timeout=60)


def release(testbed: Testbed, *arguments: str) -> str:
    """`ballast release` with the rights of the CronJob; what it says."""
    line = command(testbed, "release", *arguments, account=f"{RELEASE}-release")
    done = subprocess.run(line, env=_environment(), capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    return done.stdout


def _environment() -> dict[str, str]:
    """Nothing of this process' own cluster access."""
    return {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}


@contextmanager
def leader_of(installed: Installation, folder: Path, *, refused_in: str | None = None) -> Iterator[Replica]:
    """One replica that leads; in the end it stops cleanly, and has asked for nothing that it may not have.

    All that it wrote is a log, one line of JSON an entry. `refused_in`: a namespace whose pods a policy guards.
    """
    asked = len(_forbidden(installed.testbed))
    with replica(installed.testbed, "leader", folder) as found:
        found.await_ready()
        yield found
        assert found.stop() == 0, found.log.read_text()[-4000:]
        assert not switch(installed)["gating"], "the switch was left on"
        refused = [each for each in _forbidden(installed.testbed)[asked:] if each.namespace != (refused_in or "-")]
        assert not refused, refused
        entries = [json.loads(line) for line in found.log.read_text().splitlines()]
        assert {"time", "level", "logger", "message"} <= set.intersection(*map(set, entries))


def switch(installed: Installation) -> dict[str, Any]:
    """What the gate switch says; before a leader has written one it is off."""
    spec: dict[str, Any] = installed.admin.read(GATE_SWITCH, RELEASE).body.get("spec") or {"gating": False}
    return spec


def _forbidden(testbed: Testbed) -> list[Request]:
    return testbed.forbidden_requests_of(NAMESPACE, RELEASE)
