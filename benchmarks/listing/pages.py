"""Pods and nodes as pages of JSON, as long and as deep as the API server gives them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from ballast.kube.objects import PAGE

JSON = dict[str, Any]
STARTED = "2026-11-21T10:00:00Z"


def pages(count: int, make: Callable[[int], JSON]) -> Iterator[bytes]:
    """One list of so many objects, page by page."""
    for first in range(0, count, PAGE):
        items = [make(number) for number in range(first, min(first + PAGE, count))]
        yield json.dumps({"metadata": {"resourceVersion": "7"}, "items": items}).encode()


def executor(number: int, *, application: str, node: str, topology: str) -> JSON:
    """A running executor, as Spark's driver asks for it and the kubelet fills it in."""
    name = f"{application}-exec-{number}"
    return {
        "metadata": {
            "name": name,
            "namespace": "team",
            "uid": f"00000000-0000-4000-8000-{number:012d}",
            "resourceVersion": str(1000 + number),
            "creationTimestamp": STARTED,
            "labels": {
                "spark-role": "executor",
                "spark-app-selector": application,
                "spark-app-name": application,
                "spark-version": "4.0.1",
                "spark-exec-id": str(number),
                "spark-exec-resourceprofile-id": "0",
                "ballast.dev/topology": topology,
            },
            "ownerReferences": [
                {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "name": f"{application}-driver",
                    "uid": "driver",
                    "controller": True,
                }
            ],
            "managedFields": [_managed("fabric8-kubernetes-client", ""), _managed("kubelet", "status")],
        },
        "spec": _spec(number, application=application, node=node),
        "status": _status(),
    }


def _spec(number: int, *, application: str, node: str) -> JSON:
    return {
        "volumes": [
            {"name": "spark-local-dir-1", "emptyDir": {}},
            {"name": "spark-conf-volume-exec", "configMap": {"name": f"{application}-conf", "defaultMode": 420}},
            {"name": "kube-api-access", "projected": {"defaultMode": 420, "sources": _token_sources()}},
        ],
        "containers": [_container(application, number)],
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 30,
        "serviceAccountName": "default",
        "nodeName": node,
        "schedulerName": "default-scheduler",
        "tolerations": [
            {
                "key": f"node.kubernetes.io/{key}",
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": 300,
            }
            for key in ("not-ready", "unreachable")
        ],
        "preemptionPolicy": "PreemptLowerPriority",
    }


def _status() -> JSON:
    return {
        "phase": "Running",
        "conditions": [
            {"type": type_, "status": "True", "lastProbeTime": None, "lastTransitionTime": STARTED}
            for type_ in ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
        ],
        "hostIP": "10.0.0.1",
        "podIP": "10.1.0.1",
        "startTime": STARTED,
        "containerStatuses": [
            {"name": "spark-kubernetes-executor", "ready": True, "state": {"running": {"startedAt": STARTED}}}
        ],
        "qosClass": "Burstable",
    }


def _container(application: str, number: int) -> JSON:
    environment = {
        "SPARK_USER": "spark",
        "SPARK_DRIVER_URL": f"spark://CoarseGrainedScheduler@{application}-driver-svc.team.svc:7078",
        "SPARK_EXECUTOR_CORES": "1",
        "SPARK_EXECUTOR_MEMORY": "1024m",
        "SPARK_APPLICATION_ID": application,
        "SPARK_CONF_DIR": "/opt/spark/conf",
        "SPARK_EXECUTOR_ID": str(number),
        "SPARK_RESOURCE_PROFILE_ID": "0",
        "SPARK_JAVA_OPT_0": "--add-opens=java.base/java.lang=ALL-UNNAMED",
        "SPARK_LOCAL_DIRS": "/var/data/spark-local",
    }
    return {
        "name": "spark-kubernetes-executor",
        "image": "apache/spark:4.0.1",
        "args": ["executor"],
        "ports": [{"name": "blockmanager", "containerPort": 7079, "protocol": "TCP"}],
        "env": [{"name": name, "value": value} for name, value in environment.items()],
        "resources": {"requests": {"cpu": "1", "memory": "1408Mi"}, "limits": {"memory": "1408Mi"}},
        "volumeMounts": [
            {"name": "spark-local-dir-1", "mountPath": "/var/data/spark-local"},
            {"name": "spark-conf-volume-exec", "mountPath": "/opt/spark/conf"},
        ],
        "lifecycle": {"preStop": {"exec": {"command": ["/opt/decom.sh"]}}},
        "imagePullPolicy": "IfNotPresent",
    }


def _token_sources() -> list[JSON]:
    return [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
    ]


def _managed(manager: str, subresource: str) -> JSON:
    known = (
        "containers",
        "restartPolicy",
        "serviceAccountName",
        "terminationGracePeriodSeconds",
        "tolerations",
        "volumes",
    )
    fields: JSON = {f"f:{name}": {".": {}, "f:name": {}, "f:value": {}} for name in known}
    return {
        "manager": manager,
        "operation": "Update",
        "apiVersion": "v1",
        "time": STARTED,
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:status" if subresource else "f:spec": fields},
        **({"subresource": subresource} if subresource else {}),
    }


def node(number: int, *, name: str) -> JSON:
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": "m5.4xlarge",
        "topology.kubernetes.io/zone": f"z{number // 100 % 3}",
        "topology.ballast.dev/rack": f"r{number // 20}",
        "pool": "streaming",
    }
    return {
        "metadata": {"name": name, "uid": f"node-{number}", "creationTimestamp": STARTED, "labels": labels},
        "spec": {"podCIDR": "10.1.0.0/24"},
        "status": {
            "allocatable": {"cpu": "40", "memory": "80Gi", "pods": "250", "ephemeral-storage": "100Gi"},
            "conditions": [
                {"type": type_, "status": status, "lastHeartbeatTime": STARTED, "lastTransitionTime": STARTED}
                for type_, status in (("MemoryPressure", "False"), ("DiskPressure", "False"), ("Ready", "True"))
            ],
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}, {"type": "Hostname", "address": name}],
            "images": [{"names": [f"image-{i}:1"], "sizeBytes": 100_000_000} for i in range(20)],
        },
    }
