"""Kubeconfig files that hold everything they need, so that they can be copied and handed on."""

import base64
from pathlib import Path
from typing import Any

import yaml

from tests.testbed.pki import KeyPair


def by_certificate(*, server: str, ca: Path, client: KeyPair, namespace: str = "default") -> str:
    """Authenticates with a client certificate."""
    user = {
        "client-certificate-data": _encoded(client.certificate),
        "client-key-data": _encoded(client.key),
    }
    return _text(server=server, ca=ca, user=user, namespace=namespace)


def by_token(*, server: str, ca: Path, token: str, namespace: str) -> str:
    """Authenticates with a bearer token."""
    return _text(server=server, ca=ca, user={"token": token}, namespace=namespace)


def _text(*, server: str, ca: Path, user: dict[str, str], namespace: str) -> str:
    name = "testbed"
    cluster = {"server": server, "certificate-authority-data": _encoded(ca)}
    context = {"cluster": name, "user": name, "namespace": namespace}
    config: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": name, "context": context}],
        "current-context": name,
    }
    return str(yaml.safe_dump(config, sort_keys=False))


def write_private(path: Path, text: str) -> Path:
    """Only the owner can read it: it carries credentials."""
    path.touch(mode=0o600)
    path.write_text(text)
    return path


def _encoded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
