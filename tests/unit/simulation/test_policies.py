from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from ballast.errors import InvalidField, InvalidResource
from ballast.model import LoadUnit, MovesMode, PlacementMode
from ballast.simulation.policies import enforced, from_name, in_file
from tests.unit.simulation.small_world import policy, scenario

FIGURES = {
    "shedding": {"avgShedder": {"lowThreshold": 20}, "thresholdShedder": {"threshold": 5}},
    "moves": {"maxConcurrent": 7},
}


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
