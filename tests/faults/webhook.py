"""Webhooks of a test's own: one that refuses updates or hangs, and one that changes what is created."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ballast.kube.kinds import Kind
from tests.cluster.controller.pool import Pool
from tests.loopback import Handler, Server
from tests.testbed.pki import create_pki

_GROUP = "admissionregistration.k8s.io/v1"
WEBHOOKS = Kind(_GROUP, "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", False)
_MUTATING = Kind(_GROUP, "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", False)
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

    with _called(mine, folder, Refusing, WEBHOOKS, "UPDATE") as server:
        yield server


@contextmanager
def mutating(mine: Pool, folder: Path, changes: Sequence[Mapping[str, Any]]) -> Iterator[Webhook]:
    """Every executor that is created in the namespace is changed so, by a JSON patch."""
    patch = base64.b64encode(json.dumps(list(changes)).encode()).decode()

    class Changing(Handler):
        server: Webhook

        def answer(self) -> None:
            review = json.loads(self.content())
            self.server.asked += 1
            response = {"uid": review["request"]["uid"], "allowed": True, "patchType": "JSONPatch", "patch": patch}
            body = json.dumps({"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response})
            self.reply(body.encode())

    with _called(mine, folder, Changing, _MUTATING, "CREATE") as server:
        yield server


@contextmanager
def _called(mine: Pool, folder: Path, handler: type[Handler], kind: Kind, operation: str) -> Iterator[Webhook]:
    pki = create_pki(folder / "webhook", control_hosts=["127.0.0.1"], node_hosts=["127.0.0.1"])
    with Webhook(handler, tls=pki.apiserver.server_context()) as server:
        authority = base64.b64encode(pki.cluster_ca.files.certificate.read_bytes()).decode()
        mine.admin.create(kind, _configuration(mine, kind, f"{server.url}/", authority, operation))
        try:
            yield server
        finally:
            mine.admin.delete(kind, mine.name)


def _configuration(mine: Pool, kind: Kind, url: str, authority: str, operation: str) -> dict[str, Any]:
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
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
                "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": [operation], "resources": ["pods"]}],
            }
        ],
    }
