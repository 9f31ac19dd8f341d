from __future__ import annotations

from ballast.api import BalancingPolicy
from ballast.simulation.policies import by_name
from ballast.simulation.study import Case
from ballast.simulation.trial import ScenarioTrial
from tests.unit.simulation.small_world import EAGER, scenario


def test_a_trial_is_named_by_its_case_and_runs_what_only_recommends_as_if_it_enforced() -> None:
    document = by_name("AvgShedder", EAGER)
    document["spec"]["moves"]["mode"] = "Recommend"
    result = ScenarioTrial(scenario()).run(BalancingPolicy.parse(document), Case("mine", "here", 7))
    assert result.case == Case("mine", "here", 7)
    assert result.metrics.moves == len(result.moves) > 0
