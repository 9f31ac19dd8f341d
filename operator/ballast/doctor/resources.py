"""Applications in custom resources of kubeflow's, Apache's and Stackable's operators."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ballast.api.policy import BalancingPolicy
from ballast.api.quantity import Quantity
from ballast.api.topology import SparkTopology
from ballast.doctor.command import packages_of, version_in
from ballast.doctor.resource_fields import APACHE, CONNECT, KUBEFLOW, STACKABLE, STACKABLE_SETS, Field, Turn
from ballast.doctor.spark_version import SparkVersion, version_of
from ballast.doctor.submission import (
    DRIVER_LABEL,
    EXECUTOR_LABEL,
    EXECUTOR_TEMPLATE,
    Exporter,
    Form,
    Passed,
    Pod,
    Submission,
    labeled,
)
from ballast.errors import InvalidField
from ballast.files import documents_in, objects_in
from ballast.model import KUBE_SCHEDULER

_REMEDY = "name a file with a SparkApplication"
_RENDER = "it is a template: render it first, such as with helm template"
_KUEUE = "kueue.x-k8s.io/"
Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Kind:
    fields: Sequence[Field]
    spec: tuple[str, ...] = ("spec",)
    executor: str = "executor.template"
    driver: str = "driver.template"
    version: str = "sparkVersion"
    arguments: str = "arguments"
    metadata_labels: bool = False
    """Labels of the resource reach its pods."""
    fields_win: bool = True
    """Over sparkConf."""
    client: bool = False
    sets: Mapping[str, str] = field(default_factory=dict)
    """Settings that the operator adds by itself; sparkConf overrides them."""


_KUBEFLOW = _Kind(KUBEFLOW, metadata_labels=True)
_KINDS: Mapping[tuple[str, str], _Kind] = {
    ("sparkoperator.k8s.io", "SparkApplication"): _KUBEFLOW,
    ("sparkoperator.k8s.io", "ScheduledSparkApplication"): _Kind(
        KUBEFLOW, spec=("spec", "template"), metadata_labels=True
    ),
    ("sparkoperator.k8s.io", "SparkConnect"): _Kind(
        CONNECT, driver="server.template", metadata_labels=True, client=True
    ),
    ("spark.apache.org", "SparkApplication"): _Kind(
        APACHE,
        executor="executorSpec.podTemplateSpec",
        driver="driverSpec.podTemplateSpec",
        version="runtimeVersions.sparkVersion",
        arguments="driverArgs",
        fields_win=False,
    ),
    ("spark.stackable.tech", "SparkApplication"): _Kind(
        STACKABLE,
        executor="executor.podOverrides",
        driver="driver.podOverrides",
        version="sparkImage.productVersion",
        arguments="args",
        fields_win=False,
        sets=STACKABLE_SETS,
    ),
}
_LIKE_THEM = {"SparkApplication", "ScheduledSparkApplication", "SparkConnect", "SparkConnectServer"}


def from_documents(text: str, source: str) -> list[Submission]:
    """Each application of a YAML file. Raises BallastError if there is none, or the file can't be read."""
    read = documents_in(text, name=source, option="--filename", remedy=_RENDER if "{{" in text else _REMEDY)
    documents = list(objects_in(read))
    topologies = tuple(SparkTopology.of_file(each, source) for each in documents if each.get("kind") == "SparkTopology")
    policies = [BalancingPolicy.of_file(each, source) for each in documents if each.get("kind") == "BalancingPolicy"]
    named = [name for policy in policies for name in policy.spec.placement.scheduler_names]
    found = [
        replace(
            _application(each, source, topologies),
            scheduler_names=tuple(dict.fromkeys(named)) if policies else (KUBE_SCHEDULER,),
        )
        for each in documents
        if _is_application(each, source)
    ]
    if not found:
        kinds = sorted({str(each.get("kind")) for each in documents if each.get("kind")})
        there = f"; it has {', '.join(kinds[:5])}" if kinds else ""
        raise InvalidField("--filename", source, f"no SparkApplication in it{there}; {_REMEDY}")
    return found


def _is_application(document: Document, source: str) -> bool:
    """Raises InvalidField for one of another operator: equal kinds have other fields."""
    kind, version = str(document.get("kind")), str(document.get("apiVersion", ""))
    group = version.partition("/")[0]
    if (group, kind) in _KINDS:
        return True
    if kind in _LIKE_THEM or (kind == "SparkCluster" and group == "spark.apache.org"):
        known = ", ".join(f"{kind} of {group}" for group, kind in _KINDS)
        raise InvalidField(
            f"{source}: apiVersion", version, f"a {kind} of that operator is not read; known are {known}"
        )
    return False


