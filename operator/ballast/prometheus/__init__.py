"""Reading Prometheus: queries, presets, freshness, and the one door through which its answers come.

Each name is loaded when it is first used: what only asks Prometheus, as a task of Spark does, needs no model.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ballast.enums import Preset

if TYPE_CHECKING:
    from ballast.prometheus.ambiguity import Ambiguity
    from ballast.prometheus.client import MOST_VALUES, Prometheus, parsed, settled
    from ballast.prometheus.endpoint import Endpoint, PrometheusError
    from ballast.prometheus.preset import SHUFFLE, SOURCES, Jobs, Queries, queries
    from ballast.prometheus.series import Answer, Series, single
    from ballast.prometheus.usage import DROPPED, ExecutorFrame, NodeFrame, Reading, clock_ahead_seconds, reading

__all__ = [
    "DROPPED",
    "MOST_VALUES",
    "SHUFFLE",
    "SOURCES",
    "Ambiguity",
    "Answer",
    "Endpoint",
    "ExecutorFrame",
    "Jobs",
    "NodeFrame",
    "Preset",
    "Prometheus",
    "PrometheusError",
    "Queries",
    "Reading",
    "Series",
    "clock_ahead_seconds",
    "parsed",
    "queries",
    "reading",
    "settled",
    "single",
]

_HOMES = {
    "DROPPED": "usage",
    "MOST_VALUES": "client",
    "SHUFFLE": "preset",
    "SOURCES": "preset",
    "Ambiguity": "ambiguity",
    "Answer": "series",
    "Endpoint": "endpoint",
    "ExecutorFrame": "usage",
    "Jobs": "preset",
    "NodeFrame": "usage",
    "Prometheus": "client",
    "PrometheusError": "endpoint",
    "Queries": "preset",
    "Reading": "usage",
    "Series": "series",
    "clock_ahead_seconds": "usage",
    "parsed": "client",
    "queries": "preset",
    "reading": "usage",
    "settled": "client",
    "single": "series",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
