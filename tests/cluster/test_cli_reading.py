"""`status`, `plan`, `explain` and `snapshot` of a pool on the real API server, as users without Prometheus see it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from ballast.cli.situation import dump, load
from ballast.kube.kinds import BALANCING_POLICY, NODE, SPARK_TOPOLOGY, Kind
from ballast.kube.names import COMPONENT, TOPOLOGY
from ballast.model import ConditionReason, ExecutorUsage, MetricsHealth, NodeUsage
from tests.cluster.crds.server import Server
from tests.cluster.kube.cluster import Cluster
from tests.testbed.testbed import Testbed
from tests.testbed.waiting import wait_until
from tests.unit.cli.program import Ended, run
from tests.unit.prometheus.server import serving

pytestmark = pytest.mark.cluster

NAMESPACE = "cli-analytics"
POLICY = "cli-streaming"
ZONE, RACK = "topology.kubernetes.io/zone", "topology.ballast.dev/rack"
NODES = {"cli-a1": ("a", "a-1"), "cli-a2": ("a", "a-2"), "cli-b1": ("b", "b-1")}


@dataclass(frozen=True, slots=True)
class Scene:
    cluster: Cluster
    kubeconfig: Path
    """Whose context is in the pool's namespace."""

    def ballast(self, *arguments: str) -> Ended:
        return run(*arguments, "--kubeconfig", str(self.kubeconfig))

    def document(self, *arguments: str) -> Any:
        ended = self.ballast(*arguments, "-o", "yaml")
        assert ended.code == 0, ended.err
        return yaml.safe_load(ended.out)

    def beat(self) -> None:
        """The nodes' heartbeat, for no kubelet sends one."""
        status = {"conditions": [{"type": "Ready", "status": "True"}]}
        for name in NODES:
            self.cluster.client.patch(NODE, name, {"status": status}, subresource="status")


def policy(name: str = POLICY) -> dict[str, Any]:
    return {
        "apiVersion": BALANCING_POLICY.api_version,
        "kind": BALANCING_POLICY.kind,
        "metadata": {"name": name},
        "spec": {
            "nodeSelector": {"matchLabels": {"pool": "cli"}},
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": NAMESPACE}},
        },
    }


def topology() -> dict[str, Any]:
    return {
        "apiVersion": SPARK_TOPOLOGY.api_version,
        "kind": SPARK_TOPOLOGY.kind,
        "metadata": {"name": "clicks", "namespace": NAMESPACE},
        "spec": {"components": [{"name": "ingest", "workload": "Streaming", "executors": 2}]},
    }


@pytest.fixture(scope="module")
def scene(control_plane: Testbed, crd_server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    assert crd_server.url == control_plane.url
    cluster = Cluster.open(control_plane, NAMESPACE)
    made: list[tuple[Kind, str]] = [(NODE, name) for name in NODES] + [(BALANCING_POLICY, POLICY)]
    try:
        for name, (zone, rack) in NODES.items():
            cluster.node(name, pool="cli", **{ZONE: zone, RACK: rack})
        wait_until(lambda: all(map(cluster.takes_pods, NODES)), what="the new nodes take pods")
        cluster.client.create(BALANCING_POLICY, policy())
        cluster.client.create(SPARK_TOPOLOGY, topology(), namespace=NAMESPACE)
        for name, node in (("app-exec-1", "cli-a1"), ("app-exec-2", "cli-b1")):
            cluster.running(name, node)
            cluster.patch(name, {"metadata": {"labels": {TOPOLOGY: "clicks", COMPONENT: "ingest"}}})
        cluster.executor("driver-1", gates=[{"name": "example.org/held"}])
        cluster.patch("driver-1", {"metadata": {"labels": {"spark-role": "driver"}}})
        yield Scene(cluster, with_namespace(control_plane.kubeconfig, tmp_path_factory.mktemp("cli")))
    finally:
        for kind, name in made:
            cluster.client.delete(kind, name)


@pytest.fixture(autouse=True)
def _alive(scene: Scene) -> None:
    scene.beat()


def with_namespace(kubeconfig: Path, folder: Path) -> Path:
    config = yaml.safe_load(kubeconfig.read_text())
    for context in config["contexts"]:
        context["context"]["namespace"] = NAMESPACE
    file = folder / "kubeconfig"
    file.touch(mode=0o600)
    file.write_text(yaml.safe_dump(config))
    return file


def words(text: str) -> str:
    return " ".join(text.split())


def test_status_shows_the_pool_and_why_there_are_no_scores(scene: Scene) -> None:
    ended = scene.ballast("status", "-p", POLICY)
    assert (ended.code, ended.err) == (0, "")
    told = words(ended.out)
    assert "Policy cli-streaming placement Recommend moves Recommend" in told
    assert "No metrics NotConfigured" in told
    assert "a a-1 cli-a1 no metrics 1" in told
    assert "cli-analytics/clicks declared 2/2 0 equal 50% 50%" in told


def test_status_of_all_policies_includes_it(scene: Scene) -> None:
    names = [each["policy"] for each in scene.document("status")["policies"]]
    assert POLICY in names


def test_plan_says_what_placing_again_would_give_and_why_nothing_moves(scene: Scene) -> None:
    before = scene.cluster.read("app-exec-1")["metadata"]["resourceVersion"]
    (plan,) = scene.document("plan", "clicks")["plans"]
    (anew,) = plan["topologies"]
    assert anew["topology"] == "cli-analytics/clicks"
    assert (anew["locality"]["before"]["crossZoneRatio"], anew["locality"]["after"]["crossZoneRatio"]) == (0.5, 0.0)
    assert plan["moves"] == []
    assert [refusal["reason"] for refusal in plan["refusals"]] == ["NoMetrics"]
    assert scene.cluster.read("app-exec-1")["metadata"]["resourceVersion"] == before


def test_discover_proposes_the_topology_that_was_declared_by_hand(scene: Scene, tmp_path: Path) -> None:
    progress = tmp_path / "progress.jsonl"
    progress.write_text(json.dumps({"sources": [{"description": "RateStream[1]"}]}), encoding="utf-8")
    ended = scene.ballast("discover", "ingest", "--progress", str(progress))
    assert (ended.code, ended.err) == (0, "")
    assert yaml.safe_load(ended.out) == topology()


def test_explain_shows_capacity_and_load_of_a_topology(scene: Scene) -> None:
    found = scene.document("explain", "topology/clicks")
    assert [each["executor"] for each in found["executors"]] == [f"{NAMESPACE}/app-exec-1", f"{NAMESPACE}/app-exec-2"]
    assert {each["combination"] for each in found["executors"]} == {"Unknown"}


def test_explain_takes_the_namespace_of_the_context(scene: Scene) -> None:
    ended = scene.ballast("explain", "pod/app-exec-1")
    assert ended.code == 0, ended.err
    told = words(ended.out)
    assert "cli-analytics/app-exec-1 Running on cli-a1" in told
    assert "kube-scheduler chose its node; Ballast required none" in told
    assert "ingest Component 10.0 100% in other zones" in told
    assert "NoMetrics NotConfigured" in told


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["explain", "driver-1"], "cli-analytics/driver-1 is a driver: drivers are never placed or moved"),
        (["explain", "nobody"], "cli-analytics/nobody: there is no such pod; say its namespace with -n"),
        (
            ["explain", "app-exec-1", "-n", "default"],
            "default/app-exec-1: there is no such pod; say its namespace with -n",
        ),
        (["status", "-p", "nothing"], "there is no BalancingPolicy nothing; there are: "),
        (["plan", "nothing", "-p", POLICY], "topologies: cli-analytics/clicks; policies: cli-streaming"),
    ],
)
def test_what_is_not_there_is_told_with_the_remedy(scene: Scene, arguments: list[str], told: str) -> None:
    ended = scene.ballast(*arguments)
    assert (ended.code, ended.out, ended.err.count("\n")) == (1, "", 1)
    assert told in ended.err