def _application(document: Document, source: str, topologies: tuple[SparkTopology, ...]) -> Submission:
    kind = _KINDS[str(document["apiVersion"]).partition("/")[0], document["kind"]]
    if not isinstance(document.get("spec"), dict):
        name = _mapping(document, "metadata").get("name", "")
        raise InvalidField(f"{source}: {document['kind']} {name}".strip(), "(no spec)", "name a file with its spec")
    spec: Document = document
    for part in kind.spec:
        spec = _mapping(spec, part)
    metadata = _mapping(document, "metadata")
    here = f"{source}: {document['kind']} {metadata.get('name', '')}".strip()
    written = _settings(kind, spec, here)
    added = {key: value for key, value in kind.sets.items() if key not in written}
    conf = {**added, **written}
    pods = {role: _at(spec, path) for role, path in (("executor", kind.executor), ("driver", kind.driver))}
    exporter = _monitoring(spec, conf, metadata) if kind.fields is KUBEFLOW else None
    reaching = _reaching(metadata, kueue=kind.client) if kind.metadata_labels else {}
    labels = {
        role: {
            **_labels(_mapping(pods[role], "metadata")),
            **labeled({key: _text(value) for key, value in _mapping(spec, "sparkConf").items()}, prefix),
            **reaching,
            **_labels(_mapping(spec, role)),
        }
        for role, prefix in (("executor", EXECUTOR_LABEL), ("driver", DRIVER_LABEL))
    }
    arguments = _list(spec, kind.arguments, f"{here}: spec")
    passed = [*_unknown(kind, spec), *_templates(spec, conf)]
    return Submission(
        source=here,
        form=Form.SPARK_APPLICATION,
        conf=conf,
        executor_labels=labels["executor"],
        driver_labels=labels["driver"],
        executor=_pod(kind, spec, pods["executor"]),
        packages=packages_of(conf),
        arguments=tuple(map(str, arguments)),
        topologies=topologies,
        passed=tuple(passed),
        version=_version(kind, spec, conf),
        exporter=exporter,
        client_mode=kind.client or conf.get("spark.submit.deployMode") == "client",
        python=_python(spec),
        main_class=_text(spec.get("mainClass") or ""),
        main_file=_text(spec.get("mainApplicationFile") or spec.get("pyFiles") or ""),
        set_by_operator=frozenset(added),
        patch_at=(*kind.spec, "sparkConf"),
    )


def _settings(kind: _Kind, spec: Document, here: str) -> dict[str, str]:
    """As the operator hands them to Spark."""
    allocates = _mapping(spec, "dynamicAllocation").get("enabled") is True
    conf: dict[str, str] = {}
    for each in kind.fields:
        value = _at(spec, each.path)
        if each.turn is Turn.NEITHER or value is None or (each.path.startswith("dynamicAllocation.") and not allocates):
            continue
        written = _written(each, value, here)
        conf = {**conf, **written} if kind.fields_win else {**written, **conf}
    if kind.fields is STACKABLE:
        conf = {**_of_resources(spec, here), **conf}
    if allocates:
        conf["spark.dynamicAllocation.enabled"] = "true"
        conf.setdefault("spark.dynamicAllocation.shuffleTracking.enabled", "true")
    return conf


def _of_resources(spec: Document, here: str) -> dict[str, str]:
    """Stackable's operator makes the heap from the limit, less Spark's overhead: crd/mod.rs."""
    found: dict[str, str] = {}
    resources = _at(spec, "executor.config.resources")
    most, limit = _at(resources, "cpu.max"), _at(resources, "memory.limit")
    if most is not None and _at(resources, "cpu.min") is not None:
        found["spark.kubernetes.executor.limit.cores"] = _text(most)
        found["spark.executor.cores"] = str(math.ceil(_quantity(most, f"{here}: spec.executor.config.resources.cpu")))
    if limit is not None:
        mib = _quantity(limit, f"{here}: spec.executor.config.resources.memory") / 2**20
        overhead = max(384.0, mib - mib / (1.1 if spec.get("mainClass") else 1.4)) if mib >= 384.0 else 0.0
        found["spark.executor.memory"] = f"{math.floor(mib - overhead)}m"
    return found


def _quantity(value: object, at: str) -> float:
    try:
        return float(Quantity.parse(_text(value)))
    except InvalidField as error:
        raise InvalidField(at, value, error.remedy) from None


def _written(of: Field, value: object, here: str) -> dict[str, str]:
    if of.turn is Turn.LIST:
        if not isinstance(value, list):
            raise InvalidField(f"{here}: spec.{of.path}", value, "write a list")
        return {of.setting: ",".join(map(_text, value))}
    if not of.setting.endswith("."):
        return {of.setting: _text(value)}
    if not isinstance(value, dict):
        raise InvalidField(f"{here}: spec.{of.path}", value, "write a mapping")
    prefix = "" if of.setting == "spark." else of.setting
    return {
        key if str(key).startswith("spark.hadoop.") else f"{prefix}{key}": _text(each) for key, each in value.items()
    }


