"""Seven journeys on one cluster, in the order of their use, from `helm install` to its end.

What nodes and executors use is given by the policy's queries, as numbers: what Ballast decides does not depend on how
fast this machine is. All else is real: API server, kubelet, Prometheus, the chart's pods, Spark's driver and executors.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from examples.demo.installation import CHART, NAMESPACE, RELEASE, await_gating
from examples.demo.pool import POOL, POOL_LABEL
from examples.demo.streaming.records import CLOSING_ID, compare
from examples.demo.streaming.running import RunningJob
from tests.e2e.cluster import CORES, ENDED, HOME_ZONE, WINDOW_SECONDS, Cluster, Json, names_by_node, nodes, zones_of
from tests.e2e.conftest import STEADY_NAMESPACE, TOPOLOGY, installed, spawning, steady_job

pytestmark = pytest.mark.e2e

WHERE = f"--namespace={NAMESPACE}"
WAITING = "waiting"
"""A namespace with one executor that is held at the gate."""
HELD_NAME = "waiting-exec-1"
FOREIGN_GATE = "example.com/quota"
HELD: Json = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": HELD_NAME, "namespace": WAITING, "labels": {"spark-role": "executor"}},
    "spec": {
        # Ballast waits for this one: it holds the pod for as long as the test lasts.
        "schedulingGates": [{"name": FOREIGN_GATE}],
        "containers": [{"name": "executor", "image": "pause"}],
    },
}
EXECUTOR_CORES = 0.05
NOTHING = "vector(1) < 0"
UNDER_WAY = frozenset({"Leaving", "Arriving", "Settling"})
ONE_MOVE: Json = {"mode": "Enforce", "budgets": [{"moves": 1, "per": "1h"}], "settle": f"{WINDOW_SECONDS + 2}s"}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with installed("journeys") as found:
        found.testbed.create_namespace(WAITING, labels={"ballast.dev/gate": "enabled"})
        yield found


@pytest.fixture(scope="module")
def steady(cluster: Cluster) -> Iterator[RunningJob]:
    with spawning(cluster) as spawn:
        yield steady_job(cluster, spawn)


def metrics(cluster: Cluster, *, hot: str) -> Json:
    """Every node is all but idle except one. A batch takes 1 s, and 2 s as long as an executor is on that node."""
    cores = {
        spec.name: CORES * (0.9 if spec.name == hot else 0.1) for spec in nodes() if spec.labels[POOL_LABEL] == POOL
    }
    executors = 'container_memory_working_set_bytes{job="kubelet",pod=~".+-exec-.+",container!="",container!="POD"'
    there = f'count({executors},node="{hot}",namespace="{STEADY_NAMESPACE}"}}) or vector(0)'
    driver = f'metrics_executor_maxTasks{{namespace="{STEADY_NAMESPACE}",pod="steady-driver"}}'
    queries = {
        "nodeCpu": " or ".join(_constant(each, node) for node, each in cores.items()),
        "nodePressure": NOTHING,
        "executorCpu": f"{EXECUTOR_CORES} + 0 * sum by (namespace, pod, instance) ({executors}}})",
        "executorTaskSeconds": NOTHING,
        "executorBytes": NOTHING,
        "batchSeconds": f"1 + scalar({there}) + 0 * max by (namespace, pod, application_id) ({driver})",
    }
    return {
        "prometheus": {"url": cluster.testbed.prometheus_url},
        "window": f"{WINDOW_SECONDS}s",
        "maxAge": "1m",
        "advanced": {"queries": queries},
    }


def _constant(value: float, node: str) -> str:
    return f'label_replace(vector({value:g}), "node", "{node}", "", "")'


def uids(job: RunningJob) -> set[str]:
    return {executor.uid for executor in job.running_executors()}


def operators(cluster: Cluster) -> list[Json]:
    return [pod for pod in cluster.operator_pods() if "deletionTimestamp" not in pod["metadata"]]


def gates(cluster: Cluster) -> list[str]:
    pod: Json = cluster.testbed.api.get(f"/api/v1/namespaces/{WAITING}/pods/{HELD_NAME}")
    return [gate["name"] for gate in pod["spec"].get("schedulingGates", [])]


def hold_an_executor(cluster: Cluster) -> None:
    cluster.testbed.kubectl("delete", "pod", HELD_NAME, f"--namespace={WAITING}", "--ignore-not-found")
    await_gating(cluster.testbed, WAITING, labels={})
    cluster.testbed.apply(HELD)
    assert gates(cluster) == [FOREIGN_GATE, "ballast.dev/placement"]


def switch(cluster: Cluster) -> tuple[bool, str | None]:
    found = cluster.testbed.api.get(f"/apis/ballast.dev/v1alpha1/gateswitches/{RELEASE}")
    return found["spec"]["gating"], found.get("status", {}).get("reason")


def test_a_set_is_placed_in_the_zone_of_its_driver_on_a_node_for_each_executor(
    cluster: Cluster, steady: RunningJob
) -> None:
    executors = steady.running_executors()
    assert zones_of(steady) == {HOME_ZONE}
    assert len({executor.node for executor in executors}) == len(executors) == 3

    def locality() -> Json:
        found: Json = cluster.topology(STEADY_NAMESPACE, TOPOLOGY).get("status", {}).get("locality") or {}
        return found

    cluster.await_(lambda: "crossZoneRatio" in locality(), "its topology's status tells of it", timeout_seconds=120)
    assert locality()["crossZoneRatio"] == 0


def test_a_move_that_nobody_declared_to_be_safe_is_refused_and_why_is_said(
    cluster: Cluster, steady: RunningJob
) -> None:
    before = uids(steady)
    node = min(names_by_node(steady))
    workload(cluster, {"op": "remove"})
    name = cluster.enforce(moves=ONE_MOVE, metrics=metrics(cluster, hot=node))
    refusal = cluster.await_refusal(name, "UnknownWorkload")
    assert refusal["executor"] == names_by_node(steady)[node]
    assert "set components[].workload" in refusal["message"]
    assert cluster.moves(STEADY_NAMESPACE) == []
    assert uids(steady) == before
    cluster.enforce()
    workload(cluster, {"op": "add", "value": "Streaming"})


def workload(cluster: Cluster, change: Mapping[str, str]) -> None:
    patch = json.dumps([{**change, "path": "/spec/components/0/workload"}])
    cluster.testbed.kubectl("patch", "stopo", TOPOLOGY, f"--namespace={STEADY_NAMESPACE}", "--type=json", f"-p={patch}")


def test_an_executor_moves_from_a_hot_node_and_the_move_succeeds(cluster: Cluster, steady: RunningJob) -> None:
    before, node = uids(steady), min(names_by_node(steady))
    cluster.enforce(moves=ONE_MOVE, metrics=metrics(cluster, hot=node))
    ended = cluster.await_move(STEADY_NAMESPACE, phases=ENDED)
    assert_replaced(cluster, steady, ended, before)
    assert ended["status"]["phase"] == "Succeeded", ended["status"]
    assert ended["status"]["replacement"]["node"] == ended["spec"]["targetNodeName"] != node
    assert ended["spec"]["sourceNodeName"] == node
    assert ended["status"]["measured"]["batchP95Before"] > ended["status"]["measured"]["batchP95After"]


def assert_replaced(cluster: Cluster, steady: RunningJob, ended: Json, before: set[str]) -> None:
    """One executor has been replaced, in its zone, by the one move that there was."""
    steady.await_executors()
    assert zones_of(steady) == {HOME_ZONE}
    assert before - uids(steady) == {ended["spec"]["executor"]["uid"]}
    assert uids(steady) - before == {ended["status"]["replacement"]["uid"]}
    assert len(cluster.moves(STEADY_NAMESPACE)) == 1


def test_a_move_goes_on_when_the_leader_is_killed_in_its_middle(cluster: Cluster, steady: RunningJob) -> None:
    cluster.come_to_rest(steady)
    before, leader = uids(steady), holder(cluster)
    cluster.enforce(moves=ONE_MOVE, metrics=metrics(cluster, hot=min(names_by_node(steady))))
    cluster.await_move(STEADY_NAMESPACE, phases=UNDER_WAY)
    (pod,) = (each for each in operators(cluster) if each["metadata"]["name"] == leader)
    cluster.kill_outright([pod])
    # If nobody leads for longer than gates last, the replacement is released with its zone alone.
    assert_replaced(cluster, steady, cluster.await_move(STEADY_NAMESPACE, phases=ENDED), before)
    found = cluster.testbed.api.get(f"/api/v1/namespaces/{NAMESPACE}/pods/{leader}")
    assert found["status"]["containerStatuses"][0]["restartCount"] > 0


def holder(cluster: Cluster) -> str:
    lease = cluster.testbed.api.get(f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/{RELEASE}")
    return str(lease["spec"]["holderIdentity"])


def test_scaled_to_zero_with_an_executor_at_the_gate_it_lets_everybody_go(cluster: Cluster, steady: RunningJob) -> None:
    """The last leader does so before it ends; no CronJob has to come."""
    before = uids(steady)
    hold_an_executor(cluster)
    cluster.testbed.kubectl("scale", f"deployment/{RELEASE}", "--replicas=0", WHERE)
    cluster.await_(lambda: not cluster.operator_pods(), "the operator's pods are gone", timeout_seconds=120)
    assert not switch(cluster)[0]
    assert gates(cluster) == [FOREIGN_GATE]
    assert uids(steady) == before
    cluster.testbed.kubectl("scale", f"deployment/{RELEASE}", "--replicas=2", WHERE)
    cluster.testbed.kubectl("rollout", "status", f"deployment/{RELEASE}", WHERE, "--timeout=180s")


def test_it_is_upgraded_rolled_back_and_uninstalled_while_the_job_runs(cluster: Cluster, steady: RunningJob) -> None:
    before = uids(steady)
    waiting = (WHERE, "--wait", "--timeout=180s")
    cluster.testbed.helm("upgrade", RELEASE, str(CHART), "--reuse-values", "--set=replicas=1", *waiting)
    cluster.await_(lambda: len(operators(cluster)) == 1, "one replica is left")
    cluster.testbed.helm("rollback", RELEASE, *waiting)
    cluster.await_(lambda: len(operators(cluster)) == 2, "there are two replicas again")
    hold_an_executor(cluster)
    assert cluster.testbed.forbidden_requests_of(NAMESPACE, RELEASE) == []
    cluster.testbed.helm("uninstall", RELEASE, *waiting)
    assert gates(cluster) == [FOREIGN_GATE]
    assert switch(cluster) == (False, "Uninstalled")
    cluster.await_(lambda: not cluster.operator_pods(), "the operator's pods are gone", timeout_seconds=120)
    assert uids(steady) == before


def test_through_all_of_it_every_record_came_out_once(steady: RunningJob) -> None:
    """And one that was lost, and one that came twice, would have been found."""
    found = steady.finish()
    assert found.source > 0
    assert found.agree, found
    lose_one_and_double_another(steady.sink)
    wrong = compare(steady.job.stream, written=found.source, sink=steady.sink)
    assert (wrong.lost, wrong.duplicated) == (1, 1), wrong


def lose_one_and_double_another(sink: Path) -> None:
    """In the first line with two records."""
    for part in sorted(sink.glob("batch=*/part-*.json")):
        lines = part.read_text().splitlines()
        for number, row in enumerate(map(json.loads, lines)):
            records = [each for each in row["records"] if each["id"] != CLOSING_ID]
            if len(records) > 1:
                lines[number] = json.dumps({**row, "records": [records[1], *records[1:]]})
                part.write_text("\n".join(lines))
                return
    raise AssertionError(f"no line of {sink} has two records")
