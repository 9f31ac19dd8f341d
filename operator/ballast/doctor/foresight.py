"""Checks of an application for what the operator would refuse: moves, foreign schedulers, and pods that can't leave."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from ballast.doctor import shuffle_service
from ballast.doctor.catalog import Finding, found
from ballast.doctor.expected_size import expected_size
from ballast.doctor.real_time import SETTINGS
from ballast.doctor.schedulers import gang, scheduler
from ballast.doctor.spark_version import SparkVersion, default_of, exists
from ballast.doctor.submission import EXECUTOR_LABEL, Form, Submission, UnreadError
from ballast.enums import Workload
from ballast.errors import InvalidField

WORKLOAD_LABEL = "ballast.dev/workload"
TOPOLOGY_LABEL = "ballast.dev/topology"
COMPONENT_LABEL = "ballast.dev/component"
GRACE = "spark.kubernetes.executor.terminationGracePeriodSeconds"
_SHORTEST_EXIT_SECONDS = 5.0
"""A decommissioned executor was measured to exit after 3.3 s."""
_STREAMING = "Streaming"
_STATE_STORE = "spark.sql.streaming.stateStore.providerClass"
_METRICS = "spark.metrics.conf"
_SERVLET = "sink.prometheusServlet"
_SERVLET_CLASS = "org.apache.spark.metrics.sink.PrometheusServlet"
_SERIAL_BELOW_MIB = 1792.0
_INSTANCES = "spark.executor.instances"
_WITHOUT_EXECUTORS = {"org.apache.spark.deploy.history.HistoryServer"}
_IMAGES = ("spark.kubernetes.executor.container.image", "spark.kubernetes.container.image")
_JAVA_8_IMAGE = re.compile(r"(?:java|jdk|jre|openjdk)[-_]?8\b|\b8-j(?:re|dk)", re.IGNORECASE | re.ASCII)
_FIRST_ON_JAVA_11 = SparkVersion(3, 0)
_COLLECTOR = re.compile(r"-XX:\+Use\w+GC\b", re.ASCII)


def master_of(app: Submission) -> str:
    """Where the driver asks for executors; empty if nothing says so."""
    return app.text("spark.kubernetes.driver.master") or app.text("spark.master")


def runs_alone(app: Submission) -> str:
    """Why there are no executors; empty if there are some."""
    if app.main_class in _WITHOUT_EXECUTORS:
        return app.main_class.rpartition(".")[2]
    try:
        if master_of(app).startswith("local"):
            return master_of(app)
        if app.text(_INSTANCES).strip() == "0" and not app.flag("spark.dynamicAllocation.enabled"):
            return f"{_INSTANCES}=0"
    except (UnreadError, InvalidField):
        pass
    return ""


def grace_of(app: Submission) -> tuple[float, str]:
    """The executors' grace period in seconds, and what says so. Raises UnreadError."""
    pod = app.executor
    if pod.grace_seconds is not None:
        return pod.grace_seconds, pod.grace_field
    if exists(GRACE, app.spark):
        return app.seconds(GRACE, "30s"), GRACE
    if pod.template_grace_seconds is not None:
        return pod.template_grace_seconds, pod.template_grace_field
    return 30.0, ""


def foresee(app: Submission) -> Iterator[Finding]:
    for rule in _RULES:
        try:
            yield from rule(app)
        except UnreadError:
            continue


def not_on_kubernetes(app: Submission) -> Iterator[Finding]:
    master = master_of(app)
    if master and not master.startswith(("k8s://", "local")):
        yield found("NotOnKubernetes", app.source, f"Its master is {master}.")


def _grace(app: Submission) -> Iterator[Finding]:
    seconds, where = grace_of(app)
    if seconds < _SHORTEST_EXIT_SECONDS:
        settings = {GRACE: "60s"} if where == GRACE else {}
        yield found("GracePeriodTooShort", app.source, f"{where} is {seconds:g} s.", settings=settings)


def _without_effect(app: Submission) -> Iterator[Finding]:
    if app.is_set(GRACE) and not exists(GRACE, app.spark):
        what = f"{GRACE} is {app.text(GRACE)}, and Spark {app.spark} does not know it."
        yield found("GracePeriodIgnored", app.source, what)
        return
    seconds = app.executor.template_grace_seconds
    overridden = exists(GRACE, app.spark) and not app.is_set(GRACE) and app.executor.grace_seconds is None
    if overridden and seconds is not None and seconds != 30.0:
        what = f"{app.executor.template_grace_field} is {seconds:g} s, and Spark {app.spark} overrides it with 30 s."
        yield found("GracePeriodIgnored", app.source, what, settings={GRACE: f"{max(seconds, 30.0):g}s"})


