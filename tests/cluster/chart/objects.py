"""Pods, evictions and moves to ask the API server for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ballast.kube.kinds import EXECUTOR_MOVE
from ballast.kube.names import GATE

JSON = dict[str, Any]


def executor(
    name: str = "executor",
    *,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    gates: Sequence[str] = (),
    role: str | None = "executor",
    **spec: Any,
) -> JSON:
    """A pod as Spark's driver creates it; `spec` adds to the pod's."""
    spark = {"spark-app-selector": "spark-1", "spark-exec-id": "1", **({"spark-role": role} if role else {})}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "labels": {**spark, **(labels or {})},
            "annotations": dict(annotations or {}),
        },
        "spec": {
            "containers": [{"name": "spark-kubernetes-executor", "image": "spark"}],
            "terminationGracePeriodSeconds": 0,
            **({"schedulingGates": [{"name": gate} for gate in gates]} if gates else {}),
            **spec,
        },
    }


def gates_of(pod: Mapping[str, Any]) -> list[str]:
    return [gate["name"] for gate in pod["spec"].get("schedulingGates", [])]


def release(pod: Mapping[str, Any], *more: JSON) -> list[JSON]:
    """The patch that removes our gate, and does `more`."""
    return [*more, {"op": "remove", "path": f"/spec/schedulingGates/{gates_of(pod).index(GATE)}"}]


def eviction(name: str, namespace: str, *, uid: str | None = None) -> JSON:
    options = {"deleteOptions": {"preconditions": {"uid": uid}}} if uid else {}
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata, **options}


def move(name: str, *, pod: str, approved: bool = False) -> JSON:
    spec = {
        "topologyName": "clicks",
        "executor": {"pod": pod, "uid": "1"},
        "sourceNodeName": "n1",
        "targetNodeName": "n2",
        "approved": approved,
    }
    return {
        "apiVersion": EXECUTOR_MOVE.api_version,
        "kind": EXECUTOR_MOVE.kind,
        "metadata": {"name": name},
        "spec": spec,
    }
