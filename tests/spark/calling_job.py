"""Servers on loopback that stand for a Service's endpoints, and what a Spark job calls them with."""

from __future__ import annotations

import json
import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pyarrow as pa

from ballast.spark.routing import ServiceEndpoints

SCHEMA = "id bigint, zone string"


@contextmanager
def serving(answer: Callable[[], Any]) -> Iterator[int]:
    """The port of a server that answers every GET with `answer()`, as JSON."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(answer()).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002 -- its name in the base class
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def slices(**ports: int) -> dict[str, Any]:
    """The API server's list of a Service's EndpointSlices: a ready endpoint on loopback for each zone, by its port."""
    items = [
        {
            "metadata": {"name": zone},
            "ports": [{"port": port}],
            "endpoints": [{"addresses": ["127.0.0.1"], "nodeName": zone, "zone": zone}],
        }
        for zone, port in ports.items()
    ]
    return {"kind": "EndpointSliceList", "metadata": {"resourceVersion": "1"}, "items": items}


def calls(service: ServiceEndpoints) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """For mapInArrow: each record calls the endpoint that is chosen for it, which answers with its zone."""

    def call(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            zones = [_called(service) for _ in range(batch.num_rows)]
            yield pa.RecordBatch.from_pydict({"id": batch["id"], "zone": zones})

    return call


def _called(service: ServiceEndpoints) -> str:
    (address,) = service.choose(1)
    with service.timed(address), urllib.request.urlopen(f"http://{address}/", timeout=10) as answer:
        return str(json.load(answer))
