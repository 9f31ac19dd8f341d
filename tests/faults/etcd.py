"""What an administrator does to etcd, over its JSON gateway."""

from __future__ import annotations

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
    """Its own process was told."""
    (part,) = (each for each in testbed.instance.manifest.parts() if each.name == "etcd")
    words = Path(f"/proc/{part.process.pid}/cmdline").read_text().split("\0")
    (address,) = (word.partition("=")[2] for word in words if word.startswith("--advertise-client-urls="))
    return address
