"""Checks of an application's settings before it runs. The defaults of its Spark apply to what it does not set."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import yaml

from ballast.comment import comment
from ballast.doctor.catalog import Finding, Severity, found
from ballast.doctor.foresight import (
    GRACE,
    TOPOLOGY_LABEL,
    foresee,
    grace_of,
    not_on_kubernetes,
    runs_alone,
    shown,
    workload_of,
)
from ballast.doctor.shuffle_service import service_of
from ballast.doctor.spark_version import default_of, exists
from ballast.doctor.submission import Form, Submission, UnreadError

_LONGEST_FETCH_SECONDS = 60.0
"""A batch that waits longer for an executor that has left is worth a warning."""

_LEAST_RETAINED = 4
"""Executors that Spark must remember as departed for more than three to leave within a stage."""
_STAGED = ("Batch", "Interactive")
"""Workloads whose stages may run for long."""
RETAINED_LABEL = "ballast.dev/retained-departures"
_DYNAMIC = "spark.dynamicAllocation"
_STORAGE = "spark.storage.decommission"
_IO = "spark.shuffle.io"


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectations:
    """What the cluster's policy asks of an application."""

    gate_timeout_seconds: float = 10.0


def check(submissions: Iterable[Submission], expected: Expectations) -> list[Finding]:
    """Raises InvalidField for a setting that Spark would refuse. What could not be read is no finding."""
    return [finding for each in submissions for finding in _of(each, expected)]


def _of(app: Submission, expected: Expectations) -> Iterator[Finding]:
    try:
        elsewhere = list(not_on_kubernetes(app))
    except UnreadError:
        elsewhere = []
    if elsewhere or runs_alone(app):
        yield from elsewhere
        return
    for rule in _RULES:
        try:
            found_here = list(rule(app, expected))
        except UnreadError:
            continue
        yield from (_in_this_version(each, app) for each in found_here)
    yield from (_in_this_version(each, app) for each in foresee(app))


def _in_this_version(finding: Finding, app: Submission) -> Finding:
    """A patch has no setting that this Spark does not know."""
    settings = {key: value for key, value in finding.settings.items() if exists(key, app.spark)}
    lost = sorted(set(finding.settings) - set(settings))
    if not lost:
        return finding
    what = f"{finding.what} Spark {app.spark} does not have {', '.join(lost)}."
    return replace(finding, settings=settings, what=what)


def _decommission(app: Submission, expected: Expectations) -> Iterator[Finding]:
    del expected
    key = "spark.decommission.enabled"
    if not exists(key, app.spark):
        what = f"An executor of Spark {app.spark} can't leave gracefully: decommissioning begins with Spark 3.1."
        yield found("DecommissionOff", app.source, what)
    elif not app.flag(key):
        yield found("DecommissionOff", app.source, f"{key} is {shown(app, key, 'false')}.", settings={key: "true"})


def _locality_wait(app: Submission, expected: Expectations) -> Iterator[Finding]:
    del expected
    general = "spark.locality.wait"
    text = app.text(general, "3s")
    keys = [f"{general}.process", f"{general}.node"]
    waits = {key: app.seconds(key if app.is_set(key) else general, text, unit="ms") for key in keys}
    if any(waits.values()):
        longest = max(waits, key=lambda key: waits[key])
        named = longest if longest in app.conf else general
        changes = {general: "0s", **{key: "0s" for key in keys if key in app.conf}}
        yield found("LocalityWait", app.source, f"{named} is {shown(app, named, '3s')}.", settings=changes)


def _storage_grace(app: Submission, expected: Expectations) -> Iterator[Finding]:
    """In the worst case a pass has just begun when the last task ends: then two intervals pass."""
    del expected
    interval_key = f"{_STORAGE}.replicationReattemptInterval"
    if not app.flag(f"{_STORAGE}.enabled") or not exists(interval_key, app.spark) or service_of(app.conf):
        return
    interval = app.seconds(interval_key, "30s")
    grace, where = grace_of(app)
    if 2 * interval > grace:
        named = f"{grace:g}s ({where})" if where and where != GRACE else shown(app, GRACE, "30s")
        what = (
            f"{interval_key} is {shown(app, interval_key, '30s')} and the grace period is "
            f"{named if where else '30s, the default of Kubernetes'}: less than two passes."
        )
        yield found("StorageDecommissionGrace", app.source, what, settings={interval_key: "2s"})


