"""A cluster as one process of the operator sees it: an API server, and a Prometheus."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.apiserver import Answer, ApiServer, Asked, Watch

JSON = dict[str, Any]
METRICS = "/metrics-of-nodes"
"""Below this, it answers as Prometheus does."""


@dataclass
class World(ApiServer):
    cores: dict[str, float] = field(default_factory=dict)
    """Used on each node, as Prometheus has it; each executor uses half a core."""
    memory: dict[str, float] = field(default_factory=dict)
    """Bytes used on each node."""
    credentials: dict[str, set[str | None]] = field(default_factory=lambda: defaultdict(set))
    """That each server was sent: Prometheus, and the API server by Ballast and by kopf."""

    def respond(self, asked: Asked) -> Answer | Watch:
        measured = asked.path.startswith(METRICS)
        of_kopf = asked.headers.get("User-Agent", "").startswith("kopf")
        to = "prometheus" if measured else "kopf" if of_kopf else "ballast"
        self.credentials[to].add(asked.headers.get("Authorization"))
        return self._measured(asked) if measured else super().respond(asked)

    def _measured(self, asked: Asked) -> Answer:
        result = [{"metric": labels, "value": [0, str(cores)]} for labels, cores in self._series(asked.path)]
        return Answer(body={"status": "success", "data": {"resultType": "vector", "result": result}})

    def _series(self, query: str) -> Iterator[tuple[JSON, float]]:
        if "cores_of_nodes" in query:
            yield from (({"node": node}, cores) for node, cores in self.cores.items())
        if "memory_of_nodes" in query:
            yield from (({"node": node}, used) for node, used in self.memory.items())
        if "cores_of_executors" in query:
            for pod in self.all("pods"):
                yield {"namespace": pod["metadata"]["namespace"], "pod": pod["metadata"]["name"]}, 0.5
