from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from ballast.api import BalancingPolicy
from ballast.errors import InvalidField, InvalidResource
from ballast.model import LoadUnit, MovesMode, PlacementMode
from ballast.model.shedders import ThresholdSettings
from ballast.simulation.policies import (
    NO_MOVES,
    Axis,
    by_name,
    candidates,
    combined,
    enforced,
    from_name,
    in_file,
    policy_in,
    scenario_in,
    shared_figures,
    without_effect,
)
from ballast.simulation.study import Document, moves_anything
from tests.unit.simulation.small_world import by_spec, policy, scenario

FIGURES = {
    "shedding": {"avgShedder": {"lowThreshold": 20}, "advanced": {"thresholdShedder": {"threshold": 5}}},
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
    assert theirs.shedding.threshold_shedder == ThresholdSettings(threshold=5)
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
            "shedding": {"avgShedder": {"lowHits": 5}, "advanced": {"thresholdShedder": {"threshold": 7}}},
            "moves": {"maxConcurrent": 9},
        }
    )
    ours, theirs = from_name("AvgShedder", world), from_name("ThresholdShedder", world)
    assert (ours.shedding.avg_shedder.low_hits, ours.moves.max_concurrent) == (5, 9)
    assert theirs.shedding.threshold_shedder == ThresholdSettings(threshold=7)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Shredder", r"--policy: 'Shredder': shedding\.strategy: .*AvgShedder.*or name a policy's file"),
        ("ThresholdShedder/Traffic", "only AvgShedder has units"),
        ("AvgShedder/Weight", r"Weight.*avgShedder\.unit: choose one of"),
        ("AvgShedder+Nearest", r"Nearest.*placement\.strategy: choose one of"),
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


