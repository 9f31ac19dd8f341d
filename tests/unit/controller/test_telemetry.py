"""The operator's own series."""

from __future__ import annotations

from prometheus_client import CollectorRegistry

from ballast.controller.telemetry import Telemetry
from ballast.model import NodeView


def policies(telemetry: Telemetry) -> set[str]:
    """Those that any series is about."""
    samples = (sample for metric in telemetry.registry.collect() for sample in metric.samples)
    return {sample.labels["policy"] for sample in samples if "policy" in sample.labels}


def test_a_policy_that_is_gone_leaves_no_series() -> None:
    telemetry = Telemetry(CollectorRegistry())
    for name in ("streaming", "batch"):
        telemetry.introduce(name)
        telemetry.last_pass.labels(name).set(1.0)
        telemetry.figures_at.labels(name).set(1.0)
        telemetry.pass_seconds.labels(name).observe(0.1)
        telemetry.keep_nodes(name, [NodeView("a", ("z", "r", "a"), 50.0, 50.0, 1)])
    assert policies(telemetry) == {"streaming", "batch"}
    telemetry.forget("batch")
    assert policies(telemetry) == {"streaming"}
    telemetry.forget("batch")
