"""A Spark driver as a pod, as spark-submit in cluster mode would make it, and what it needs around it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.testbed.testbed import Testbed

Json = dict[str, Any]
IMAGE = "apache/spark:4.3.0"
SECRETS = "/var/run/secrets/kubernetes.io/serviceaccount"
LEAN_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
FILES = "/job"


def prepare(testbed: Testbed, namespace: str, files: Mapping[str, str]) -> None:
    """The namespace, its service account, and the files that the driver sees below `FILES`."""
    testbed.create_namespace(namespace)
    testbed.kubectl("create", "serviceaccount", "spark", "-n", namespace)
    testbed.kubectl(
        "create", "rolebinding", "spark", "--clusterrole=edit", f"--serviceaccount={namespace}:spark", "-n", namespace
    )
    metadata = {"name": "job", "namespace": namespace}
    testbed.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": dict(files)})


def driver(
    namespace: str,
    program: str,
    arguments: Sequence[str] = (),
    *,
    settings: Mapping[str, str] | None = None,
    folders: Mapping[str, Path] | None = None,
) -> Json:
    """Runs `program`, one of the files. `folders`: of this machine, by where the driver sees them."""
    conf = {**_settings(namespace), **(settings or {})}
    options = [word for key, value in conf.items() for word in ("--conf", f"{key}={value}")]
    shared = {f"folder-{index}": (path, folder) for index, (path, folder) in enumerate((folders or {}).items())}
    master = ["--master", "k8s://https://kubernetes.default.svc"]
    container = {
        "name": "driver",
        "image": IMAGE,
        "args": ["driver", *master, *options, f"local://{FILES}/{program}", *arguments],
        "env": [{"name": "SPARK_DRIVER_BIND_ADDRESS", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
        "volumeMounts": [
            {"name": "job", "mountPath": FILES},
            *({"name": name, "mountPath": path} for name, (path, _) in shared.items()),
        ],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "driver", "namespace": namespace},
        "spec": {
            "serviceAccountName": "spark",
            "restartPolicy": "Never",
            "containers": [container],
            "volumes": [
                {"name": "job", "configMap": {"name": "job"}},
                *(
                    {"name": name, "hostPath": {"path": str(folder), "type": "Directory"}}
                    for name, (_, folder) in shared.items()
                ),
            ],
        },
    }


def _settings(namespace: str) -> dict[str, str]:
    return {
        "spark.app.name": "job",
        "spark.driver.host": "$(SPARK_DRIVER_BIND_ADDRESS)",
        "spark.driver.extraJavaOptions": LEAN_JAVA,
        "spark.ui.enabled": "false",
        "spark.executor.instances": "1",
        "spark.executor.memory": "512m",
        "spark.executor.extraJavaOptions": LEAN_JAVA,
        "spark.kubernetes.namespace": namespace,
        "spark.kubernetes.driver.pod.name": "driver",
        "spark.kubernetes.container.image": IMAGE,
        "spark.kubernetes.executor.podNamePrefix": "job",
        "spark.kubernetes.authenticate.caCertFile": f"{SECRETS}/ca.crt",
        "spark.kubernetes.authenticate.oauthTokenFile": f"{SECRETS}/token",
        "spark.kubernetes.authenticate.executor.serviceAccountName": "spark",
    }


def log(testbed: Testbed, namespace: str, pod: str) -> str:
    """A pod's log on disk, where it stays when the pod has gone."""
    folder = testbed.instance.folder / "kubelet" / "logs"
    return "".join(path.read_text() for path in Path(folder).glob(f"{namespace}_{pod}_*/*/0.log"))
