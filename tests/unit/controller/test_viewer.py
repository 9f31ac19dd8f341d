"""What reading commands see of policies that can't be followed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ballast.controller.viewer import NoSuchPolicyError, View, Viewer
from tests.unit.controller.stage import NAMESPACES, NOW
from tests.unit.kube.builders import GATE, executor, node
from tests.unit.kube.scripted import Answer, Asked, scripted

JSON = dict[str, Any]
IMPOSSIBLE = {"schedule": "0 8 * * *", "timeZone": "Mars/Olympus"}
WORDS = "BalancingPolicy broken: spec.moves.budgets[0].timeZone: 'Mars/Olympus': no such time zone"


def policy(name: str, pool: str, **budget: str) -> JSON:
    budgets = [{"moves": 0, "duration": "2h", **budget}] if budget else []
    spec = {"nodeSelector": {"matchLabels": {"pool": pool}}, "moves": {"mode": "Enforce", "budgets": budgets}}
    return {"metadata": {"name": name, "uid": f"uid-{name}", "resourceVersion": "1"}, "spec": spec}


def view(folder: Path, policies: Sequence[JSON], *, only: str | None = None) -> View:
    lists: dict[str, list[JSON]] = {
        "balancingpolicies": list(policies),
        "nodes": [node("node-1", labels={"pool": "one"}), node("node-2", labels={"pool": "two"})],
        "namespaces": [{"metadata": {"name": name, "labels": labels}} for name, labels in NAMESPACES.items()],
        "pods": [executor(1, node="node-1"), executor(2, gates=[GATE])],
    }

    def answer(asked: Asked) -> Answer:
        kind = asked.path.split("?")[0].rsplit("/", 1)[-1]
        return Answer(body={"items": lists.get(kind, []), "metadata": {}})

    with scripted() as script:
        script.by = answer
        client = script.client(folder)
        viewer = Viewer(client, clock=lambda: NOW)
        try:
            return viewer.look(only)
        finally:
            viewer.close()
            client.close()


def test_a_policy_that_cannot_be_followed_is_a_problem_and_the_others_are_shown(tmp_path: Path) -> None:
    seen = view(tmp_path, [policy("broken", "one", **IMPOSSIBLE), policy("sound", "two")])
    assert [context.name for context in seen.contexts] == ["sound"]
    assert [problem for problem in seen.problems if problem.startswith(WORDS)]


def test_where_no_other_is_asked_for_its_problem_is_all_that_is_said(tmp_path: Path) -> None:
    with pytest.raises(NoSuchPolicyError, match="Mars/Olympus"):
        view(tmp_path, [policy("broken", "one", **IMPOSSIBLE), policy("sound", "two")], only="broken")


def test_one_that_overlaps_as_well_says_so_first(tmp_path: Path) -> None:
    seen = view(tmp_path, [policy("sound", "two"), policy("young", "two", **IMPOSSIBLE)])
    (told,) = [problem for problem in seen.problems if "young" in problem]
    assert "overlap" in told


def test_who_asks_one_policy_for_an_executor_that_another_holds_is_told_which(tmp_path: Path) -> None:
    seen = view(tmp_path, [policy("old", "one"), policy("young", "two")], only="young")
    assert seen.why_absent("analytics", "spark-1-exec-2") == (
        "analytics/spark-1-exec-2: BalancingPolicy old answers for it; ask with --policy old"
    )
