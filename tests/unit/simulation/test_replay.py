from __future__ import annotations

from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ballast.api import BalancingPolicy
from ballast.model import Memory, Phase, Plan, PlannedMove, Policy, Snapshot, Weights
from ballast.planner.plan import plan
from ballast.simulation.engine import Planner
from ballast.simulation.policies import by_name, from_name
from ballast.simulation.recorded.executors import Arrivals
from ballast.simulation.recorded.known import Known, known
from ballast.simulation.replay import RecordingTrial, Replay, Replayed, ScenarioTrial, Trial, due, of_recording, replay
from ballast.simulation.scenario import Scenario
from ballast.simulation.study import Case
from ballast.simulation.trace import MoveRecord, Outcome
from tests.builders import a_move, a_node, a_snapshot
from tests.unit.simulation.recordings import Witness, executor, node, recorded, recording
from tests.unit.simulation.small_world import EAGER, policy, scenario

OFF = policy(mode="Disabled")
SCENARIOS = Path(__file__).parents[3] / "examples" / "scenarios"


def moving(name: str, source: str, target: str, *, at: float) -> Planner:
    """A planner that decides one move and nothing else."""

    def planner(snapshot: Snapshot, policy: Policy, memory: Memory, now: float) -> tuple[Plan, Memory]:
        decided, memory = plan(snapshot, replace(policy, shedding=OFF_SHEDDING), memory, now)
        found = next((each for each in snapshot.executors if each.name == name), None)
        if found is None or snapshot.taken_at - START < at or snapshot.moves:
            return decided, memory
        move = PlannedMove(
            executor=found.key, uid=found.uid, topology=found.topology, component=found.component, source=source,
            target=target, strategy="AvgShedder", hot_score=0.0, cold_score=0.0, hot_after=0.0, cold_after=0.0,
            gain=0.0, hits=0, load_cores=1.0,
        )  # fmt: skip
        return replace(decided, moves=(move,)), memory

    return planner


START = recording().start
OFF_SHEDDING = replace(OFF.shedding, strategy="None")
LONG: dict[str, Any] = {"steps": 30}


def long(number: int, at: int, **changes: Any) -> Any:
    return executor(number, at, **{"last": 29, **changes})


def score(found: Replayed, name: str) -> list[float]:
    """Of each pass, in whole points."""
    column = found.trace.nodes.index(name)
    return [round(value) if np.isfinite(value) else -1 for value in found.trace.scores[:, column].tolist()]


def test_a_move_takes_its_load_along_and_shows_over_the_metric_window() -> None:
    given = recording([long(1, 0), long(2, 0)], **LONG)
    slow = replace(policy(), window_seconds=300.0)
    found = replay(given, slow, planner=moving("clicks-exec-1", "n1", "n2", at=300.0))
    (move,) = found.trace.moves
    assert (move.executor, move.decided_at, move.outcome) == ("team/clicks-exec-1", 300.0, Outcome.HELPED)
    hot, cold = score(found, "n1"), score(found, "n2")
    assert hot[:6] == [50] * 6
    assert cold[:6] == [0] * 6
    assert sorted(hot[5:12], reverse=True) == hot[5:12], "it falls while the window passes"
    assert 25 < hot[8] < 50
    assert (hot[-1], cold[-1]) == (25, 25)


def test_passes_are_at_the_times_of_the_operators_own() -> None:
    made = (15.0, 75.0, 150.0, 210.0)
    given = recording([executor(1, 0)], passes=made)
    assert replay(given, policy()).trace.times.tolist()[:4] == list(made)


def test_a_core_of_load_is_half_a_core_on_a_machine_of_twice_the_speed() -> None:
    fast = known(a_snapshot(a_node("n1"), a_node("n2", speed=2.0)))
    given = recording([long(1, 0), long(2, 0)], **LONG)
    found = replay(
        given, policy(), how=Replay(known=fast), planner=moving("clicks-exec-1", "n1", "n2", at=300.0)
    )  # fmt: skip
    assert (score(found, "n1")[-1], score(found, "n2")[-1]) == (25, 12)


