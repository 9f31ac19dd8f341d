"""Names that Ballast, Spark and others put on pods and nodes."""

from __future__ import annotations

GATE = "ballast.dev/placement"
"""Our scheduling gate."""
GATE_CHOICE = "ballast.dev/gate"
"""Namespace label `enabled`; pod label or annotation `disabled`."""
TOPOLOGY = "ballast.dev/topology"
COMPONENT = "ballast.dev/component"
EXECUTORS = "ballast.dev/executors"
"""Label or annotation of an executor: how many executors its application is going to have."""
WORKLOAD = "ballast.dev/workload"
"""Pod label Streaming, RealTime, Batch or Interactive, for applications without a SparkTopology."""
SHUFFLE = "ballast.dev/shuffle"
"""Pod label Local, Migrated or Remote: where shuffle files are once an executor has left."""
RETAINED_DEPARTURES = "ballast.dev/retained-departures"
"""Pod label: the value of spark.scheduler.maxRetainedRemovedDecommissionExecutors."""
NETWORK_CAPACITY = "ballast.dev/network-capacity"
"""Node annotation: bits per second, as a quantity."""
SPEED = "ballast.dev/speed"
"""Node annotation: work done per core-second, relative to the pool's ordinary machine."""
FIELD_MANAGER = "ballast"
"""Under this name the API server records what we wrote (metadata.managedFields)."""

HOST = "kubernetes.io/hostname"

SPARK_ROLE = "spark-role"
SPARK_APPLICATION = "spark-app-selector"
SPARK_APPLICATION_NAME = "spark-app-name"
SPARK_EXECUTOR_ID = "spark-exec-id"
SPARK_RESOURCE_PROFILE = "spark-exec-resourceprofile-id"
SPARK_INDIRECT_ID = "EXECID"
"""Executor id in pods of Spark's statefulset and deployment allocators."""

KUEUE = "kueue.x-k8s.io/"
KUEUE_MANAGED = f"{KUEUE}managed"
"""The finalizer of every pod that Kueue queues."""

VOLCANO_GATES = ("scheduling.volcano.sh/queue-allocation-gate", "volcano.sh/queue-allocation-gate")
"""Volcano 1.15 removes this gate of its own only from pods that have no other gate."""

_KNOWN = frozenset(
    {GATE_CHOICE, TOPOLOGY, COMPONENT, EXECUTORS, WORKLOAD, SHUFFLE, RETAINED_DEPARTURES}
    | {SPARK_ROLE, SPARK_APPLICATION, SPARK_EXECUTOR_ID, SPARK_RESOURCE_PROFILE}
)


def known(label: str) -> bool:
    """Whether Ballast or Spark gives the label of a pod a meaning."""
    return label in _KNOWN