def _departures(app: Submission, expected: Expectations) -> Iterator[Finding]:
    """Of jobs that Ballast drains only if nothing of a stage is lost."""
    del expected
    retained, ignored = (
        "spark.scheduler.maxRetainedRemovedDecommissionExecutors",
        "spark.stage.ignoreDecommissionFetchFailure",
    )
    if not app.flag("spark.decommission.enabled") or workload_of(app) not in _STAGED or service_of(app.conf):
        return
    if not exists(retained, app.spark):
        return
    changes = {}
    if app.whole(retained, 0) < _LEAST_RETAINED:
        changes = {retained: "100", f"spark.kubernetes.executor.label.{RETAINED_LABEL}": "100"}
    standard = default_of(ignored, app.spark)
    if not app.flag(ignored, default=standard == "true"):
        changes[ignored] = "true"
    if changes:
        what = (
            f"{retained} is {shown(app, retained, '0')} and {ignored} is {shown(app, ignored, standard)}: the fourth "
            "executor that leaves while one stage runs ends the job."
        )
        yield found("DeparturesNotRetained", app.source, what, settings=changes)


def _failures(app: Submission, expected: Expectations) -> Iterator[Finding]:
    del expected
    key, limit_key = "spark.executor.failuresValidityInterval", "spark.executor.maxNumFailures"
    if not exists(key, app.spark) or (app.is_set(key) and app.seconds(key, "", unit="ms") > 0):
        return
    dynamic = app.flag(f"{_DYNAMIC}.enabled")
    if dynamic and not app.is_set(limit_key) and not app.is_set(f"{_DYNAMIC}.maxExecutors"):
        return  # twice the largest integer
    executors = app.whole(f"{_DYNAMIC}.maxExecutors" if dynamic else "spark.executor.instances", 0)
    most = app.whole(limit_key, max(3, 2 * executors))
    counted = app.is_set(limit_key) or executors > 0 or not app.hides
    number = f"failure number {most + 1}" if counted else "a failure beyond the limit"
    what = f"{key} is {shown(app, key, 'no limit')}: {number} ends the application, however late."
    yield found("FailuresNeverExpire", app.source, what, settings={key: "1h"})


def _idle_timeout(app: Submission, expected: Expectations) -> Iterator[Finding]:
    key = f"{_DYNAMIC}.executorIdleTimeout"
    if app.flag(f"{_DYNAMIC}.enabled") and app.seconds(key, "60s") <= expected.gate_timeout_seconds:
        what = (
            f"{key} is {shown(app, key, '60s')}, and an executor may be gated for {expected.gate_timeout_seconds:g}s."
        )
        yield found("IdleTimeoutBelowGate", app.source, what, settings={key: "60s"})


def _registered_wait(app: Submission, expected: Expectations) -> Iterator[Finding]:
    key = "spark.scheduler.maxRegisteredResourcesWaitingTime"
    if app.seconds(key, "30s", unit="ms") <= expected.gate_timeout_seconds:
        what = (
            f"{key} is {shown(app, key, '30s')}, and an executor may be gated for {expected.gate_timeout_seconds:g}s."
        )
        yield found("RegisteredWaitBelowGate", app.source, what, settings={key: "30s"})


def _allocator(app: Submission, expected: Expectations) -> Iterator[Finding]:
    del expected
    key = "spark.kubernetes.allocation.pods.allocator"
    if exists(key, app.spark) and app.text(key, "direct") in ("statefulset", "deployment"):
        yield found("AllocatorOutOfScope", app.source, f"{key} is {app.conf[key]}.", settings={key: "direct"})


def _fetches(app: Submission, expected: Expectations) -> Iterator[Finding]:
    del expected
    if service_of(app.conf):
        return
    creation = f"{_IO}.connectionCreationTimeout"
    network = app.text("spark.network.timeout", "120s")
    connection = app.text(f"{_IO}.connectionTimeout", network)
    key = creation if exists(creation, app.spark) else f"{_IO}.connectionTimeout"
    create = app.seconds(key, connection)
    retries, wait = app.whole(f"{_IO}.maxRetries", 3), app.seconds(f"{_IO}.retryWait", "5s")
    longest = (retries + 1) * create + retries * wait
    if longest > _LONGEST_FETCH_SECONDS:
        what = (
            f"A fetch from an executor that has left may wait {longest:g}s: {retries + 1} attempts of {create:g}s "
            f"({key}), {wait:g}s apart ({_IO}.retryWait)."
        )
        changes = {creation: "5s", f"{_IO}.retryWait": "1s"}
        yield found("DepartedExecutorFetches", app.source, what, settings=changes)


