"""Servers on loopback that stand for a Service's endpoints, and what a Spark job calls them with."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from ballast.spark.routing import ServiceEndpoints
from tests.loopback import Handler, Server

SCHEMA = "id bigint, zone string"


@contextmanager
def serving(answer: Callable[[], Any]) -> Iterator[int]:
    """The port of a server that answers every GET with `answer()`, as JSON."""

    class Answering(Handler):
        def answer(self) -> None:
            self.reply(json.dumps(answer()).encode())

    with Server(Answering) as server:
        yield server.server_port


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
