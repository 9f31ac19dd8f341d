from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ballast.errors import InvalidField
from ballast.simulation.study import Document, moves_anything
from ballast.simulation.variants import NO_MOVES, Axis, candidates, shared_figures
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
