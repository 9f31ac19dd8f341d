"""What holds in every simulated run, whatever happens in it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ballast.model import Memory, Phase, Plan, Policy, Snapshot
from ballast.moves import Revalidation
from ballast.moves.revalidation import revalidate
from ballast.moves.score import measured
from ballast.planner.arbiter import as_started
from ballast.planner.plan import plan
from ballast.planner.strategy_state import candidates
from ballast.simulation.engine import simulate
from ballast.simulation.scenario import Scenario
from ballast.simulation.trace import Trace
from tests.examples import examples
from tests.unit.simulation.small_world import by_spec, scenario
from tests.unit.simulation.small_world import policy as small_policy

STRATEGIES = (
    {"strategy": "AvgShedder", "avgShedder": {"minHotScore": 0, "lowHits": 2}},
    {"strategy": "AvgShedder", "avgShedder": {"unit": "Traffic", "lowHits": 2}},
    {"strategy": "ThresholdShedder"},
    {"strategy": "OverloadShedder", "advanced": {"overloadShedder": {"threshold": 60}}},
    {"strategy": "UniformLoadShedder"},
    {"strategy": "TransferShedder", "advanced": {"transferShedder": {"targetStdDev": 5}}},
)
MOVES = {
    "maxConcurrent": 20,
    "maxConcurrentPerNode": 5,
    "cooldown": "0s",
    "budgets": [],
    "settle": "2m",
    "minExecutorAge": "0s",
}

varying = st.sampled_from(
    [
        {"kind": "Noise", "deviation": 0.4},
        {"kind": "HeavyTail", "alpha": 1.5},
        {"kind": "Bursts", "perHour": 10, "factor": 3, "lasts": "2m"},
        {"kind": "RandomWalk", "step": 0.2},
        {"kind": "Surge", "at": "5m", "factor": 4, "lasts": "5m"},
    ]
)
event = st.fixed_dictionaries({"at": st.sampled_from(["2m", "5m", "11m"])}).flatmap(
    lambda at: st.sampled_from(
        [
            {**at, "fail": ["node-0"], "lasts": "4m"},
            {**at, "fail": ["node-1"]},
            {**at, "leave": ["node-1"], "notice": "1m"},
            {**at, "restart": ["node"], "lasts": "1m", "every": "3m"},
            {**at, "blackout": True, "lasts": "3m"},
        ]
    )
)


@st.composite
def worlds(draw: st.DrawFn) -> Scenario:
    nodes = draw(st.integers(2, 4))
    spec: dict[str, Any] = {
        "duration": "20m",
        "seed": draw(st.integers(0, 1000)),
        "nodes": [
            {"name": "node", "count": nodes, "cores": draw(st.sampled_from([4, 8])), "zones": ["a", "b"]},
            {"name": "new", "cores": 8, "speed": 2, "joins": "4m"},
        ],
        "applications": [
            {
                "name": "job",
                "copies": 3,
                "executors": draw(st.integers(1, 4)),
                "load": {"cores": [1.0, 0.3], "vary": [draw(varying)]},
                "runsOn": draw(st.sampled_from([[], ["node-0"]])),
                "requests": {"cpu": "300m"},
            },
            {"name": "late", "executors": 2, "load": {"cores": 0.5}, "starts": "3m", "stops": "12m"},
        ],
        "events": draw(st.lists(event, max_size=2)),
        "metrics": {"loss": 0.1, "delay": "15s"},
        "moving": {"stuck": 0.1, "lost": 0.1},
    }
    return Scenario.parse({"metadata": {"name": "any"}, "spec": spec})


def policy(world: Scenario, shedding: dict[str, Any], mode: str = "Enforce") -> Policy:
    spec = {
        "metrics": {"window": "60s"},
        "placement": {"mode": "Enforce", "maxExecutorsPerNodePercent": 100},
        "shedding": shedding,
        "moves": {**MOVES, "mode": mode},
    }
    return by_spec(spec, world, name="any")


class Witness:
    """The planner, and what it was shown."""

    def __init__(self) -> None:
        self.seen: list[Snapshot] = []

    def __call__(self, snapshot: Snapshot, policy: Policy, memory: Memory, now: float) -> tuple[Plan, Memory]:
        self.seen.append(snapshot)
        return plan(snapshot, policy, memory, now)


def same(one: Trace, other: Trace) -> bool:
    alike = all(
        np.array_equal(getattr(one, name), getattr(other, name), equal_nan=True)
        for name in ("times", "scores", "usage", "locality")
    )
    return alike and one.moves == other.moves and one.placements == other.placements


@examples(25)
@given(worlds(), st.sampled_from(STRATEGIES))
def test_no_executor_is_ever_doubled_or_lost_and_no_node_holds_more_than_it_has(
    world: Scenario, shedding: dict[str, Any]
) -> None:
    witness = Witness()
    trace = simulate(world, policy(world, shedding), planner=witness)
    expected = {f"job-{i}": world.spec.applications[0].executors for i in range(3)}
    for snapshot in witness.seen:
        counts: dict[str, int] = {}
        for executor in snapshot.executors:
            counts[executor.application] = counts.get(executor.application, 0) + 1
        assert all(counts.get(name, 0) <= most for name, most in expected.items())
        for node in snapshot.nodes:
            assert node.requested.fits_in(node.allocatable)
    last = witness.seen[-1]
    healthy = [node.name for node in last.nodes if node.ready]
    assert all(e.node in healthy for e in last.executors if e.phase is Phase.RUNNING)
    assert trace.executors.sum(axis=1).max() <= sum(expected.values()) + 2


@examples(25)
@given(worlds(), st.sampled_from(STRATEGIES))
def test_the_same_run_twice_is_the_same_run(world: Scenario, shedding: dict[str, Any]) -> None:
    assert same(simulate(world, policy(world, shedding)), simulate(world, policy(world, shedding)))


class Revalidator:
    """The planner; each move that it decides is checked as the operator checks it before the executor leaves."""

    def __init__(self) -> None:
        self.cleared = 0

    def __call__(self, snapshot: Snapshot, policy: Policy, memory: Memory, now: float) -> tuple[Plan, Memory]:
        decided = plan(snapshot, policy, memory, now)
        seen = snapshot
        # Executors that the same pass places are on no node yet when a move is checked again.
        for planned in decided[0].moves if not decided[0].placements else ():
            move = as_started(planned, now)
            seen = replace(seen, moves=(*seen.moves, move))
            found = revalidate(
                seen,
                policy,
                move,
                candidates=candidates(seen, policy, memory, now=now),
                measured=measured(seen, policy).by_node,
                now=now,
            )
            assert found == Revalidation(), (planned, found)
            self.cleared += 1
        return decided


@examples(25)
@given(worlds(), st.sampled_from(STRATEGIES))
def test_what_the_simulator_moves_the_operator_would_move_too(world: Scenario, shedding: dict[str, Any]) -> None:
    simulate(world, policy(world, shedding), planner=Revalidator())


def test_the_simulator_moves_something_for_the_revalidation_to_check() -> None:
    checked = Revalidator()
    simulate(scenario(), small_policy(), planner=checked)
    assert checked.cleared > 1


@examples(25)
@given(worlds(), st.sampled_from(STRATEGIES))
def test_mode_off_moves_nothing(world: Scenario, shedding: dict[str, Any]) -> None:
    assert simulate(world, policy(world, shedding, mode="Disabled")).moves == ()
