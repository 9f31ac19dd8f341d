"""Reading a scenario: what it may say, and what it is told when it says something else."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml

from ballast.errors import BallastError
from ballast.simulation.inventory import executor_slots, fleet
from ballast.simulation.scenario import Scenario
from ballast.simulation.scenario_models import Vary
from tests.unit.simulation.small_world import scenario

JOB = {"name": "job", "load": {"cores": 1}}
NODE = {"name": "node", "cores": 4}


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"duration": "10"}, "spec.duration: '10': write a duration such as 30s"),
        ({"nodes": []}, "spec.nodes"),
        ({"nodes": [{"name": "node"}]}, "spec.nodes[0].cores: '(absent)': set this field"),
        ({"nodes": [{**NODE, "core": 4}]}, "spec.nodes[0].core: 4: no such field"),
        ({"nodes": [NODE, {**NODE, "name": "n"}, {**NODE, "name": "n"}]}, "spec.nodes"),
        (
            {"nodes": [{**NODE, "count": 2}, {"name": "node-1", "cores": 1}], "applications": []},
            "spec.nodes: 'node-1': two nodes would have this name",
        ),
        (
            {"nodes": [NODE], "applications": [{**JOB, "runsOn": {"other": 1}}]},
            "spec.applications[0].runsOn: 'other': no such node; there are node",
        ),
        (
            {"nodes": [NODE], "applications": [{**JOB, "runsOn": {"node": 2}}]},
            "spec.applications[0].runsOn: 2: place at most the 1 executors that there are",
        ),
        (
            {"nodes": [NODE], "applications": [{**JOB, "runsOn": ["node"], "starts": "5m"}]},
            "what starts later is placed by the policy",
        ),
        (
            {"applications": [{**JOB, "load": {"cores": 1, "vary": [{"kind": "Wave"}]}}]},
            "spec.applications[0].load.vary[0]",
        ),
        ({"events": [{"at": "1m", "fail": ["other"]}]}, "spec.events[0]: 'other': no such node; there are node"),
        ({"events": [{"at": "1m"}]}, "set exactly one of fail, leave, restart"),
        ({"events": [{"at": "1m", "fail": ["node"], "blackout": True}]}, "set exactly one of fail, leave, restart"),
        ({"events": [{"at": "1m", "restart": ["node"]}]}, "say with lasts how long each node is away"),
        ({"streams": [{"from": "a", "to": "bundle-0"}]}, "spec.streams[0]: 'a': no such application"),
        ({"policy": {"nodeSelector": {}}}, "the scenario's nodes are the pool"),
        (
            {"nodes": [NODE], "applications": [{**JOB, "executors": 5, "runsOn": ["node"]}]},
            "spec.nodes: 'node': its executors request 5 cores: place fewer there",
        ),
        ({"metrics": {"loss": 1.0}}, "spec.metrics.loss"),
    ],
)
def test_what_can_not_be_meant_is_refused_with_field_value_and_remedy(spec: dict[str, Any], words: str) -> None:
    with pytest.raises(BallastError) as refused:
        scenario(**spec)
    assert words in str(refused.value)


def test_groups_of_nodes_and_copies_of_applications_are_numbered() -> None:
    spec = scenario(
        nodes=[{"name": "node", "count": 3, "cores": 4, "zones": ["a", "b"]}, {"name": "big", "cores": 16}],
        applications=[{"name": "job", "copies": 2, "executors": 2, "load": {"cores": [1, 2, 3]}, "runsOn": ["node"]}],
    ).spec
    nodes = fleet(spec.nodes)
    assert nodes.names == ("big", "node-0", "node-1", "node-2")
    assert nodes.zones == (None, "a", "b", "a")
    assert nodes.named("node") == (1, 2, 3)
    slots = executor_slots(spec, nodes)
    assert [app.name for app in slots.apps] == ["job-0", "job-1"]
    assert slots.app_of.tolist() == [0, 0, 1, 1]
    assert slots.homes.tolist() == [1, 2, 3, 1]


def test_the_documented_scenario_is_one() -> None:
    text = (Path(__file__).parents[3] / "docs" / "scenarios.md").read_text(encoding="utf-8")
    (documented,) = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    assert Scenario.parse(yaml.safe_load(documented)).name == "evening"
    kinds = {kind.__name__ for kind in get_args(get_args(Vary)[0])}
    assert set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)) == kinds
