"""How much memory the operator's cluster state takes for very many pods: generated ones, served on loopback.

The server is this process; the state is in another one, so that its memory is measured alone.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from benchmarks.listing.pages import executor, node
from benchmarks.load.usage import Meter
from tests.loopback import Handler, Server

PODS_PER_NODE = 50
EXECUTOR_SHARE = 20
"""One pod in so many is an executor."""


def resident_bytes_with(pods: int) -> tuple[int, int]:
    """Resident memory of a process whose cluster state holds so many pods: now, and at most since it began."""
    with _server(pods) as url, tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "kubeconfig"
        config.write_text(yaml.safe_dump(_kubeconfig(url)))
        command = [sys.executable, "-m", "benchmarks.load.resident", str(config)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True) as holder:
            assert holder.stdout is not None
            assert holder.stdin is not None
            said = holder.stdout.readline().split()
            if said != [str(pods // EXECUTOR_SHARE), str(pods // PODS_PER_NODE)]:
                raise RuntimeError(f"the state holds {said} executors and nodes with pods")
            meter = Meter(holder.pid)
            found = meter.resident_bytes(), meter.peak_bytes()
            holder.stdin.close()
            holder.wait(timeout=30)
        return found


def _hold(config: Path) -> None:
    """Fill a cluster state, print its executors and its nodes with other pods, and wait until standard input ends."""
    import ballast.controller.operator  # noqa: F401, PLC0415 -- the operator's imports take memory, too
    from ballast.controller.cluster_state import ClusterState  # noqa: PLC0415
    from ballast.kube.client import Client  # noqa: PLC0415
    from ballast.kube.connection import Connection  # noqa: PLC0415
    from ballast.runtime import planning_runtime  # noqa: PLC0415

    with planning_runtime():
        client = Client(Connection.from_kubeconfig(config))
        state = ClusterState(client, monotonic=time.monotonic, notify=_nothing, gated=_nothing, failed=_nothing)
        state.start()
        lists = state.look().lists
        print(len(lists.pods), len(lists.others.requested), flush=True)
        sys.stdin.read()


def _nothing(*_: object) -> None:
    pass


@contextmanager
def _server(pods: int) -> Iterator[str]:
    class Pages(Handler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            query = self.fields()
            plural = urlsplit(self.path).path.rpartition("/")[2]
            if query.get("watch") == "true":
                self._stay_silent()
            else:
                self.reply(_page(plural, pods, query))

        def _stay_silent(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.flush()
            self.server.ended.wait()

    with Server(Pages) as server:
        yield server.url


def _page(plural: str, pods: int, query: dict[str, str]) -> bytes:
    makers = {"pods": (pods, _pod), "nodes": (pods // PODS_PER_NODE, _node), "namespaces": (1, _namespace)}
    count, make = makers.get(plural, (0, _node))
    first, limit = int(query.get("continue", 0)), int(query.get("limit", count or 1))
    until = min(count, first + limit)
    metadata = {"resourceVersion": "7", **({"continue": str(until)} if until < count else {})}
    return json.dumps({"metadata": metadata, "items": [make(number) for number in range(first, until)]}).encode()


def _pod(number: int) -> dict[str, Any]:
    """Every twentieth is an executor; the others are pods of services, just as long."""
    pod = executor(
        number, application=f"spark-{number // 240}", node=f"node-{number // PODS_PER_NODE}", topology="clicks"
    )
    if number % EXECUTOR_SHARE:
        pod["metadata"]["labels"] = {
            "app.kubernetes.io/name": f"service-{number // 10}",
            "pod-template-hash": f"{number // 10:010x}",
        }
        pod["spec"]["containers"][0]["name"] = "main"
    return pod


def _node(number: int) -> dict[str, Any]:
    return node(number, name=f"node-{number}")


def _namespace(_: int) -> dict[str, Any]:
    return {"metadata": {"name": "team", "uid": "team", "resourceVersion": "5", "labels": {}}}


def _kubeconfig(url: str) -> dict[str, Any]:
    return {
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": {"token": "none"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "c",
    }


if __name__ == "__main__":
    _hold(Path(sys.argv[1]))
