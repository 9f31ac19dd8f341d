"""A Spark application before it runs: its settings, its pods, and what of them could not be read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from ballast.api.topology import SparkTopology
from ballast.doctor.spark_version import NEWEST, SparkVersion
from ballast.errors import InvalidField
from ballast.model import KUBE_SCHEDULER

EXECUTOR_LABEL = "spark.kubernetes.executor.label."
DRIVER_LABEL = "spark.kubernetes.driver.label."
EXECUTOR_ANNOTATION = "spark.kubernetes.executor.annotation."
DRIVER_ANNOTATION = "spark.kubernetes.driver.annotation."
EXECUTOR_TEMPLATE = "spark.kubernetes.executor.podTemplateFile"

_UNIT_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_TIME = re.compile(r"(-?[0-9]+)\s*([a-z]*)", re.ASCII)
_UNIT_MIB = {"b": 2.0**-20, "k": 2.0**-10, "m": 1.0, "g": 2.0**10, "t": 2.0**20, "p": 2.0**30}
_BYTES = re.compile(r"([0-9]+)\s*([bkmgtp]?)(?:i?b)?", re.ASCII)
_PROPERTY = re.compile(r"([^\s=:]+)\s*[\s=:]\s*(.*)")


class Form(StrEnum):
    """How the configuration is written, and so how a patch of it is."""

    COMMAND = "command"
    PROPERTIES = "properties"
    SPARK_APPLICATION = "sparkapplication"


class UnreadError(Exception):
    """The value of a setting could not be read, so nothing may be said about it."""


@dataclass(frozen=True, slots=True)
class Passed:
    """What was passed over."""

    what: str
    hides: bool = True
    """It may hold settings."""


@dataclass(frozen=True, slots=True)
class Pod:
    """What a template, or the fields of a resource, say about executors' pods."""

    scheduler: str = ""
    scheduler_field: str = ""
    """Where that is written."""
    template_grace_seconds: float | None = None
    """Of the pod template. Spark's own setting overrides it from Spark 4.1 on."""
    template_grace_field: str = ""
    grace_seconds: float | None = None
    """Of an operator's webhook, which overrides both."""
    grace_field: str = ""
    annotations: Mapping[str, str] = field(default_factory=dict)
    """Of the pod template."""


@dataclass(frozen=True, slots=True)
class Exporter:
    """The JMX exporter, as a field of kubeflow's operator adds it."""

    field: str
    driver: bool
    executors: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    source: str
    """The file or option that it was read from, and the object's name."""
    form: Form
    conf: Mapping[str, str]
    unread: Mapping[str, str] = field(default_factory=dict)
    """Settings whose values could not be read, as they are written."""
    executor_labels: Mapping[str, str] = field(default_factory=dict)
    driver_labels: Mapping[str, str] = field(default_factory=dict)
    executor: Pod = Pod()
    packages: str = ""
    """Maven coordinates and jars, as one text."""
    arguments: tuple[str, ...] = ()
    """The application's own."""
    topologies: tuple[SparkTopology, ...] = ()
    """Written next to it in the same file."""
    scheduler_names: tuple[str, ...] = (KUBE_SCHEDULER,)
    """Whose executors are placed: by BalancingPolicies next to it in the same file, or by default."""
    passed: tuple[Passed, ...] = ()
    version: SparkVersion | None = None
    """None if nothing tells it."""
    exporter: Exporter | None = None
    client_mode: bool = False
    python: bool = False
    main_class: str = ""
    main_file: str = ""
    """The application itself, as it is named."""
    real_time_by: str = ""
    """What in its code asks for Spark's real-time mode."""
    set_by_operator: frozenset[str] = frozenset()
    """Settings that the application's operator adds."""
    patch_at: tuple[str, ...] = ("spec", "sparkConf")
    """Where a resource has its settings."""

    @property
    def spark(self) -> SparkVersion:
        """The newest one where nothing tells it."""
        return self.version or NEWEST

    @property
    def executor_annotations(self) -> Mapping[str, str]:
        """Spark's settings override a template."""
        return {**self.executor.annotations, **labeled({**self.conf, **self.unread}, EXECUTOR_ANNOTATION)}

    @property
    def hides(self) -> bool:
        """Something that was passed over may hold settings."""
        return any(each.hides for each in self.passed)

    def text(self, key: str, default: str = "") -> str:
        """Raises UnreadError, as all of these do."""
        if key in self.unread:
            raise UnreadError(key)
        return self.conf.get(key, default)

    def is_set(self, key: str) -> bool:
        return key in self.conf or key in self.unread

    def flag(self, key: str, *, default: bool = False) -> bool:
        text = self.text(key, "true" if default else "false").strip()
        if text.lower() not in ("true", "false"):
            raise InvalidField(f"{self.source}: {key}", text, "write true or false")
        return text.lower() == "true"

    def whole(self, key: str, default: int) -> int:
        text = self.text(key, str(default))
        try:
            return int(text)
        except ValueError:
            raise InvalidField(f"{self.source}: {key}", text, "write a whole number") from None

    def seconds(self, key: str, default: str, *, unit: str = "s") -> float:
        """A time in Spark's grammar; without a unit it is in Spark's `unit` for this key."""
        text = self.text(key, default)
        found = _TIME.fullmatch(text.strip().lower())
        if found is None or (found[2] or unit) not in _UNIT_SECONDS:
            raise InvalidField(f"{self.source}: {key}", text, "write a time such as 500ms, 3s or 1h")
        return int(found[1]) * _UNIT_SECONDS[found[2] or unit]

    def mib(self, key: str, default: str = "0") -> float:
        """An amount of memory in Spark's grammar; without a unit it is in MiB."""
        text = self.text(key, default)
        found = _BYTES.fullmatch(text.strip().lower())
        if found is None:
            raise InvalidField(f"{self.source}: {key}", text, "write an amount such as 512m or 4g")
        return int(found[1]) * _UNIT_MIB[found[2] or "m"]


def properties(text: str) -> dict[str, str]:
    """As in spark-defaults.conf. Raises InvalidField for a line that is no setting."""
    found = {}
    for number, line in _logical(text):
        setting = _PROPERTY.fullmatch(line)
        if setting is None:
            raise InvalidField(f"line {number}", line, "write a key and a value, such as spark.locality.wait 0s")
        found[setting[1]] = setting[2].strip()
    return found


def _logical(text: str) -> Iterator[tuple[int, str]]:
    """Lines joined where they end with a backslash, each by its first number. A comment goes on nowhere."""
    begun, joined = 0, ""
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.lstrip()
        if not begun and line.startswith(("#", "!")):
            continue
        joined += line
        begun = begun or number
        # A backslash before the last one makes that a character of the value.
        if (len(joined) - len(joined.rstrip("\\"))) % 2:
            joined = joined[:-1]
            continue
        if joined.strip():
            yield begun, joined.strip()
        begun, joined = 0, ""
    if joined.strip():
        yield begun, joined.strip()


def labeled(conf: Mapping[str, str], prefix: str) -> dict[str, str]:
    """Labels or annotations that settings with this prefix give."""
    return {key.removeprefix(prefix): value for key, value in conf.items() if key.startswith(prefix)}
