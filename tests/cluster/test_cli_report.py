"""`report` on the real API server, as a user who may list pods and nodes and read nothing of Ballast's."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest
import yaml

from ballast.kube.kinds import BALANCING_POLICY, NODE, POD, Kind
from ballast.kube.objects import Query, read_list
from tests.cluster.kube.cluster import Cluster, client_with_token
from tests.testbed.testbed import Testbed
from tests.testbed.waiting import wait_until
from tests.unit.cli.program import run

pytestmark = pytest.mark.cluster

NAMESPACE = "cli-report"
ZONE = "topology.kubernetes.io/zone"
NODES = {"report-a1": "a", "report-b1": "b", "report-c1": "c"}
ROLE = Kind("rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles", namespaced=False)
BINDING = Kind("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False)
READER = "report-reader"


@pytest.fixture(scope="module")
def cluster(control_plane: Testbed) -> Iterator[Cluster]:
    """Three executors of one application, each in a zone of its own, and a role that lists pods and nodes."""
    cluster = Cluster.open(control_plane, NAMESPACE)
    rules = [{"apiGroups": [""], "resources": ["pods", "nodes"], "verbs": ["get", "list"]}]
    subject = {"kind": "ServiceAccount", "name": "default", "namespace": NAMESPACE}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": READER}
    try:
        cluster.client.create(ROLE, {"metadata": {"name": READER}, "rules": rules})
        cluster.client.create(BINDING, {"metadata": {"name": READER}, "roleRef": role, "subjects": [subject]})
        for name, zone in NODES.items():
            cluster.node(name, **{ZONE: zone})
        wait_until(lambda: all(map(cluster.takes_pods, NODES)), what="the new nodes take pods")
        for number, node in enumerate(NODES, start=1):
            cluster.running(f"exec-{number}", node)
            cluster.patch(f"exec-{number}", {"metadata": {"labels": {"spark-exec-id": str(number)}}})
        yield cluster
    finally:
        for name in NODES:
            cluster.client.delete(NODE, name)
        cluster.client.delete(BINDING, READER)
        cluster.client.delete(ROLE, READER)


@pytest.fixture
def kubeconfig(control_plane: Testbed, cluster: Cluster, tmp_path: Path) -> Path:
    """With the reader's token and no other credential."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": "c", "cluster": {"server": control_plane.url, "certificate-authority": str(control_plane.ca)}}
        ],
        "users": [{"name": "u", "user": {"token": control_plane.token(cluster.namespace, "default")}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    file = tmp_path / "kubeconfig"
    file.touch(mode=0o600)
    file.write_text(yaml.safe_dump(config))
    return file


def test_the_reader_may_neither_read_policies_nor_change_pods(
    control_plane: Testbed, cluster: Cluster, tmp_path: Path
) -> None:
    """Otherwise the next test would show less than it says."""
    client = client_with_token(control_plane, tmp_path, namespace=cluster.namespace)
    for attempt in (
        lambda: client.get(BALANCING_POLICY, "any"),
        lambda: client.delete(NODE, "report-a1"),
    ):
        with pytest.raises(Exception, match="forbidden"):
            attempt()


def test_listing_pods_and_nodes_is_all_that_a_report_needs(cluster: Cluster, kubeconfig: Path) -> None:
    before = [cluster.read(f"exec-{number}")["metadata"]["resourceVersion"] for number in (1, 2, 3)]
    ended = run("report", "--kubeconfig", str(kubeconfig), "--cloud", "aws", "-o", "json")
    assert ended.code == 0, ended.err
    found = json.loads(ended.out)
    (each,) = [each for each in found["applications"] if each["application"] == f"{NAMESPACE}/spark-1"]
    assert each["zones"] == {"a": 1, "b": 1, "c": 1}
    assert each["before"]["crossZone"] == pytest.approx(0.667)
    assert each["volume"] == "Unknown"
    assert each["before"]["costPerMonth"] is None
    after = [cluster.read(f"exec-{number}")["metadata"]["resourceVersion"] for number in (1, 2, 3)]
    assert after == before


@pytest.fixture
def celeborn(control_plane: Testbed, cluster: Cluster) -> Iterator[str]:
    """An application, as `namespace/id`, as a real spark-submit sends it in cluster mode, with an executor."""
    conf = {
        "spark.kubernetes.namespace": NAMESPACE,
        "spark.kubernetes.container.image": "spark",
        "spark.kubernetes.submission.waitAppCompletion": "false",
        "spark.shuffle.manager": "org.apache.spark.shuffle.celeborn.SparkShuffleManager",
        "spark.jars": "local:///opt/spark-sql-kafka-0-10_2.13-4.3.0.jar",
    }
    options = [word for key, value in conf.items() for word in ("--conf", f"{key}={value}")]
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    cluster_mode = ["--master", f"k8s://{control_plane.url}", "--deploy-mode", "cluster", "--class", "Main"]
    ended = subprocess.run(
        [submit, *cluster_mode, *options, "local:///opt/main.jar"],
        env={**os.environ, "KUBECONFIG": str(control_plane.kubeconfig)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    (driver,) = read_list(cluster.client, Query(POD, NAMESPACE, labels="spark-role=driver"), lambda pod: pod).items
    application = driver["metadata"]["labels"]["spark-app-selector"]
    try:
        cluster.running("submitted-exec-1", "report-a1")
        labels = {"spark-app-selector": application, "spark-exec-id": "1"}
        cluster.patch("submitted-exec-1", {"metadata": {"labels": labels}})
        yield f"{NAMESPACE}/{application}"
    finally:
        cluster.client.delete(POD, driver["metadata"]["name"], namespace=NAMESPACE)


@pytest.mark.soak
def test_what_an_application_was_submitted_with_tells_of_its_shuffle_service(
    cluster: Cluster, kubeconfig: Path, celeborn: str
) -> None:
    def reported() -> tuple[bool, list[str]]:
        ended = run("report", "--kubeconfig", str(kubeconfig), "-o", "json")
        assert ended.code == 0, ended.err
        found = json.loads(ended.out)
        (each,) = [each for each in found["applications"] if each["application"] == celeborn]
        return each["remoteShuffle"], found["problems"]

    remote, problems = reported()
    assert not remote
    (problem,) = problems
    assert f"no right to get configmaps in {NAMESPACE}" in problem
    rules = [{"apiGroups": [""], "resources": ["pods", "nodes", "configmaps"], "verbs": ["get", "list"]}]
    cluster.client.patch(ROLE, READER, {"rules": rules})
    try:
        assert wait_until(lambda: reported()[0], what="the configuration is read")
    finally:
        cluster.client.patch(ROLE, READER, {"rules": [{**rules[0], "resources": ["pods", "nodes"]}]})


def test_without_the_right_to_list_nodes_it_says_which_is_missing(cluster: Cluster, kubeconfig: Path) -> None:
    pods_alone = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]
    nodes_too = [{"apiGroups": [""], "resources": ["pods", "nodes"], "verbs": ["get", "list"]}]
    cluster.client.patch(ROLE, READER, {"rules": pods_alone})
    try:
        ended = wait_until(lambda: _refused(kubeconfig), what="the right is gone")
        assert "nodes" in ended
    finally:
        cluster.client.patch(ROLE, READER, {"rules": nodes_too})


def _refused(kubeconfig: Path) -> str:
    """Standard error of a report that failed; empty while it still works."""
    ended = run("report", "--kubeconfig", str(kubeconfig))
    return ended.err if ended.code == 1 else ""