def test_on_a_full_node_executors_get_their_share_and_that_is_said() -> None:
    small = (node("n1", cores=8.0), node("n2", cores=2.0))
    given = recording(
        [long(1, 0, request_cores=0.1), long(2, 1, application="other")], nodes=small, cpu={1: 3.0}, **LONG
    )
    witness = Witness()

    def both(snapshot: Snapshot, policy: Policy, memory: Memory, now: float) -> tuple[Plan, Memory]:
        witness.seen.append(snapshot)
        return moving("clicks-exec-1", "n1", "n2", at=300.0)(snapshot, policy, memory, now)

    found = replay(given, policy(), planner=both)
    assert score(found, "n2")[-1] == 100
    used = {each.node: each.usage.cpu_cores for each in witness.seen[-1].executors if each.usage}
    shares = sorted(each.usage.cpu_cores or 0.0 for each in witness.seen[-1].executors if each.usage)
    assert list(used) == ["n2"]
    assert shares == pytest.approx([0.5, 1.5])
    assert any("executors wanted more than a full node had at" in line for line in found.unknown)


def test_a_move_of_the_operators_is_not_repeated_and_the_load_stays_where_it_was() -> None:
    before, after = long(1, 0, last=9), long(2, 1, first=10, moved=True)
    given = recording([before, after], **LONG)
    share = np.clip((np.arange(30) - 10) / 5, 0.0, 1.0)
    given = replace(given, node_cpu=np.stack([1.0 - share, share], axis=1))
    found = replay(given, replace(OFF, window_seconds=300.0))
    assert score(found, "n1") == pytest.approx([25] * 30, abs=2)
    assert score(found, "n2") == pytest.approx([0] * 30, abs=2)
    assert any(line.startswith("1 moves that the operator made were not repeated") for line in found.unknown)


def test_the_operators_move_counts_once_when_the_policy_decides_it_too() -> None:
    before, after = long(1, 0, last=9), long(2, 1, first=10, moved=True)
    found = replay(recording([before, after], **LONG), policy(), planner=moving("clicks-exec-1", "n1", "n2", at=540.0))
    assert (score(found, "n1")[-1], score(found, "n2")[-1]) == (0, 25)
    assert found.trace.executors[-1].tolist() == [0, 1]
    assert not any("not repeated" in line for line in found.unknown)


def test_whoever_was_moved_elsewhere_does_not_follow_a_replacement_any_more() -> None:
    restarted = [long(1, 0, last=14), long(2, 0, first=16)]
    found = replay(recording(restarted, **LONG), policy(), planner=moving("clicks-exec-1", "n1", "n2", at=300.0))
    assert found.trace.executors[-1].tolist() == [0, 1]
    assert (score(found, "n1")[-1], score(found, "n2")[-1]) == (0, 25)


def test_an_executor_whose_node_goes_away_in_the_recording_is_replaced() -> None:
    present = np.ones((30, 3), dtype=bool)
    present[15:, 1] = False
    nodes = (node("n1"), node("n2"), node("n3"))
    given = recording([long(1, 0)], nodes=nodes, present=present, **LONG)
    cpu = given.node_cpu.copy()
    cpu[15:, 1] = np.nan
    witness = Witness()

    def both(snapshot: Snapshot, policy: Policy, memory: Memory, now: float) -> tuple[Plan, Memory]:
        witness.seen.append(snapshot)
        return moving("clicks-exec-1", "n1", "n2", at=300.0)(snapshot, policy, memory, now)

    replay(replace(given, node_cpu=cpu), policy(), planner=both)
    seen = {round(each.taken_at - START): each.executors for each in witness.seen}
    assert [each.node for each in seen[840]] == ["n2"]
    assert [(each.node in ("n1", "n3"), each.phase) for each in seen[1740]] == [(True, Phase.RUNNING)]


def test_whoever_ends_in_the_recording_ends_wherever_it_is() -> None:
    present = np.ones((30, 2), dtype=bool)
    present[25:, 1] = False
    ends = [long(1, 0, last=20), long(2, 0), long(3, 1, last=24, application="other")]
    given = recording(ends, present=present, **LONG)
    cpu = given.node_cpu.copy()
    cpu[25:, 1] = np.nan
    found = replay(replace(given, node_cpu=cpu), policy(), planner=moving("clicks-exec-1", "n1", "n2", at=300.0))
    by_pass = dict(zip(found.trace.times.tolist(), found.trace.executors.tolist(), strict=True))
    assert by_pass[1200.0] == [1, 2]
    assert by_pass[1260.0] == [1, 1]
    assert by_pass[1740.0] == [1, 0]


