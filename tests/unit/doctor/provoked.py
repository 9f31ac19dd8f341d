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
    "spark.kubernetes.executor.label.ballast.dev/workload": "Streaming",
    "spark.sql.streaming.metricsEnabled": "true",
    "spark.metrics.conf.*.sink.prometheusServlet.class": "org.apache.spark.metrics.sink.PrometheusServlet",
    "spark.metrics.conf.*.sink.prometheusServlet.path": "/metrics/prometheus",
}

CHANGES: Mapping[str, Mapping[str, str]] = {
    "DecommissionOff": {"spark.decommission.enabled": "false"},
    "LocalityWait": {"spark.locality.wait": "3s"},
    "StorageDecommissionGrace": {"spark.storage.decommission.enabled": "true"},
    "DeparturesNotRetained": {"spark.kubernetes.executor.label.ballast.dev/workload": "Batch"},
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
    "NotOnKubernetes": {"spark.master": "yarn"},
    "ForeignScheduler": {"spark.kubernetes.scheduler.name": "volcano"},
    "Gang": {"spark.kubernetes.executor.annotation.yunikorn.apache.org/task-group-name": "workers"},
    "SizeUnknown": {"spark.executor.instances": "40"},
    "GracePeriodTooShort": {"spark.kubernetes.executor.terminationGracePeriodSeconds": "0"},
    "GracePeriodIgnored": {
        "spark.kubernetes.container.image": "apache/spark:4.0.1",
        "spark.kubernetes.executor.terminationGracePeriodSeconds": "120s",
    },
    "RemoteShuffle": {"spark.shuffle.manager": "org.apache.spark.shuffle.celeborn.SparkShuffleManager"},
    "WorkloadUnknown": {
        "spark.kubernetes.executor.label.ballast.dev/topology": "",
        "spark.kubernetes.executor.label.ballast.dev/workload": "",
    },
    "RealTimeMoved": {"spark.sql.streaming.realTimeMode.minBatchDuration": "5m"},
    "StateMetricsOff": {"spark.sql.streaming.metricsEnabled": "false"},
    "RocksDbState": {
        "spark.sql.streaming.stateStore.providerClass": (
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        )
    },
    "MetricsNotExposed": {"spark.metrics.conf.*.sink.prometheusServlet.class": ""},
    "ExecutorMetricsOff": {"spark.ui.prometheus.enabled": "false"},
    "JmxMetricsUnread": {
        "spark.metrics.conf.*.sink.prometheusServlet.class": "",
        "spark.driver.extraJavaOptions": "-javaagent:/opt/jmx_prometheus_javaagent.jar=8090:/opt/jmx.yaml",
    },
    "MetricsNamespaceSet": {"spark.metrics.namespace": "clicks"},
    "PythonMemoryIgnored": {"spark.executor.pyspark.memory": "2g", "spark.submit.deployMode": "client"},
    "SerialCollector": {"spark.executor.memory": "1g"},
    "ParallelCollector": {"spark.kubernetes.container.image": "example/clicks:1.4-jdk8"},
}
"""What to change in GOOD. An empty value leaves the key out."""

ALSO: Mapping[str, list[str]] = {
    "WorkloadUnknown": ["TopologyLabelMissing"],
    "JmxMetricsUnread": ["MetricsNotExposed"],
}
"""Findings that come with one."""
REMEDY_ELSEWHERE = {
    "ClientRackMissing",
    "SelectorMatchesDriver",
    "TopologyLabelMissing",
    "NotOnKubernetes",
    "ForeignScheduler",
    "Gang",
    "GracePeriodIgnored",
    "RemoteShuffle",
    "WorkloadUnknown",
    "RocksDbState",
    "JmxMetricsUnread",
    "MetricsNamespaceSet",
    "SerialCollector",
    "ParallelCollector",
}
"""Findings that no setting removes."""


def settings(changes: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in {**GOOD, **changes}.items() if value}


def as_properties(conf: Mapping[str, str]) -> str:
    return "".join(f"{key} {value}\n" for key, value in conf.items())
