"""What follows from the predicted scores, from the policy and from other moves, apart from who asks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ballast.model import (
    Budget,
    Gap,
    MovePhase,
    MovesMode,
    MovesPolicy,
    PlacementMode,
    PlacementPolicy,
    Reason,
    Weights,
)
from ballast.moves.budget import ExecutorCounts
from ballast.moves.rest import rest
from ballast.moves.rules import Rules, Way, overshoot, worth
from tests.builders import NOW, a_move, a_policy

WAY = Way("uid-e", "team/clicks", "hot", "cold", Gap(90.0, 30.0), Gap(70.0, 50.0), 0.0)
POLICY = a_policy(
    placement=PlacementPolicy(mode=PlacementMode.ENFORCE), moves=MovesPolicy(mode=MovesMode.ENFORCE, min_gain=5.0)
)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, None),
        ({"target": "hot"}, Reason.NO_DESTINATION),
        ({"before": None, "after": None, "unmeasured": "cold"}, Reason.STALE_METRICS),
        ({"before": Gap(90.0, 70.0), "after": Gap(75.0, 85.0)}, Reason.OVERSHOOT),
        ({"after": Gap(60.0, 60.0)}, None),
        ({"after": Gap(60.0, 60.0 + 1e-9)}, None),
        ({"after": Gap(87.6, 32.5)}, Reason.MIN_GAIN),
        ({"after": Gap(87.5, 32.5)}, None),
        ({"locality_delta_ratio": 0.1}, None),
        ({"locality_delta_ratio": 0.11}, Reason.LOCALITY_LOSS),
    ],
)
def test_a_move_must_be_worth_it(changes: dict[str, Any], reason: Reason | None) -> None:
    found = worth(replace(WAY, **changes), POLICY.moves)
    assert (found[0] if found else None) is reason


@pytest.mark.parametrize(("tolerance_points", "refused"), [(0.0, True), (4.9, True), (5.0, False)])
def test_an_overshoot_within_the_tolerance_is_forgiven(tolerance_points: float, *, refused: bool) -> None:
    found = overshoot(Gap(70.0, 45.0), Gap(55.0, 60.0), "cold", tolerance_points=tolerance_points)
    assert found == ((Reason.OVERSHOOT, "cold would end at 60.0, above 55.0") if refused else None)


@pytest.mark.parametrize(
    ("before", "after", "refused"),
    [
        pytest.param(Gap(90.0, 50.0), Gap(69.0, 71.0), True, id="alike nodes"),
        pytest.param(Gap(100.0, 50.0), Gap(30.0, 60.0), False, id="from a small node to a large one"),
        pytest.param(Gap(90.0, 50.0), Gap(88.0, 130.0), True, id="from a large node to a small one"),
        pytest.param(Gap(50.0, 90.0), Gap(30.0, 100.0), True, id="from the cooler node"),
    ],
)
def test_the_hotter_node_is_to_cool_by_half_of_the_gap_if_it_is_another_one_then(
    before: Gap, after: Gap, *, refused: bool
) -> None:
    assert (overshoot(before, after, "cold") is not None) is refused


@pytest.mark.parametrize(
    ("before", "after", "points"),
    [
        (Gap(90.0, 30.0), Gap(50.0, 60.0), 50.0),
        (Gap(90.0, 30.0), Gap(25.0, 95.0), -10.0),
        (Gap(30.0, 90.0), Gap(40.0, 80.0), 20.0),
    ],
)
def test_a_gap_narrows_towards_zero_from_either_side(before: Gap, after: Gap, points: float) -> None:
    assert before.narrowed(after) == points


ACTING = POLICY.moves


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, None),
        ({"moves": replace(ACTING, mode=MovesMode.RECOMMEND)}, None),
        ({"placement": PlacementPolicy(mode=PlacementMode.RECOMMEND)}, Reason.NOT_ENFORCED),
        ({"weights": Weights(cpu=0.0, memory=1.0)}, Reason.UNKNOWN_LOAD),
    ],
)
def test_a_policy_under_which_a_move_could_not_end_well_forbids_it(
    changes: dict[str, Any], reason: Reason | None
) -> None:
    policy = replace(POLICY, **changes)
    rules = Rules(policy, (), resting=rest((), policy.moves, NOW), counts=ExecutorCounts(), now=NOW)
    found = rules.objection(WAY)
    assert (found[0] if found else None) is reason


def test_a_move_that_has_begun_counts_against_the_next() -> None:
    moves = replace(ACTING, max_concurrent=1)
    rules = Rules(replace(POLICY, moves=moves), (), resting=rest((), moves, NOW), counts=ExecutorCounts(), now=NOW)
    assert rules.objection(WAY) is None
    begun = a_move("m1", topology="team/other", source="a", target="b", phase=MovePhase.APPROVED, ended_at=None)
    found = rules.with_move(begun).objection(WAY)
    assert found is not None
    assert found[0] is Reason.MAX_CONCURRENT


@pytest.mark.parametrize(
    ("phase", "reason"),
    [(MovePhase.PROPOSED, None), (MovePhase.APPROVED, None), (MovePhase.LEAVING, Reason.MAX_CONCURRENT)],
)
def test_a_move_made_by_hand_counts_once_its_executor_leaves(phase: MovePhase, reason: Reason | None) -> None:
    """Before that nobody has checked what it says, and a user may ask for any number."""
    budgets = (Budget(moves=1, per_seconds=3600.0, scope="Pool"), Budget(moves=1, per_seconds=3600.0, scope="Node"))
    moves = replace(ACTING, max_concurrent=1, max_concurrent_per_node=1, budgets=budgets)
    asked = a_move("m1", topology="tenant/x", source=WAY.source, target=WAY.target, phase=phase, ended_at=None)
    known = (replace(asked, by_hand=True),)
    rules = Rules(
        replace(POLICY, moves=moves), known, resting=rest(known, moves, NOW), counts=ExecutorCounts(), now=NOW
    )
    found = rules.objection(WAY)
    assert (found[0] if found else None) is reason
