"""A Prometheus whose values, and whose lies, are the test's own."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

JSON = dict[str, Any]
NODE_CPU, NODE_AGE, EXECUTOR_CPU = "node_cpu", "node_age", "executor_cpu"
EXECUTOR_CORES = 0.9


class Values:
    """`url` once it serves. `nodes`: cores used by each; of an executor that is asked about, always as many."""

    def __init__(self) -> None:
        self.url = ""
        self.nodes: Mapping[str, float] = {}
        self.executors: list[tuple[str, str]] = []
        """Namespace and pod of each."""
        self.asked = 0
        """How often about executors."""
        self.down = False
        self.ahead_seconds = 0.0
        """Its clock. Samples seem as fresh as ever if they are asked about by a clock that is right."""
        self.age_seconds = 1.0
        """Of every node's newest sample."""
        self.lie: Callable[[list[JSON]], list[JSON]] = list
        """Makes of the nodes' samples those that are sent."""

    def spec(self) -> JSON:
        """As `metrics` of a policy."""
        queries = {"nodeCpu": NODE_CPU, "nodeAge": NODE_AGE, "executorCpu": EXECUTOR_CPU}
        prometheus = {"url": self.url, "timeout": "1s"}
        return {"prometheus": prometheus, "window": "5s", "advanced": {"queries": queries}}

    def answer(self, query: str, at: float) -> list[JSON]:
        if query == NODE_CPU:
            return self.lie([_sample(at, cores, node=node) for node, cores in self.nodes.items()])
        if query == NODE_AGE:
            return [_sample(at, self.age_seconds, node=node) for node in self.nodes]
        if query == EXECUTOR_CPU:
            self.asked += 1
            return [_sample(at, EXECUTOR_CORES, namespace=namespace, pod=pod) for namespace, pod in self.executors]
        return []


def _sample(at: float, value: float, **labels: str) -> JSON:
    return {"metric": labels, "value": [at, repr(value)]}


class _Server(ThreadingHTTPServer):
    request_queue_size = 128
    """With the default of five, connections made at once may be dropped, and are tried again a second later."""


@contextmanager
def serving() -> Iterator[Values]:
    values = Values()

    class Answering(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(urlsplit(self.path).query)

        def do_POST(self) -> None:
            self._answer(self.rfile.read(int(self.headers["Content-Length"])).decode())

        def _answer(self, text: str) -> None:
            if values.down:
                self.send_error(503)
                return
            fields = parse_qs(text)
            result = values.answer(fields["query"][0], float(fields["time"][0]))
            self.send_response(200)
            self.end_headers()
            data = {"resultType": "vector", "result": result}
            self.wfile.write(json.dumps({"status": "success", "data": data}).encode())

        def date_time_string(self, timestamp: float | None = None) -> str:
            return super().date_time_string((timestamp or time.time()) + values.ahead_seconds)

        def log_message(self, *arguments: Any) -> None:
            del arguments

    with _Server(("127.0.0.1", 0), Answering) as server:
        values.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield values
        finally:
            server.shutdown()
            thread.join()
