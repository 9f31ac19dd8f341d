"""`ballast uninstall --check`: what it finds in a cluster, and the same warning of the uninstall hook."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml

from ballast.cli import release
from tests.apiserver import Answer, ApiServer
from tests.unit.cli.program import run_in
from tests.unit.controller.stage import move
from tests.unit.kube.builders import GATE, driver, executor

JSON = dict[str, Any]
GATED = {"apiVersion": "v1", "kind": "Pod", "spec": {"schedulingGates": [GATE], "containers": []}}
PLAIN = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": []}}
OURS = 'k:{"name":"ballast.dev/placement"}'
CREATED_WITH = [{"manager": "okhttp", "fieldsV1": {"f:spec": {"f:schedulingGates": {".": {}, OURS: {".": {}}}}}}]
CREATED_WITHOUT = [{"manager": "okhttp", "fieldsV1": {"f:spec": {"f:containers": {}}}}]
OPEN = {**move(1), "status": {"phase": "Proposed"}}


def templated(application: str) -> JSON:
    """A driver in cluster mode, submitted with a pod template for executors."""
    source = {"name": f"{application}-podspec", "items": [{"key": "podspec-configmap-key", "path": "pod.yml"}]}
    return driver(application, volumes=[{"name": "pod-template-volume", "configMap": source}])


def cluster(*pods: JSON, moves: Iterable[JSON] = (), **templates: object) -> ApiServer:
    """`templates`: by application, what their ConfigMap has."""
    found = ApiServer()
    found.put("pods", *pods)
    found.put("executormoves", *moves)
    for application, template in templates.items():
        metadata = {"name": f"{application}-podspec", "namespace": "analytics"}
        found.put("configmaps", {"metadata": metadata, "data": {"podspec-configmap-key": yaml.safe_dump(template)}})
    return found


def test_where_nothing_is_left_behind_it_is_safe(tmp_path: Path) -> None:
    server = cluster(templated("plain"), driver("none"), plain=PLAIN)
    ended = run_in(server, tmp_path, "uninstall", "--check")
    assert (ended.code, ended.out, ended.err) == (0, "Safe to uninstall.\n", "")
    assert server.writes == []


def test_applications_with_the_gate_in_their_template_are_named(tmp_path: Path) -> None:
    drivers = [templated(name) for name in ("gated", "hidden", "gone", "odd")]
    server = cluster(*drivers, gated=GATED, odd=["schedulingGates"])
    server.refusals["/configmaps/hidden-podspec"] = Answer(403, {"message": "no"})
    ended = run_in(server, tmp_path, "uninstall", "--check")
    assert ended.code == 1
    gates, hidden, verdict = ended.out.splitlines()
    assert gates.endswith(
        "Take the gate out of spec.schedulingGates of the template, and start them again: analytics/gated"
    )
    assert hidden.endswith("see that it has no gate ballast.dev/placement: analytics/hidden")
    assert verdict == "Not safe to uninstall."


@pytest.mark.parametrize(("fields", "safe"), [(CREATED_WITH, False), (CREATED_WITHOUT, True), ([], True)])
def test_a_gate_that_a_pod_was_created_with_is_one_of_a_template(
    tmp_path: Path, fields: list[JSON], *, safe: bool
) -> None:
    """In client mode there is no ConfigMap to read."""
    server = cluster(executor(1, gates=[GATE], managed_fields=fields), executor(2, application="other"))
    ended = run_in(server, tmp_path, "uninstall", "--check", "-o", "json")
    found = json.loads(ended.out)
    assert (ended.code, found["safe"]) == (0 if safe else 1, safe)
    assert found["gatedByTemplate"] == ([] if safe else ["analytics/spark-1"])
    assert found["gatedPods"] == [{"namespace": "analytics", "name": "spark-1-exec-1", "byTemplate": not safe}]


def test_open_moves_are_named_and_ended_ones_are_not(tmp_path: Path) -> None:
    ended_one = {**move(2), "status": {"phase": "Succeeded"}}
    ended = run_in(cluster(moves=(OPEN, ended_one)), tmp_path, "uninstall", "--check")
    assert ended.code == 1
    assert "These moves are open" in ended.out
    assert f"{OPEN['metadata']['namespace']}/{OPEN['metadata']['name']} (Proposed)" in ended.out
    assert ended_one["metadata"]["name"] not in ended.out


def test_of_very_many_some_are_named_and_for_programs_all(tmp_path: Path) -> None:
    """A user may create thousands."""

    def gated(namespace: str, number: int) -> JSON:
        found = executor(number, application=f"{namespace}-{number}", gates=[GATE], managed_fields=CREATED_WITH)
        return {**found, "metadata": {**found["metadata"], "namespace": namespace}}

    odd = {"phase": "Later"}
    server = cluster(
        *(gated("crowd", number) for number in range(300)),
        gated("other", 1),
        moves=({**move(number), "status": OPEN["status"] if number < 200 else odd} for number in range(300)),
    )
    ended = run_in(server, tmp_path, "uninstall", "--check")
    gates, moves, *_ = ended.out.splitlines()
    assert gates.endswith(" and 281 more")
    assert moves.endswith(" and 180 more")
    assert "80 more moves can't be read." in ended.out
    assert len(ended.out) < 20_000
    found = json.loads(run_in(server, tmp_path, "uninstall", "--check", "-o", "json").out)
    assert [len(found[each]) for each in ("gatedByTemplate", "openMoves", "movesNotRead")] == [301, 200, 100]


def test_where_a_move_cannot_be_read_it_is_not_known_to_be_safe(tmp_path: Path) -> None:
    odd = {**move(2), "status": {"phase": "Later"}}
    server = cluster(moves=[odd])
    ended = run_in(server, tmp_path, "uninstall", "--check")
    assert ended.code == 1
    assert "A move can't be read, and may be open." in ended.out
    assert odd["metadata"]["name"] in ended.out
    found = json.loads(run_in(server, tmp_path, "uninstall", "--check", "-o", "json").out)
    assert (found["safe"], len(found["movesNotRead"])) == (False, 1)


def test_the_release_of_all_warns_of_the_same_applications(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release, "_PROPAGATION_SECONDS", 0.0)
    ended = run_in(cluster(templated("gated"), gated=GATED), tmp_path, "release", "--all")
    assert ended.code == 0
    assert "Warning: The executors of these applications get the gate" in ended.err
    assert ended.err.rstrip().endswith("analytics/gated")
