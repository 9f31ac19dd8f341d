"""Recommend touches nothing, and Approve waits."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from examples.demo.installation import NAMESPACE, RELEASE
from examples.demo.streaming.running import RunningJob
from tests.e2e.cluster import CALM_POINTS, Cluster, Json, names_by_node
from tests.e2e.conftest import STEADY_NAMESPACE
from tests.testbed.audit import Request
from tests.unit.cli.program import run

pytestmark = [pytest.mark.e2e, pytest.mark.soak]

PASSES = 3
SAYS = {"balancingpolicies/status", "sparktopologies/status", "gateswitches", "gateswitches/status", "events"}
"""What Ballast writes where it only says what it would do."""
AGREES = {"leases"}
"""By which its replicas agree on the one that leads."""


@pytest.fixture(scope="module", autouse=True)
def hot(cluster: Cluster, steady: RunningJob) -> Iterator[str]:
    """A node with an executor, hot all the time."""
    cluster.come_to_rest(steady)
    node = min(names_by_node(steady))
    with cluster.noise(node):
        yield node


def uids(job: RunningJob) -> set[str]:
    return {executor.uid for executor in job.running_executors()}


def asked(cluster: Cluster) -> list[Request]:
    """What the operator has asked of the API server, by the server's audit log."""
    return cluster.testbed.requests_of(NAMESPACE, RELEASE)


def await_passes(cluster: Cluster, name: str, count: int = PASSES) -> None:
    """So many more passes of the policy."""
    query = f'sum(ballast_passes_total{{policy="{name}"}})'
    before = cluster.figures.value(query) or 0.0
    cluster.await_(lambda: (cluster.figures.value(query) or 0.0) >= before + count, f"{count} more passes of {name}")


@dataclass(frozen=True, slots=True)
class Decided:
    """A move that a policy found, and who ran before the policy came."""

    policy: str
    move: Json
    before: set[str]
    requests: int
    """How many requests the operator had made before."""


def recommendations(cluster: Cluster, policy: str) -> list[Json]:
    found: list[Json] = cluster.policy(policy)["status"].get("recommendations", {}).get("items", [])
    return found


@pytest.fixture(scope="module")
def recommended(cluster: Cluster, steady: RunningJob, hot: str) -> Decided:
    before, requests = uids(steady), len(asked(cluster))
    name = cluster.enforce(moves={"mode": "Recommend"})
    (move,) = cluster.await_shown(name, lambda: recommendations(cluster, name), "a move is recommended")
    return Decided(name, move, before, requests)


@pytest.fixture(scope="module")
def proposed(cluster: Cluster, steady: RunningJob, hot: str) -> Decided:
    before, requests = uids(steady), len(asked(cluster))
    name = cluster.enforce(moves={"mode": "Approve"})
    return Decided(name, cluster.await_move(STEADY_NAMESPACE, phases=frozenset({"Proposed"})), before, requests)


def told(cluster: Cluster, *arguments: str) -> Json:
    """What a user's `kubectl ballast` says."""
    ended = run(*arguments, "--output=json", f"--kubeconfig={cluster.testbed.kubeconfig}")
    assert ended.code == 0, ended.err
    document: Json = json.loads(ended.out)
    return document


def test_recommend_says_what_it_would_do_and_changes_nothing(
    cluster: Cluster, steady: RunningJob, hot: str, recommended: Decided
) -> None:
    move = recommended.move
    assert (move["from"], move["executor"]) == (hot, names_by_node(steady)[hot])
    await_passes(cluster, recommended.policy)
    assert cluster.moves(STEADY_NAMESPACE) == []
    assert uids(steady) == recommended.before
    since = asked(cluster)[recommended.requests :]
    written = {each.resource for each in since if each.verb in ("create", "update", "patch", "delete")}
    assert "balancingpolicies/status" in written
    assert written <= SAYS | AGREES


def test_a_user_finds_the_recommended_move_and_the_operators_scores(
    cluster: Cluster, hot: str, recommended: Decided
) -> None:
    def planned() -> bool:
        (plan,) = told(cluster, "plan")["plans"]
        found = [(move["executor"], move["from"], move["to"]) for move in plan["moves"]]
        shown = recommendations(cluster, recommended.policy)
        return bool(shown) and found == [(f"{m['namespace']}/{m['executor']}", m["from"], m["to"]) for m in shown]

    def explained() -> object:
        found = told(cluster, "explain", recommended.move["executor"], f"--namespace={STEADY_NAMESPACE}")
        return found["node"] == hot and found["verdict"].startswith(f"would move to {recommended.move['to']} ")

    def shown() -> object:
        (pool,) = told(cluster, "status")["policies"]
        scores = {node["name"]: node["score"] for node in pool["nodes"]["items"]}
        near = scores == pytest.approx(cluster.figures.scores(), abs=CALM_POINTS)
        return near and pool["nodes"]["hottest"] == hot

    cluster.await_(planned, "`plan` has the moves that the status recommends")
    cluster.await_(explained, "`explain` says where the executor would go")
    cluster.await_(shown, "`status` has the operator's scores")


def test_approve_proposes_and_waits(cluster: Cluster, steady: RunningJob, hot: str, proposed: Decided) -> None:
    spec = proposed.move["spec"]
    assert (spec["sourceNodeName"], spec.get("approved", False)) == (hot, False)
    await_passes(cluster, proposed.policy)
    assert [move["status"]["phase"] for move in cluster.moves(STEADY_NAMESPACE)] == ["Proposed"]
    assert uids(steady) == proposed.before


def test_an_approved_proposal_leaves(cluster: Cluster, steady: RunningJob, proposed: Decided) -> None:
    ended = run(
        "approve",
        proposed.move["metadata"]["name"],
        f"--namespace={STEADY_NAMESPACE}",
        f"--kubeconfig={cluster.testbed.kubeconfig}",
    )
    assert ended.code == 0, ended.err
    arrived = cluster.await_move(STEADY_NAMESPACE, phases=frozenset({"Settling"}))
    assert arrived["status"]["replacement"]["node"] == proposed.move["spec"]["targetNodeName"]
    steady.await_executors()