def _shuffle_service(app: Submission) -> Iterator[Finding]:
    service = shuffle_service.service_of(app.conf)
    if service is not None:
        yield found("RemoteShuffle", app.source, f"It shuffles through {service}.")


def workload_of(app: Submission) -> str | None:
    """As a label, or a SparkTopology of the same file, tells it. None if a SparkTopology elsewhere may."""
    named = app.executor_labels.get(WORKLOAD_LABEL)
    topology = app.executor_labels.get(TOPOLOGY_LABEL)
    if f"{EXECUTOR_LABEL}{WORKLOAD_LABEL}" in app.unread or f"{EXECUTOR_LABEL}{TOPOLOGY_LABEL}" in app.unread:
        return None
    labels = {**app.executor_labels, "spark-role": "executor"}
    for each in app.topologies:
        for component in each.spec.components:
            selected = component.selector is not None and component.selector.matches(labels)
            own = topology == each.metadata.name and labels.get(COMPONENT_LABEL) == component.name
            if (selected or own) and component.workload is not None:
                return str(component.workload)
    if named is not None:
        return named
    return None if topology is not None else ""


def _workload(app: Submission) -> Iterator[Finding]:
    """Without a topology label TopologyLabelMissing says more."""
    workload = workload_of(app)
    if workload == "" and not app.hides:
        what = f"Its executors have neither the label {WORKLOAD_LABEL} nor {TOPOLOGY_LABEL}."
        yield found("WorkloadUnknown", app.source, what)


def _real_time(app: Submission) -> Iterator[Finding]:
    """By the code, where that could be read, or by the mode's own settings, which have no effect on others."""
    key = next((each for each in sorted({*app.conf, *app.unread}) if each.startswith(SETTINGS)), None)
    told = app.real_time_by or (f"{key} is set" if key is not None else "")
    if not told or workload_of(app) in (None, Workload.REAL_TIME):
        return
    settings = {f"{EXECUTOR_LABEL}{WORKLOAD_LABEL}": str(Workload.REAL_TIME)}
    yield found("RealTimeMoved", app.source, f"{told}, and its workload is not RealTime.", settings=settings)


def _metrics(app: Submission) -> Iterator[Finding]:
    """What docs/use.md lists under "What Spark needs for moves", of an application that asks for moves."""
    if workload_of(app) != _STREAMING:
        return
    state, ui = "spark.sql.streaming.metricsEnabled", "spark.ui.prometheus.enabled"
    if not app.flag(state):
        yield found(
            "StateMetricsOff", app.source, f"{state} is {shown(app, state, 'false')}.", settings={state: "true"}
        )
    if "RocksDB" in app.text(_STATE_STORE):
        yield found("RocksDbState", app.source, f"{_STATE_STORE} is {app.text(_STATE_STORE)}.")
    if not _exposed(app):
        key = f"{_METRICS}.*.{_SERVLET}"
        what = f"{key}.class is {'not in what was read' if app.hides else 'unset'}."
        settings = {f"{key}.class": _SERVLET_CLASS, f"{key}.path": "/metrics/prometheus"}
        yield found("MetricsNotExposed", app.source, what, settings=settings)
    standard = default_of(ui, app.spark)
    if not app.flag(ui, default=standard == "true"):
        what = f"{ui} is {shown(app, ui, standard)}."
        yield found("ExecutorMetricsOff", app.source, what, settings={ui: "true"})


def _exposed(app: Submission) -> bool:
    """A servlet for the driver, in the settings; a file of metrics properties is not read."""
    keys = {f"{_METRICS}.{instance}.{_SERVLET}.class" for instance in ("*", "driver")}
    return any(app.is_set(key) for key in keys)


def _metric_names(app: Submission) -> Iterator[Finding]:
    agent = next(
        (
            key
            for key in ("spark.executor.extraJavaOptions", "spark.driver.extraJavaOptions")
            if "jmx_prometheus" in app.conf.get(key, "")
        ),
        "",
    )
    where = f"spec.{app.exporter.field}" if app.exporter is not None else agent
    if where and not _exposed(app):
        yield found("JmxMetricsUnread", app.source, f"{where} names the JMX exporter.")
    key = "spark.metrics.namespace"
    if app.is_set(key) and workload_of(app) == _STREAMING:
        by = "spec.monitoring sets" if app.exporter is not None else "It sets"
        yield found("MetricsNamespaceSet", app.source, f"{by} {key}={app.text(key)}.")


