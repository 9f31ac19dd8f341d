"""Single reconciles on the real API server, with the test's own clock and metrics."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from ballast.controller.metrics_reader import MetricsReader
from ballast.kube import names
from ballast.kube.kinds import BALANCING_POLICY, POD, SPARK_TOPOLOGY, Kind
from ballast.moves.arriving import NOMINATED_SECONDS
from ballast.planner.release import BARRED_SECONDS, MOST_ATTEMPTS
from tests.cluster.chart.installation import NAMESPACE, Installation
from tests.cluster.controller.hand import AGE_SECONDS, Clock, FakeFigures, Hand, hand
from tests.cluster.controller.pool import (
    ENFORCE,
    POOL_LABEL,
    ZONE_LABEL,
    Pool,
    pool,
    preferred_labels,
    required_labels,
    zones,
)
from tests.cluster.controller.scene import Driver
from tests.testbed.waiting import wait_until
from tests.unit.prometheus.server import serving

pytestmark = pytest.mark.cluster

JSON = dict[str, Any]
PATIENCE_SECONDS = 21.0
"""A little more than a pinned pod may stay unschedulable."""


@contextmanager
def life(installed: Installation, clock: Clock, figures: FakeFigures | None = None) -> Iterator[Hand]:
    """One process of the operator."""
    operator = hand(installed.testbed, clock=clock, metrics=figures)
    try:
        yield operator
    finally:
        operator.close()


def status(mine: Pool, name: str | None = None) -> JSON:
    found: JSON = mine.read(BALANCING_POLICY, name).get("status") or {}
    return found


def test_who_cannot_run_at_its_place_is_placed_again_and_then_let_go(installed: Installation) -> None:
    """What keeps it off is something that placement does not look at, so there is one try. Another process goes on."""
    clock = Clock()
    with pool(installed.testbed, "stranded", zones(1, per_zone=1)) as mine:
        mine.policy()
        mine.executor(99, role="blocker", gates=(), containers=[_WITH_PORT])
        mine.nodes_of(["spark-1-bloc-99"])
        driver = _Shunned(mine, "spark-1", 1, {})
        driver.step()
        with life(installed, clock) as operator:
            pinned = _released(driver, operator)
            assert required_labels(pinned) == {ZONE_LABEL: ["a"]}
            _await_unschedulable(mine, pinned)
            clock.ahead_seconds += BARRED_SECONDS + 1.0
            operator.reconciler.run()
        assert driver.pods() == [], "the stranded pod was not deleted"
        assert [a["count"] for a in status(mine)["attempts"]] == [MOST_ATTEMPTS]
        driver.step()
        with life(installed, clock) as operator:
            last = _released(driver, operator)
            assert required_labels(last) == {}
            assert preferred_labels(last)[ZONE_LABEL] == ["a"]
            _await_unschedulable(mine, last)
            clock.ahead_seconds += PATIENCE_SECONDS
            operator.reconciler.run()
        assert [pod["metadata"]["uid"] for pod in driver.pods()] == [last["metadata"]["uid"]]
        assert len(mine.events("PlacedAgain")) == 1
        assert len(mine.events("TooManyAttempts")) == 1


def test_an_executor_that_waits_for_a_volume_after_it_was_refused_is_not_deleted(installed: Installation) -> None:
    """Its condition goes on saying that it is unschedulable. Only its nomination, by kube-scheduler, tells."""
    clock = Clock()
    with pool(installed.testbed, "late", zones(1)) as mine:
        mine.policy()
        mine.testbed.apply(_UNPROVIDED)
        volumes = [{"name": "claim", "persistentVolumeClaim": {"claimName": "late"}}]
        early = mine.executor(1, volumes=volumes)
        with life(installed, clock) as operator:

            def refused() -> JSON | None:
                operator.reconciler.run()
                pod = mine.pod("spark-1-exec-1")
                return pod if _is_unschedulable(pod) else None

            assert required_labels(wait_until(refused, what="it is refused")) == {}, "its volume is still to be made"
            clock.ahead_seconds += NOMINATED_SECONDS

            def not_nominated() -> bool:
                operator.reconciler.run()
                return _nominated(mine, early) is None

            wait_until(not_nominated, what="Ballast's nomination, if there is one, is cleared")
            claim = {"storageClassName": "unprovided", "resources": {"requests": {"storage": "1Gi"}}}
            mine.apply(_CLAIM, "late", {"accessModes": ["ReadWriteOnce"], **claim})
            node = wait_until(lambda: _nominated(mine, early), what="kube-scheduler waits for its volume")
            assert _is_unschedulable(mine.pod("spark-1-exec-1"))
            clock.ahead_seconds += PATIENCE_SECONDS
            operator.reconciler.run()
        assert mine.pod("spark-1-exec-1")["metadata"]["uid"] == early["metadata"]["uid"]
        assert _nominated(mine, early) == node
        assert mine.events("PlacedAgain") == []


_CLAIM = Kind("v1", "PersistentVolumeClaim", "persistentvolumeclaims")
_UNPROVIDED: JSON = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "unprovided"},
    "provisioner": "example.com/never",
    "volumeBindingMode": "WaitForFirstConsumer",
}


def _nominated(mine: Pool, pod: JSON) -> str | None:
    found: str | None = mine.pod(pod["metadata"]["name"])["status"].get("nominatedNodeName")
    return found


_WITH_PORT: JSON = {
    "name": "spark-kubernetes-executor",
    "image": "spark",
    "resources": {"requests": {"cpu": "1", "memory": "64Mi"}},
    "ports": [{"containerPort": 7079, "hostPort": 7079}],
}


class _Shunned(Driver):
    """Its executors need a port of the host that another pod has."""

    def start(self, **options: Any) -> None:
        super().start(containers=[_WITH_PORT], **options)

    def pods(self) -> list[JSON]:
        return [pod for pod in super().pods() if pod["metadata"]["labels"][names.SPARK_ROLE] == "executor"]


def _released(driver: Driver, operator: Hand) -> JSON:
    def look() -> JSON | None:
        operator.reconciler.run()
        (pod,) = driver.pods()
        return None if driver.mine.gated(pod["metadata"]["name"]) else pod

    return wait_until(look, what="it is released")


def _await_unschedulable(mine: Pool, pod: JSON) -> None:
    name = pod["metadata"]["name"]
    wait_until(lambda: _is_unschedulable(mine.pod(name)), what="kube-scheduler finds no node")


def _is_unschedulable(pod: JSON) -> bool:
    conditions = pod["status"].get("conditions") or ()
    return any(c["type"] == "PodScheduled" and c.get("reason") == "Unschedulable" for c in conditions)


@pytest.mark.soak
def test_hits_and_what_a_strategy_remembers_survive_restarts(installed: Installation) -> None:
    clock = Clock()
    with pool(installed.testbed, "hits", zones()) as mine:
        figures = FakeFigures({mine.node("a1"): 0.7, mine.node("a2"): 0.3, mine.node("b2"): 0.3})
        driver = _running(mine, "b1", "a1")
        mine.topology("clicks", {"name": "ingest", "workload": "Streaming", "executors": 2})
        shedding = {"strategy": "AvgShedder", "avgShedder": {"lowHits": 3, "highHits": 3}}
        moves = {"mode": "Recommend", "minExecutorAge": "0s", "allowUnknownState": True, "settle": "6s"}
        placement = {**ENFORCE, "maxExecutorsPerNodePercent": 100}
        metrics = {"window": "5s"}
        mine.policy(interval="1s", metrics=metrics, placement=placement, moves=moves, shedding=shedding)
        for count in (1, 2, 3):
            with life(installed, clock, figures) as operator:
                operator.reconciler.run()
            found = status(mine)
            assert {hit["node"]: hit["high"] for hit in found["hits"]}[mine.node("a1")] == count
            assert found["state"], "the strategy's own memory is lost"
            clock.ahead_seconds += 6.0
        (advice,) = found["recommendations"]["items"]
        assert (advice["from"], advice["executor"]) == (mine.node("a1"), "spark-1-exec-2")
        assert mine.read(SPARK_TOPOLOGY, "clicks")["status"]["placement"] == {
            "ingest": {mine.node("a1"): 1, mine.node("b1"): 1}
        }
        assert len(driver.pods()) == 2, "a recommendation touched something"


def _running(mine: Pool, *nodes: str, labels: JSON | None = None) -> Driver:
    """Executors that have been running for long."""
    driver = Driver(mine, "spark-1", len(nodes), labels or {names.TOPOLOGY: "clicks"})
    for node in nodes:
        driver.start(gates=(), nodeName=mine.node(node))
    driver.await_running()
    driver.grow_old()
    return driver


@pytest.mark.soak
def test_a_policy_that_only_recommends_says_what_would_be_better_and_holds_nobody(installed: Installation) -> None:
    with pool(installed.testbed, "advised", zones()) as mine:
        _running(mine, "a1", "b1")
        mine.topology("clicks", {"name": "ingest", "workload": "Streaming", "executors": 2})
        mine.policy(placement={**ENFORCE, "mode": "Recommend"})
        clock = Clock()
        with life(installed, clock) as operator:

            def advised() -> JSON | None:
                """Reconciles that figures come too late for work out no recommendation."""
                clock.ahead_seconds += 61.0
                operator.reconciler.run()
                found: JSON = mine.read(SPARK_TOPOLOGY, "clicks").get("status") or {}
                return found if "recommendation" in found else None

            found = wait_until(advised, what="something is recommended")
            assert found["placement"] == {"ingest": {mine.node("a1"): 1, mine.node("b1"): 1}}
            assert found["locality"]["crossZoneRatio"] == 0.5
            assert found["recommendation"]["locality"]["crossZoneRatio"] == 0.0
            together = [{"ingest": {mine.node(f"{zone}{number}"): 1 for number in (1, 2)}} for zone in "ab"]
            assert found["recommendation"]["placement"] in together
            (newcomer,) = mine.executors(1, first=3, labels={names.TOPOLOGY: "clicks"})
            operator.reconciler.run()
        assert not mine.gated(newcomer)
        assert "affinity" not in mine.pod(newcomer)["spec"]


@pytest.mark.soak
def test_replacements_return_to_where_executors_were_before_a_restart(installed: Installation) -> None:
    clock = Clock()
    with pool(installed.testbed, "sticky", zones(2)) as mine:
        driver = _running(mine, "b2", "b2", labels={})
        mine.policy(placement={**ENFORCE, "maxExecutorsPerNodePercent": 100})
        with life(installed, clock) as operator:
            operator.reconciler.run()
        for pod in driver.pods():
            mine.delete(POD, pod["metadata"]["name"])
        clock.ahead_seconds += 10.0
        driver.step()
        with life(installed, clock) as operator:
            operator.reconciler.run()
            driver.await_running()
        assert mine.nodes_of([pod["metadata"]["name"] for pod in driver.pods()]) == {"b2": 2}


@pytest.mark.soak
def test_of_two_policies_over_the_same_nodes_the_younger_rests(installed: Installation) -> None:
    clock = Clock()
    with pool(installed.testbed, "overlap", zones()) as mine:
        mine.policy("overlap-1")
        mine.policy("overlap-2")
        mine.executors(1)
        clock.ahead_seconds = 5.0
        with life(installed, clock) as operator:
            operator.reconciler.run()
            stalled = mine.condition(BALANCING_POLICY, "Stalled", "overlap-2")
            assert stalled is not None
            assert (stalled["status"], stalled["reason"]) == ("True", "PoolsOverlap")
            assert "overlap-1" in stalled["message"]
            assert "spec.nodeSelector" in stalled["message"]
            assert mine.condition(BALANCING_POLICY, "Stalled", "overlap-1") is None
            assert required_labels(mine.pod("spark-1-exec-1"))
            mine.delete(BALANCING_POLICY, "overlap-1")
            operator.reconciler.run()
            assert mine.condition(BALANCING_POLICY, "Stalled", "overlap-2") is None
            ready = mine.condition(BALANCING_POLICY, "Ready", "overlap-2")
            assert ready is not None
            assert ready["status"] == "True"


@pytest.mark.soak
def test_a_policy_that_only_recommends_takes_nobody_from_one_that_enforces(installed: Installation) -> None:
    """Both are about the namespace, each with its own zone, and the executors would run in either."""
    with pool(installed.testbed, "shared", zones()) as mine:
        for zone, mode in (("a", "Recommend"), ("b", "Enforce")):
            nodes = {"matchLabels": {POOL_LABEL: mine.name, ZONE_LABEL: zone}}
            mine.policy(f"shared-{zone}", nodeSelector=nodes, placement={**ENFORCE, "mode": mode})
        placed = mine.executors(2)
        with life(installed, Clock(ahead_seconds=5.0)) as operator:
            operator.reconciler.run()
        assert [required_labels(mine.pod(name)) for name in placed] == [{ZONE_LABEL: ["b"]}] * 2
        assert mine.events("NotEnforced") == []


@pytest.mark.soak
def test_a_topology_that_selects_a_driver_is_left_alone_until_it_is_mended(installed: Installation) -> None:
    clock = Clock(ahead_seconds=5.0)
    app = {"app": "clicks"}
    with pool(installed.testbed, "driver", zones()) as mine:
        mine.policy()
        mine.topology("clicks", {"name": "ingest", "selector": {"matchLabels": app}})
        mine.executor(1, role="driver", gates=(), labels=app)
        mine.executors(1, labels=app)
        with life(installed, clock) as operator:
            operator.reconciler.run()
            stalled = mine.condition(SPARK_TOPOLOGY, "Stalled", "clicks")
            assert stalled is not None
            assert stalled["reason"] == "SelectorMatchesDriver"
            assert "spark-role=executor" in stalled["message"]
            assert "affinity" not in mine.pod("spark-1-exec-1")["spec"]
            mended = {"app": "clicks", names.SPARK_ROLE: "executor"}
            change = {"components": [{"name": "ingest", "selector": {"matchLabels": mended}}]}
            mine.admin.patch(SPARK_TOPOLOGY, "clicks", {"spec": change}, namespace=mine.name)
            mine.executors(1, first=2, labels=app)
            operator.reconciler.run()
            assert mine.condition(SPARK_TOPOLOGY, "Stalled", "clicks") is None
            assert required_labels(mine.pod("spark-1-exec-2"))


@pytest.mark.soak
def test_a_topology_that_declares_its_work_is_told_how_many_executors_it_needs(installed: Installation) -> None:
    with pool(installed.testbed, "sized", zones()) as mine:
        mine.policy()
        sizing = {"machine": {"count": 4, "cores": 4}, "stages": [{"component": "ingest", "latency": "8ms"}]}
        mine.topology("clicks", {"name": "ingest"}, sizing=sizing)
        with life(installed, Clock(ahead_seconds=5.0)) as operator:
            operator.reconciler.run()
            sized = mine.condition(SPARK_TOPOLOGY, "Sized", "clicks")
            assert sized is not None
            assert (sized["status"], sized["reason"]) == ("True", "Recommended")
            assert sized["message"].startswith("Run 4 executors of 4 cores")
            told = mine.admin.get(SPARK_TOPOLOGY, "clicks", namespace=mine.name)["status"]["sizing"]
            assert told["sparkConf"]["spark.executor.instances"] == "4"


IMPOSSIBLE = {
    "spec.moves.budgets[0].schedule: '61 * * * *'": {"schedule": "61 * * * *"},
    "spec.moves.budgets[0].schedule: '0 0 31 2 *'": {"schedule": "0 0 31 2 *"},
    "spec.moves.budgets[0].timeZone: 'Mars/Olympus'": {"schedule": "0 8 * * *", "timeZone": "Mars/Olympus"},
}


@pytest.mark.soak
def test_a_policy_that_cannot_be_followed_says_why_and_hinders_nobody(installed: Installation) -> None:
    with pool(installed.testbed, "broken", zones()) as mine:
        for number, budget in enumerate(IMPOSSIBLE.values()):
            budgets = [{"moves": 0, "duration": "2h", **budget}]
            mine.policy(f"broken-{number}", nodeSelector={"matchLabels": {"x": "y"}}, moves={"budgets": budgets})
        mine.policy("broken-9")
        mine.executors(1)
        with life(installed, Clock(ahead_seconds=5.0)) as operator:
            operator.reconciler.run()
        for number, words in enumerate(IMPOSSIBLE):
            stalled = mine.condition(BALANCING_POLICY, "Stalled", f"broken-{number}")
            assert stalled is not None
            assert stalled["reason"] == "InvalidSpec"
            assert words in stalled["message"]
        assert required_labels(mine.pod("spark-1-exec-1"))


def vector(*result: JSON) -> str:
    return json.dumps({"status": "success", "data": {"resultType": "vector", "result": list(result)}})


def of_everything(node: str, value: str) -> JSON:
    """A sample that is one of this node, of its executor and of its application."""
    pod = {"namespace": "lied-to", "pod": "spark-1-exec-1", "application_id": "spark-1", "executor_id": "1"}
    return {"metric": {**pod, "node": f"lied-to-{node}"}, "value": [1, value]}


LIES = {
    "negative": vector(of_everything("a1", "-5"), of_everything("b1", "-9e15")),
    "absurd": vector(of_everything("a1", "9e307")),
    "metric null": vector({"metric": None, "value": [1, "1"]}),
    "value null": vector({"metric": {"node": "lied-to-a1"}, "value": None}),
    "broken matrix": json.dumps(
        {"status": "success", "data": {"resultType": "matrix", "result": [{"metric": {}, "values": [[1], 2]}]}}
    ),
    "list": "[]",
    "deep": '{"status":"success","data":{"resultType":"vector","result":' + "[" * 100_000,
    "page": "<html>Sign in</html>",
}


@pytest.mark.soak
def test_no_answer_of_prometheus_fails_a_pass_or_keeps_an_executor_waiting(installed: Installation) -> None:
    clock = Clock(ahead_seconds=5.0)
    with pool(installed.testbed, "lied-to", zones()) as mine, serving() as prometheus:
        mine.policy(metrics={"prometheus": {"url": prometheus.url}, "preset": "Cadvisor"}, interval="5s")
        mine.topology("clicks", {"name": "ingest", "executors": len(LIES)})
        reader = MetricsReader(mine.admin, namespace=NAMESPACE)
        operator = hand(installed.testbed, clock=clock, metrics=reader)
        try:
            for number, (name, prometheus.said) in enumerate(LIES.items(), 1):
                prometheus.queries.clear()
                (waiting,) = mine.executors(1, first=number, labels={names.TOPOLOGY: "clicks"})
                clock.ahead_seconds += 61.0
                operator.reconcile()
                wait_until(lambda: prometheus.queries, what=f"Prometheus is asked, and answers: {name}")
                operator.reconcile()
                assert not mine.gated(waiting), name
                assert required_labels(mine.pod(waiting)), name
            assert operator.metric("ballast_passes_total", policy="lied-to", result="error") == 0.0
            assert (operator.metric("ballast_samples_dropped_total", policy="lied-to", cause="OutOfRange") or 0.0) > 0
            told = mine.condition(BALANCING_POLICY, "MetricsAvailable")
            assert told is not None
            assert told["status"] == "False"
        finally:
            operator.close()
            installed.switch(gating=False)


@pytest.mark.soak
def test_status_is_written_once_a_minute_at_most(installed: Installation) -> None:
    clock = Clock()
    with pool(installed.testbed, "quiet", zones()) as mine:
        figures = FakeFigures({mine.node(each): 0.3 for each in ("a1", "a2", "b1", "b2")})
        _running(mine, "a1")
        mine.topology("clicks", {"name": "ingest", "workload": "Streaming"})
        mine.policy(interval="1s", metrics={"window": "5s"}, moves={"settle": "6s"})
        with life(installed, clock, figures) as operator:
            for number in range(20):
                figures.noise = {mine.node("a1"): 0.3 + number / 100}
                operator.reconciler.run()
                clock.ahead_seconds += 2.0
            assert _written(operator) == {"BalancingPolicy": 1, "SparkTopology": 1}
            clock.ahead_seconds += 60.0
            operator.reconciler.run()
            assert _written(operator)["BalancingPolicy"] == 2


def test_nothing_is_written_where_nothing_changes(installed: Installation) -> None:
    clock = Clock()
    with pool(installed.testbed, "same", zones()) as mine:
        _running(mine, "a1")
        mine.policy()
        with life(installed, clock) as operator:
            operator.reconciler.run()
            written = len(operator.fate.writes)
            for _ in range(3):
                clock.ahead_seconds += 5.0
                operator.reconciler.run()
            assert len(operator.fate.writes) == written


@pytest.mark.soak
def test_the_metrics_tell_of_passes_refusals_and_how_old_the_figures_were(installed: Installation) -> None:
    clock = Clock()
    with pool(installed.testbed, "told", zones()) as mine:
        figures = FakeFigures({mine.node("a1"): 0.7, mine.node("a2"): 0.3, mine.node("b2"): 0.3})
        _running(mine, "b1", "a1")
        mine.topology("clicks", {"name": "ingest", "workload": "Streaming"})
        shedding = {"strategy": "AvgShedder", "avgShedder": {"lowHits": 9, "highHits": 9}}
        mine.policy(interval="60s", metrics={"window": "5s"}, moves={"settle": "65s"}, shedding=shedding)

        def refused(reason: str) -> float | None:
            return operator.metric("ballast_refusals_total", policy="told", reason=reason)

        with life(installed, clock, figures) as operator:
            for ahead_seconds, full_passes in ((0.0, 1.0), (5.0, 1.0), (61.0, 2.0)):
                clock.ahead_seconds = ahead_seconds
                operator.reconciler.run()
                assert refused("WaitingForHits") == full_passes, "between full passes the figures are the same"
            assert refused("DataSkew") == 0.0
            assert operator.metric("ballast_passes_total", policy="told", result="ok") == 3.0
            assert operator.metric("ballast_pass_duration_seconds_count", policy="told") == 3.0
            spent = operator.metric("ballast_pass_duration_seconds_sum", policy="told")
            assert spent is not None
            assert spent > 0.0
            assert operator.metric("ballast_metrics_age_seconds", policy="told") == AGE_SECONDS
            assert operator.metric("ballast_node_hits", policy="told", node=mine.node("a1"), threshold="high") == 2.0


def _written(operator: Hand) -> dict[str, int]:
    kinds = [words.split()[1] for words in operator.fate.writes if words.endswith(" status")]
    return {kind: kinds.count(kind) for kind in ("BalancingPolicy", "SparkTopology")}