def _client_rack(app: Submission, expected: Expectations) -> Iterator[Finding]:
    del expected
    everything = " ".join([app.packages, *app.arguments, *app.conf, *app.conf.values(), *app.unread])
    if "kafka" in everything.lower() and "client.rack" not in everything.lower():
        what = "It uses Kafka, and neither its arguments nor its configuration mention client.rack."
        yield found("ClientRackMissing", app.source, what)


def _driver_selected(app: Submission, expected: Expectations) -> Iterator[Finding]:
    del expected
    if TOPOLOGY_LABEL in app.driver_labels:
        what = f"The driver has the label {TOPOLOGY_LABEL}={app.driver_labels[TOPOLOGY_LABEL]}."
        alone = TOPOLOGY_LABEL not in app.executor_labels
        yield found("SelectorMatchesDriver", app.source, what, severity=Severity.WARNING if alone else None)
    driver, executor = _labels(app, "driver"), _labels(app, "executor")
    for topology in app.topologies:
        for component in topology.spec.components:
            if component.selector is None or not component.selector.matches(driver):
                continue
            alone = not component.selector.matches(executor)
            what = (
                f"SparkTopology {topology.metadata.name}: the selector of component {component.name} matches the "
                f"driver{' and none of its executors' if alone else ' as well as its executors'}."
            )
            yield found("SelectorMatchesDriver", app.source, what, severity=Severity.WARNING if alone else None)


def _topology_label(app: Submission, expected: Expectations) -> Iterator[Finding]:
    del expected
    labels = _labels(app, "executor")
    selected = any(
        component.selector is not None and component.selector.matches(labels)
        for topology in app.topologies
        for component in topology.spec.components
    )
    if TOPOLOGY_LABEL in labels or selected:
        return
    unread = " What was passed over may have it." if app.hides else ""
    yield found("TopologyLabelMissing", app.source, f"Its executors have no label {TOPOLOGY_LABEL}.{unread}")


def _labels(app: Submission, role: str) -> dict[str, str]:
    """As the pods will have them."""
    own = app.driver_labels if role == "driver" else app.executor_labels
    return {**own, "spark-role": role}


_RULES: Sequence[Callable[[Submission, Expectations], Iterator[Finding]]] = (
    _decommission,
    _locality_wait,
    _storage_grace,
    _departures,
    _failures,
    _idle_timeout,
    _registered_wait,
    _allocator,
    _fetches,
    _client_rack,
    _driver_selected,
    _topology_label,
)


def patch(findings: Iterable[Finding], apps: Mapping[str, Submission]) -> str:
    """One part a subject. `apps`: by subject, of those with Spark configuration. Empty if nothing can be patched."""
    by_subject: dict[str, list[Finding]] = {}
    for finding in findings:
        if finding.settings or finding.commands:
            by_subject.setdefault(finding.subject, []).append(finding)
    return "\n\n".join(_part(subject, each, apps.get(subject)) for subject, each in by_subject.items())


def _part(subject: str, findings: list[Finding], app: Submission | None) -> str:
    settings = {key: value for finding in findings for key, value in finding.settings.items()}
    commands = list(dict.fromkeys(command for finding in findings for command in finding.commands))
    ids = ", ".join(dict.fromkeys(finding.id for finding in findings))
    return "\n".join([comment(f"{subject}: {ids}"), *_written(settings, app), *commands])


def _written(settings: Mapping[str, str], app: Submission | None) -> list[str]:
    if not settings:
        return []
    if app is not None and app.form is Form.COMMAND:
        return [" \\\n".join(f"  --conf {shlex.quote(f'{key}={value}')}" for key, value in settings.items())]
    if app is not None and app.form is Form.SPARK_APPLICATION:
        document: dict[str, Any] = dict(settings)
        for part in reversed(app.patch_at):
            document = {part: document}
        return [yaml.safe_dump(document, sort_keys=False).rstrip()]
    return [f"{key} {value}" for key, value in settings.items()]
