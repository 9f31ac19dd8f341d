"""Spark as pods: a driver by its own entrypoint, an executor without any privilege, decommissioned by deletion."""

import json
from collections.abc import Iterator

import pytest

from tests.testbed.nodes import NodeSpec
from tests.testbed.spark_driver import FILES, driver, log, prepare
from tests.testbed.testbed import Testbed
from tests.testbed.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.soak]
NAMESPACE = "spark"

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


SETTINGS = {
    "spark.decommission.enabled": "true",
    "spark.kubernetes.executor.podTemplateFile": f"{FILES}/executor.yaml",
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Testbed]:
    with Testbed(progress=print).up(nodes=[NodeSpec("one", cpu="4")], prometheus=False) as testbed:
        prepare(testbed, NAMESPACE, {"job.py": JOB, "executor.yaml": TEMPLATE})
        yield testbed


def test_a_deleted_executor_finishes_its_work_and_is_replaced(cluster: Testbed) -> None:
    def said(word: str) -> None:
        wait_until(
            lambda: word in log(cluster, NAMESPACE, "driver"),
            what=f"the driver saying {word!r}",
            timeout_seconds=150,
            explain=lambda: "\n".join(
                [
                    cluster.kubectl("get", "events", "-n", NAMESPACE),
                    log(cluster, NAMESPACE, "driver"),
                    log(cluster, NAMESPACE, "job-exec-1"),
                ]
            )[-6000:],
        )

    cluster.apply(driver(NAMESPACE, "job.py", settings=SETTINGS))
    said("sum 45 by ['job-exec-1']")
    cluster.kubectl("delete", "pod", "job-exec-1", "-n", NAMESPACE)
    assert "Finished decommissioning" in log(cluster, NAMESPACE, "job-exec-1")
    said("executors 2")
    cluster.kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/driver", "-n", NAMESPACE, "--timeout=60s")
    status = json.loads(cluster.kubectl("get", "pod", "driver", "-n", NAMESPACE, "-o", "json"))["status"]
    assert status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 0
