"""Whether moving pays is told from the runs: a window in which it does, and one in which it does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from ballast.simulation.engine import simulate
from ballast.simulation.policies import from_name
from ballast.simulation.ranking import Ranking, ranking
from ballast.simulation.scenario import Scenario
from ballast.simulation.study import Case, Result, Study

pytestmark = pytest.mark.soak

FOLDER = Path(__file__).parents[2] / "benchmarks" / "leveled"
NOTHING, EAGER, OURS = "None", "ThresholdShedder", "AvgShedder"


def ranked(name: str, *policies: str) -> Ranking:
    """Of three runs each, as `ballast backtest --scenario` ranks them."""
    scenario = Scenario.read(FOLDER / f"{name}.yaml")
    results = [
        Result.of(Case(policy, name, seed), simulate(scenario, from_name(policy, scenario), seed=seed))
        for policy in policies
        for seed in range(scenario.spec.seed, scenario.spec.seed + 3)
    ]
    return ranking(Study(tuple(results), {policy: {} for policy in policies}))


def test_where_nodes_are_unequal_for_good_moving_pays_and_is_recommended() -> None:
    found = ranked("unequal", NOTHING, OURS)
    assert found.recommended == OURS
    assert found.of(OURS).mean("imbalance_point_hours") < 0.3 * found.of(NOTHING).mean("imbalance_point_hours")


def test_where_load_comes_in_bursts_moving_does_not_pay_and_nothing_is_recommended() -> None:
    found = ranked("bursts", NOTHING, EAGER, OURS)
    assert found.recommended == NOTHING
    assert found.of(EAGER).mean("imbalance_point_hours") > 1.2 * found.of(NOTHING).mean("imbalance_point_hours")
    assert found.of(OURS).mean("moves") == 0