def _python_memory(app: Submission) -> Iterator[Finding]:
    key, type_key = "spark.executor.pyspark.memory", "spark.kubernetes.resource.type"
    if app.client_mode and app.is_set(key) and app.text(type_key) != "python":
        what = f"{key} is {app.text(key)}, and the driver runs in client mode."
        yield found("PythonMemoryIgnored", app.source, what, settings={type_key: "python"})


def _collector(app: Submission) -> Iterator[Finding]:
    """What Java chooses by limits that are written. What it chooses by defaults is told next to what was read."""
    what, by_default = _serial(app)
    if what and not by_default:
        # No patch: fields of resources override this setting, and a collector is the user's choice.
        yield found("SerialCollector", app.source, f"{what}.")
    elif not what and not _chosen(app) and (java := _java_8(app)):
        yield found("ParallelCollector", app.source, f"{java}.")


def serial_by_default(app: Submission) -> str:
    """Why Java takes the serial collector by limits that are defaults; empty if it does not."""
    try:
        what, by_default = _serial(app)
    except (UnreadError, InvalidField):
        return ""
    return what if by_default else ""


def _chosen(app: Submission) -> bool:
    options = app.text("spark.executor.extraJavaOptions") + app.text("spark.executor.defaultJavaOptions")
    return _COLLECTOR.search(options) is not None


def _serial(app: Submission) -> tuple[str, bool]:
    """Which limit makes Java choose the serial collector, and whether that is a default. Raises UnreadError."""
    memory, cores = "spark.executor.memory", "spark.kubernetes.executor.limit.cores"
    if _chosen(app):
        return "", False
    if app.is_set(cores) and _cores(app.text(cores)) <= 1.0:
        return f"{cores} is {app.text(cores)}", cores in app.set_by_operator
    written = app.is_set(memory) and memory not in app.set_by_operator
    # A file of defaults leaves the memory to each application.
    if not written and (app.hides or app.form is Form.PROPERTIES):
        return "", False
    limit = app.mib(memory, "1g") + _overhead_mib(app) + _off_heap_mib(app) + _python_mib(app)
    return (f"An executor's memory limit is {limit:.0f} MiB", not written) if limit < _SERIAL_BELOW_MIB else ("", False)


def _java_8(app: Submission) -> str:
    """What tells that executors run on Java 8; empty if nothing does."""
    if app.version is not None and app.version < _FIRST_ON_JAVA_11:
        return f"Spark {app.version} ({app.version.told_by}) runs on Java 8 alone"
    image = next((app.conf[each] for each in _IMAGES if each in app.conf), "")
    return f"The image is {image}" if _JAVA_8_IMAGE.search(image.rpartition("/")[2]) else ""


def _overhead_mib(app: Submission) -> float:
    key = "spark.executor.memoryOverhead"
    if app.is_set(key):
        return app.mib(key)
    factor_key = next(
        (
            each
            for each in ("spark.executor.memoryOverheadFactor", "spark.kubernetes.memoryOverheadFactor")
            if app.is_set(each)
        ),
        "",
    )
    try:
        factor = float(app.text(factor_key)) if factor_key else (0.4 if app.python and not app.client_mode else 0.1)
    except ValueError:
        factor = 0.1
    return max(384.0, app.mib("spark.executor.memory", "1g") * factor)


def _off_heap_mib(app: Submission) -> float:
    """Spark counts a number without a unit in bytes here."""
    key = "spark.memory.offHeap.size"
    if not app.flag("spark.memory.offHeap.enabled"):
        return 0.0
    text = app.text(key, "0").strip()
    return int(text) / 2.0**20 if text.isdecimal() else app.mib(key)


def _python_mib(app: Submission) -> float:
    """Spark adds it only where it takes the application for one in Python."""
    python = app.text("spark.kubernetes.resource.type") == "python" or (app.python and not app.client_mode)
    return app.mib("spark.executor.pyspark.memory") if python else 0.0


def _cores(text: str) -> float:
    try:
        return float(text[:-1]) / 1000.0 if text.endswith("m") else float(text)
    except ValueError:
        return float("inf")


def shown(app: Submission, key: str, default: str) -> str:
    """Its value, or that there is none in what was read."""
    if key in app.conf:
        return app.conf[key]
    return f"{'not in what was read' if app.hides else 'unset'}, by default {default}"


_RULES: Sequence[Callable[[Submission], Iterator[Finding]]] = (
    scheduler,
    gang,
    _grace,
    _without_effect,
    _shuffle_service,
    _workload,
    _real_time,
    _metrics,
    _metric_names,
    _python_memory,
    _collector,
    expected_size,
)
