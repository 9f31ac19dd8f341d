"""A validating webhook that refuses, or hangs."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ballast.kube.kinds import Kind
from tests.cluster.controller.pool import Pool
from tests.loopback import Handler, Server
from tests.testbed.pki import create_pki

WEBHOOKS = Kind(
    "admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", False
)
TIMEOUT_SECONDS = 1


class Webhook(Server):
    """`asked`: how often."""

    asked = 0


@contextmanager
def webhook(mine: Pool, folder: Path, *, hangs: bool) -> Iterator[Webhook]:
    """Every update of a pod in the namespace asks it, and needs its consent."""

    class Refusing(Handler):
        server: Webhook

        def answer(self) -> None:
            review = json.loads(self.content())
            self.server.asked += 1
            if hangs:
                self.server.ended.wait(30)
                return
            response = {"uid": review["request"]["uid"], "allowed": False, "status": {"message": "injected refusal"}}
            body = json.dumps({"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response})
            self.reply(body.encode())

    pki = create_pki(folder / "webhook", control_hosts=["127.0.0.1"], node_hosts=["127.0.0.1"])
    with Webhook(Refusing, tls=pki.apiserver.server_context()) as server:
        authority = base64.b64encode(pki.cluster_ca.files.certificate.read_bytes()).decode()
        mine.admin.create(WEBHOOKS, _configuration(mine, f"{server.url}/", authority))
        try:
            yield server
        finally:
            mine.admin.delete(WEBHOOKS, mine.name)


def _configuration(mine: Pool, url: str, authority: str) -> dict[str, Any]:
    return {
        "apiVersion": WEBHOOKS.api_version,
        "kind": WEBHOOKS.kind,
        "metadata": {"name": mine.name},
        "webhooks": [
            {
                "name": "pods.ballast.test",
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "timeoutSeconds": TIMEOUT_SECONDS,
                "failurePolicy": "Fail",
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": mine.name}},
                "clientConfig": {"url": url, "caBundle": authority},
                "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["pods"]}],
            }
        ],
    }
