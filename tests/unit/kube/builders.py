"""Pods, nodes and volumes as the API server writes them; every argument is a difference from a plain one."""

from __future__ import annotations

from typing import Any

from ballast.api.topology import SparkTopology

JSON = dict[str, Any]
GATE = {"name": "ballast.dev/placement"}
FOREIGN_GATE = {"name": "kueue.x-k8s.io/admission"}
CREATED = "2026-11-21T10:00:00Z"
CREATED_AT = 1795255200.0
NOMINATED_BY_US = {
    "manager": "ballast",
    "operation": "Update",
    "subresource": "status",
    "fieldsV1": {"f:status": {"f:nominatedNodeName": {}}},
}
"""What the API server notes of it in metadata.managedFields."""
NOMINATED_BY_ANOTHER = {**NOMINATED_BY_US, "manager": "kube-scheduler"}
NODE_LABELS = {"topology.kubernetes.io/zone": "a", "topology.ballast.dev/rack": "a-1", "pool": "streaming"}


def container(name: str = "spark-kubernetes-executor", *, cpu: str = "1", memory: str = "1Gi", **more: Any) -> JSON:
    return {"name": name, "resources": {"requests": {"cpu": cpu, "memory": memory}}, **more}


def pod(name: str = "pod-1", *, namespace: str = "analytics", node: str | None = None, **more: Any) -> JSON:
    """`more`: labels, annotations, phase, gates, owners, and whatever else goes into the spec."""
    metadata = {
        "namespace": namespace,
        "name": name,
        "uid": f"uid-{name}",
        "resourceVersion": "7",
        "creationTimestamp": CREATED,
        "labels": more.pop("labels", {}),
        "annotations": more.pop("annotations", {}),
        "ownerReferences": more.pop("owners", []),
        "managedFields": more.pop("managed_fields", []),
        "finalizers": more.pop("finalizers", []),
    }
    if more.pop("leaving", False):
        metadata["deletionTimestamp"] = CREATED
    status = {"phase": more.pop("phase", "Running" if node else "Pending"), **more.pop("status", {})}
    gates = more.pop("gates", [])
    spec = {"containers": [container()], "schedulerName": "default-scheduler", **more}
    if gates:
        spec["schedulingGates"] = gates
    if node:
        spec["nodeName"] = node
    return {"metadata": metadata, "spec": spec, "status": status}


def executor(number: int = 1, *, application: str = "spark-1", profile: str = "0", **more: Any) -> JSON:
    labels = {
        "spark-role": "executor",
        "spark-app-selector": application,
        "spark-exec-id": str(number),
        "spark-exec-resourceprofile-id": profile,
        **more.pop("labels", {}),
    }
    return pod(more.pop("name", f"{application}-exec-{number}"), labels=labels, **more)


def driver(application: str = "spark-1", *, node: str | None = "node-1", **more: Any) -> JSON:
    labels = {"spark-role": "driver", "spark-app-selector": application, **more.pop("labels", {})}
    return pod(f"{application}-driver", node=node, labels=labels, **more)


def node(name: str = "node-1", *, labels: JSON | None = None, **more: Any) -> JSON:
    """`more`: annotations, taints, unschedulable, ready, allocatable, leaving."""
    metadata: JSON = {
        "name": name,
        "creationTimestamp": CREATED,
        "labels": {**NODE_LABELS, "kubernetes.io/hostname": name, **(labels or {})},
        "annotations": more.pop("annotations", {}),
    }
    if more.pop("leaving", False):
        metadata["deletionTimestamp"] = CREATED
    ready = "True" if more.pop("ready", True) else "False"
    allocatable = more.pop("allocatable", {"cpu": "4", "memory": "8Gi", "pods": "110"})
    status = {"allocatable": allocatable, "conditions": [{"type": "Ready", "status": ready}]}
    return {"metadata": metadata, "spec": more, "status": status}


def required(*terms: JSON) -> JSON:
    """An affinity that requires any of these node selector terms."""
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}}


def required_values(affinity: JSON) -> list[str]:
    """What the first required node selector term of an affinity allows: zones, where Ballast has written it."""
    node_affinity = affinity.get("nodeAffinity") or {}
    terms = (node_affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}).get("nodeSelectorTerms") or [{}]
    return [value for each in terms[0].get("matchExpressions") or () for value in each["values"]]


def expression(key: str, *values: str, operator: str = "In") -> JSON:
    return {"key": key, "operator": operator, "values": list(values)}


def topology(name: str = "clicks", *, namespace: str = "analytics", **spec: Any) -> SparkTopology:
    metadata = {"name": name, "namespace": namespace, "labels": spec.pop("labels", {})}
    return SparkTopology.parse(
        {"apiVersion": "ballast.dev/v1alpha1", "kind": "SparkTopology", "metadata": metadata, "spec": spec}
    )


def pinned_by_us(at: str, part: str = "requiredDuringSchedulingIgnoredDuringExecution") -> JSON:
    fields: JSON = {"f:spec": {"f:affinity": {"f:nodeAffinity": {f"f:{part}": {}}}}}
    return {"manager": "ballast", "operation": "Update", "time": at, "fieldsV1": fields}
