"""The streaming job as a Spark application: its driver's pod, and what its executors are told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

from examples.demo.streaming.records import Stream

JOB = Path(__file__).with_name("job.py")
IMAGE = "spark:4.3.0"
DATA = "/data"
UI_PORT = 4040
_TOKEN_FOLDER = "/var/run/secrets/kubernetes.io/serviceaccount"  # noqa: S105 -- a path, not a token
_LEAN_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto"

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Job:
    """One run of the streaming job. `folder` is on this machine and becomes /data in every pod of it."""

    name: str
    namespace: str
    folder: Path
    executors: int = 6
    request_cores: str = "80m"
    trigger: str = "2 seconds"
    window: str = "2 seconds"
    partitions: int = 12
    rounds: int = 50
    stream: Stream = field(default_factory=Stream)
    executor_labels: Mapping[str, str] = field(default_factory=dict)
    conf: Mapping[str, str] = field(default_factory=dict)
    """Wins over what is set here."""
    driver_node_selector: Mapping[str, str] = field(default_factory=dict)
    application: str = field(default_factory=lambda: f"spark-{uuid4().hex}")

    @property
    def driver(self) -> str:
        return f"{self.name}-driver"

    def configuration(self) -> dict[str, str]:
        """Spark's, complete; what makes a move graceful is among it."""
        labels = {f"spark.kubernetes.executor.label.{name}": value for name, value in self.executor_labels.items()}
        volume = "spark.kubernetes.executor.volumes.hostPath.data"
        return {
            "spark.app.id": self.application,
            "spark.app.name": self.name,
            "spark.kubernetes.namespace": self.namespace,
            "spark.kubernetes.driver.pod.name": self.driver,
            "spark.kubernetes.executor.podNamePrefix": self.name,
            "spark.kubernetes.container.image": IMAGE,
            "spark.kubernetes.authenticate.caCertFile": f"{_TOKEN_FOLDER}/ca.crt",
            "spark.kubernetes.authenticate.oauthTokenFile": f"{_TOKEN_FOLDER}/token",
            "spark.executor.instances": str(self.executors),
            "spark.executor.cores": "1",
            "spark.executor.memory": "512m",
            "spark.executor.memoryOverhead": "256m",
            "spark.kubernetes.executor.request.cores": self.request_cores,
            "spark.executor.extraJavaOptions": _LEAN_JVM,
            "spark.driver.extraJavaOptions": _LEAN_JVM,
            "spark.driver.memory": "640m",
            "spark.sql.shuffle.partitions": str(self.partitions),
            "spark.sql.adaptive.enabled": "false",
            "spark.sql.streaming.numRecentProgressUpdates": "8",
            "spark.sql.streaming.metricsEnabled": "true",
            "spark.ui.prometheus.enabled": "true",
            "spark.metrics.conf.*.sink.prometheusServlet.class": "org.apache.spark.metrics.sink.PrometheusServlet",
            "spark.metrics.conf.*.sink.prometheusServlet.path": "/metrics/prometheus",
            "spark.decommission.enabled": "true",
            "spark.storage.decommission.enabled": "false",
            "spark.locality.wait": "0s",
            "spark.kubernetes.executor.terminationGracePeriodSeconds": "60s",
            f"{volume}.mount.path": DATA,
            f"{volume}.options.path": str(self.folder),
            **labels,
            **self.conf,
        }

    def manifests(self) -> list[Json]:
        """The program, the driver's pod, and the rights that Spark's driver needs."""
        return [self._program(), *_rights(self.namespace), self._driver()]

    def _program(self) -> Json:
        properties = "".join(f"{key} {value}\n" for key, value in sorted(self.configuration().items()))
        return {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": f"{self.name}-job", "namespace": self.namespace},
            "data": {"job.py": JOB.read_text(), "spark.properties": properties},
        }

    def _driver(self) -> Json:
        labels = {"spark-role": "driver", "spark-app-selector": self.application, "spark-app-name": self.name}
        scrape = {"scrape": "true", "port": str(UI_PORT), "path": "/metrics/prometheus"}
        annotations = {f"prometheus.io/{name}": value for name, value in scrape.items()}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": self.driver,
                "namespace": self.namespace,
                "labels": labels,
                "annotations": annotations,
            },
            "spec": {
                "serviceAccountName": "spark",
                "restartPolicy": "Never",
                "terminationGracePeriodSeconds": 15,
                "nodeSelector": dict(self.driver_node_selector),
                "tolerations": [{"operator": "Exists"}],
                "volumes": [
                    {"name": "job", "configMap": {"name": f"{self.name}-job"}},
                    {"name": "data", "hostPath": {"path": str(self.folder), "type": "DirectoryOrCreate"}},
                ],
                "containers": [self._driver_container()],
            },
        }

    def _driver_container(self) -> Json:
        address = {"fieldRef": {"fieldPath": "status.podIP"}}
        return {
            "name": "spark-kubernetes-driver",
            "image": IMAGE,
            "args": ["driver", *self._submission()],
            "env": [{"name": "SPARK_DRIVER_BIND_ADDRESS", "valueFrom": address}],
            "ports": [{"name": "ui", "containerPort": UI_PORT}],
            "resources": {"requests": {"cpu": "100m", "memory": "1Gi"}},
            "volumeMounts": [
                {"name": "job", "mountPath": "/opt/job", "readOnly": True},
                {"name": "data", "mountPath": DATA},
            ],
        }

    def _submission(self) -> list[str]:
        master = "k8s://https://$(KUBERNETES_SERVICE_HOST):$(KUBERNETES_SERVICE_PORT)"
        return [
            *("--master", master),
            *("--properties-file", "/opt/job/spark.properties"),
            *("--conf", "spark.driver.host=$(SPARK_DRIVER_BIND_ADDRESS)"),
            "/opt/job/job.py",
            *("--folder", DATA),
            *("--trigger", self.trigger),
            *("--window", self.window),
            *("--rounds", str(self.rounds)),
        ]


def _rights(namespace: str) -> list[Json]:
    """What Spark's documentation asks for: a ServiceAccount that may handle pods and what belongs to them."""
    where = {"namespace": namespace, "name": "spark"}
    group = "rbac.authorization.k8s.io"
    resources = ["pods", "services", "configmaps", "persistentvolumeclaims"]
    verbs = ["get", "list", "watch", "create", "delete", "deletecollection", "patch", "update"]
    subject = {"kind": "ServiceAccount", **where}
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": where},
        {
            "apiVersion": f"{group}/v1",
            "kind": "Role",
            "metadata": where,
            "rules": [{"apiGroups": [""], "resources": resources, "verbs": verbs}],
        },
        {
            "apiVersion": f"{group}/v1",
            "kind": "RoleBinding",
            "metadata": where,
            "roleRef": {"apiGroup": group, "kind": "Role", "name": "spark"},
            "subjects": [subject],
        },
    ]
