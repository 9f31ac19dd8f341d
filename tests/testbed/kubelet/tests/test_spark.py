"""Spark as pods: a driver by its own entrypoint, an executor without any privilege, decommissioned by deletion."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.testbed.nodes import NodeSpec
from tests.testbed.testbed import Testbed
from tests.testbed.waiting import wait_until

Json = dict[str, Any]
pytestmark = pytest.mark.e2e
NAMESPACE = "spark"
SECRETS = "/var/run/secrets/kubernetes.io/serviceaccount"
LEAN_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

JOB = """
import time
from socket import gethostname
from pyspark.sql import SparkSession

context = SparkSession.builder.getOrCreate().sparkContext
hosts = set()
deadline = time.monotonic() + 180
while len(hosts) < 2 and time.monotonic() < deadline:
    found = context.parallelize(range(10), 1).map(lambda n: (gethostname(), n)).collect()
    hosts |= {name for name, _ in found}
    print("sum", sum(n for _, n in found), "by", sorted(hosts), flush=True)
    time.sleep(0.5)
print("executors", len(hosts), flush=True)
"""

# Nobody's user, nothing writable but the volumes, no capability: what a hardened cluster asks for.
TEMPLATE = """
spec:
  securityContext: {runAsNonRoot: true, runAsUser: 185, fsGroup: 185}
  containers:
    - name: executor
      securityContext: {readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
      volumeMounts: [{name: scratch, mountPath: /tmp}]
  volumes: [{name: scratch, emptyDir: {}}]
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Testbed]:
    with Testbed(progress=print).up(nodes=[NodeSpec("one", cpu="4")], prometheus=False) as testbed:
        testbed.create_namespace(NAMESPACE)
        testbed.kubectl("create", "serviceaccount", "spark", "-n", NAMESPACE)
        testbed.kubectl(
            "create", "rolebinding", "spark", "--clusterrole=edit", "--serviceaccount=spark:spark", "-n", NAMESPACE
        )
        data = {"job.py": JOB, "executor.yaml": TEMPLATE}
        metadata = {"name": "job", "namespace": NAMESPACE}
        testbed.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
        yield testbed


def driver() -> Json:
    """The driver's pod, as spark-submit in cluster mode would make it."""
    settings = {
        "spark.app.name": "job",
        "spark.driver.host": "$(SPARK_DRIVER_BIND_ADDRESS)",
        "spark.driver.extraJavaOptions": LEAN_JAVA,
        "spark.ui.enabled": "false",
        "spark.executor.instances": "1",
        "spark.executor.memory": "512m",
        "spark.executor.extraJavaOptions": LEAN_JAVA,
        "spark.decommission.enabled": "true",
        "spark.kubernetes.namespace": NAMESPACE,
        "spark.kubernetes.driver.pod.name": "driver",
        "spark.kubernetes.container.image": "apache/spark:4.3.0",
        "spark.kubernetes.executor.podTemplateFile": "/job/executor.yaml",
        "spark.kubernetes.executor.podNamePrefix": "job",
        "spark.kubernetes.authenticate.caCertFile": f"{SECRETS}/ca.crt",
        "spark.kubernetes.authenticate.oauthTokenFile": f"{SECRETS}/token",
        "spark.kubernetes.authenticate.executor.serviceAccountName": "spark",
    }
    options = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    container = {
        "name": "driver",
        "image": "apache/spark:4.3.0",
        "args": ["driver", "--master", "k8s://https://kubernetes.default.svc", *options, "local:///job/job.py"],
        "env": [{"name": "SPARK_DRIVER_BIND_ADDRESS", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
        "volumeMounts": [{"name": "job", "mountPath": "/job"}],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "driver", "namespace": NAMESPACE},
        "spec": {
            "serviceAccountName": "spark",
            "restartPolicy": "Never",
            "containers": [container],
            "volumes": [{"name": "job", "configMap": {"name": "job"}}],
        },
    }


def log(testbed: Testbed, pod: str) -> str:
    """A pod's log on disk, where it stays when the pod has gone."""
    folder = testbed.instance.folder / "kubelet" / "logs"
    return "".join(path.read_text() for path in Path(folder).glob(f"{NAMESPACE}_{pod}_*/*/0.log"))


def test_a_deleted_executor_finishes_its_work_and_is_replaced(cluster: Testbed) -> None:
    def said(word: str) -> None:
        wait_until(
            lambda: word in log(cluster, "driver"),
            what=f"the driver saying {word!r}",
            timeout_seconds=150,
            explain=lambda: "\n".join(
                [cluster.kubectl("get", "events", "-n", NAMESPACE), log(cluster, "driver"), log(cluster, "job-exec-1")]
            )[-6000:],
        )

    cluster.apply(driver())
    said("sum 45 by ['job-exec-1']")
    cluster.kubectl("delete", "pod", "job-exec-1", "-n", NAMESPACE)
    assert "Finished decommissioning" in log(cluster, "job-exec-1")
    said("executors 2")
    cluster.kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/driver", "-n", NAMESPACE, "--timeout=60s")
    status = json.loads(cluster.kubectl("get", "pod", "driver", "-n", NAMESPACE, "-o", "json"))["status"]
    assert status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 0
