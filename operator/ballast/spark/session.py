"""The Spark session of Ballast's own jobs."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from ballast.spark.source import register

_LOGGING = Path(__file__).with_name("log4j2.properties")


def session(name: str, *, master: str | None = None) -> SparkSession:
    """The session that spark-submit has set up, or one with `master` (else `local[*]`)."""
    builder = SparkSession.builder.appName(name).config("spark.sql.session.timeZone", "UTC")
    if master or not _submitted(os.environ):
        builder = builder.master(master or "local[*]").config("spark.ui.showConsoleProgress", "false")
        builder = builder.config("spark.ui.enabled", "false")
        builder = builder.config("spark.driver.defaultJavaOptions", f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}")
    os.environ.update(worker_python(os.environ, master=master))
    spark = builder.getOrCreate()
    register(spark)
    return spark


def worker_python(environment: Mapping[str, str], *, master: str | None) -> dict[str, str]:
    """What to add to the environment, so that Python workers in this machine are this very Python, which has ballast.

    Nothing where they may run elsewhere, where spark-submit has settled it, or the user.
    """
    if _submitted(environment) or "PYSPARK_PYTHON" in environment or not (master or "local").startswith("local"):
        return {}
    return {"PYSPARK_PYTHON": sys.executable}


def _submitted(environment: Mapping[str, str]) -> bool:
    """Whether spark-submit has started this process: it tells Python how to reach the JVM that is there already."""
    return "PYSPARK_GATEWAY_PORT" in environment
