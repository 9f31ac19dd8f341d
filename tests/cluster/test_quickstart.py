"""The commands of docs/quickstart.md, word for word, on a cluster in which Spark pods run already."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.testbed.nodes import IMAGES
from tests.testbed.testbed import Testbed
from tests.testbed.waiting import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.soak]

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "quickstart.md"
SHOWN_PROMETHEUS = "http://prometheus.monitoring:9090"
NAMESPACE = "analytics"
APPLICATION = "spark-0123456789abcdef"
EXECUTORS = ("clicks-exec-1", "clicks-exec-2")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Testbed]:
    images = {**IMAGES, "pause": {"kind": "command", "command": ["sleep", "infinity"]}}
    with Testbed(progress=print).up(images=images) as testbed:
        testbed.create_namespace(NAMESPACE)
        testbed.apply(*(spark_pod(name, str(index)) for index, name in enumerate(EXECUTORS, 1)))
        wait_until(lambda: {"Running"} == {pod["status"]["phase"] for pod in pods(testbed)}, what="executors run")
        yield testbed


def spark_pod(name: str, executor: str) -> dict[str, Any]:
    labels = {"spark-role": "executor", "spark-app-selector": APPLICATION, "spark-exec-id": executor}
    container = {"name": "executor", "image": "pause", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels},
        "spec": {"containers": [container]},
    }


def pods(testbed: Testbed) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = testbed.api.get(f"/api/v1/namespaces/{NAMESPACE}/pods")["items"]
    return found


def steps() -> list[str]:
    """The shell blocks of the page, in order."""
    return re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(), flags=re.DOTALL | re.MULTILINE)


def shell(testbed: Testbed, script: str) -> str:
    """The output of `script` in the checkout, with the testbed's kubectl and helm and this environment's `ballast`."""
    programs = [str(testbed.binary(name).parent) for name in ("kubectl", "helm")]
    path = os.pathsep.join([*programs, str(Path(sys.prefix) / "bin"), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "KUBECONFIG": str(testbed.kubeconfig), "COLUMNS": "160"}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_every_command_of_the_page_works_and_no_executor_is_touched(cluster: Testbed) -> None:
    before = {pod["metadata"]["name"]: (pod["metadata"]["uid"], pod["spec"]) for pod in pods(cluster)}
    install, describe, status, plan, remove = steps()

    # The address is the one value that the page asks its reader to replace.
    assert describe.count(SHOWN_PROMETHEUS) == 1
    shell(cluster, install)
    shell(cluster, describe.replace(SHOWN_PROMETHEUS, cluster.prometheus_url))
    shown = shell(cluster, status)
    assert all(node["metadata"]["name"] in shown for node in cluster.api.get("/api/v1/nodes")["items"]), shown
    assert re.search(rf"{NAMESPACE}/{APPLICATION} +application +2 ", shown), shown

    def reported() -> bool:
        return bool(re.search(r"^(balancingpolicy\.ballast\.dev/)?trial\s", shell(cluster, plan), flags=re.MULTILINE))

    wait_until(reported, what="the operator reports the policy", timeout_seconds=90)
    policy = cluster.api.get("/apis/ballast.dev/v1alpha1/balancingpolicies/trial")["spec"]
    assert (policy["placement"]["mode"], policy["moves"]["mode"]) == ("Recommend", "Recommend")
    shell(cluster, remove)

    assert {pod["metadata"]["name"]: (pod["metadata"]["uid"], pod["spec"]) for pod in pods(cluster)} == before
    assert cluster.api.get("/apis/apps/v1/deployments")["items"] == []
