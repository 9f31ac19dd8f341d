"""The pod template of executors that settings name (spark.kubernetes.executor.podTemplateFile)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from ballast.doctor.submission import EXECUTOR_TEMPLATE, Passed, Submission

_SCHEDULERS = ("spark.kubernetes.executor.scheduler.name", "spark.kubernetes.scheduler.name")


def with_pod_template(app: Submission, document_of: Callable[[str], object | None]) -> Submission:
    """The application with what its template says of its executors' pods.

    `document_of` gives what the file holds, or None if it can't be read. Then the template stays passed over. Settings
    and fields of a resource win over the template, as they do in Spark.
    """
    name = app.conf.get(EXECUTOR_TEMPLATE)
    template = None if name is None else document_of(name)
    if name is None or not isinstance(template, Mapping) or not isinstance(template.get("spec"), Mapping):
        return app
    known, spec = app.executor, template["spec"]
    grace, scheduler = spec.get("terminationGracePeriodSeconds"), spec.get("schedulerName")
    where = f"{name}: spec"
    pod = known
    if known.template_grace_seconds is None and isinstance(grace, int | float) and not isinstance(grace, bool):
        pod = replace(
            pod, template_grace_seconds=float(grace), template_grace_field=f"{where}.terminationGracePeriodSeconds"
        )
    if isinstance(scheduler, str) and not known.scheduler and not any(map(app.is_set, _SCHEDULERS)):
        pod = replace(pod, scheduler=scheduler, scheduler_field=f"{where}.schedulerName")
    return replace(
        app,
        executor=replace(pod, annotations={**_metadata(template, "annotations"), **pod.annotations}),
        executor_labels={**_metadata(template, "labels"), **app.executor_labels},
        passed=tuple(each for each in app.passed if each != Passed(f"the pod template {name}")),
    )


def _metadata(template: Mapping[str, Any], field: str) -> dict[str, str]:
    metadata = template.get("metadata")
    found = metadata.get(field) if isinstance(metadata, Mapping) else None
    return {str(key): str(value) for key, value in found.items()} if isinstance(found, Mapping) else {}