def test_a_policy_that_overlaps_an_older_one_says_so(scene: Scene) -> None:
    name = "cli-younger"
    scene.cluster.client.create(BALANCING_POLICY, policy(name))
    try:
        refused, others = scene.ballast("status", "-p", name), scene.ballast("status")
    finally:
        scene.cluster.client.delete(BALANCING_POLICY, name)
    overlap = f"BalancingPolicy {name}: its nodes overlap with those of the older policy {POLICY}"
    assert refused.code == 1
    assert overlap in refused.err
    assert others.code == 0
    assert overlap in words(others.out)


def test_a_snapshot_can_be_planned_with_no_cluster(scene: Scene, tmp_path: Path) -> None:
    file = tmp_path / "snapshot.yaml"
    ended = scene.ballast("snapshot", "-p", POLICY, "--output-file", str(file))
    assert (ended.out, ended.err) == ("", f"wrote {file}\npolicy {POLICY}: 3 nodes, 2 executors\n")
    same = run("plan", "-f", str(file), "-o", "yaml")
    assert yaml.safe_load(same.out)["plans"][0]["topologies"][0]["executors"] == 2
    file.write_text(dump(hot(file)))
    (plan,) = yaml.safe_load(run("plan", "-f", str(file), "-o", "yaml").out)["plans"]
    (move,) = plan["moves"]
    assert (move["executor"], move["from"], move["to"]) == ("cli-analytics/app-exec-1", "cli-a1", "cli-a2")
    assert f"app-exec-1 cli-a1 -> cli-a2 load {move['predicted']['gain']:.1f}" in words(
        run("plan", "-f", str(file)).out
    )
    assert "would move to cli-a2" in run("explain", "app-exec-1", "-f", str(file)).out


def hot(file: Path) -> Any:
    """The same pool with figures, and a policy that lets a fake pod move."""
    seen = load(file)
    ratios = {"cli-a1": 0.95, "cli-a2": 0.1, "cli-b1": 0.5}
    nodes = tuple(replace(node, usage=NodeUsage(cpu_ratio=ratios[node.name])) for node in seen.snapshot.nodes)
    usage = ExecutorUsage(cpu_cores=10.0, state_bytes=1.0)
    executors = tuple(replace(e, usage=usage, graceful=True, enforced=True) for e in seen.snapshot.executors)
    health = MetricsHealth(available=True, reason=ConditionReason.AVAILABLE)
    snapshot = replace(seen.snapshot, nodes=nodes, executors=executors, metrics=health)
    shedder = replace(seen.policy.shedding.avg_shedder, high_hits=1)
    moves = replace(seen.policy.moves, min_executor_age_seconds=0.0, max_locality_loss=1.0)
    policy = replace(seen.policy, shedding=replace(seen.policy.shedding, avg_shedder=shedder), moves=moves)
    return replace(seen, snapshot=snapshot, policy=policy)


def test_who_may_not_look_is_told_what_is_missing(scene: Scene) -> None:
    config = scene.cluster.testbed.service_account_kubeconfig(NAMESPACE, "default")
    ended = run("status", "--kubeconfig", str(config))
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith("Error: you may not list executormoves")
    assert "operator" not in ended.err


def test_another_address_of_prometheus_is_asked_instead(scene: Scene) -> None:
    with serving() as prometheus:
        (pool,) = scene.document("status", "-p", POLICY, "--prometheus", prometheus.url)["policies"]
        assert prometheus.queries
    assert pool["metrics"]["reason"] != "NotConfigured"
