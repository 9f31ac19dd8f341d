"""What doctor gathers from a cluster, with answers that take long."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ballast.cli import inspection
from tests.apiserver import Answer, Asked, scripted
from tests.loopback import Handler, Server

POLICY: dict[str, Any] = {
    "apiVersion": "ballast.dev/v1alpha1",
    "kind": "BalancingPolicy",
    "metadata": {"name": "streaming", "creationTimestamp": "2026-01-01T00:00:00Z"},
    "spec": {"nodeSelector": {}, "namespaceSelector": {}, "placement": {"mode": "Enforce"}},
}
NAMESPACE = {"metadata": {"name": "analytics", "labels": {"ballast.dev/gate": "enabled"}}}
LIST_SECONDS = 30.0
NO_SERIES = b'{"status": "success", "data": {"resultType": "vector", "result": []}}'
TOO_LONG = NO_SERIES + b" " * (33 << 20)


def stamp(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@pytest.mark.parametrize("server_ahead_seconds", [0.0, 90.0, -90.0])
def test_lists_that_take_long_are_not_taken_for_a_wrong_clock(
    server_ahead_seconds: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [time.time()]
    monkeypatch.setattr(inspection, "time", SimpleNamespace(time=lambda: now[0]))

    def answer(asked: Asked) -> Answer:
        path = asked.path.split("?")[0]
        server_now = now[0] + server_ahead_seconds
        if path.endswith("reviews"):
            return Answer(body={"status": {"allowed": True}})
        if asked.method == "POST":
            return Answer(body={"metadata": {"creationTimestamp": stamp(server_now)}, "spec": {}})
        now[0] += LIST_SECONDS
        items = {
            "balancingpolicies": [POLICY],
            "namespaces": [NAMESPACE],
            "leases": [{"metadata": {"name": "n"}, "spec": {"renewTime": stamp(server_now)}}],
            "nodes": [{"metadata": {"name": "n"}}],
        }
        return Answer(body={"metadata": {}, "items": items.get(path.rsplit("/", 1)[-1], [])})

    with scripted() as script:
        script.by = answer
        found = inspection.inspect(script.client(tmp_path), server="s", system_namespace="ballast-system")
    assert found.clock_ahead_seconds == pytest.approx(-server_ahead_seconds, abs=1.0)
    (node,) = found.nodes
    assert node.lease_ahead_seconds <= 1.0


class _Crowded(Handler):
    """One signal has more series than an answer may be long, if 20 000 of each namespace are asked for."""

    def answer(self) -> None:
        query = self.fields()["query"]
        long = "throttled" in query and "topk by (namespace) (20000," in query
        self.reply(TOO_LONG if long else NO_SERIES)


def test_a_query_that_the_operator_reads_with_fewer_series_has_not_failed(tmp_path: Path) -> None:
    """Any tenant's pods may export that many."""
    with Server(_Crowded) as prometheus, scripted() as script:
        spec = {**POLICY["spec"], "metrics": {"prometheus": {"url": prometheus.url}}}
        items = {"balancingpolicies": [{**POLICY, "spec": spec}], "nodes": [{"metadata": {"name": "n"}}]}

        def answer(asked: Asked) -> Answer:
            if asked.path.split("?")[0].endswith("reviews"):
                return Answer(body={"status": {"allowed": True}})
            return Answer(body={"metadata": {}, "items": items.get(asked.path.split("?")[0].rsplit("/", 1)[-1], [])})

        script.by = answer
        found = inspection.inspect(script.client(tmp_path), server="s", system_namespace="ballast-system")
    assert (found.metrics["streaming"].problem, found.metrics["streaming"].failures) == ("", {})


def test_executors_that_have_not_ended_are_read_and_whole_pods_only_of_other_schedulers(tmp_path: Path) -> None:
    labels = {"spark-role": "executor"}
    pods = [{"metadata": {"name": f"e-{n}", "namespace": "analytics", "labels": labels}} for n in range(2)]

    def answer(asked: Asked) -> Answer:
        path, _, query = asked.path.partition("?")
        if path.endswith("reviews"):
            return Answer(body={"status": {"allowed": True}})
        if path.endswith("/pods"):
            assert "fieldSelector=status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed" in query
        if path.endswith("/pods") and "spec.schedulerName%21%3Ddefault-scheduler" in query:
            return Answer(body={"metadata": {}, "items": [{**pods[1], "spec": {"schedulerName": "volcano"}}]})
        return Answer(body={"metadata": {}, "items": pods if path.endswith("/pods") else []})

    with scripted() as script:
        script.by = answer
        found = inspection.inspect(script.client(tmp_path), server="s", system_namespace="ballast-system")
    assert [(pod.name, pod.scheduler) for pod in found.executors] == [("e-0", "default-scheduler"), ("e-1", "volcano")]
