"""What a scenario's file may say, and what is said of one that makes no sense."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ballast.errors import InvalidField, InvalidResource
from ballast.simulation.scenario import Scenario
from tests.unit.simulation.small_world import scenario

NODES = [{"name": "node", "count": 2, "cores": 10}]


def job(**changes: Any) -> dict[str, Any]:
    return {"name": "job", "executors": 4, "load": {"cores": 1}, **changes}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("kind: \udcff", "scenario: .*not readable as YAML"),
        ("kind: [", "scenario: .*not readable as YAML"),
        ("- a list", "kind: .*write a scenario as in examples/scenarios"),
        ("kind: BalancingPolicy", "kind: .*BalancingPolicy.*write a scenario as in examples/scenarios"),
    ],
)
def test_a_file_that_is_no_scenario_is_refused_with_what_to_write(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "scenario.yaml"
    path.write_text(text, encoding="utf-8", errors="surrogateescape")
    with pytest.raises(InvalidField, match=words):
        Scenario.read(path)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidField, match=r"gone\.yaml.*No such file"):
        Scenario.read(tmp_path / "gone.yaml")


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"nodes": [*NODES, {"name": "node-1", "cores": 4}], "applications": []}, "node-1.*rename one group"),
        ({"events": [{"at": "1m", "fail": ["nodule"]}]}, r"events\[0\].*nodule.*no such node; there are node"),
        ({"applications": [job(copies=2), job(name="job-1")]}, "job-1.*rename one"),
        ({"applications": [job(runsOn={"nodule": 1})]}, r"applications\[0\]\.runsOn.*nodule.*there are node-0, node-1"),
        ({"applications": [job(runsOn=["nodule"])]}, r"applications\[0\]\.runsOn.*there are node, node-0, node-1"),
        ({"applications": [job(runsOn={"node-0": 5})]}, "place at most the 4 executors that there are"),
        ({"applications": [job(runsOn=["node"], starts="5m")]}, "placed by the policy: remove runsOn"),
        ({"applications": [job()], "streams": [{"from": "kafka", "to": "job"}]}, "kafka.*no such application"),
        ({"policy": {"nodeSelector": {}}}, "the scenario's nodes are the pool"),
    ],
)
def test_what_refers_to_nothing_or_to_two_things_is_refused(spec: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidResource, match=words):
        scenario(**spec)


def test_of_many_names_that_there_are_ten_are_told() -> None:
    machines = [{"name": f"pool-{letter}", "cores": 4} for letter in "abcdefghijkl"]
    with pytest.raises(InvalidResource, match=r"there are pool-a, .*pool-j, …"):
        scenario(nodes=machines, applications=[], events=[{"at": "1m", "fail": ["pool-z"]}])


def test_a_file_holds_one_scenario(tmp_path: Path) -> None:
    path = tmp_path / "two.yaml"
    path.write_text("kind: Scenario\n---\nkind: Scenario\n", encoding="utf-8")
    with pytest.raises(InvalidField, match="2 documents in one file: give each a file of its own"):
        Scenario.read(path)
