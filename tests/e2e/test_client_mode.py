"""A Spark session in client mode: its driver is a process outside of the cluster, so that nobody owns its executors."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from examples.demo.installation import await_gating
from examples.demo.streaming.application import IMAGE
from examples.demo.streaming.running import ExecutorPod
from tests.e2e.cluster import Cluster, nodes, place_of
from tests.testbed.nodes import ZONE_LABEL
from tests.testbed.testbed import Testbed

pytestmark = [pytest.mark.e2e, pytest.mark.soak]

NAMESPACE, ACCOUNT = "notebooks", "spark"
LABELS = {"ballast.dev/topology": "notebook"}
PROGRAM = """
import json, sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.config(map=json.loads(sys.argv[1])).getOrCreate()
print(spark.range(1000, numPartitions=4).count(), flush=True)
sys.stdin.read()
spark.stop()
"""
"""Counts, and stays until its input ends."""


def configuration(testbed: Testbed) -> dict[str, str]:
    address = urlsplit(testbed.url).hostname or ""
    return {
        "spark.master": f"k8s://{testbed.url}",
        "spark.kubernetes.authenticate.caCertFile": str(testbed.ca),
        "spark.kubernetes.authenticate.oauthToken": testbed.token(NAMESPACE, ACCOUNT),
        "spark.kubernetes.namespace": NAMESPACE,
        "spark.kubernetes.container.image": IMAGE,
        "spark.driver.host": address,
        "spark.driver.bindAddress": address,
        "spark.ui.enabled": "false",
        "spark.executor.instances": "2",
        "spark.executor.memory": "512m",
        "spark.executor.memoryOverhead": "256m",
        "spark.kubernetes.executor.request.cores": "80m",
        **{f"spark.kubernetes.executor.label.{name}": value for name, value in LABELS.items()},
    }


@contextmanager
def session(testbed: Testbed, output: Path) -> Iterator[subprocess.Popen[str]]:
    line = [sys.executable, "-c", PROGRAM, json.dumps(configuration(testbed))]
    with output.open("w") as out, subprocess.Popen(line, stdin=subprocess.PIPE, stdout=out, text=True) as driver:
        try:
            yield driver
        finally:
            driver.kill()


def executors(testbed: Testbed) -> list[ExecutorPod]:
    path = f"/api/v1/namespaces/{NAMESPACE}/pods?labelSelector=spark-role%3Dexecutor"
    return [ExecutorPod.of(pod) for pod in testbed.api.get(path)["items"]]


def test_executors_of_a_driver_outside_of_the_cluster_are_placed_together_and_work(
    cluster: Cluster, tmp_path: Path
) -> None:
    testbed = cluster.testbed
    cluster.enforce()
    testbed.create_namespace(NAMESPACE)
    testbed.kubectl("create", "serviceaccount", ACCOUNT, "-n", NAMESPACE)
    account = f"--serviceaccount={NAMESPACE}:{ACCOUNT}"
    testbed.kubectl("create", "rolebinding", ACCOUNT, "--clusterrole=edit", account, "-n", NAMESPACE)
    await_gating(testbed, NAMESPACE, labels=LABELS)
    output = tmp_path / "output"
    with session(testbed, output) as driver:
        cluster.await_(
            lambda: [each.running for each in executors(testbed)] == [True, True],
            "both executors run",
            timeout_seconds=120,
        )
        found = executors(testbed)
        cluster.await_(lambda: output.read_text() == "1000\n", "the session has counted", timeout_seconds=120)
        driver.communicate(timeout=60)
        assert driver.returncode == 0
    assert not any(each.document["metadata"].get("ownerReferences") for each in found)
    zone = {spec.name: spec.zone for spec in nodes()}
    (chosen,) = {zone[each.node] for each in found if each.node}
    assert [place_of(each.document)[ZONE_LABEL] for each in found] == [[chosen], [chosen]]
