"""A Spark application before it runs: its configuration, labels and arguments."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from ballast.api.topology import SparkTopology
from ballast.errors import InvalidField

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