def test_new_executors_begin_where_they_were_recorded_or_where_the_policy_puts_them() -> None:
    given = recording([long(1, 0), long(2, 1, first=10)], **LONG)
    as_recorded = replay(given, policy())
    assert as_recorded.trace.executors[-1].tolist() == [1, 1]
    assert as_recorded.trace.placements == ()
    placed = replay(given, policy(), how=Replay(arrivals=Arrivals.POLICY))
    assert [(each.executor, each.node) for each in placed.trace.placements] == [("team/clicks-exec-2", "n1")]
    assert placed.trace.executors[-1].tolist() == [2, 0]
    assert (score(placed, "n1")[-1], score(placed, "n2")[-1]) == (50, 0)


def test_a_node_that_was_cordoned_takes_nobody_meanwhile() -> None:
    cordoned = np.zeros((30, 2), dtype=bool)
    cordoned[:20, 1] = True
    alone = long(4, 0, application="alone", name="alone-exec-4")
    members = [long(1, 0), long(2, 0), long(3, 0), alone]
    given = recording(members, cordoned=cordoned, cpu=dict.fromkeys(range(1, 5), 0.5), **LONG)
    eager = policy({"avgShedder": {"minHotScore": 0, "lowHits": 1, "highHits": 1}})
    (late,) = replay(given, eager).trace.moves
    assert (late.executor, late.target, late.decided_at) == ("team/alone-exec-4", "n2", 1200.0)
    (early,) = replay(replace(given, cordoned=None), eager).trace.moves
    assert (early.executor, early.target, early.decided_at) == ("team/alone-exec-4", "n2", 0.0)


def test_figures_that_are_missing_move_nobody_and_are_told() -> None:
    given = recording([long(1, 0), long(2, 0)], **LONG)
    cpu = given.node_cpu.copy()
    cpu[5:] = np.nan
    found = replay(replace(given, node_cpu=cpu), policy({"avgShedder": {"minHotScore": 0}}))
    assert found.trace.moves == ()
    assert np.isnan(found.trace.scores[5:]).all()
    assert any(line.startswith("25 of 30 steps have no metrics of any node") for line in found.unknown)


def test_what_the_recording_lacks_is_told_unless_a_snapshot_has_it() -> None:
    given = recording([executor(1, 0)])
    lines = replay(given, OFF).unknown
    assert any("what 1 of 1 applications are is not known" in line for line in lines)
    assert any("zones, racks and speeds of 2 of 2 nodes are not known" in line for line in lines)
    whole = Known(nodes=known(a_snapshot(a_node("n1"), a_node("n2"))).nodes)
    assert not any("zones" in line for line in replay(given, OFF, how=Replay(known=whole)).unknown)


def test_a_snapshot_tells_what_nodes_offer_and_which_moves_were_made() -> None:
    machines = tuple(replace(node(name, cores=8.0), whole=True) for name in ("n1", "n2"))
    before, after = long(1, 0, last=9), long(2, 1, first=10)
    given = recording([before, after], nodes=machines, **LONG)
    followed = replay(given, OFF)
    assert (score(followed, "n1")[-1], score(followed, "n2")[-1]) == (0, 12)
    assert any("what 2 of 2 nodes offer to pods is not known" in line for line in followed.unknown)
    move = a_move(executor_name="clicks-exec-1", source="n1", target="n2", started_at=START + 550, left_at=START + 560)
    told = known(a_snapshot(a_node("n1"), a_node("n2"), moves=(move,)))
    stayed = replay(given, OFF, how=Replay(known=told))
    assert (score(stayed, "n1")[-1], score(stayed, "n2")[-1]) == (25, 0)
    assert any("were not repeated" in line for line in stayed.unknown)


def decisions(moves: tuple[MoveRecord, ...]) -> list[tuple[str, str, str, float]]:
    return [(move.executor, move.source, move.target, move.decided_at) for move in moves]


def with_hits_only(policy: Policy) -> Policy:
    shedder = replace(policy.shedding.avg_shedder, persistent_hits=0)
    return replace(policy, shedding=replace(policy.shedding, avg_shedder=shedder))


