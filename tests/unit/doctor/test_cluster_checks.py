"""Checks of a cluster that no API server is needed for: limits, and what is not found."""

from __future__ import annotations

import pytest

from ballast.api import BalancingPolicy
from ballast.api.labels import LabelSelector
from ballast.doctor.cluster_checks import Budget, Cluster, Metrics, Node, Operator, SparkPod, check
from ballast.errors import InvalidField

OPERATOR = Operator(name="ballast", account="system:serviceaccount:s:ballast", version="1.0.0")
ALL = {"topology.kubernetes.io/zone": "a", "topology.ballast.dev/rack": "r", "kubernetes.io/hostname": "n"}


def policy(name: str = "p", **labels: str) -> BalancingPolicy:
    spec = {"nodeSelector": {"matchLabels": labels}}
    return BalancingPolicy.parse(
        {"apiVersion": "ballast.dev/v1alpha1", "kind": "BalancingPolicy", "metadata": {"name": name}, "spec": spec}
    )


def cluster(**changes: object) -> Cluster:
    good: dict[str, object] = {
        "server": "https://example",
        "system_namespace": "s",
        "operators": (OPERATOR,),
        "nodes": (Node("n", ALL, "v1.37.1"),),
        "policies": (policy(),),
        "server_version": "v1.37.1",
        "own_version": "1.0.0",
    }
    return Cluster(**{**good, **changes})  # type: ignore[arg-type]


def ids(**changes: object) -> list[str]:
    return [each.id for each in check(cluster(**changes))]


def test_a_good_cluster_has_no_finding() -> None:
    assert ids(gated={"jobs": True}, metrics={"p": Metrics(url="http://p")}) == []


@pytest.mark.parametrize(
    ("server", "kubelet", "expected"),
    [
        ("v1.37.1", "v1.34.9", []),
        ("v1.37.1", "v1.33.0", ["VersionSkew"]),
        ("v1.37.1", "v1.38.0", ["VersionSkew"]),
        ("v1.35.0", "v1.35.0", ["VersionSkew"]),
        ("v1.37.1-eks-1", "", []),
    ],
)
def test_kubelets_may_be_three_minor_versions_older(server: str, kubelet: str, expected: list[str]) -> None:
    assert ids(server_version=server, nodes=(Node("n", ALL, kubelet),)) == expected


@pytest.mark.parametrize(("ahead", "expected"), [(5.0, []), (6.0, ["ClockSkew"]), (-6.0, ["ClockSkew"])])
def test_clocks_may_differ_by_five_seconds(ahead: float, expected: list[str]) -> None:
    assert ids(clock_ahead_seconds=ahead) == expected


def test_missing_definitions_are_found() -> None:
    assert ids(definitions=False) == ["NotInstalled"]


def test_a_budget_without_executors_is_nobodys_concern() -> None:
    blocking = Budget("jobs", "all", LabelSelector(match_labels={"app": "web"}), 0)
    assert ids(budgets=(blocking,), executors=(SparkPod("jobs", "exec-1", {"app": "clicks"}),)) == []


def test_executors_that_karpenter_leaves_alone_are_no_finding() -> None:
    nodes = (Node("n", {**ALL, "karpenter.sh/nodepool": "spark"}, "v1.37.1"),)
    kept = SparkPod("jobs", "exec-1", {}, {"karpenter.sh/do-not-disrupt": "true"})
    assert ids(nodes=nodes, executors=(kept,)) == []
    assert ids(nodes=nodes, executors=(kept, SparkPod("jobs", "exec-2"))) == ["OtherMover"]


@pytest.mark.parametrize(
    ("consolidation", "words"),
    [
        ({"spark": "WhenEmptyOrUnderutilized"}, "spark (consolidationPolicy WhenEmptyOrUnderutilized)"),
        ({}, "spark (consolidationPolicy not readable)"),
        ({"spark": "WhenEmpty"}, None),
    ],
)
def test_a_node_pool_that_only_gives_up_empty_nodes_is_no_finding(
    consolidation: dict[str, str], words: str | None
) -> None:
    nodes = (Node("n", {**ALL, "karpenter.sh/nodepool": "spark"}, "v1.37.1"),)
    seen = cluster(nodes=nodes, executors=(SparkPod("jobs", "exec-1"),), consolidation=consolidation)
    told = [each.what for each in check(seen) if each.id == "OtherMover"]
    assert len(told) == (words is not None)
    assert all(words in what for what in told if words is not None)


def test_one_policy_is_told_of_without_the_others() -> None:
    seen = cluster(policies=(policy("empty", pool="x"), policy("void", pool="y")))
    assert [each.subject for each in check(seen)] == ["BalancingPolicy empty", "BalancingPolicy void"]
    assert [each.subject for each in check(seen, policy="void")] == ["BalancingPolicy void"]
    with pytest.raises(InvalidField, match=r"--policy.*there is empty, void"):
        check(seen, policy="nothing")
