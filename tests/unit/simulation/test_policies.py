from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from ballast.api import BalancingPolicy
from ballast.errors import InvalidField, InvalidResource
from ballast.model import LoadUnit, MovesMode, PlacementMode
from ballast.simulation.policies import enforced, from_name, in_file, policy_in
from tests.unit.simulation.small_world import by_spec, policy, scenario

FIGURES = {
    "shedding": {"avgShedder": {"lowThreshold": 20}, "thresholdShedder": {"threshold": 5}},
    "moves": {"maxConcurrent": 7},
}

POLICY = """
apiVersion: ballast.dev/v1alpha1
kind: BalancingPolicy
metadata: {name: mine}
spec:
  nodeSelector: {matchLabels: {pool: streaming}}
  shedding: {avgShedder: {lowHits: 3}}
"""


def test_a_name_takes_the_figures_of_its_own_strategy_from_the_scenario() -> None:
    world = scenario(policy=FIGURES)
    ours, theirs = from_name("AvgShedder/Traffic", world), from_name("ThresholdShedder", world)
    assert ours.shedding.avg_shedder.unit is LoadUnit.TRAFFIC
    assert ours.shedding.avg_shedder.low_threshold == 20
    assert dict(theirs.shedding.settings)["threshold"] == 5
    assert {ours.moves.max_concurrent, theirs.moves.max_concurrent} == {7}


def test_a_name_is_enforced_and_says_where_executors_are_placed() -> None:
    found = from_name("None+RoundRobin", scenario())
    assert found.name == "None+RoundRobin"
    assert found.placement.strategy == "RoundRobin"
    assert (found.placement.mode, found.moves.mode) == (PlacementMode.ENFORCE, MovesMode.ENFORCE)


def test_what_is_only_recommended_is_enforced_and_off_stays_off() -> None:
    assert enforced(policy(mode="Recommend")).moves.mode is MovesMode.ENFORCE
    assert enforced(policy(mode="Approve")).moves.mode is MovesMode.ENFORCE
    assert enforced(policy(mode="Disabled")).moves.mode is MovesMode.DISABLED


NEVER = {"budgets": [{"moves": 0, "duration": "2h", "schedule": "0 0 31 2 *"}]}
WORDS = r"spec\.moves\.budgets\[0\]\.schedule: '0 0 31 2 \*': "


def test_a_policy_whose_schedule_never_comes_is_refused_before_anything_runs(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    spec = {"nodeSelector": {"matchLabels": {"pool": "streaming"}}, "moves": NEVER}
    raw = {"apiVersion": "ballast.dev/v1alpha1", "kind": "BalancingPolicy", "metadata": {"name": "p"}, "spec": spec}
    file.write_text(yaml.safe_dump(raw))
    with pytest.raises(InvalidResource, match=WORDS):
        in_file(file)
    with pytest.raises(InvalidResource, match=WORDS):
        from_name("AvgShedder", scenario(policy={"moves": NEVER}))


def test_a_file_must_hold_a_policy(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    for text in (b"kind: Scenario", b"[]", b"a: [", b"\xff"):
        path.write_bytes(text)
        with pytest.raises(InvalidField, match="policy"):
            in_file(path)


def written(folder: Path, text: str) -> Path:
    path = folder / "policy.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_policys_file_is_read_as_it_is(tmp_path: Path) -> None:
    (document,) = in_file(written(tmp_path, POLICY))
    found = policy_in(BalancingPolicy.parse(document), scenario())
    assert (found.name, found.shedding.avg_shedder.low_hits, found.moves.mode) == ("mine", 3, MovesMode.RECOMMEND)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("kind: [", "not readable as YAML"),
        ("[]", "BalancingPolicies and nothing else"),
        ("", "BalancingPolicies and nothing else"),
        ("kind: Scenario", "BalancingPolicies and nothing else"),
    ],
)
def test_a_file_that_is_no_policy_is_refused(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(InvalidField, match=words):
        in_file(written(tmp_path, text))


def test_a_file_may_hold_several_policies(tmp_path: Path) -> None:
    found = in_file(written(tmp_path, f"---\n{POLICY}---\n{POLICY.replace('mine', 'yours')}---\n"))
    assert [document["metadata"]["name"] for document in found] == ["mine", "yours"]


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidField, match=r"gone\.yaml.*No such file.*; name a file or a strategy"):
        in_file(tmp_path / "gone.yaml")


@pytest.mark.parametrize(
    ("name", "strategy", "unit"),
    [
        ("AvgShedder", "AvgShedder", LoadUnit.USAGE),
        ("AvgShedder/Traffic", "AvgShedder", LoadUnit.TRAFFIC),
        ("ThresholdShedder", "ThresholdShedder", LoadUnit.USAGE),
        ("None", "None", LoadUnit.USAGE),
        ("AvgShedder/Usage+Proximity", "AvgShedder", LoadUnit.USAGE),
    ],
)
def test_a_name_says_strategy_and_unit_and_everything_is_enforced(name: str, strategy: str, unit: LoadUnit) -> None:
    found = from_name(name, scenario())
    assert (found.shedding.strategy, found.shedding.avg_shedder.unit) == (strategy, unit)
    assert (found.placement.mode, found.placement.strategy) == (PlacementMode.ENFORCE, "Proximity")
    assert (found.moves.mode, found.name) == (MovesMode.ENFORCE, name)


def test_figures_are_the_scenarios_and_those_of_other_strategies_are_left_out() -> None:
    world = scenario(
        policy={
            "shedding": {"avgShedder": {"lowHits": 5}, "thresholdShedder": {"threshold": 7}},
            "moves": {"maxConcurrent": 9},
        }
    )
    ours, theirs = from_name("AvgShedder", world), from_name("ThresholdShedder", world)
    assert (ours.shedding.avg_shedder.low_hits, ours.moves.max_concurrent) == (5, 9)
    assert dict(theirs.shedding.settings)["threshold"] == 7


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Shredder", r"shedding\.strategy: .*Shredder.*choose one of .*AvgShedder.*or name a policy's file"),
        ("ThresholdShedder/Traffic", "only AvgShedder has units"),
        ("AvgShedder/Weight", r"avgShedder\.unit: .*Weight.*choose one of"),
        ("AvgShedder+Nearest", r"placement\.strategy: .*Nearest.*choose one of"),
    ],
)
def test_a_name_that_nothing_has_is_refused_with_those_that_there_are(name: str, words: str) -> None:
    with pytest.raises(InvalidField, match=words):
        from_name(name, scenario())


def test_a_policys_nonsense_is_refused_as_anywhere() -> None:
    with pytest.raises(InvalidResource):
        by_spec({"moves": {"maxConcurrent": "many"}}, scenario(), name="mine")


def test_what_is_only_recommended_is_done_and_what_is_off_stays_off() -> None:
    spec = {"placement": {"mode": "Recommend"}, "moves": {"mode": "Approve"}}
    trusted = enforced(by_spec(spec, scenario(), name="mine"))
    assert (trusted.placement.mode, trusted.moves.mode) == (PlacementMode.ENFORCE, MovesMode.ENFORCE)
    off = by_spec({"placement": {"mode": "Disabled"}, "moves": {"mode": "Disabled"}}, scenario(), name="mine")
    assert enforced(off) == off
