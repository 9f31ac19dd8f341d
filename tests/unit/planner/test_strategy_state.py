from __future__ import annotations

import pytest

from ballast.model import PlacementPolicy
from ballast.placement.state import PlacementState
from ballast.planner.strategy_state import observed
from tests.builders import NOW, a_node, a_policy, a_snapshot, an_executor


@pytest.mark.parametrize("strategy", ["LeastLongTermRate", "LeastResourceUsage"])
@pytest.mark.parametrize(("since_seconds", "again"), [(0.0, False), (119.0, False), (120.0, True), (-7200.0, True)])
def test_figures_enter_the_averages_once_a_window_even_when_the_clock_is_set_back(
    strategy: str, since_seconds: float, again: bool
) -> None:
    policy = a_policy(placement=PlacementPolicy(strategy=strategy), window_seconds=120.0, interval_seconds=60.0)
    snapshot = a_snapshot(a_node("n1"), a_node("n2"), executors=(an_executor("e-1", node="n1", cpu=0.5),))
    before = PlacementState(observed_at=NOW - since_seconds)
    after = observed(before, snapshot, policy, measured={"n1": 50.0, "n2": 20.0}, now=NOW)
    assert (after != before, after.observed_at) == (again, NOW if again else before.observed_at)
