"""Pods as Spark's driver asks for them, and others, as long as real ones."""

from __future__ import annotations

from typing import Any

from ballast.kube import names
from tests.testbed.nodes import HOSTNAME_LABEL, RACK_LABEL, ZONE_LABEL, NodeSpec

JSON = dict[str, Any]

GATE = {"name": names.GATE}
POOL = {"pool": "bench"}
NODES_PER_RACK = 20
RACKS_PER_ZONE = 20


def node(index: int) -> NodeSpec:
    rack = index // NODES_PER_RACK
    return NodeSpec(
        name=f"node-{index:04d}",
        zone=f"z{rack // RACKS_PER_ZONE}",
        rack=f"r{rack}",
        cpu="16",
        memory="64Gi",
        pods="110",
        labels=POOL,
    )


def foreign(index: int, *, namespace: str, node_name: str) -> JSON:
    """A pod that is no executor, bound from the start."""
    labels = {"app": f"service-{index // 10}", "pod-template-hash": "6d4cf56db6"}
    spec = {"nodeName": node_name, "containers": [_container("main", index, cores="500m")]}
    return _pod(f"service-{index // 10}-{index % 10}", namespace, labels=labels, spec=spec)


def driver(application: str, *, namespace: str) -> JSON:
    labels = {**_spark(application), names.SPARK_ROLE: "driver"}
    spec = {"containers": [_container("spark-kubernetes-driver", 0, cores="1")]}
    return _pod(f"{application}-driver", namespace, labels=labels, spec=spec)


def executor(number: int, application: str, *, namespace: str, driver_uid: str, gated: bool) -> JSON:
    labels = {
        **_spark(application),
        names.SPARK_ROLE: "executor",
        names.SPARK_EXECUTOR_ID: str(number),
        names.SPARK_RESOURCE_PROFILE: "0",
    }
    container = _container("spark-kubernetes-executor", number, cores="1")
    container["lifecycle"] = {"preStop": {"exec": {"command": ["/opt/decom.sh"]}}}
    spec: JSON = {"nodeSelector": POOL, "containers": [container]}
    if gated:
        spec["schedulingGates"] = [GATE]
    pod = _pod(f"{application}-exec-{number}", namespace, labels=labels, spec=spec)
    owner = {"apiVersion": "v1", "kind": "Pod", "name": f"{application}-driver", "uid": driver_uid, "controller": True}
    pod["metadata"]["ownerReferences"] = [owner]
    return pod


def release_operations(place: NodeSpec) -> list[JSON]:
    """A patch of the kind that releases an executor to a place: zone required, rack and node preferred."""
    required = {"nodeSelectorTerms": [_term(ZONE_LABEL, place.zone)]}
    wishes = ((100, RACK_LABEL, place.rack), (50, HOSTNAME_LABEL, place.name))
    preferred = [{"weight": weight, "preference": _term(label, value)} for weight, label, value in wishes]
    affinity = {
        "requiredDuringSchedulingIgnoredDuringExecution": required,
        "preferredDuringSchedulingIgnoredDuringExecution": preferred,
    }
    return [
        {"op": "add", "path": "/spec/affinity", "value": {"nodeAffinity": affinity}},
        {"op": "remove", "path": "/spec/schedulingGates/0"},
    ]


def _term(label: str, value: str) -> JSON:
    return {"matchExpressions": [{"key": label, "operator": "In", "values": [value]}]}


def _spark(application: str) -> dict[str, str]:
    return {names.SPARK_APPLICATION: application, "spark-app-name": application, "spark-version": "4.0.1"}


def _pod(name: str, namespace: str, *, labels: dict[str, str], spec: JSON) -> JSON:
    volumes: list[JSON] = [
        {"name": "local-dir", "emptyDir": {}},
        {"name": "conf", "configMap": {"name": "conf", "optional": True}},
    ]
    fixed = {"restartPolicy": "Never", "automountServiceAccountToken": False, "volumes": volumes}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {**fixed, **spec},
    }


def _container(name: str, number: int, *, cores: str) -> JSON:
    environment = {
        f"SPARK_JAVA_OPT_{index}": f"--add-opens=java.base/java.lang{index}=ALL-UNNAMED" for index in range(12)
    }
    environment["SPARK_EXECUTOR_ID"] = str(number)
    return {
        "name": name,
        "image": "apache/spark:4.0.1",
        "args": ["executor"],
        "ports": [{"name": "blockmanager", "containerPort": 7079, "protocol": "TCP"}],
        "env": [{"name": key, "value": value} for key, value in environment.items()],
        "resources": {"requests": {"cpu": cores, "memory": "1408Mi"}, "limits": {"memory": "1408Mi"}},
        "volumeMounts": [
            {"name": "local-dir", "mountPath": "/var/data/spark-local"},
            {"name": "conf", "mountPath": "/opt/spark/conf"},
        ],
    }
