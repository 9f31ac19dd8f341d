"""A validating webhook that refuses, or hangs."""

from __future__ import annotations

import base64
import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from ballast.kube.kinds import Kind
from tests.cluster.controller.pool import Pool
from tests.testbed.pki import create_pki

WEBHOOKS = Kind(
    "admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", False
)
TIMEOUT_SECONDS = 1


class Webhook(ThreadingHTTPServer):
    """`asked`: how often."""

    daemon_threads = True
    asked = 0

    def handle_error(self, request: Any, client_address: Any) -> None:
        """The API server hangs up when it has waited for long enough."""


@contextmanager
def webhook(mine: Pool, folder: Path, *, hangs: bool) -> Iterator[Webhook]:
    """Every update of a pod in the namespace asks it, and needs its consent."""
    ended = threading.Event()

    class Refusing(BaseHTTPRequestHandler):
        server: Webhook

        def do_POST(self) -> None:
            review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self.server.asked += 1
            if hangs:
                ended.wait(30)
                return
            response = {"uid": review["request"]["uid"], "allowed": False, "status": {"message": "injected refusal"}}
            body = json.dumps({"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response})
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *arguments: Any) -> None:
            del arguments

    pki = create_pki(folder / "webhook", control_hosts=["127.0.0.1"], node_hosts=["127.0.0.1"])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pki.apiserver.certificate, pki.apiserver.key)
    with Webhook(("127.0.0.1", 0), Refusing) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        authority = base64.b64encode(pki.cluster_ca.files.certificate.read_bytes()).decode()
        mine.admin.create(WEBHOOKS, _configuration(mine, f"https://127.0.0.1:{server.server_port}/", authority))
        try:
            yield server
        finally:
            mine.admin.delete(WEBHOOKS, mine.name)
            ended.set()
            server.shutdown()
            thread.join()


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
