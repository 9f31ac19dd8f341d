"""Snapshot files: what is written can be read, and what can't be read says why."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings

from ballast.cli.situation import Situation, UnusableSnapshotError, dump, load
from ballast.errors import InvalidField
from ballast.model import Level, Levels
from tests.unit.cli.pools import a_situation, with_a_proposed_move
from tests.unit.cli.values import values_of


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("snapshots") / "snapshot.yaml"


def _sound(situation: Situation) -> Situation:
    """Without what is refused: schedules that could never come, what no pool has, and times of no calendar."""
    policy, snapshot = situation.policy, replace(situation.snapshot, taken_at=abs(situation.snapshot.taken_at) % 2e11)
    budgets = tuple(
        replace(each, schedule="0 8 * * 1-5", time_zone="UTC") if each.schedule else each
        for each in policy.moves.budgets
    )
    levels = policy.levels.ordered or (Level("zone", 1.0),)
    policy = replace(
        policy,
        moves=replace(policy.moves, budgets=budgets),
        levels=Levels(levels),
        shedding=replace(policy.shedding, strategy="UniformLoadShedder"),
        placement=replace(policy.placement, strategy="RoundRobin"),
    )
    nodes = tuple(replace(each, location=(*each.location, None, None)[: len(levels)]) for each in snapshot.nodes)
    executors = tuple(replace(each, node=each.node or "n") for each in snapshot.executors)
    return replace(situation, policy=policy, snapshot=replace(snapshot, nodes=nodes, executors=executors))


@given(situation=values_of(Situation).map(_sound))
@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
def test_whatever_is_written_is_read_back_as_it_was(file: Path, situation: Situation) -> None:
    file.write_text(dump(situation), encoding="utf-8")
    assert load(file) == situation


@pytest.mark.parametrize("situation", [a_situation(), with_a_proposed_move()])
def test_a_file_gives_the_same_plan(file: Path, situation: Situation) -> None:
    file.write_text(dump(situation), encoding="utf-8")
    assert load(file).plan() == situation.plan()


def test_json_says_the_same_as_yaml(file: Path) -> None:
    written = dump(a_situation(), as_json=True)
    assert json.loads(written) == yaml.safe_load(dump(a_situation()))
    file.write_text(written, encoding="utf-8")
    assert load(file) == a_situation()


def test_the_policy_is_written_whole_so_that_later_defaults_do_not_change_it() -> None:
    assert yaml.safe_load(dump(a_situation()))["policy"]["interval_seconds"] == 60.0


def _without(key: str) -> Any:
    return lambda document: document.pop(key)


def _old(document: dict[str, Any]) -> None:
    document["version"] = 0


def _renamed(document: dict[str, Any]) -> None:
    amounts = document["snapshot"]["nodes"][0]["allocatable"]
    amounts["cpu"] = amounts.pop("cpu_cores")


def _mistyped(document: dict[str, Any]) -> None:
    document["snapshot"]["executors"][1]["phase"] = "Sleeping"


def _eternal(document: dict[str, Any]) -> None:
    document["snapshot"]["taken_at"] = 2.0**63


@pytest.mark.parametrize(
    ("broken", "field", "words"),
    [
        (_without("version"), "version", "None: this program reads version 1"),
        (_old, "version", "0: this program reads version 1"),
        (_without("policy"), "policy", "set this field"),
        (_renamed, "snapshot.nodes.0.allocatable.cpu", "no such field"),
        (_eternal, "snapshot.taken_at", "write the seconds since 1970 of a year before 9000"),
        (_mistyped, "snapshot.executors.1.phase", "write Gated, Pending, Running, Leaving or Ended"),
    ],
)
def test_a_file_that_does_not_fit_names_the_field_and_the_remedy(
    file: Path, broken: Any, field: str, words: str
) -> None:
    document = yaml.safe_load(dump(a_situation()))
    broken(document)
    file.write_text(yaml.safe_dump(document))
    with pytest.raises(UnusableSnapshotError) as refused:
        load(file)
    told = str(refused.value)
    assert told.startswith(f"{file}: {field}: ")
    assert words in told
    assert told.endswith("write a new file with `kubectl ballast snapshot --output-file FILE`")


@pytest.mark.parametrize(
    ("budget", "words"),
    [
        ({"schedule": "61 * * * *"}, "schedule: '61 * * * *': "),
        ({"schedule": "0 8 * * *", "time_zone": "Mars/Olympus"}, "time_zone: 'Mars/Olympus': no such time zone"),
    ],
)
def test_a_budget_that_could_never_come_is_refused_with_the_remedy(
    file: Path, budget: dict[str, str], words: str
) -> None:
    document = yaml.safe_load(dump(a_situation()))
    document["policy"]["moves"]["budgets"].append({"moves": 0, **budget})
    file.write_text(yaml.safe_dump(document))
    with pytest.raises(UnusableSnapshotError) as refused:
        load(file)
    told = str(refused.value)
    assert f"{file}: policy.moves.budgets.1.{words}" in told
    assert "write " in told


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "this is not a BallastSnapshot; write a new file"),
        ("- a\n- b\n", "this is not a BallastSnapshot"),
        ("kind: BalancingPolicy", "this is a BalancingPolicy, not a BallastSnapshot"),
        ("a: [", "not readable as YAML"),
        ("\x00", "not readable as YAML"),
    ],
)
def test_what_is_no_document_of_ours_is_refused(file: Path, text: str, words: str) -> None:
    file.write_text(text)
    with pytest.raises(InvalidField, match=words):
        load(file)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidField, match=r"--filename: .*nowhere\.yaml': No such file.*; write a new file"):
        load(tmp_path / "nowhere.yaml")
