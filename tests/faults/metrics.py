"""A Prometheus whose values, and whose lies, are the test's own."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tests.loopback import Handler, Server

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


@contextmanager
def serving() -> Iterator[Values]:
    values = Values()

    class Answering(Handler):
        def answer(self) -> None:
            if values.down:
                self.send_error(503)
                return
            fields = self.fields()
            data = {"resultType": "vector", "result": values.answer(fields["query"], float(fields["time"]))}
            self.reply(json.dumps({"status": "success", "data": data}).encode())

        def date_time_string(self, timestamp: float | None = None) -> str:
            return super().date_time_string((timestamp or time.time()) + values.ahead_seconds)

    with Server(Answering) as server:
        values.url = server.url
        yield values
