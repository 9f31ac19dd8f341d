"""Objects in files that lack a field, or have one of the wrong type: the file, the object, the field and the remedy."""

from __future__ import annotations

import copy
import io
import itertools
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from ballast.api.policy import PolicySpec
from ballast.cli.report.policy_fields import field_values
from ballast.cli.situation import dump
from tests.unit.cli.pools import a_situation, with_a_proposed_move
from tests.unit.cli.program import Ended, run

ABSENT = object()
Key = str | int

LIBRARY_WORDS = re.compile(
    r"Traceback|Errno|KeyError|NoneType|Input should|Value error|object (has no|is not)|invalid literal|"
    r"could not convert|has no attribute"
)


def snapshot() -> dict[str, Any]:
    situation = with_a_proposed_move()
    pool = replace(situation.snapshot, nodes=situation.snapshot.nodes[:3], executors=situation.snapshot.executors[:2])
    document: dict[str, Any] = json.loads(dump(replace(situation, snapshot=pool), as_json=True))
    return document


POLICY = {
    "apiVersion": "ballast.dev/v1alpha1",
    "kind": "BalancingPolicy",
    "metadata": {"name": "p", "labels": {"team": "a"}},
    "spec": {
        "nodeSelector": {"matchLabels": {"a": "b"}},
        "metrics": {"window": "60s", "prometheus": {"url": "http://prometheus:9090"}},
        "moves": {"settle": "2m", "maxConcurrent": 5, "budgets": [{"moves": 3, "per": "1h"}]},
        "shedding": {"strategy": "AvgShedder", "avgShedder": {"lowThreshold": 15}},
    },
}
SCENARIO = {
    "apiVersion": "ballast.dev/v1alpha1",
    "kind": "Scenario",
    "metadata": {"name": "s"},
    "spec": {
        "duration": "1m",
        "nodes": [{"name": "node", "count": 2, "cores": 10}],
        "applications": [{"name": "bundle", "copies": 2, "load": {"cores": 1}, "runsOn": {"node-0": 2}}],
        "policy": {"moves": {"cooldown": "0s"}},
    },
}
TOPOLOGY = yaml.safe_load((Path(__file__).parents[3] / "examples" / "sizing" / "topology.yaml").read_text("utf-8"))
EXECUTOR_LABELS = {"spark-role": "executor", "spark-app-selector": "spark-1", "spark-app-name": "clicks"}
PODS = {
    "items": [
        {
            "metadata": {"name": "e1", "namespace": "team", "labels": EXECUTOR_LABELS},
            "status": {"phase": "Running"},
        }
    ]
}
APPLICATION = {
    "apiVersion": "sparkoperator.k8s.io/v1beta2",
    "kind": "SparkApplication",
    "metadata": {"name": "clicks", "namespace": "team"},
    "spec": {
        "sparkConf": {"spark.executor.cores": "2"},
        "deps": {"packages": ["a:b:1"]},
        "arguments": ["a"],
        "executor": {"instances": 2, "labels": {"a": "b"}, "template": {"metadata": {"labels": {"a": "b"}}}},
        "dynamicAllocation": {"enabled": True},
    },
}
PROGRESS = {
    "name": "q",
    "runId": "r",
    "batchId": 3,
    "numInputRows": 100,
    "durationMs": {"triggerExecution": 1000},
    "sources": [{"description": "KafkaV2[Subscribe[clicks]]", "endOffset": {"c": {"0": 5}}}],
    "sink": {"description": "KafkaSink"},
}


@dataclass(frozen=True, slots=True)
class Input:
    """A command that reads a file, and a file that it accepts."""

    command: str
    document: dict[str, Any]
    name: str = "file.json"

    def __str__(self) -> str:
        return self.command

    def given(self, folder: Path, document: Any) -> Ended:
        (folder / self.name).write_text(json.dumps(document), encoding="utf-8")
        (folder / "pods.json").write_text(json.dumps(PODS), encoding="utf-8") if self.name != "pods.json" else None
        (folder / "scenario.yaml").write_text(json.dumps(SCENARIO), encoding="utf-8")
        return run(*self.command.split())


INPUTS = [
    Input("plan -f file.json", snapshot()),
    Input("explain policy/p -f file.json", POLICY),
    Input("simulate scenario.yaml --policy file.json", POLICY),
    Input("simulate file.json", SCENARIO),
    Input("size -f file.json", TOPOLOGY),
    Input("discover -f file.json", PODS),
    Input("discover -f pods.json --progress file.json", PROGRESS),
    Input("doctor -f file.json", APPLICATION),
]


