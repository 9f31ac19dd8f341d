"""The streaming job as a Spark application on the testbed: its driver's pod, and what its executors are told."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self
from uuid import uuid4

from examples.demo.streaming.batches import Batch, read_batches
from examples.demo.streaming.records import Comparison, Source, Stream, arrived, compare
from tests.testbed.testbed import Testbed
from tests.testbed.waiting import wait_until

JOB = Path(__file__).with_name("job.py")
IMAGE = "spark:4.3.0"
DATA = "/data"
UI_PORT = 4040
_TOKEN_FOLDER = "/var/run/secrets/kubernetes.io/serviceaccount"  # noqa: S105 -- a path, not a token
_LEAN_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto"
_STARTED_SECONDS = 180.0
_DRAINED_SECONDS = 90.0
_ENDED_SECONDS = 60.0

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


@dataclass(frozen=True, slots=True)
class ExecutorPod:
    """An executor as the API server has it."""

    name: str
    uid: str
    phase: str
    node: str | None
    gated: bool
    leaving: bool
    document: Json

    @classmethod
    def of(cls, pod: Json) -> Self:
        return cls(
            name=pod["metadata"]["name"],
            uid=pod["metadata"]["uid"],
            phase=pod["status"].get("phase", "Pending"),
            node=pod["spec"].get("nodeName"),
            gated=bool(pod["spec"].get("schedulingGates")),
            leaving="deletionTimestamp" in pod["metadata"],
            document=pod,
        )

    @property
    def running(self) -> bool:
        return self.phase == "Running" and not self.leaving


@dataclass(slots=True)
class RunningJob:
    """A job that was submitted, with the source that feeds it."""

    testbed: Testbed
    job: Job
    source: Source

    @classmethod
    def submit(cls, testbed: Testbed, job: Job) -> Self:
        """Start the driver; the namespace must exist. Nothing flows before `feed`."""
        shutil.rmtree(job.folder, ignore_errors=True)
        for name in ("source", "sink"):
            (job.folder / name).mkdir(parents=True)
        testbed.apply(*job.manifests())
        return cls(testbed, job, Source(job.folder / "source", job.stream))

    def feed(self) -> None:
        """Let records flow, once the query runs: what piles up before would make the first batch a long one."""
        self._await((self.job.folder / "started").exists, "the query runs", _STARTED_SECONDS)
        self.source.start()

    @property
    def sink(self) -> Path:
        return self.job.folder / "sink"

    def executors(self) -> list[ExecutorPod]:
        """Those that have not ended, in the order of their names."""
        path = f"/api/v1/namespaces/{self.job.namespace}/pods?labelSelector=spark-app-selector%3D{self.job.application}"
        pods = [pod for pod in self.testbed.api.get(path)["items"] if _role(pod) == "executor"]
        found = [ExecutorPod.of(pod) for pod in pods]
        return sorted((e for e in found if e.phase in ("Pending", "Running")), key=lambda e: (len(e.name), e.name))

    def running_executors(self) -> list[ExecutorPod]:
        return [executor for executor in self.executors() if executor.running]

    def batches(self) -> list[Batch]:
        return read_batches(self.job.folder / "progress.jsonl")

    def await_executors(self, count: int | None = None, *, timeout_seconds: float = _STARTED_SECONDS) -> None:
        """Until so many run, all of the job's by default."""
        wanted = self.job.executors if count is None else count
        self._await(lambda: len(self.running_executors()) == wanted, f"{wanted} executors run", timeout_seconds)

    def await_batches(self, count: int, *, timeout_seconds: float = _STARTED_SECONDS) -> None:
        """Until so many more batches have ended."""
        before = len(self.batches())
        self._await(lambda: len(self.batches()) >= before + count, f"{count} more batches end", timeout_seconds)

    def await_placed(self, count: int, *, timeout_seconds: float = _STARTED_SECONDS) -> list[ExecutorPod]:
        """So many executors, once all of them have a node; whether they run already does not matter."""

        def placed() -> list[ExecutorPod] | None:
            found = [executor for executor in self.executors() if executor.node and not executor.leaving]
            return found if len(found) == count else None

        self._await(placed, f"{count} executors have a node", timeout_seconds)
        return placed() or self.executors()

    def compared_so_far(self) -> Comparison:
        """Every record written until now, compared once all of them had time to come out; the job goes on."""
        written = self.source.written
        self._await(lambda: arrived(self.sink, below=written) >= written, "the sink has caught up", _DRAINED_SECONDS)
        return compare(self.job.stream, written=written, sink=self.sink, below=written)

    def finish(self) -> Comparison:
        """Let everything written pass through, end the application, and compare source and sink."""
        self.source.close()
        try:
            self._await(
                lambda: arrived(self.sink) >= self.source.written, "the sink has every record", _DRAINED_SECONDS
            )
        finally:
            self.stop()
        return compare(self.job.stream, written=self.source.written, sink=self.sink)

    def stop(self) -> None:
        """End the application, whatever it is doing, and forget its pods."""
        self.source.halt()
        (self.job.folder / "stop").touch()
        try:
            self._await(self._driver_ended, "the driver has ended", _ENDED_SECONDS)
        finally:
            where = f"--namespace={self.job.namespace}"
            selector = f"--selector=spark-app-selector={self.job.application}"
            self.testbed.kubectl("delete", "pods", selector, where, "--grace-period=5", "--wait=false")
        self._await(lambda: not self.executors(), "the executors have gone", _ENDED_SECONDS)

    def abandon(self) -> None:
        """End it at once, whatever becomes of its records."""
        self.source.halt()
        where, selector = f"--namespace={self.job.namespace}", f"--selector=spark-app-selector={self.job.application}"
        self.testbed.kubectl("delete", "pods", selector, where, "--grace-period=1", "--wait=false")

    def _driver_ended(self) -> bool:
        return self._driver_phase() in ("Succeeded", "Failed", "")

    def _driver_phase(self) -> str:
        where = f"--namespace={self.job.namespace}"
        found = self.testbed.kubectl("get", "pod", self.job.driver, where, "--ignore-not-found", "--output=json")
        return str(json.loads(found)["status"].get("phase")) if found.strip() else ""

    def _await(self, condition: Callable[[], object], what: str, timeout_seconds: float) -> None:
        wait_until(condition, what=what, timeout_seconds=timeout_seconds, poll_seconds=0.5, explain=self._explanation)

    def _explanation(self) -> str:
        where = f"--namespace={self.job.namespace}"
        log = self.testbed.kubectl("logs", self.job.driver, where, "--tail=30", "--ignore-errors")
        return (
            f"driver: {self._driver_phase()}; executors: {[(e.name, e.phase, e.node) for e in self.executors()]}\n{log}"
        )


def _role(pod: Mapping[str, Any]) -> str:
    return str(pod["metadata"].get("labels", {}).get("spark-role", ""))
