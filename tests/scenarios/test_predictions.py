"""What a move is predicted to bring, where executors or machines are unlike each other for good."""

from __future__ import annotations

from dataclasses import replace

import pytest
import yaml

from ballast.model import Memory, Plan, Policy, Snapshot
from ballast.planner.plan import plan
from ballast.simulation.engine import simulate
from ballast.simulation.policies import from_name
from ballast.simulation.run_metrics import run_metrics
from ballast.simulation.scenario import Scenario
from ballast.simulation.trace import Trace

GREEDY = 1.2
UNLIKE_EXECUTORS = f"""
apiVersion: ballast.dev/v1alpha1
kind: Scenario
metadata: {{name: skew}}
spec:
  description: Two of eight executors of each application do four times the work, and all of those sit together.
  duration: 12h
  nodes: [{{name: node, count: 8, cores: 8}}]
  applications:
  - name: job
    copies: 4
    executors: 16
    taskSeconds: 0.5
    load: {{cores: [{GREEDY}, {GREEDY}, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3], vary: [{{kind: Noise, deviation: 0.05}}]}}
    requests: {{cpu: 500m}}
    runsOn: [node]
"""
UNLIKE_MACHINES = """
apiVersion: ballast.dev/v1alpha1
kind: Scenario
metadata: {name: speeds}
spec:
  description: Machines of two types, one of which does twice the work per core.
  duration: 8h
  nodes:
  - {name: old, count: 8, cores: 16}
  - {name: new, count: 4, cores: 16, speed: 2.0}
  applications:
  - name: job
    copies: 8
    executors: 15
    taskSeconds: 0.5
    load: {cores: 1.2, vary: [{kind: Noise, deviation: 0.1, memory: 5m}]}
    requests: {cpu: 500m}
    runsOn: [old, new]
"""


def scenario(text: str) -> Scenario:
    return Scenario.model_validate(yaml.safe_load(text))


def undeclared(snapshot: Snapshot, policy: Policy, memory: Memory, now: float) -> tuple[Plan, Memory]:
    """The planner where no node's annotation says how fast it is."""
    nodes = tuple(replace(node, speed=1.0) for node in snapshot.nodes)
    return plan(replace(snapshot, nodes=nodes), policy, memory, now)


def forgetful(snapshot: Snapshot, policy: Policy, memory: Memory, now: float) -> tuple[Plan, Memory]:
    """The same that never learns a speed."""
    decided, after = undeclared(snapshot, policy, memory, now)
    return decided, replace(after, shedding=tuple(each for each in after.shedding if each[0] != "NodeSpeed"))


def test_the_load_that_a_move_takes_along_nears_the_executors_own_the_longer_it_differs() -> None:
    spec = scenario(UNLIKE_EXECUTORS)
    moves = simulate(spec, from_name("AvgShedder", spec)).moves
    greedy = [(m.decided_at / 3600.0, m.load_cores) for m in moves if m.slot % 8 < 2 and m.decided_at < 4 * 3600.0]
    (begun, first), (ended, last) = greedy[0], greedy[-1]
    assert begun < 1.0
    assert first < 0.6 * GREEDY
    assert ended > 2.0
    assert last > 0.8 * GREEDY
    later = [load for at, load in greedy if at > 1.0]
    assert min(later) > max(load for at, load in greedy if at < 1.0)


@pytest.fixture(scope="module")
def by_planner() -> dict[str, Trace]:
    spec = scenario(UNLIKE_MACHINES)
    policy = from_name("AvgShedder", spec)
    return {each.__name__: simulate(spec, policy, planner=each) for each in (plan, undeclared, forgetful)}


@pytest.mark.soak
def test_speeds_that_are_learned_level_as_well_as_speeds_that_are_declared(by_planner: dict[str, Trace]) -> None:
    imbalance = {name: run_metrics(trace).imbalance_point_hours for name, trace in by_planner.items()}
    assert imbalance["undeclared"] < 1.2 * imbalance["plan"]
    assert imbalance["forgetful"] > 1.4 * imbalance["plan"]


@pytest.mark.soak
def test_no_move_by_a_learned_speed_goes_to_a_node_that_ends_too_hot(by_planner: dict[str, Trace]) -> None:
    found = run_metrics(by_planner["undeclared"])
    assert (found.wrong_placements, found.over_unloadings, found.reversals) == (0, 0, 0)
