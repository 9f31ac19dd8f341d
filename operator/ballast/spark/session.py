"""The Spark session of Ballast's own jobs."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from ballast.spark.source import register

_LOGGING = Path(__file__).with_name("log4j2.properties")


def session(name: str, *, master: str | None = None) -> SparkSession:
    """The session that spark-submit has set up, or one with `master` (else `local[*]`)."""
    builder = SparkSession.builder.appName(name).config("spark.sql.session.timeZone", "UTC")
    if master or not os.environ.get("SPARK_ENV_LOADED"):
        builder = builder.master(master or "local[*]").config("spark.ui.showConsoleProgress", "false")
        builder = builder.config("spark.ui.enabled", "false")
        builder = builder.config("spark.driver.defaultJavaOptions", f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}")
    # Python workers in this machine are this very Python, where ballast is installed.
    if (master or "local").startswith("local"):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = builder.getOrCreate()
    register(spark)
    return spark
