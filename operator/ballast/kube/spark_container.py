"""Which container of an executor's pod is Spark's: webhooks add others, and in any order."""

from __future__ import annotations

from ballast.kube.document import JSON

_NAME = "spark-kubernetes-executor"
"""By default; a pod template may name it otherwise."""
_ENVIRONMENT = frozenset(
    {"SPARK_EXECUTOR_ID", "SPARK_APPLICATION_ID", "SPARK_DRIVER_URL", "SPARK_EXECUTOR_CORES", "SPARK_EXECUTOR_MEMORY"}
)
"""What Spark sets. A sidecar may copy some of it, such as the application's id for its logs."""


def spark_container(spec: JSON) -> JSON | None:
    """The one with Spark's environment, or of Spark's name, or the only one; None where it can't be told."""
    containers: list[JSON] = spec["containers"]
    chosen = max(containers, key=lambda each: (_known(each), each["name"] == _NAME))
    return chosen if len(containers) == 1 or chosen["name"] == _NAME or _known(chosen) else None


def _known(container: JSON) -> int:
    return sum(entry["name"] in _ENVIRONMENT for entry in container.get("env") or ())


def state_of(container: JSON | None, status: JSON) -> JSON | None:
    """Its state, as the kubelet reports it; None where it reports none."""
    for entry in status.get("containerStatuses") or ():
        if container is not None and entry["name"] == container["name"]:
            state: JSON = entry.get("state") or {}
            return state
    return None
