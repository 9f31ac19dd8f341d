from __future__ import annotations

from ballast.api import BalancingPolicy
from ballast.simulation.policies import by_name
from ballast.simulation.recorded.known import known
from ballast.simulation.replay import Replay
from ballast.simulation.study import Case
from ballast.simulation.trial import RecordingTrial, ScenarioTrial, Trial
from tests.builders import a_node, a_snapshot
from tests.unit.simulation.recordings import recorded
from tests.unit.simulation.small_world import EAGER, policy, scenario

POLICY = BalancingPolicy.parse(by_name("AvgShedder", EAGER))
CASE = Case("eager", "here", 1)


def test_a_trial_is_named_by_its_case_and_runs_what_only_recommends_as_if_it_enforced() -> None:
    document = by_name("AvgShedder", EAGER)
    document["spec"]["moves"]["mode"] = "Recommend"
    result = ScenarioTrial(scenario()).run(BalancingPolicy.parse(document), Case("mine", "here", 7))
    assert result.case == Case("mine", "here", 7)
    assert result.metrics.moves == len(result.moves) > 0


def test_recorded_time_and_a_scenario_are_tried_alike() -> None:
    _, recording, _ = recorded(scenario(), policy(mode="Disabled"))
    trials: list[Trial] = [ScenarioTrial(scenario()), RecordingTrial(recording, Replay())]
    described, replayed = (trial.run(POLICY, CASE) for trial in trials)
    assert described.case == replayed.case == CASE
    assert described.metrics.moves == replayed.metrics.moves > 0
    assert described.unknown == ()
    assert replayed.unknown


def test_a_policy_is_tried_as_if_it_enforced_with_the_labels_that_a_snapshot_tells() -> None:
    _, recording, _ = recorded(scenario(), policy(mode="Disabled"))
    seen = known(a_snapshot(a_node("node-0", labels={"pool": "a"}), a_node("node-1", labels={"pool": "b"})))
    spec = {**EAGER, "moves": {**EAGER["moves"], "mode": "Recommend"}}
    careful = BalancingPolicy.parse({"metadata": {"name": "careful"}, "spec": {"nodeSelector": {}, **spec}})
    assert RecordingTrial(recording, Replay(known=seen)).run(careful, CASE).metrics.moves > 0


def test_queries_of_the_policys_own_are_told_to_be_those_of_the_history() -> None:
    _, recording, _ = recorded(scenario(), policy(mode="Disabled"))
    metrics = {**EAGER["metrics"], "queries": {"nodeCpu": "my_cpu", "executorCpu": "my_executor_cpu"}}
    own = BalancingPolicy.parse(by_name("AvgShedder", {**EAGER, "metrics": metrics}))
    told, untold = (RecordingTrial(recording, Replay()).run(each, CASE).unknown for each in (own, POLICY))
    (sentence,) = set(told) - set(untold)
    assert sentence.startswith("the policy's own queries (executorCpu, nodeCpu) were not asked: ")
