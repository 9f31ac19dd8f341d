"""What Prometheus holds about the nodes, asked over its HTTP API."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import requests

from ballast.enums import Preset
from ballast.prometheus.preset import queries
from tests.testbed.nodes import METRICS_PORT

_TIMEOUT_SECONDS = 10

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Figures:
    """`capacity_cores` and `addresses` by node, for the nodes that are asked about."""

    url: str
    capacity_cores: dict[str, float]
    addresses: dict[str, str]
    window_seconds: float

    def history(self, start: float, end: float, step_seconds: float = 3.0) -> dict[str, list[tuple[float, float]]]:
        """CPU in percent of each node's capacity over time: the score, by the same query as the operator's."""
        query = queries(Preset.KUBE_PROMETHEUS_STACK, {}).rendered(self.window_seconds)["nodeCpu"]
        answer = self._ask("query_range", query=query, start=start, end=end, step=step_seconds)
        nodes = {f"{address}:{METRICS_PORT}": name for name, address in self.addresses.items()}
        found: dict[str, list[tuple[float, float]]] = {}
        for series in answer:
            name = nodes.get(series["metric"].get("instance", ""))
            if name in self.capacity_cores:
                capacity = self.capacity_cores[name]
                found[name] = [(at, 100.0 * float(value) / capacity) for at, value in series["values"]]
        return found

    def latest(self) -> dict[str, float]:
        """The last of each node's history."""
        now = time.time()
        return {name: points[-1][1] for name, points in self.history(now, now).items()}

    def scores(self) -> dict[str, float]:
        """The operator's own scores by node; none while no operator leads."""
        return {each["metric"]["node"]: float(each["value"][1]) for each in self._now("ballast_node_score_percent")}

    def hits(self) -> dict[str, tuple[int, int]]:
        """The operator's own low and high hits by node."""
        found: dict[str, dict[str, int]] = {}
        for each in self._now("ballast_node_hits"):
            metric = each["metric"]
            found.setdefault(metric["node"], {})[metric["threshold"]] = int(float(each["value"][1]))
        return {node: (hits.get("low", 0), hits.get("high", 0)) for node, hits in found.items()}

    def value(self, query: str) -> float | None:
        """The one figure that the query gives now; None when it gives none."""
        answer = self._now(query)
        return float(answer[0]["value"][1]) if answer else None

    def by_label(self, query: str, label: str) -> dict[str, float]:
        """What the query gives now, by one of its labels."""
        return {each["metric"].get(label, ""): float(each["value"][1]) for each in self._now(query)}

    def _now(self, query: str) -> list[Json]:
        return self._ask("query", query=query)

    def _ask(self, kind: str, **parameters: Any) -> list[Json]:
        with requests.Session() as session:
            session.trust_env = False
            answer = session.get(f"{self.url}/api/v1/{kind}", params=parameters, timeout=_TIMEOUT_SECONDS)
        answer.raise_for_status()
        found: list[Json] = answer.json()["data"]["result"]
        return found
