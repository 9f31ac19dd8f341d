"""A Spark application before it runs, read from a command line, a properties file or a SparkApplication."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Any

from ballast.api.topology import SparkTopology
from ballast.errors import InvalidField
from ballast.files import documents_in

_UNIT_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_TIME = re.compile(r"(-?[0-9]+)\s*([a-z]*)", re.ASCII)


class Form(StrEnum):
    """How the configuration is written, and so how a patch of it is."""

    COMMAND = "command"
    PROPERTIES = "properties"
    SPARK_APPLICATION = "sparkapplication"


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    source: str
    """The file or option that it was read from, and the object's name."""
    form: Form
    conf: Mapping[str, str]
    executor_labels: Mapping[str, str] = field(default_factory=dict)
    driver_labels: Mapping[str, str] = field(default_factory=dict)
    packages: str = ""
    """Maven coordinates and jars, as one text."""
    arguments: tuple[str, ...] = ()
    """The application's own."""
    topologies: tuple[SparkTopology, ...] = ()
    """Written next to it in the same file."""

    def flag(self, key: str, *, default: bool = False) -> bool:
        text = self.conf.get(key)
        if text is None:
            return default
        if text.lower() not in ("true", "false"):
            raise InvalidField(f"{self.source}: {key}", text, "write true or false")
        return text.lower() == "true"

    def whole(self, key: str, default: int) -> int:
        text = self.conf.get(key, str(default))
        try:
            return int(text)
        except ValueError:
            raise InvalidField(f"{self.source}: {key}", text, "write a whole number") from None

    def seconds(self, key: str, default: str, *, unit: str = "s") -> float:
        """A time in Spark's grammar; without a unit it is in Spark's `unit` for this key."""
        text = self.conf.get(key, default)
        found = _TIME.fullmatch(text.strip().lower())
        if found is None or (found[2] or unit) not in _UNIT_SECONDS:
            raise InvalidField(f"{self.source}: {key}", text, "write a time such as 500ms, 3s or 1h")
        return int(found[1]) * _UNIT_SECONDS[found[2] or unit]


# Reading a spark-submit command line, a properties file or a SparkApplication.

EXECUTOR_LABEL = "spark.kubernetes.executor.label."
DRIVER_LABEL = "spark.kubernetes.driver.label."
_PROGRAMS = {"spark-submit", "spark-shell", "spark-sql", "pyspark"}
_WITHOUT_VALUE = {"--verbose", "-v", "--supervise", "--help", "-h", "--version"}
_PROPERTY = re.compile(r"([^\s=:]+)\s*[\s=:]\s*(.*)")
_KINDS = {"SparkApplication", "ScheduledSparkApplication"}
_REMEDY = "name a file with a SparkApplication"


def properties(text: str) -> dict[str, str]:
    """As in spark-defaults.conf. Raises InvalidField for a line that is no setting."""
    found = {}
    for number, raw in enumerate(text.replace("\\\n", "").splitlines(), start=1):
        line = raw.strip()
        if not line or line.startswith(("#", "!")):
            continue
        setting = _PROPERTY.fullmatch(line)
        if setting is None:
            raise InvalidField(f"line {number}", line, "write a key and a value, such as spark.locality.wait 0s")
        found[setting[1]] = setting[2].strip()
    return found


def from_properties(text: str, source: str) -> Submission:
    return _submission(source, Form.PROPERTIES, properties(text))


def properties_file(command: str) -> str | None:
    """The file that a command line names, whose settings --conf overrides."""
    return next((value for name, value in _options(_words(command)) if name == "--properties-file"), None)


def from_command(command: str, source: str, *, defaults: Mapping[str, str] | None = None) -> Submission:
    """`defaults`: the settings of its properties file. Raises InvalidField for what is no command line of Spark."""
    words = _words(command)
    conf, packages = dict(defaults or {}), []
    rest = words
    for name, value in _options(words):
        if name in ("--conf", "-c"):
            key, separator, text = value.partition("=")
            if not separator:
                raise InvalidField(f"{source}: --conf", value, "write KEY=VALUE")
            conf[key] = text
        elif name in ("--packages", "--jars"):
            packages.append(value)
        elif name == "--num-executors":
            conf["spark.executor.instances"] = value
        elif name == "":
            rest = value.split("\0")
    return _submission(source, Form.COMMAND, conf, packages=" ".join(packages), arguments=tuple(rest))


def _words(command: str) -> list[str]:
    """The words behind the program's name."""
    try:
        words = shlex.split(command.replace("\\\n", " "), comments=True)
    except ValueError as error:
        raise InvalidField("--spark-submit", command, f"{error}: check its quotes") from error
    at = next((i for i, word in enumerate(words) if PurePosixPath(word).name in _PROGRAMS), None)
    if at is None:
        raise InvalidField("--spark-submit", command, "write the whole command, or name a file that has it")
    return words[at + 1 :]


