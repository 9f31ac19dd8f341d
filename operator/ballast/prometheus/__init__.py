"""Reading Prometheus: queries, presets, freshness, and the one door through which its answers come."""

from ballast.enums import Preset
from ballast.prometheus.ambiguity import Ambiguity
from ballast.prometheus.client import MOST_VALUES, Prometheus, parsed, settled
from ballast.prometheus.preset import SHUFFLE, SOURCES, Jobs, Queries, queries
from ballast.prometheus.series import Answer, Series, single
from ballast.prometheus.transport import Endpoint, PrometheusError
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
