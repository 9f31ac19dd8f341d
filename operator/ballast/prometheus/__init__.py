"""Reading Prometheus: queries, presets, freshness. The only importer of `prometheus_api_client`."""

from ballast.prometheus.client import Endpoint, Prometheus, PrometheusError, settled
from ballast.prometheus.preset import Preset, Queries, queries
from ballast.prometheus.series import single
from ballast.prometheus.usage import ExecutorFrame, NodeFrame, Reading, reading

__all__ = [
    "Endpoint",
    "ExecutorFrame",
    "NodeFrame",
    "Preset",
    "Prometheus",
    "PrometheusError",
    "Queries",
    "Reading",
    "queries",
    "reading",
    "settled",
    "single",
]