def _options(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Names and values; at the end the application and its arguments under the name "", joined by NUL."""
    at = 0
    while at < len(words) and words[at].startswith("-"):
        name, separator, value = words[at].partition("=")
        at += 1
        if separator and name.startswith("--"):
            yield name, value
        elif words[at - 1] not in _WITHOUT_VALUE:
            yield words[at - 1], words[at] if at < len(words) else ""
            at += 1
    yield "", "\0".join(words[at:])


def from_documents(text: str, source: str) -> list[Submission]:
    """Each SparkApplication of a YAML file. Raises BallastError if there is none, or the file can't be read."""
    read = documents_in(text, name=source, option="--filename", remedy=_REMEDY)
    documents = [each for each in read if isinstance(each, dict)]
    topologies = tuple(SparkTopology.of_file(each, source) for each in documents if each.get("kind") == "SparkTopology")
    found = [_application(each, source, topologies) for each in documents if str(each.get("kind")) in _KINDS]
    if not found:
        raise InvalidField("--filename", source, f"no SparkApplication in it; {_REMEDY}")
    return found


def _application(document: Mapping[str, Any], source: str, topologies: tuple[SparkTopology, ...]) -> Submission:
    spec = _mapping(document, "spec")
    if document["kind"] == "ScheduledSparkApplication":
        spec = _mapping(spec, "template")
    name = _mapping(document, "metadata").get("name", "")
    apache = str(document.get("apiVersion", "")).startswith("spark.apache.org/")
    executor, driver = _ends(spec, apache=apache)
    here = f"{source}: {document['kind']} {name}".strip()
    packages = _list(_mapping(spec, "deps"), "packages", f"{here}: spec.deps")
    arguments = _list(spec, "driverArgs" if apache else "arguments", f"{here}: spec")
    return _submission(
        here,
        Form.SPARK_APPLICATION,
        _declared(spec),
        labels=(_labels(executor), _labels(driver)),
        packages=" ".join(map(str, packages)),
        arguments=tuple(map(str, arguments)),
        topologies=topologies,
    )


def _declared(spec: Mapping[str, Any]) -> dict[str, str]:
    """Its sparkConf, and the fields that kubeflow's operator turns into Spark configuration."""
    conf = {key: _text(value) for key, value in _mapping(spec, "sparkConf").items()}
    executor, allocation = _mapping(spec, "executor"), _mapping(spec, "dynamicAllocation")
    own = {
        "spark.executor.instances": executor.get("instances"),
        "spark.kubernetes.executor.terminationGracePeriodSeconds": executor.get("terminationGracePeriodSeconds"),
        "spark.dynamicAllocation.enabled": allocation.get("enabled"),
    }
    return {**conf, **{key: _text(value) for key, value in own.items() if value is not None}}


def _ends(spec: Mapping[str, Any], *, apache: bool) -> tuple[list[Mapping[str, Any]], list[Mapping[str, Any]]]:
    """Where the labels of executors and of the driver are written."""
    if apache:
        executor, driver = (_mapping(spec, end) for end in ("executorSpec", "driverSpec"))
        return [_metadata(executor, "podTemplateSpec")], [_metadata(driver, "podTemplateSpec")]
    executor, driver = _mapping(spec, "executor"), _mapping(spec, "driver")
    return [_metadata(executor, "template"), executor], [_metadata(driver, "template"), driver]


def _metadata(end: Mapping[str, Any], template: str) -> Mapping[str, Any]:
    return _mapping(_mapping(end, template), "metadata")


def _labels(places: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    return {key: _text(value) for place in places for key, value in _mapping(place, "labels").items()}


def _mapping(document: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = document.get(key)
    return value if isinstance(value, dict) else {}


def _list(document: Mapping[str, Any], key: str, at: str) -> list[Any]:
    """Raises InvalidField, which names the field by `at` and its key."""
    value = document.get(key)
    if value is not None and not isinstance(value, list):
        raise InvalidField(f"{at}.{key}", value, "write a list")
    return value or []


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _submission(
    source: str,
    form: Form,
    conf: Mapping[str, str],
    *,
    labels: tuple[Mapping[str, str], Mapping[str, str]] = ({}, {}),
    packages: str = "",
    arguments: tuple[str, ...] = (),
    topologies: tuple[SparkTopology, ...] = (),
) -> Submission:
    """Spark's own settings of labels override those of a template."""

    def labeled(prefix: str) -> dict[str, str]:
        return {key.removeprefix(prefix): value for key, value in conf.items() if key.startswith(prefix)}

    named = " ".join(filter(None, [packages, conf.get("spark.jars.packages"), conf.get("spark.jars")]))
    return Submission(
        source=source,
        form=form,
        conf=conf,
        executor_labels={**labels[0], **labeled(EXECUTOR_LABEL)},
        driver_labels={**labels[1], **labeled(DRIVER_LABEL)},
        packages=named,
        arguments=arguments,
        topologies=topologies,
    )
