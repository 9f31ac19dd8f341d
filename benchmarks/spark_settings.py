"""`python -m benchmarks.spark_settings FOLDER`: writes since when each Spark has a setting, and its defaults.

FOLDER has one folder for each release, such as 3.5.7, with the jars of spark-core and of what it needs to load (Scala,
spark-common-utils, spark-network-common, spark-kubernetes, spark-catalyst, Hadoop's client, slf4j, log4j), as
`mvn dependency:copy` puts them there. Only the settings of KEYS are kept.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

KEYS = (
    "spark.decommission.enabled",
    "spark.dynamicAllocation.enabled",
    "spark.dynamicAllocation.executorIdleTimeout",
    "spark.dynamicAllocation.maxExecutors",
    "spark.dynamicAllocation.shuffleTracking.enabled",
    "spark.executor.failuresValidityInterval",
    "spark.executor.maxNumFailures",
    "spark.executor.memory",
    "spark.executor.pyspark.memory",
    "spark.kubernetes.allocation.pods.allocator",
    "spark.kubernetes.executor.scheduler.name",
    "spark.kubernetes.executor.terminationGracePeriodSeconds",
    "spark.kubernetes.scheduler.name",
    "spark.locality.wait",
    "spark.network.timeout",
    "spark.scheduler.maxRegisteredResourcesWaitingTime",
    "spark.scheduler.maxRetainedRemovedDecommissionExecutors",
    "spark.shuffle.manager",
    "spark.sql.streaming.metricsEnabled",
    "spark.stage.ignoreDecommissionFetchFailure",
    "spark.storage.decommission.enabled",
    "spark.storage.decommission.replicationReattemptInterval",
    "spark.ui.prometheus.enabled",
)
UNREGISTERED = {"spark.shuffle.io.connectionCreationTimeout": "3.2.0"}
"""Settings of the network library, which keeps no registry: by its source, since this release."""
HERE = Path(__file__).parent
TARGET = HERE.parent / "operator" / "ballast" / "doctor" / "spark_settings.json"


def main(folder: Path) -> None:
    releases = sorted((each for each in folder.iterdir() if each.name[0].isdigit()), key=_number)
    settings: dict[str, dict[str, object]] = {}
    for release in releases:
        for line in _listing(release, folder / "common").splitlines():
            key, since, default = line.split("\t")
            row = settings.setdefault(key, {"since": since, "defaults": []})
            defaults = row["defaults"]
            if isinstance(defaults, list) and (not defaults or defaults[-1][1] != default):
                defaults.append([".".join(release.name.split(".")[:2]), default])
    for key, since in UNREGISTERED.items():
        settings[key] = {"since": since, "defaults": []}
    table = {"read": [each.name for each in releases], "settings": dict(sorted(settings.items()))}
    TARGET.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")


def _number(folder: Path) -> list[int]:
    return [int(part) for part in folder.name.split(".")]


def _listing(release: Path, common: Path) -> str:
    with tempfile.NamedTemporaryFile("w", suffix=".keys") as keys:
        keys.write("\n".join(KEYS))
        keys.flush()
        command = ["java", "-cp", f"{release}/*:{common}/*", str(HERE / "SparkSettings.java"), keys.name]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, stderr=subprocess.DEVNULL).stdout


if __name__ == "__main__":
    main(Path(sys.argv[1]))
