"""`--watch`: a real process that is asked to stop as Ctrl-C does."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from tests.apiserver import Answer, Asked, Watch, kubeconfig, scripted

POLICY = {
    "apiVersion": "ballast.dev/v1alpha1",
    "kind": "BalancingPolicy",
    "metadata": {"name": "streaming", "uid": "u1", "generation": 1, "creationTimestamp": "2026-11-01T00:00:00Z"},
    "spec": {},
}
EXECUTOR = {
    "metadata": {
        "name": "e1",
        "namespace": "analytics",
        "uid": "e1",
        "labels": {"spark-role": "executor", "spark-app-selector": "spark-1"},
    },
    "spec": {"containers": [{"name": "executor"}], "nodeName": "n1"},
    "status": {"phase": "Running"},
}
NODE = {"metadata": {"name": "n1", "uid": "n1"}, "spec": {}, "status": {"allocatable": {"cpu": "4", "memory": "8Gi"}}}
NAMESPACE = {"metadata": {"name": "analytics", "uid": "ns"}}
OBJECTS: dict[str, dict[str, Any]] = {
    "namespaces": NAMESPACE,
    "balancingpolicies": POLICY,
    "pods": EXECUTOR,
    "nodes": NODE,
}
LOOKS = 2


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Processes started now heed Ctrl-C, also where the tests run in the background, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["status"], "Policy streaming"),
        (["plan"], "Policy streaming"),
        (["explain", "pod/e1"], "analytics/e1"),
        (["status", "-o", "name"], "balancingpolicy.ballast.dev/streaming"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_ctrl_c_ends_it_without_an_error(tmp_path: Path, command: list[str], words: str) -> None:
    seen, looks = Event(), 0

    def answer(asked: Asked) -> Answer | Watch:
        nonlocal looks
        looks += asked.route.endswith("/balancingpolicies")
        if looks > LOOKS:
            seen.set()
        return server.respond(asked)

    with scripted() as server:
        server.by = answer
        for plural, found in OBJECTS.items():
            server.put(plural, found)
        options = ["--watch", "--every", "0.5", "--kubeconfig", str(kubeconfig(tmp_path, server.url))]
        with subprocess.Popen(
            [sys.executable, "-m", "ballast", *command, *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                assert seen.wait(timeout=60.0), "it never looked again"
                process.send_signal(signal.SIGINT)
                out, err = process.communicate(timeout=60.0)
            finally:
                process.kill()
    assert (process.returncode, err) == (0, "")
    assert out.count(words) >= LOOKS
