"""Reading a scenario: what it may say, and what it is told when it says something else."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml

from ballast.errors import BallastError, InvalidField, InvalidResource
from ballast.simulation.inventory import executor_slots, fleet, topologies
from ballast.simulation.scenario import Scenario
from ballast.simulation.scenario_models import Vary
from tests.unit.simulation.small_world import policy, scenario

NODES = [{"name": "node", "count": 2, "cores": 10}]


def job(**changes: Any) -> dict[str, Any]:
    return {"name": "job", "executors": 4, "load": {"cores": 1}, **changes}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("kind: \udcff", "SCENARIO: .*not text in UTF-8"),
        ("kind: [", "SCENARIO: .*not readable as YAML: see line"),
        ("- a list", "SCENARIO: .*no Scenario.*write a scenario as in examples/scenarios"),
        ("kind: BalancingPolicy", "SCENARIO: .*no Scenario.*write a scenario as in examples/scenarios"),
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


TWO = [{"name": "ingest", "load": {"cores": 1}}, {"name": "sessions", "load": {"cores": 1}}]
KAFKA = {"name": "kafka", "topology": "clicks", "zones": {"a": 1}}
FLOW = {"from": "ingest", "to": "sessions"}


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (
            {"applications": TWO, "streams": [FLOW]},
            r"streams\[0\].*ingest → sessions.*both ends must be of one topology",
        ),
        (
            {"applications": [{**job(), "topology": "clicks"}, TWO[0]], "streams": [{"from": "ingest", "to": "job"}]},
            "ingest → job.*both ends must be of one topology",
        ),
        (
            {
                "applications": [{**job(), "topology": "clicks"}, TWO[0]],
                "externals": [KAFKA],
                "streams": [{"from": "kafka", "to": "ingest"}],
            },
            "kafka → ingest.*both ends must be of one topology",
        ),
        (
            {"applications": TWO, "externals": [KAFKA]},
            r"externals\[0\]\.topology.*clicks.*no application is of this topology; there are ingest, sessions",
        ),
        (
            {"applications": TWO, "externals": [{**KAFKA, "name": "ingest", "topology": "ingest"}]},
            r"externals\[0\]\.name.*ingest.*something else has this name: rename one",
        ),
        (
            {"applications": [job()], "externals": [{**KAFKA, "topology": "job"}] * 2},
            r"externals\[1\]\.name.*kafka.*something else has this name: rename one",
        ),
    ],
)
def test_a_stream_that_no_topology_has_is_refused(spec: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidResource, match=words):
        scenario(**spec)


def test_the_streams_of_a_topology_are_what_the_planner_reads() -> None:
    applications = [{**each, "topology": "clicks"} for each in TWO]
    flows = [{"from": "kafka", "to": "ingest"}, {**FLOW, "bytesPerSecond": "1M"}]
    spec = scenario(applications=applications, externals=[KAFKA], streams=flows).spec
    (topology,) = topologies(executor_slots(spec, fleet(spec.nodes)).apps, spec, policy().levels)
    assert [(each.source, each.target) for each in topology.streams] == [("kafka", "ingest"), ("ingest", "sessions")]
    assert {each.name for each in topology.components} == {"kafka", "ingest", "sessions"}


LATER = [*NODES, {"name": "new", "count": 2, "cores": 10, "joins": "3m"}]


@pytest.mark.parametrize("runs_on", [["node", "new"], ["node-0", "new-1"], {"new-1": 2}])
def test_nobody_runs_from_the_beginning_on_a_node_that_joins_later(runs_on: Any) -> None:
    with pytest.raises(InvalidResource, match=r"applications\[0\]\.runsOn.*'new.*it joins later"):
        scenario(nodes=LATER, applications=[job(runsOn=runs_on)])


@pytest.mark.parametrize("event", [{"fail": ["new-1"]}, {"leave": ["new"]}, {"restart": ["new"], "lasts": "1m"}])
def test_nothing_happens_to_a_node_before_it_joins(event: dict[str, Any]) -> None:
    with pytest.raises(InvalidResource, match=r"events\[0\].*'new.*it joins at 3m only: let this happen to it later"):
        scenario(nodes=LATER, applications=[job()], events=[{"at": "180s", **event}])
    assert scenario(nodes=LATER, applications=[job()], events=[{"at": "181s", **event}]).spec.events


def test_a_node_that_joins_at_once_is_there_from_the_beginning() -> None:
    nodes = [{"name": "node", "cores": 10, "joins": "0s"}]
    assert scenario(nodes=nodes, applications=[job(runsOn=["node"])]).spec.applications[0].total == 4


def varied(**walk: Any) -> dict[str, Any]:
    return {"applications": [job(load={"cores": 1, "vary": [{"kind": "RandomWalk", "step": 0.1, **walk}]})]}


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (varied(low=3, high=1), r"load\.vary\[0\].*low .* must be below high"),
        (varied(low=1, high=1), "low .* must be below high"),
        (varied(low=2), r"low .* must be below high \(1\.5 if absent\)"),
        (
            {"applications": [job(starts="5m", stops="1m")]},
            r"applications\[0\]\.stops.*stops must be later than starts",
        ),
        ({"applications": [job(stops="0s")]}, "stops must be later than starts"),
        ({"events": [{"at": "1m", "fail": ["node"], "notice": "1m"}]}, r"events\[0\]\.notice.*remove notice"),
        ({"events": [{"at": "1m", "blackout": True, "lasts": "1m", "notice": "1m"}]}, "remove notice"),
        (
            {"events": [{"at": "1m", "blackout": True, "lasts": "1m", "every": "1m"}]},
            r"events\[0\]\.every.*remove every",
        ),
        ({"events": [{"at": "1m", "fail": ["node"], "every": "1m"}]}, "remove every"),
        ({"events": [{"at": "1m", "leave": ["node"], "every": "1m"}]}, "remove every"),
        (
            {"applications": [job()], "externals": [{"name": "kafka", "topology": "job", "zones": {"a": 0, "b": 0}}]},
            r"externals\[0\]\.zones.*a share above 0",
        ),
    ],
)
def test_what_would_have_no_effect_is_refused(spec: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidResource, match=words):
        scenario(**spec)


def test_what_is_written_of_a_scenario_is_that_scenario() -> None:
    events = [
        {"at": "1m", "fail": ["node-0"], "lasts": "1m"},
        {"at": "5m", "leave": ["node-1"]},
        {"at": "9m", "restart": ["node"], "lasts": "1m"},
        {"at": "20m", "blackout": True, "lasts": "1m"},
    ]
    first = scenario(events=events)
    assert Scenario.parse(first.to_dict()) == first


def test_of_many_names_that_there_are_ten_are_told() -> None:
    machines = [{"name": f"pool-{letter}", "cores": 4} for letter in "abcdefghijkl"]
    with pytest.raises(InvalidResource, match=r"there are pool-a, .*pool-j, …"):
        scenario(nodes=machines, applications=[], events=[{"at": "1m", "fail": ["pool-z"]}])


def test_a_file_holds_one_scenario(tmp_path: Path) -> None:
    path = tmp_path / "two.yaml"
    path.write_text("kind: Scenario\n---\nkind: Scenario\n", encoding="utf-8")
    with pytest.raises(InvalidField, match="2 documents in one file; give each its own file"):
        Scenario.read(path)


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
