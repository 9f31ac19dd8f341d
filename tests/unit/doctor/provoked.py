"""Applications that provoke each finding, and one that provokes none."""

from __future__ import annotations

from collections.abc import Mapping

GOOD: Mapping[str, str] = {
    "spark.decommission.enabled": "true",
    "spark.locality.wait": "0s",
    "spark.executor.failuresValidityInterval": "1h",
    "spark.shuffle.io.connectionCreationTimeout": "5s",
    "spark.shuffle.io.retryWait": "1s",
    "spark.kubernetes.executor.label.ballast.dev/topology": "clicks",
}

CHANGES: Mapping[str, Mapping[str, str]] = {
    "DecommissionOff": {"spark.decommission.enabled": "false"},
    "LocalityWait": {"spark.locality.wait": "3s"},
    "StorageDecommissionGrace": {"spark.storage.decommission.enabled": "true"},
    "FailuresNeverExpire": {"spark.executor.failuresValidityInterval": "0"},
    "IdleTimeoutBelowGate": {
        "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.executorIdleTimeout": "10s",
    },
    "RegisteredWaitBelowGate": {"spark.scheduler.maxRegisteredResourcesWaitingTime": "9000"},
    "AllocatorOutOfScope": {"spark.kubernetes.allocation.pods.allocator": "statefulset"},
    "DepartedExecutorFetches": {"spark.shuffle.io.connectionCreationTimeout": "30s"},
    "ClientRackMissing": {"spark.jars.packages": "org.apache.spark:spark-sql-kafka-0-10_2.13:4.3.0"},
    "SelectorMatchesDriver": {"spark.kubernetes.driver.label.ballast.dev/topology": "clicks"},
    "TopologyLabelMissing": {"spark.kubernetes.executor.label.ballast.dev/topology": ""},
}
"""What to change in GOOD. An empty value leaves the key out."""


def settings(changes: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in {**GOOD, **changes}.items() if value}


def as_properties(conf: Mapping[str, str]) -> str:
    return "".join(f"{key} {value}\n" for key, value in conf.items())
