"""How many executors each zone has: without it no executor can tell how much of a near partition is its own."""

from __future__ import annotations

import functools
import logging
import os
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import urllib3
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from ballast.grouping.fair import NO_ZONE

_TIMEOUT_SECONDS = 10.0
_LOG = logging.getLogger(__name__)
_DRIVER = "driver"
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
"""Of an object in memory: older releases of urllib3 name their connections so, each time by another."""


class Senders(Protocol):
    """What tells how much the senders in each zone send, in any unit. Equal ones tell the same."""

    @property
    def at_once(self) -> bool:
        """Whether reading waits for no server."""

    def read(self) -> Mapping[str, float]:
        """By zone; empty if it is not known. May take as long as a server's answer, unless `at_once`."""


@dataclass(frozen=True, slots=True)
class Counted:
    """Counts that do not change."""

    by_zone: tuple[tuple[str, float], ...]

    at_once: ClassVar[bool] = True

    def read(self) -> Mapping[str, float]:
        return dict(self.by_zone)


@dataclass(frozen=True, slots=True)
class Executors:
    """The cores of the application's executors, by what the environment variable `variable` of each says.

    Spark's UI, which runs in the driver, lists executors at `url`. It knows of their environment only what they have
    in variables whose names begin with `SPARK_EXECUTOR_ATTRIBUTE_`.
    """

    url: str
    application: str
    variable: str

    at_once: ClassVar[bool] = False

    def read(self) -> Mapping[str, float]:
        """Empty if it can't be told, with a warning at the first time in this process, for each cause."""
        try:
            answer = urllib3.request(
                "GET",
                f"{self.url}/api/v1/applications/{self.application}/executors",
                timeout=_TIMEOUT_SECONDS,
                retries=False,
            )
            if answer.status != 200:
                return self._unknown(f"it answers {answer.status}")
            return self._cores(answer.json())
        except (urllib3.exceptions.HTTPError, ValueError, KeyError, TypeError) as error:
            return self._unknown(_ADDRESS.sub("", repr(error)))

    def _cores(self, listed: list[dict[str, Any]]) -> Mapping[str, float]:
        executors = [each for each in listed if each["isActive"] and each["id"] != _DRIVER]
        if not executors:
            # A driver that runs tasks itself: this process is the only sender.
            return {os.environ.get(self.variable) or NO_ZONE: 1.0}
        cores: dict[str, float] = defaultdict(float)
        for each in executors:
            cores[each["attributes"].get(self.variable) or NO_ZONE] += each["totalCores"]
        if set(cores) == {NO_ZONE}:
            return self._unknown(f"no executor has the variable SPARK_EXECUTOR_ATTRIBUTE_{self.variable}")
        return cores

    def _unknown(self, why: str) -> Mapping[str, float]:
        warn_of_ui(self.url, why)
        return {}


EVENLY = "so records go to near and far partitions alike"


@functools.cache
def warn_of_ui(url: str, why: str) -> None:
    """Once in this process for each cause: each worker asks again and again."""
    _LOG.warning("routing: Spark's UI at %s does not tell where executors are, %s: %s", url, EVENLY, why)


def executors_of(spark: SparkSession, variable: str) -> Senders:
    """Those of the session's application. Counts of none, with a warning, if it has no UI or is one of Connect."""
    try:
        url, application = spark.sparkContext.uiWebUrl, spark.sparkContext.applicationId
    except PySparkException:
        url, application = None, ""
    if url is None:
        why = "this session has no Spark UI that tells where executors are"
        _LOG.warning("routing: %s, %s: give with_partition the executors of each zone as `senders`", why, EVENLY)
        return Counted(())
    return Executors(url, str(application), variable)
