from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ballast.errors import InvalidField, InvalidResource
from ballast.simulation.policies import by_name
from ballast.simulation.study import Document, moves_anything
from ballast.simulation.variants import NO_MOVES, Axis, candidates, combined, shared_figures, without_effect
from tests.unit.simulation.small_world import scenario

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


def policy(name: str = "AvgShedder", **figures: Any) -> dict[str, Any]:
    return by_name(name, figures)


def variants(*axes: str, of: dict[str, Any] | None = None) -> dict[str, dict[str, Any]]:
    """Specs by their labels."""
    found = combined("mine", of or policy(), [Axis.parse(text) for text in axes])
    return {label: document["spec"] for label, document in found.items()}


def test_every_combination_has_a_label_that_tells_it_apart() -> None:
    assert list(variants("shedding.avgShedder.lowThreshold=10,15", "interval=30s,1m")) == [
        "mine interval=30s lowThreshold=10",
        "mine interval=1m lowThreshold=10",
        "mine interval=30s lowThreshold=15",
        "mine interval=1m lowThreshold=15",
    ]


def test_a_variant_is_the_policy_except_for_what_is_set() -> None:
    original = policy(moves={"maxConcurrent": 7})
    (spec,) = variants("spec.shedding.avgShedder.lowThreshold=12.5", of=original).values()
    assert spec["shedding"]["avgShedder"] == {"lowThreshold": 12.5}
    assert spec["moves"] == original["spec"]["moves"]
    assert "avgShedder" not in original["spec"]["shedding"]


def test_without_axes_the_policy_stays_as_it_is() -> None:
    assert combined("mine", policy(), []) == {"mine": policy()}


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
        "shedding.thresholdShedder.threshold=5",
        of=policy(shedding={"avgShedder": {"lowHits": 4}}),
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
            "thresholdShedder": {"threshold": 5},
        },
        "mine strategy=None": {"strategy": "None"},
    }


def test_figures_of_a_strategy_that_no_policy_has_are_refused() -> None:
    axis = Axis.parse("shedding.avgShedder.lowThreshold=10")
    (problem,) = without_effect([axis], {"still": policy("None")})
    assert str(problem) == (
        "--grid: 'shedding.avgShedder.lowThreshold': no policy has that strategy: give one, or remove --grid"
    )
    assert not list(without_effect([axis], {"still": policy("None"), "mine": policy()}))


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
