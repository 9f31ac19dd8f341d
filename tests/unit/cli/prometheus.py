"""A Prometheus on loopback with a value of each of some applications, by what a query is about."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from tests.loopback import Handler, Server

Values = Callable[[str], Mapping[str, object]]
"""Of a query: by application."""


@contextmanager
def answering(values: Values, labels: Callable[[str], Mapping[str, str]] = lambda _: {}) -> Iterator[str]:
    """Its URL. `labels`: those of a series in addition to the application's, by application."""

    class Answering(Handler):
        def answer(self) -> None:
            found = values(self.fields()["query"])
            result: list[dict[str, object]] = [
                {"metric": {**labels(each), "application_id": each}, "value": [1.0, str(value)]}
                for each, value in found.items()
            ]
            self.reply(json.dumps({"status": "success", "data": {"resultType": "vector", "result": result}}).encode())

    with Server(Answering) as server:
        yield server.url
