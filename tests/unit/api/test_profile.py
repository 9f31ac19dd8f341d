"""A profile sets what most users would ever set; what a user sets wins."""

from __future__ import annotations

from typing import Any

import pytest

from ballast.api import BalancingPolicy
from ballast.api.profile import SETTINGS, Profile, text
from ballast.model import Policy
from ballast.model.from_api import policy_from
from ballast.placement.limit import zone_allowance


def policy(**spec: Any) -> BalancingPolicy:
    return BalancingPolicy.parse({"metadata": {"name": "streaming"}, "spec": spec})


def value(resource: BalancingPolicy, path: str) -> Any:
    found: Any = resource.spec
    for step in path.split("."):
        found = getattr(found, step)
    return found


@pytest.mark.parametrize("profile", Profile)
def test_a_profile_sets_every_field_of_its_table(profile: Profile) -> None:
    chosen = policy(profile=profile.value)
    assert {path: value(chosen, path) for path in SETTINGS} == {
        path: setting.of(profile) for path, setting in SETTINGS.items()
    }


def test_balanced_is_what_the_planner_does_by_default() -> None:
    found, expected = policy_from(policy()), Policy("streaming")
    assert (found.placement, found.shedding) == (expected.placement, expected.shedding)
    assert found.moves.cooldown_seconds == expected.moves.cooldown_seconds
    assert found.moves.min_slowness == expected.moves.min_slowness
    assert policy_from(policy(profile="Balanced")) == found


def test_a_field_that_is_set_wins_and_the_others_stay_the_profile_s() -> None:
    moves = policy(profile="Conservative", moves={"cooldown": "11m"}).spec.moves
    assert (str(moves.cooldown), moves.max_concurrent) == ("11m", 1)


def test_a_field_that_is_set_to_another_profile_s_value_still_wins() -> None:
    shedder = policy(profile="Aggressive", shedding={"avgShedder": {"lowHits": 8}}).spec.shedding.avg_shedder
    assert shedder is not None
    assert (shedder.low_hits, shedder.high_hits) == (8, 1)


def test_every_profile_keeps_its_thresholds_and_its_eagerness_in_order() -> None:
    assert all(setting.of(Profile.BALANCED) is not None for setting in SETTINGS.values())
    for path in ("moves.min_gain", "shedding.avg_shedder.low_hits", "shedding.avg_shedder.min_hot_score"):
        values = list(SETTINGS[path].by_name().values())
        assert values == sorted(values, reverse=True), path


@pytest.mark.parametrize(("executors", "most"), [(1, 1), (3, 2), (6, 4), (12, 8), (30, 20)])
def test_conservative_keeps_at_most_two_thirds_of_a_component_in_one_zone(executors: int, most: int) -> None:
    ratio = policy_from(policy(profile="Conservative")).placement.max_executors_per_zone_ratio
    assert zone_allowance(executors, ratio) == most


def test_another_strategy_has_no_parameters_of_avg_shedder() -> None:
    spec = policy(profile="Conservative", shedding={"strategy": "OverloadShedder"}).spec
    assert spec.shedding.avg_shedder is None


def test_what_the_profile_decides_is_not_written_out() -> None:
    written = policy(profile="Conservative", moves={"minGain": 7}).to_dict()["spec"]
    assert written["moves"]["minGain"] == 7
    assert "cooldown" not in written["moves"]
    assert written["shedding"] == {"strategy": "AvgShedder", "advanced": {}}


def test_the_description_of_a_field_lists_what_the_profiles_set() -> None:
    assert (
        text(SETTINGS["moves.budgets"].conservative)
        == "2 (or 5 % of the executors) in 1h, 1 (or 10 % of the executors) per topology in 24h"
    )
    assert text(()) == "none"