def paths(document: Any, at: tuple[Key, ...] = ()) -> Iterator[tuple[Key, ...]]:
    """Of every field; of a list its first two items."""
    items = (
        document.items() if isinstance(document, dict) else enumerate(document if isinstance(document, list) else ())
    )
    for key, value in itertools.islice(items, 2 if isinstance(document, list) else None):
        yield (*at, key)
        yield from paths(value, (*at, key))


def changed(document: Any, path: tuple[Key, ...], value: Any) -> Any:
    """With another value there, or without the field."""
    result = holder = copy.deepcopy(document)
    for key in path[:-1]:
        holder = holder[key]
    if value is ABSENT:
        del holder[path[-1]]
    else:
        holder[path[-1]] = value
    return result


def mistyped(document: Any, path: tuple[Key, ...]) -> Any:
    for key in path:
        document = document[key]
    return "text" if isinstance(document, list | dict | float | int) else [5]


@pytest.mark.parametrize("given", INPUTS, ids=str)
def test_the_file_is_accepted_as_it_is(given: Input, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ended = given.given(tmp_path, given.document)
    assert "Error" not in ended.err


@pytest.mark.soak
@pytest.mark.parametrize("given", INPUTS, ids=str)
def test_no_field_that_is_absent_or_mistyped_ends_in_a_traceback(
    given: Input, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    refused = 0
    for path in paths(given.document):
        for value in (ABSENT, mistyped(given.document, path)):
            ended = given.given(tmp_path, changed(given.document, path, value))
            told = f"{path} {'absent' if value is ABSENT else value}: {ended.err}"
            assert not LIBRARY_WORDS.search(ended.err), told
            if ended.err:
                refused += 1
                assert ended.err.startswith("Error: "), told
                assert given.name in ended.err, told
    assert refused > 3


REMEDIES = [
    ("plan -f file.json", ("snapshot", "nodes", 0, "name"), ABSENT, "snapshot.nodes.0.name: set this field"),
    ("plan -f file.json", ("policy", "levels", "ordered"), [], "policy.levels.ordered: write at least 1 item"),
    ("plan -f file.json", ("policy", "shedding", "strategy"), "x", "policy.shedding.strategy: write AvgShedder, "),
    ("plan -f file.json", ("snapshot", "nodes", 0, "location"), [], "snapshot.nodes.0.location: write 3 items"),
    ("plan -f file.json", ("snapshot", "executors", 0, "node"), ABSENT, "snapshot.executors.0.node: set this field"),
    (
        "plan -f file.json",
        ("snapshot", "nodes", 0, "allocatable", "cpu_cores"),
        float("inf"),
        "snapshot.nodes.0.allocatable.cpu_cores: write a finite number",
    ),
    (
        "plan -f file.json",
        ("snapshot", "nodes", 0, "allocatable", "pods"),
        "1e999",
        "snapshot.nodes.0.allocatable.pods: write a finite number",
    ),
    (
        "explain policy/p -f file.json",
        ("metadata", "name"),
        ABSENT,
        "file.json: BalancingPolicy is not valid: metadata.name: '(absent)': set this field",
    ),
    (
        "simulate scenario.yaml --policy file.json",
        ("spec", "moves", "maxConcurrent"),
        "many",
        "file.json: BalancingPolicy p is not valid: spec.moves.maxConcurrent: 'many': write a whole number",
    ),
    (
        "simulate file.json",
        ("spec", "nodes", 0, "name"),
        ABSENT,
        "file.json: Scenario s is not valid: spec.nodes[0].name: '(absent)': set this field",
    ),
    (
        "simulate file.json",
        ("spec", "policy", "moves", "cooldown"),
        5,
        "file.json: Scenario s is not valid: spec.policy.moves.cooldown: 5: write text",
    ),
    (
        "simulate file.json",
        ("spec", "policy", "moves"),
        "x",
        "file.json: Scenario s is not valid: spec.policy.moves: 'x': write a mapping",
    ),
    (
        "size -f file.json",
        ("spec", "streams", 0, "to"),
        ABSENT,
        "file.json: SparkTopology clickstream is not valid: spec.streams[0].to: '(absent)': set this field",
    ),
    (
        "discover -f file.json",
        ("items", 0, "metadata", "labels"),
        ["a"],
        "file.json: List of pods is not valid: items[0].metadata.labels: ['a']: write a mapping of text to text",
    ),
    (
        "doctor -f file.json",
        ("spec", "arguments"),
        5,
        "file.json: SparkApplication clicks: spec.arguments: 5: write a list",
    ),
]


@pytest.mark.parametrize(("command", "path", "value", "words"), REMEDIES)
def test_file_object_field_and_remedy_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, command: str, path: tuple[Key, ...], value: Any, words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    given = next(each for each in INPUTS if each.command == command)
    ended = given.given(tmp_path, changed(given.document, path, value))
    assert ended.code in (1, 2)
    assert "file.json" in ended.err
    assert words in " ".join(ended.err.split())


EVENTS: list[dict[str, Any]] = [
    {"Event": "SparkListenerApplicationStart", "Timestamp": 1, "App Name": "a"},
    {"Event": "SparkListenerExecutorAdded", "Executor ID": "1", "Executor Info": {"Total Cores": 2}},
    {"Event": "SparkListenerStageCompleted", "Stage Info": {"Stage ID": 0, "Stage Name": "x", "Parent IDs": []}},
    {"Event": "SparkListenerEnvironmentUpdate", "Spark Properties": {"spark.executor.memory": "4g"}},
]


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ((0, "Timestamp"), ABSENT, "events:1': SparkListenerApplicationStart without 'Timestamp': name a log"),
        ((0, "Timestamp"), None, "events:1': SparkListenerApplicationStart with a field of the wrong type: name a log"),
        ((1, "Executor Info", "Total Cores"), ABSENT, "events:2': SparkListenerExecutorAdded without 'Total Cores'"),
        (
            (1, "Executor Info", "Total Cores"),
            float("inf"),
            "events:2': SparkListenerExecutorAdded with a field of the",
        ),
        ((2, "Stage Info"), "x", "events:3': SparkListenerStageCompleted with a field of the wrong type"),
        ((3, "Spark Properties"), "x", "events:4': SparkListenerEnvironmentUpdate with a field of the wrong type"),
        ((3,), 5, "events:4': no event: name a log"),
    ],
)
def test_an_event_that_spark_did_not_write_is_named_by_its_line(
    tmp_path: Path, path: tuple[Key, ...], value: Any, words: str
) -> None:
    file = tmp_path / "events"
    file.write_text("\n".join(json.dumps(event) for event in changed(EVENTS, path, value)), encoding="utf-8")
    ended = run("size", "--event-log", str(file))
    assert ended.code == 2
    assert f"Error: --event-log: '{tmp_path}/{words}" in ended.err