def _monitoring(spec: Document, conf: dict[str, str], metadata: Document) -> Exporter | None:
    """monitoring_config.go: a file of metrics properties and a namespace of their names, and the exporter's agent."""
    monitoring = _mapping(spec, "monitoring")
    if monitoring.get("prometheus") is None:
        return None  # the operator looks at it only with prometheus in it
    conf["spark.metrics.namespace"] = f"{metadata.get('namespace', 'default')}.{metadata.get('name', '')}"
    conf.setdefault("spark.metrics.conf", _text(monitoring.get("metricsPropertiesFile") or "metrics.properties"))
    for line in _text(monitoring.get("metricsProperties") or "").splitlines():
        key, separator, value = line.partition("=")
        if separator and not key.strip().startswith("#"):
            conf.setdefault(f"spark.metrics.conf.{key.strip()}", value.strip())
    if not _mapping(monitoring, "prometheus").get("jmxExporterJar"):
        return None
    return Exporter(
        "monitoring.prometheus.jmxExporterJar",
        driver=monitoring.get("exposeDriverMetrics") is True,
        executors=monitoring.get("exposeExecutorMetrics") is True,
    )


def _pod(kind: _Kind, spec: Document, template: object) -> Pod:
    of_template = _mapping(template, "spec")
    named = [(f"{kind.executor}.spec.schedulerName", of_template.get("schedulerName"))]
    grace = None
    if kind.fields is KUBEFLOW:
        # The operator's webhook: batchScheduler wins over the executor's field, and that over the template's.
        executor = _mapping(spec, "executor")
        named = [
            ("batchScheduler", spec.get("batchScheduler")),
            ("executor.schedulerName", executor.get("schedulerName")),
            *named,
        ]
        grace = _number(executor.get("terminationGracePeriodSeconds"))
    where, scheduler = next(((where, name) for where, name in named if name), ("", ""))
    of_pod = _number(of_template.get("terminationGracePeriodSeconds"))
    overrides = kind.fields is STACKABLE
    return Pod(
        scheduler=_text(scheduler),
        scheduler_field=f"spec.{where}" if where else "",
        template_grace_seconds=None if overrides else of_pod,
        template_grace_field=f"spec.{kind.executor}.spec.terminationGracePeriodSeconds",
        grace_seconds=of_pod if overrides and grace is None else grace,
        annotations=_strings(_mapping(_mapping(template, "metadata"), "annotations")),
        grace_field=f"spec.{'executor.podOverrides.spec' if overrides else 'executor'}.terminationGracePeriodSeconds",
    )


def _reaching(metadata: Document, *, kueue: bool) -> dict[str, str]:
    """Labels of the resource that its pods get: of a SparkApplication those of Kueue are left out."""
    return {key: value for key, value in _labels(metadata).items() if kueue or not key.startswith(_KUEUE)}


def _version(kind: _Kind, spec: Document, conf: Mapping[str, str]) -> SparkVersion | None:
    named = _at(spec, kind.version)
    told = version_of(_text(named), f"spec.{kind.version}") if named is not None else None
    return told or version_in(conf)


def _python(spec: Document) -> bool:
    files = (spec.get("mainApplicationFile"), spec.get("pyFiles"))
    return spec.get("type") == "Python" or any(str(each).endswith(".py") for each in files if each)


def _unknown(kind: _Kind, spec: Document) -> Iterator[Passed]:
    """Fields that the table does not have."""
    known = [each.path for each in kind.fields]
    fields = list(_unread_fields(spec, "", known))
    if len(fields) == 1:
        yield Passed(f"spec.{fields[0]}")
    elif fields:
        some = ", ".join(f"spec.{each}" for each in fields[:5])
        more = f" and {len(fields) - 5} more" if len(fields) > 5 else ""
        yield Passed(f"{len(fields)} fields ({some}{more})")


def _unread_fields(spec: Document, prefix: str, known: Sequence[str]) -> Iterator[str]:
    for key, value in spec.items():
        path = f"{prefix}{key}"
        if path in known or value is None or value in ({}, []):
            continue
        if isinstance(value, dict) and any(each.startswith(f"{path}.") for each in known):
            yield from _unread_fields(value, f"{path}.", known)
        else:
            yield path


def _templates(spec: Document, conf: Mapping[str, str]) -> Iterator[Passed]:
    if EXECUTOR_TEMPLATE in conf:
        yield Passed(f"the pod template {conf[EXECUTOR_TEMPLATE]}")
    monitoring = _mapping(spec, "monitoring")
    if monitoring and monitoring.get("prometheus") is None:
        yield Passed("spec.monitoring, which has no effect without prometheus", hides=False)
    elif isinstance(monitoring.get("metricsPropertiesFile"), str):
        yield Passed(f"the metrics properties {spec['monitoring']['metricsPropertiesFile']}")


def _at(document: object, path: str) -> Any:
    for part in path.split("."):
        document = document.get(part) if isinstance(document, dict) else None
    return document


def _mapping(document: object, key: str) -> Mapping[str, Any]:
    value = document.get(key) if isinstance(document, dict) else None
    return value if isinstance(value, dict) else {}


def _list(document: Document, key: str, at: str) -> list[Any]:
    """Raises InvalidField, which names the field by `at` and its key."""
    value = document.get(key)
    if value is not None and not isinstance(value, list):
        raise InvalidField(f"{at}.{key}", value, "write a list")
    return value or []


def _labels(metadata: Document) -> dict[str, str]:
    return _strings(_mapping(metadata, "labels"))


def _strings(values: Mapping[str, Any]) -> dict[str, str]:
    return {str(key): _text(value) for key, value in values.items()}


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
