"""Proposes the label that tells Ballast how many executors an application is going to have."""

from __future__ import annotations

from collections.abc import Iterator

from ballast.doctor.catalog import Finding, found
from ballast.doctor.shuffle_service import service_of
from ballast.doctor.spark_version import SparkVersion
from ballast.doctor.submission import EXECUTOR_LABEL, Submission

EXECUTORS_LABEL = "ballast.dev/executors"
_DYNAMIC = "spark.dynamicAllocation"
_TOPOLOGY, _COMPONENT = "ballast.dev/topology", "ballast.dev/component"
_BATCH = "spark.kubernetes.allocation.batch.size"
_BATCH_SIZES = ((SparkVersion(4, 2), 20), (SparkVersion(4, 0), 10), (SparkVersion(0, 0), 5))
"""Its default, from each of these versions on."""
_MOST = 999_999
"""That the operator reads. Spark's own default of maxExecutors is the largest integer."""


def expected_size(app: Submission) -> Iterator[Finding]:
    told = EXECUTORS_LABEL in {**app.executor_labels, **app.executor_annotations} or _is_declared(app)
    if told or service_of(app.conf) is not None:
        return
    key = _key(app)
    count, at_once = app.whole(key, 0) if key else 0, _at_once(app)
    if at_once < count <= _MOST:
        what = f"{key} is {count}, Spark creates {at_once} at once, and they have no label {EXECUTORS_LABEL}."
        yield found("SizeUnknown", app.source, what, settings={f"{EXECUTOR_LABEL}{EXECUTORS_LABEL}": str(count)})


def _key(app: Submission) -> str:
    """The setting that says how many there will be: with dynamic allocation at most, or to begin with."""
    if not app.flag(f"{_DYNAMIC}.enabled"):
        return "spark.executor.instances"
    keys = (f"{_DYNAMIC}.maxExecutors", f"{_DYNAMIC}.initialExecutors")
    return next((key for key in keys if app.is_set(key)), "")


def _at_once(app: Submission) -> int:
    """Executors of one batch are seen together, so they need no label."""
    return app.whole(_BATCH, next(size for since, size in _BATCH_SIZES if since <= app.spark))


def _is_declared(app: Submission) -> bool:
    """By `executors` of its component, in a SparkTopology of the same file."""
    labels = {**app.executor_labels, "spark-role": "executor"}
    return any(
        component.executors is not None
        and (
            (component.selector is not None and component.selector.matches(labels))
            or (
                labels.get(_TOPOLOGY) == topology.metadata.name
                and (len(topology.spec.components) == 1 or labels.get(_COMPONENT) == component.name)
            )
        )
        for topology in app.topologies
        for component in topology.spec.components
    )
