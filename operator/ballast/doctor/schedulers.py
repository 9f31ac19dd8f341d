"""Checks of an application's scheduler: whether Ballast places its executors at all, and what doesn't hold there."""

from __future__ import annotations

from collections.abc import Iterator

from ballast.doctor.catalog import Finding, found
from ballast.doctor.spark_version import exists
from ballast.doctor.submission import DRIVER_ANNOTATION, Submission, labeled
from ballast.model import gang_of

LIMITS = {
    "yunikorn": (
        "YuniKorn keeps to scheduling gates and to what is required. It scores no nodes and reads no nominations, so "
        "the racks and nodes that Ballast prefers have no effect"
    ),
    "volcano": (
        "Volcano keeps to scheduling gates and to what is required, and prefers nodes only with its plugin nodeorder. "
        "It reads no nominations, so another pod may take the room on the node that Ballast has chosen"
    ),
}
"""By scheduler: what of a placement doesn't hold there."""
_NAMES = ("spark.kubernetes.executor.scheduler.name", "spark.kubernetes.scheduler.name")
_STEPS = ("spark.kubernetes.executor.pod.featureSteps", "spark.kubernetes.driver.pod.featureSteps")
_VOLCANO_STEP = "VolcanoFeatureStep"


def scheduler(app: Submission) -> Iterator[Finding]:
    # The webhook of kubeflow's operator acts last; Spark's settings override a template.
    where, name = app.executor.scheduler_field, app.executor.scheduler
    if ".template." in where or "podTemplateSpec" in where or not name:
        key = next((key for key in _NAMES if app.is_set(key) and exists(key, app.spark)), "")
        where, name = (key, app.text(key)) if key else (where, name)
    if name and name not in app.scheduler_names:
        yield found("ForeignScheduler", app.source, f"{where} is {name}.")
    elif name in LIMITS:
        yield found("SchedulerLimits", app.source, f"{where} is {name}. {LIMITS[name]}.")


def gang(app: Submission) -> Iterator[Finding]:
    what = _gang(app)
    if what:
        yield found("Gang", app.source, f"{what}.")


def _gang(app: Submission) -> str:
    if app.executor.scheduler_field == "spec.batchScheduler":
        return f"spec.batchScheduler is {app.executor.scheduler}, for which the operator makes a pod group"
    for key in _STEPS:
        if _VOLCANO_STEP in app.conf.get(key, ""):
            return f"{key} names {_VOLCANO_STEP}, which makes a pod group"
    own = gang_of(app.executor_labels, app.executor_annotations)
    if own:
        return f"Its executors have the {own}"
    of_driver = gang_of(app.driver_labels, labeled({**app.conf, **app.unread}, DRIVER_ANNOTATION))
    return f"Its driver has the {of_driver}" if of_driver else ""
