"""What an administrator does to etcd, over its JSON gateway."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import requests

from tests.testbed.testbed import Testbed

TIMEOUT_SECONDS = 10


def compact(testbed: Testbed) -> int:
    """Forget every revision but the newest, as the API server has etcd do now and then; that revision."""
    newest = int(_ask(testbed, "kv/range", {"key": "Lw==", "limit": 1})["header"]["revision"])
    _ask(testbed, "kv/compaction", {"revision": newest, "physical": True})
    return newest


@contextmanager
def restored_from_a_backup(testbed: Testbed, backup: Path) -> Iterator[None]:
    """What is written inside the block is lost at its end.

    As Kubernetes' documentation says, API servers are stopped while etcd is restored, and its controllers started again
    afterwards.
    """
    data = Path(_argument(testbed, "--data-dir"))
    with testbed.without("etcd", "kube-apiserver"):
        shutil.copytree(data, backup)
    yield
    with testbed.without("kube-controller-manager", "kube-scheduler", "kwok"):
        with testbed.without("etcd", "kube-apiserver"):
            shutil.rmtree(data)
            shutil.copytree(backup, data)
        # kwok leaves nodes alone until the leases of the process before it run out, which takes up to 50 s.
        testbed.kubectl("delete", "leases", "--all", "--namespace=kube-node-lease")


def _ask(testbed: Testbed, path: str, body: dict[str, Any]) -> dict[str, Any]:
    pki = testbed.instance.folder / "pki"
    with requests.Session() as session:
        session.trust_env = False
        session.verify = str(pki / "etcd-ca.crt")
        session.cert = (str(pki / "apiserver-to-etcd.crt"), str(pki / "apiserver-to-etcd.key"))
        answer = session.post(f"{_address(testbed)}/v3/{path}", json=body, timeout=TIMEOUT_SECONDS)
        answer.raise_for_status()
        found: dict[str, Any] = answer.json()
        return found


def _address(testbed: Testbed) -> str:
    return _argument(testbed, "--advertise-client-urls")


def _argument(testbed: Testbed, name: str) -> str:
    """Its own process was told."""
    (part,) = (each for each in testbed.instance.manifest.parts() if each.name == "etcd")
    words = Path(f"/proc/{part.process.pid}/cmdline").read_text().split("\0")
    (value,) = (word.partition("=")[2] for word in words if word.startswith(f"{name}="))
    return value
