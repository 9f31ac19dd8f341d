"""Versions of Spark, and which settings each of them has.

benchmarks/spark_settings.py writes spark_settings.json from the releases themselves.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files

_NUMBER = re.compile(r"v?(\d+)\.(\d+)(?:\.(\d+))?", re.ASCII)
_TAG = re.compile(
    r"^(?:py)?spark(?:-(?:py|python\d?|r|scala|java\d*|base|k8s|kubernetes|hadoop|aws|gcs|notebook))*:v?(\d+\.\d+(?:\.\d+)?)",
    re.ASCII | re.IGNORECASE,
)
"""Of an image whose name is Spark's."""
_NAMED = re.compile(r"(?:^|[-_.:])(?:py)?spark[-_]v?(\d+\.\d+(?:\.\d+)?)", re.ASCII | re.IGNORECASE)
"""A name or tag such as spark-3.5.1, of any image."""
_ARTIFACT = re.compile(r"org\.apache\.spark:[\w.-]+_2\.\d+:(\d+\.\d+\.\d+)", re.ASCII)


@dataclass(frozen=True, slots=True, order=True)
class SparkVersion:
    major: int
    minor: int
    told_by: str = field(default="", compare=False)
    """The field or option that told it."""

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


NEWEST = SparkVersion(4, 3)
_LAST_MINOR = {2: 4, 3: 5, 4: 3}
_FIRST_ON_KUBERNETES = SparkVersion(2, 3)


def version_of(text: str, told_by: str = "") -> SparkVersion | None:
    """Of a number such as 3.5.1; what follows it, such as -SNAPSHOT, does not count."""
    found = _NUMBER.match(text.strip())
    return None if found is None else SparkVersion(int(found[1]), int(found[2]), told_by)


def version_of_image(image: str, told_by: str = "") -> SparkVersion | None:
    """By its tag, if the image's name is Spark's: tags of other images number releases of an application."""
    name = image.partition("@")[0].rpartition("/")[2]
    found = _NAMED.search(name) or _TAG.search(name)
    version = None if found is None else version_of(found[1], told_by)
    return version if version is not None and _released(version) else None


def _released(version: SparkVersion) -> bool:
    return version >= _FIRST_ON_KUBERNETES and version.minor <= _LAST_MINOR.get(version.major, -1)


def version_of_packages(packages: str, told_by: str = "") -> SparkVersion | None:
    found = _ARTIFACT.search(packages)
    return None if found is None else version_of(found[1], told_by)


@dataclass(frozen=True, slots=True)
class Setting:
    since: SparkVersion
    defaults: tuple[tuple[SparkVersion, str], ...]
    """From each of these versions on."""


@cache
def settings() -> Mapping[str, Setting]:
    table = json.loads((files("ballast.doctor") / "spark_settings.json").read_text(encoding="utf-8"))
    return {
        key: Setting(_exactly(row["since"]), tuple((_exactly(version), text) for version, text in row["defaults"]))
        for key, row in table["settings"].items()
    }


def _exactly(text: str) -> SparkVersion:
    found = version_of(text)
    if found is None:
        raise ValueError(text)
    return found


def exists(key: str, version: SparkVersion) -> bool:
    """Settings that the table does not have are taken for older than any Spark on Kubernetes."""
    setting = settings().get(key)
    return setting is None or setting.since <= version


def default_of(key: str, version: SparkVersion) -> str:
    """In this version; of an older one than the table has, the oldest known."""
    known = settings()[key].defaults
    return next((text for since, text in reversed(known) if since <= version), known[0][1])
