"""The Grafana dashboards of the chart: three lists of panels. `make generate` writes them as Grafana reads them.

Grafana needs an id for each panel and a refId for each query, and lays panels out on a grid of 24 columns.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ballast.model import FAULTS
from tests.charts.rendering import CHART

FOLDER = CHART / "files" / "dashboards"
_WIDTH, _HEIGHT, _COLUMNS = 8, 8, 24
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_POLICY = 'policy=~"$policy"'
FAULTY = "|".join(sorted(FAULTS))
"""Causes of `ballast_unplaced_executors` that a user should see to."""


@dataclass(frozen=True, slots=True)
class Panel:
    """One plot over time. `queries`: PromQL by legend."""

    title: str
    unit: str
    queries: dict[str, str]
    description: str = ""


@dataclass(frozen=True, slots=True)
class Dashboard:
    """`variables`: the query of each, by name."""

    name: str
    title: str
    variables: dict[str, str]
    panels: tuple[Panel, ...]

    @property
    def file(self) -> Path:
        return FOLDER / f"{self.name}.json"

    def text(self) -> str:
        """What the file holds."""
        document = {
            "uid": f"ballast-{self.name}",
            "title": self.title,
            "tags": ["ballast"],
            "schemaVersion": 39,
            "time": {"from": "now-6h", "to": "now"},
            "refresh": "30s",
            "templating": {"list": [_SOURCES, *(_variable(*each) for each in self.variables.items())]},
            "panels": list(self._placed()),
        }
        return json.dumps(document, indent=1) + "\n"

    def _placed(self) -> Iterator[dict[str, Any]]:
        for index, panel in enumerate(self.panels):
            row, column = divmod(index * _WIDTH, _COLUMNS)
            yield {
                "id": index + 1,
                "type": "timeseries",
                "title": panel.title,
                "description": panel.description,
                "datasource": _SOURCE,
                "gridPos": {"x": column, "y": row * _HEIGHT, "w": _WIDTH, "h": _HEIGHT},
                "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
                "targets": [
                    {"refId": chr(ord("A") + at), "datasource": _SOURCE, "expr": query, "legendFormat": legend}
                    for at, (legend, query) in enumerate(panel.queries.items())
                ],
            }


_SOURCES = {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Prometheus"}


def _variable(name: str, query: str) -> dict[str, Any]:
    return {
        "name": name,
        "type": "query",
        "datasource": _SOURCE,
        "query": {"query": query, "refId": name},
        "multi": True,
        "includeAll": True,
        "refresh": 2,
    }


POOL = Dashboard(
    "pool",
    "Ballast: pool",
    {"policy": "label_values(ballast_last_pass_timestamp_seconds, policy)"},
    (
        Panel("Scores of nodes", "percent", {"{{node}}": f"ballast_node_score_percent{{{_POLICY}}}"}),
        Panel("Gap of hottest and coldest node", "none", {"{{policy}}": f"ballast_pool_gap_points{{{_POLICY}}}"}),
        Panel("Hits", "none", {"{{node}} {{threshold}}": f"ballast_node_hits{{{_POLICY}}} > 0"}),
        Panel("Open moves", "none", {"{{phase}}": f"sum by (phase) (ballast_open_moves{{{_POLICY}}})"}),
        Panel(
            "Moves that ended, an hour", "none",
            {"{{phase}}": f"sum by (phase) (increase(ballast_moves_total{{{_POLICY}}}[1h]))"},
        ),
        Panel(
            "Gain of the last move", "none",
            {
                "predicted {{policy}}": f"ballast_move_predicted_gain_points{{{_POLICY}}}",
                "measured {{policy}}": f"ballast_move_measured_gain_points{{{_POLICY}}}",
            },
        ),
        Panel("Moves that budgets allow", "none", {"{{policy}} {{budget}}": f"ballast_budget_moves_left{{{_POLICY}}}"}),
        Panel(
            "Refusals a minute", "none",
            {"{{reason}}": f"sum by (reason) (rate(ballast_refusals_total{{{_POLICY}}}[5m])) * 60 > 0"},
        ),
        Panel("Age of metrics", "s", {"{{policy}}": f"ballast_metrics_age_seconds{{{_POLICY}}}"}),
    ),
)  # fmt: skip
TOPOLOGY = Dashboard(
    "topology",
    "Ballast: topologies",
    {
        "policy": "label_values(ballast_last_pass_timestamp_seconds, policy)",
        "topology": 'label_values(ballast_topology_cross_zone_ratio{policy=~"$policy"}, topology)',
    },
    (
        Panel(
            "Traffic that crosses zones", "percentunit",
            {"{{topology}}": f'ballast_topology_cross_zone_ratio{{{_POLICY},topology=~"$topology"}}'},
        ),
        Panel(
            "Bytes that cross zones", "Bps",
            {"{{topology}}": f'ballast_topology_cross_zone_bytes_per_second{{{_POLICY},topology=~"$topology"}}'},
        ),
        Panel(
            "Traffic that crosses racks", "percentunit",
            {"{{topology}}": f'ballast_topology_cross_rack_ratio{{{_POLICY},topology=~"$topology"}}'},
        ),
        Panel("Gated executors", "none", {"{{policy}}": f"ballast_gated_executors{{{_POLICY}}}"}),
        Panel(
            "Time at the gate", "s",
            {
                f"p{percent}": f"histogram_quantile({percent / 100}, "
                f"sum by (le) (rate(ballast_gate_hold_seconds_bucket{{{_POLICY}}}[1h])))"
                for percent in (50, 99)
            },
        ),
        Panel(
            "Executors that are not placed", "none",
            {"{{cause}}": f'sum by (cause) (ballast_unplaced_executors{{{_POLICY},cause=~"{FAULTY}"}})'},
            "Without causes that end by themselves or need nothing to be done.",
        ),
    ),
)  # fmt: skip
OPERATOR = Dashboard(
    "operator",
    "Ballast: operator",
    {"policy": "label_values(ballast_last_pass_timestamp_seconds, policy)"},
    (
        Panel("Leader", "none", {"{{pod}}": "ballast_leading"}),
        Panel("Since the last pass", "s", {"{{policy}}": f"time() - ballast_last_pass_timestamp_seconds{{{_POLICY}}}"}),
        Panel(
            "Time of a pass, p99", "s",
            {
                "{{policy}}": "histogram_quantile(0.99, sum by (le, policy) "
                f"(rate(ballast_pass_duration_seconds_bucket{{{_POLICY}}}[15m])))"
            },
        ),
        Panel(
            "Requests to the API server a second", "none",
            {"{{verb}} {{resource}}": "sum by (verb, resource) (rate(ballast_api_requests_total[5m]))"},
        ),
        Panel(
            "Requests that fail a second", "none",
            {
                "{{code}} {{verb}} {{resource}}": "sum by (code, verb, resource) "
                '(rate(ballast_api_requests_total{code!~"2.."}[5m]))'
            },
        ),
        Panel(
            "Unusable readings of Prometheus a minute", "none",
            {"{{reason}}": f"sum by (reason) (rate(ballast_prometheus_errors_total{{{_POLICY}}}[15m])) * 60"},
        ),
        Panel("Age of watches", "s", {"{{resource}}": "max by (resource) (ballast_watch_age_seconds)"}),
        Panel("Memory", "bytes", {"{{pod}}": "process_resident_memory_bytes and on (instance) ballast_leading"}),
        Panel("CPU", "none", {"{{pod}}": "rate(process_cpu_seconds_total[5m]) and on (instance) ballast_leading"}),
    ),
)  # fmt: skip
DASHBOARDS = (POOL, TOPOLOGY, OPERATOR)


def write() -> None:
    """Make the files current."""
    for dashboard in DASHBOARDS:
        dashboard.file.write_text(dashboard.text())