@pytest.mark.parametrize(
    "name", ["flash-crowd", "node-failure", pytest.param("rolling-restart", marks=pytest.mark.soak)]
)
def test_the_same_policy_decides_the_same_about_what_it_has_brought_about(name: str) -> None:
    world = Scenario.read(SCENARIOS / f"{name}.yaml")
    # When a small gap begins to persist depends on digits that are not recorded.
    chosen = with_hits_only(from_name("AvgShedder", world))
    trace, history, snapshot = recorded(world, chosen)
    again = replay(history, chosen, how=Replay(known=known(snapshot))).trace
    assert len(trace.moves) >= 7
    assert decisions(again.moves) == decisions(trace.moves)


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
    metrics = {**EAGER["metrics"], "advanced": {"queries": {"nodeCpu": "my_cpu", "executorCpu": "my_executor_cpu"}}}
    own = BalancingPolicy.parse(by_name("AvgShedder", {**EAGER, "metrics": metrics}))
    told, never_unschedulable = (RecordingTrial(recording, Replay()).run(each, CASE).unknown for each in (own, POLICY))
    (sentence,) = set(told) - set(never_unschedulable)
    assert sentence.startswith("the policy's own queries (executorCpu, nodeCpu) were not asked: ")


MEMBERS = (executor(1, 0), executor(2, 1))


def lines(given: dict[str, Any], arrivals: Arrivals = Arrivals.RECORDED, **settings: Any) -> str:
    chosen = replace(policy({"avgShedder": {"unit": "Traffic"}}), **settings)
    return "\n".join(of_recording(recording(MEMBERS, **given), chosen, Known(), arrivals=arrivals))


def gap(*, nodes: slice) -> np.ndarray[Any, Any]:
    figures = recording(MEMBERS).node_cpu.copy()
    figures[3:5, nodes] = np.nan
    return figures


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"unknown": ("something is amiss",)}, "something is amiss"),
        ({"nodes": (replace(node("n1"), whole=True), node("n2"))}, "what 1 of 2 nodes offer to pods is not known"),
        ({"step_seconds": 300.0}, "figures are 300 s apart, passes 60 s"),
        ({"node_cpu": gap(nodes=slice(0, 2))}, "2 of 10 steps have no metrics of any node"),
        ({"node_cpu": gap(nodes=slice(0, 1))}, "1 nodes lack figures at some steps"),
        ({"nodes": (node("n1", cores=1.0), node("n2"))}, "nodes were full at 10 of 20 node-steps"),
        ({}, "executors' records are not recorded"),
        ({"cordoned": None}, "which nodes were cordoned is not recorded"),
        ({}, "hits are counted from the window's first pass on"),
    ],
)
def test_what_a_recording_lacks_is_said(given: dict[str, Any], words: str) -> None:
    assert words in lines(given)


def test_what_a_recording_has_is_not_complained_of() -> None:
    found = lines({})
    assert not [
        words
        for words in ("offer", "cordoned", "apart", "lack figures", "nodes were full", "weight", "20 s")
        if words in found
    ]


def test_weights_of_what_is_not_recorded_are_said_to_count_for_nothing() -> None:
    nothing = np.full((10, 2), np.nan)
    found = lines({"node_memory": nothing}, weights=Weights(memory=1.0, network_receive=0.5))
    assert "nodes' memory is not recorded" in found
    assert "what nodes' networks can carry is not recorded" in found
    assert "memory is not recorded" not in lines({}, weights=Weights(memory=1.0))


def test_placements_by_the_policy_are_said_to_start_in_a_time_of_their_own() -> None:
    assert "executors that the policy places start in 20 s" in lines({}, Arrivals.POLICY)


@pytest.mark.parametrize(
    ("recorded", "passes"),
    [
        ((), [0, 10, 20, 30, 40]),
        ((3,), [0, 10, 20, 30, 40]),
        ((3, 13, 24, 36), [3, 13, 24, 36, 46]),
        ((12, 22, 33), [0, 12, 22, 33, 43]),
        ((3, 13, 43, 53, 63), [3, 13, 23, 33, 43]),
        ((3, 13, 25, 29, 39), [3, 13, 25, 29, 39]),
    ],
)
def test_passes_are_the_operators_and_at_the_interval_where_it_had_none(
    recorded: tuple[float, ...], passes: list[float]
) -> None:
    assert list(islice(due(recorded, 10.0), 5)) == passes


@pytest.mark.parametrize("interval", [4.0, 20.0])
def test_a_policy_that_looks_more_or_less_often_has_passes_of_its_own(interval: float) -> None:
    assert list(islice(due((3.0, 13.0, 23.0), interval), 3)) == [0.0, interval, 2 * interval]