FILE = """
apiVersion: ballast.dev/v1alpha1
kind: BalancingPolicy
metadata: {name: mine, uid: abc, resourceVersion: "7", creationTimestamp: 2026-01-01T00:00:00Z, labels: {team: a}}
spec: {nodeSelector: {}, moves: {mode: Recommend}}
status: {}
---
apiVersion: ballast.dev/v1alpha1
kind: BalancingPolicy
metadata: {name: yours}
spec: {nodeSelector: {}, shedding: {strategy: ThresholdShedder}}
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "policies.yaml"
    path.write_text(FILE, encoding="utf-8")
    return str(path)


def chosen(
    *policies: str, grid: tuple[str, ...] = (), baseline: bool = True, figures: Mapping[str, Any] | None = None
) -> dict[str, Document]:
    axes = [Axis.parse(text) for text in grid]
    return candidates(policies, axes, figures=figures or {}, baseline=baseline)


def test_policies_come_from_files_and_names_in_the_order_given(file: str) -> None:
    assert list(chosen("None+RoundRobin", file)) == ["None+RoundRobin", "mine", "yours"]


def test_a_file_s_policy_is_what_a_user_would_apply(file: str) -> None:
    assert chosen(file)["mine"] == {
        "apiVersion": "ballast.dev/v1alpha1",
        "kind": "BalancingPolicy",
        "metadata": {"name": "mine", "labels": {"team": "a"}},
        "spec": {"nodeSelector": {}, "moves": {"mode": "Recommend"}},
    }


def test_a_policy_by_name_has_a_name_that_kubernetes_takes_and_the_figures_given() -> None:
    document = chosen("AvgShedder/Traffic+RoundRobin", figures={"interval": "30s"})["AvgShedder/Traffic+RoundRobin"]
    assert document["metadata"] == {"name": "avgshedder-traffic-roundrobin"}
    assert document["spec"]["interval"] == "30s"


def test_a_policy_by_name_enforces_nothing_where_it_is_applied_as_recommended() -> None:
    found = chosen("AvgShedder+RoundRobin", grid=("shedding.avgShedder.lowThreshold=10,20",))
    assert {(each["spec"]["placement"]["mode"], each["spec"]["moves"]["mode"]) for each in found.values()} == {
        ("Recommend", "Recommend"),
        ("Recommend", "Disabled"),
    }
    assert moves_anything(found["AvgShedder+RoundRobin lowThreshold=10"])


def test_the_first_policy_without_its_moves_is_what_others_are_compared_with(file: str) -> None:
    found = chosen(file)
    assert list(found) == ["mine", "yours", NO_MOVES]
    assert found[NO_MOVES]["spec"] == {"nodeSelector": {}, "moves": {"mode": "Disabled"}}
    assert found[NO_MOVES]["metadata"]["name"] == "mine", "applied, it takes the place of the one that moves"
    assert not moves_anything(found[NO_MOVES])
    assert list(chosen(file, baseline=False)) == ["mine", "yours"]


def test_a_grid_varies_all_policies_that_it_concerns(file: str) -> None:
    found = chosen(file, grid=("shedding.avgShedder.lowThreshold=10,20",))
    assert list(found) == ["mine lowThreshold=10", "mine lowThreshold=20", "yours", NO_MOVES]


def test_two_policies_of_one_name_are_refused(file: str) -> None:
    with pytest.raises(InvalidField, match="--policies: 'mine': there is a policy of that name already: rename one"):
        chosen(file, file)


def test_a_grid_without_effect_is_refused() -> None:
    with pytest.raises(InvalidField, match="no policy has that strategy"):
        chosen("None", grid=("shedding.avgShedder.lowThreshold=10",))


def test_scenarios_must_agree_on_the_figures_of_strategies_given_by_name() -> None:
    one, other = scenario(policy={"interval": "30s"}), scenario(policy={"interval": "1m"})
    assert shared_figures([one, one]) == {"interval": "30s"}
    with pytest.raises(InvalidField, match=r"small, small.*name files of BalancingPolicies"):
        shared_figures([one, other])


def document(name: str = "AvgShedder", **figures: Any) -> dict[str, Any]:
    return by_name(name, figures)


def variants(*axes: str, of: dict[str, Any] | None = None) -> dict[str, dict[str, Any]]:
    """Specs by their labels."""
    found = combined("mine", of or document(), [Axis.parse(text) for text in axes])
    return {label: document["spec"] for label, document in found.items()}


def test_every_combination_has_a_label_that_tells_it_apart() -> None:
    assert list(variants("shedding.avgShedder.lowThreshold=10,15", "interval=30s,1m")) == [
        "mine interval=30s lowThreshold=10",
        "mine interval=1m lowThreshold=10",
        "mine interval=30s lowThreshold=15",
        "mine interval=1m lowThreshold=15",
    ]


def test_a_variant_is_the_policy_except_for_what_is_set() -> None:
    original = document(moves={"maxConcurrent": 7})
    (spec,) = variants("spec.shedding.avgShedder.lowThreshold=12", of=original).values()
    assert spec["shedding"]["avgShedder"] == {"lowThreshold": 12}
    assert spec["moves"] == original["spec"]["moves"]
    assert "avgShedder" not in original["spec"]["shedding"]


def test_without_axes_the_policy_stays_as_it_is() -> None:
    assert combined("mine", document(), []) == {"mine": document()}


@pytest.mark.parametrize(
    ("axis", "value"),
    [
        ("moves.mode=Disabled", "Disabled"),
        ("moves.allowUnknownState=yes", True),
        ("moves.minGain=3", 3),
        ("moves.cooldown=5m", "5m"),
        ("moves.budgets=[{moves: 6, per: 1h}]", [{"moves": 6, "per": "1h"}]),
        ("placement.favoredNodes={matchLabels: {disk: ssd}}", {"matchLabels": {"disk": "ssd"}}),
    ],
)
def test_values_are_read_as_the_field_needs_them(axis: str, value: Any) -> None:
    (spec,) = variants(axis).values()
    section, key = axis.partition("=")[0].split(".")
    assert spec[section][key] == value


def test_keys_alike_are_told_apart_by_what_is_before_them() -> None:
    (label,) = variants("moves.mode=Disabled", "placement.mode=Enforce")
    assert label == "mine moves.mode=Disabled placement.mode=Enforce"


def test_strategies_get_their_own_figures_alone() -> None:
    found = variants(
        "shedding.strategy=AvgShedder,ThresholdShedder,None",
        "shedding.avgShedder.lowThreshold=10,15",
        "shedding.advanced.thresholdShedder.threshold=5",
        of=document(shedding={"avgShedder": {"lowHits": 4}}),
    )
    assert {label: spec["shedding"] for label, spec in found.items()} == {
        "mine strategy=AvgShedder lowThreshold=10": {
            "strategy": "AvgShedder",
            "avgShedder": {"lowHits": 4, "lowThreshold": 10},
        },
        "mine strategy=AvgShedder lowThreshold=15": {
            "strategy": "AvgShedder",
            "avgShedder": {"lowHits": 4, "lowThreshold": 15},
        },
        "mine strategy=ThresholdShedder threshold=5": {
            "strategy": "ThresholdShedder",
            "advanced": {"thresholdShedder": {"threshold": 5}},
        },
        "mine strategy=None": {"strategy": "None"},
    }


def test_figures_of_a_strategy_that_no_policy_has_are_refused() -> None:
    axis = Axis.parse("shedding.avgShedder.lowThreshold=10")
    (problem,) = without_effect([axis], {"still": document("None")})
    assert str(problem) == (
        "--grid: 'shedding.avgShedder.lowThreshold': no policy has that strategy: give one, or remove --grid"
    )
    assert not list(without_effect([axis], {"still": document("None"), "mine": document()}))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("lowThreshold", "--grid: 'lowThreshold': write PATH=VALUE,VALUE"),
        ("interval=", "write PATH=VALUE,VALUE"),
        (
            "shedding.avgShedder.lowThresold=1",
            "lowThresold': no such field; did you mean lowThreshold[?] there are unit,",
        ),
        ("moves.zzz=1", "'moves.zzz': no such field; there are mode"),
        ("moves.budgets.moves=1", "'moves.budgets.moves': moves.budgets has no fields: set it whole"),
        ("interval=1m,,2m", "--grid interval: '1m,,2m': write values with commas"),
        ("interval=1m,null", "write a value between all commas"),
        ("interval={", "write values with commas"),
    ],
)
def test_an_axis_that_cannot_be_used_is_refused_with_what_to_write(text: str, words: str) -> None:
    with pytest.raises(InvalidField, match=words):
        Axis.parse(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("moves.minGain=high", r"policy mine minGain=high is not valid:\s+spec.moves.minGain: 'high'"),
        ("shedding.avgShedder.lowThreshold=50", "lowThreshold must be below highThreshold"),
        ("interval=2h", "spec.interval: '2h'"),
    ],
)
def test_a_combination_that_is_not_valid_is_named(text: str, words: str) -> None:
    with pytest.raises(InvalidResource, match=words):
        variants(text)


def scenario_file(folder: Path, **figures: Any) -> Path:
    path = folder / "scenario.yaml"
    spec = scenario().spec.to_dict()
    document = {"apiVersion": "ballast.dev/v1alpha1", "kind": "Scenario", "metadata": {"name": "small"}, "spec": spec}
    spec["policy"] = figures
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return path


def test_a_scenario_may_have_figures_of_several_strategies(tmp_path: Path) -> None:
    figures = {"avgShedder": {"lowThreshold": 20}, "advanced": {"thresholdShedder": {"threshold": 5}}}
    found = scenario_in(scenario_file(tmp_path, shedding=figures, moves={"minGain": 3}))
    assert found.spec.policy["shedding"] == figures


@pytest.mark.parametrize(
    ("figures", "fields"),
    [
        ({"moves": 3}, ["spec.policy.moves"]),
        ({"moves": {"minGain": "much"}}, ["spec.policy.moves.minGain"]),
        ({"shedding": {"avgShedder": {"lowThreshold": -1}}}, ["spec.policy.shedding.avgShedder.lowThreshold"]),
        (
            {"shedding": {"advanced": {"overloadShedder": {"threshold": 400}}}},
            ["spec.policy.shedding.advanced.overloadShedder.threshold"],
        ),
    ],
    ids=["no mapping", "moves", "AvgShedder", "another strategy"],
)
def test_wrong_figures_of_a_scenario_name_their_field_once(
    tmp_path: Path, figures: dict[str, Any], fields: list[str]
) -> None:
    with pytest.raises(InvalidResource) as refused:
        scenario_in(scenario_file(tmp_path, **figures))
    assert [problem.field for problem in refused.value.problems] == fields
