"""Checks of a cluster that no API server is needed for: limits, and what is not found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from ballast.api import BalancingPolicy, SparkTopology
from ballast.api.labels import LabelSelector
from ballast.doctor.cluster_checks import Budget, Cluster, Metrics, Node, NodePool, Operator, SparkPod, check
from ballast.errors import InvalidField

OPERATOR = Operator(name="ballast", account="system:serviceaccount:s:ballast", version="1.0.0")
ALL = {"topology.kubernetes.io/zone": "a", "topology.ballast.dev/rack": "r", "kubernetes.io/hostname": "n"}


def policy(name: str = "p", *, spec: Mapping[str, object] | None = None, **labels: str) -> BalancingPolicy:
    spec = {"nodeSelector": {"matchLabels": labels}, **(spec or {})}
    return BalancingPolicy.parse(
        {"apiVersion": "ballast.dev/v1alpha1", "kind": "BalancingPolicy", "metadata": {"name": name}, "spec": spec}
    )


def topology(namespace: str) -> SparkTopology:
    return SparkTopology.parse(
        {"metadata": {"name": "clicks", "namespace": namespace}, "spec": {"components": [{"name": "ingest"}]}}
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


def test_a_cluster_without_a_policy_is_found_unless_policies_may_not_be_read() -> None:
    assert "NoPolicy" in ids(policies=())
    assert "NoPolicy" not in ids(policies=(), unread={"balancingpolicies": "you may not"})


def test_a_budget_without_executors_is_nobodys_concern() -> None:
    blocking = Budget("jobs", "all", LabelSelector(match_labels={"app": "web"}), 0)
    assert ids(budgets=(blocking,), executors=(SparkPod("jobs", "exec-1", {"app": "clicks"}),)) == []


def test_executors_that_karpenter_leaves_alone_are_no_finding() -> None:
    nodes = (Node("n", {**ALL, "karpenter.sh/nodepool": "spark"}, "v1.37.1"),)
    kept = SparkPod("jobs", "exec-1", {}, {"karpenter.sh/do-not-disrupt": "true"})
    assert ids(nodes=nodes, executors=(kept,)) == []
    assert ids(nodes=nodes, executors=(kept, SparkPod("jobs", "exec-2"))) == ["OtherMover"]


@pytest.mark.parametrize(
    ("node_pools", "words"),
    [
        (
            {"spark": NodePool("WhenEmptyOrUnderutilized")},
            "(consolidationPolicy WhenEmptyOrUnderutilized after 0s)",
        ),
        ({}, "spark (consolidationPolicy not readable)"),
        ({"spark": NodePool("WhenEmpty")}, None),
        ({"spark": NodePool("WhenEmptyOrUnderutilized", "Never")}, None),
        ({"spark": NodePool("WhenEmptyOrUnderutilized", blocked=True)}, None),
    ],
)
def test_a_node_pool_that_drains_no_node_with_executors_is_no_finding(
    node_pools: dict[str, NodePool], words: str | None
) -> None:
    nodes = (Node("n", {**ALL, "karpenter.sh/nodepool": "spark"}, "v1.37.1"),)
    seen = cluster(nodes=nodes, executors=(SparkPod("jobs", "exec-1"),), node_pools=node_pools)
    told = [each.what for each in check(seen)]
    assert [words in what for what in told if words] == ([True] if words else [])
    assert bool(told) == (words is not None)


def two_pools() -> Cluster:
    mine = policy("mine", spec={"namespaceSelector": {"matchLabels": {"team": "a"}}}, pool="mine")
    blocking = [Budget(name, "all", LabelSelector(match_labels={}), 0) for name in ("jobs-a", "jobs-b")]
    return cluster(
        policies=(mine, policy("other", spec={"namespaceSelector": {"matchLabels": {"team": "b"}}}, pool="other")),
        nodes=(Node("n", {**ALL, "pool": "mine"}, "v1.37.1"), Node("m", {"pool": "other"}, "v1.30.0")),
        namespaces={"jobs-a": {"team": "a"}, "jobs-b": {"team": "b"}},
        topologies=tuple(topology(each.namespace) for each in blocking),
        executors=tuple(SparkPod(each.namespace, "exec-1") for each in blocking),
        budgets=tuple(blocking),
        metrics={name: Metrics(url="http://p", problem="refused") for name in ("mine", "other")},
        gated={"jobs-a": True, "jobs-b": True},
    )


@pytest.mark.parametrize("part", [{"policy": "mine"}, {"topology": "jobs-a/clicks"}], ids=str)
def test_of_one_policy_or_topology_only_its_own_nodes_and_namespaces_are_checked(part: dict[str, str]) -> None:
    found = {(each.id, each.subject) for each in check(two_pools(), **part)}
    assert found == {
        ("BudgetBlocks", "PodDisruptionBudget jobs-a/all"),
        ("PrometheusUnreachable", "BalancingPolicy mine"),
    }
    assert len(check(two_pools())) > len(found)


@pytest.mark.parametrize("part", [{"policy": "absent"}, {"topology": "jobs-a/absent"}], ids=str)
def test_what_is_not_there_is_refused_with_what_there_is(part: dict[str, str]) -> None:
    with pytest.raises(InvalidField, match="there is no such"):
        check(two_pools(), **part)


def test_one_policy_is_told_of_without_the_others() -> None:
    seen = cluster(policies=(policy("empty", pool="x"), policy("void", pool="y")))
    assert [each.subject for each in check(seen)] == ["BalancingPolicy empty", "BalancingPolicy void"]
    assert [each.subject for each in check(seen, policy="void")] == ["BalancingPolicy void"]
    with pytest.raises(InvalidField, match=r"--policy.*there is empty, void"):
        check(seen, policy="nothing")


VOLCANO = SparkPod("jobs", "exec-1", scheduler="volcano")


def test_executors_of_a_scheduler_that_no_policy_names_are_found() -> None:
    named = policy(spec={"placement": {"schedulerNames": ["default-scheduler", "volcano"]}})
    assert ids(executors=(VOLCANO, SparkPod("jobs", "exec-2"))) == ["ForeignScheduler"]
    assert ids(executors=(VOLCANO,), policies=(named,)) == ["SchedulerLimits"]


@pytest.mark.parametrize(
    ("scheduler", "pin", "severity", "words"),
    [
        ("yunikorn", "Zone", "info", "scores no nodes"),
        ("yunikorn", "None", "warning", "placement.pin is None, so nothing is required"),
        ("volcano", "Zone", "info", "It reads no nominations"),
    ],
)
def test_what_does_not_hold_with_a_scheduler_that_a_policy_names_is_told(
    scheduler: str, pin: str, severity: str, words: str
) -> None:
    named = policy(spec={"placement": {"schedulerNames": ["default-scheduler", scheduler], "pin": pin}})
    (found,) = check(cluster(policies=(named,)))
    assert (found.id, found.severity) == ("SchedulerLimits", severity)
    assert words in found.what


def test_what_the_operator_did_not_place_is_found_in_its_own_words() -> None:
    condition = {
        "type": "ExecutorsPlaced",
        "status": "False",
        "reason": "NoRoom",
        "message": "3 executors that opted in are not placed: 3 NoRoom",
        "lastTransitionTime": "2026-11-21T10:00:00Z",
    }
    told = BalancingPolicy.parse({**policy().to_dict(), "status": {"conditions": [condition]}})
    (found,) = check(cluster(policies=(told,)))
    assert (found.id, found.subject) == ("ExecutorsNotPlaced", "BalancingPolicy p")
    assert found.what == "NoRoom: 3 executors that opted in are not placed: 3 NoRoom."


def test_a_namespace_that_opted_in_and_is_no_policys_is_found() -> None:
    elsewhere = policy(spec={"namespaceSelector": {"matchLabels": {"team": "b"}}})
    namespaces = {"jobs": {"ballast.dev/gate": "enabled"}}
    seen = {"executors": (SparkPod("jobs", "exec-1"),), "namespaces": namespaces}
    assert ids(**seen, policies=(elsewhere,)) == ["PolicyMissing"]
    assert ids(**seen) == []


@pytest.mark.parametrize("where", ["labels", "annotations"])
def test_an_executor_that_opted_out_is_none_that_should_be_placed(where: str) -> None:
    out = replace(VOLCANO, **{where: {"ballast.dev/gate": "disabled"}})  # type: ignore[arg-type]
    elsewhere = policy(spec={"namespaceSelector": {"matchLabels": {"team": "b"}}})
    assert ids(executors=(out,)) == []
    namespaces = {"jobs": {"ballast.dev/gate": "enabled"}}
    assert ids(executors=(out,), namespaces=namespaces, policies=(elsewhere,)) == []
