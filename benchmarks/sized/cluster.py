"""A Spark whose executors are processes of their own, started with the given configuration."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

_ROOT = Path(__file__).parents[2]
Settings = Mapping[str, str]


def session(name: str, settings: Settings, folder: Path) -> SparkSession:
    """With an event log in `folder`. Of `settings` the executors' number, cores and memory make the cluster."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = os.pathsep.join([str(_ROOT / "operator"), str(_ROOT)])
    os.environ["SPARK_HOME"] = str(Path(pyspark.__file__).parent)
    os.environ["SPARK_WORKER_DIR"] = str(folder / "executors")
    (folder / "event-log").mkdir(parents=True)
    memory_mib = int(settings["spark.executor.memory"].removesuffix("m"))
    size = f"{settings['spark.executor.instances']},{settings['spark.executor.cores']},{memory_mib}"
    own = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "700m",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": (folder / "event-log").resolve().as_uri(),
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.scheduler.maxRegisteredResourcesWaitingTime": "120s",
    }
    builder = SparkSession.builder.master(f"local-cluster[{size}]").appName(name)
    for key, value in {**settings, **own}.items():
        builder = builder.config(key, value.replace("file=/tmp/", f"file={folder.resolve()}/"))
    made = builder.getOrCreate()
    made.sparkContext.setLogLevel("ERROR")
    return made


def waiting(seconds: float) -> str:
    """SQL that takes this long for each record (of a column `id`), whatever else the machine does."""
    return f"java_method('java.lang.Thread', 'sleep', {round(seconds * 1000)}L + id % 1)"