def test_a_value_that_json_does_not_have_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text("kind: BalancingPolicy\nmetadata: {name: x}\nspec: {moves: {settle: !!binary aGk=}}\n")
    ended = run("explain", "policy/x", "-f", str(file))
    assert ended.err == (
        f"Error: {file}: BalancingPolicy x is not valid: 'dict': write text, numbers, lists and mappings only\n"
    )


def test_an_object_from_standard_input_is_refused_as_one_of_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("kind: SparkTopology\nmetadata: {name: clicks}\n"))
    ended = run("size", "-f", "-")
    assert (ended.code, ended.err) == (
        1,
        "Error: standard input: SparkTopology clicks is not valid: spec: '(absent)': set this field\n",
    )


def test_a_snapshot_of_the_whole_pool_stays_usable(tmp_path: Path) -> None:
    file = tmp_path / "snapshot.yaml"
    file.write_text(dump(a_situation()))
    assert run("plan", "-f", str(file)).code == 0


def test_a_stopped_policy_is_explained_with_the_modes_that_its_owner_wrote() -> None:
    """They are what counts again once it is started; the spec that is shown can be applied as it is."""
    modes = {"placement": {"mode": "Enforce"}, "moves": {"mode": "Approve"}}
    stopped, started = (
        {each.field: (each.value, each.origin.value) for each in field_values(PolicySpec.model_validate(spec))}
        for spec in ({"stopped": True, **modes}, modes)
    )
    assert stopped.pop("stopped") == (True, "spec")
    assert started.pop("stopped") == (False, "default")
    assert stopped == started
    assert (stopped["placement.mode"], stopped["moves.mode"]) == (("Enforce", "spec"), ("Approve", "spec"))
