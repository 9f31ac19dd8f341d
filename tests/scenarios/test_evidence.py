"""Pools that need leveling are leveled when tasks are measured, and others are left alone.

PIP-364's pools run one application each here, so that every executor has others to be compared with.
"""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from ballast.simulation.engine import simulate
from ballast.simulation.policies import from_name
from ballast.simulation.run_metrics import gap, run_metrics
from ballast.simulation.scenario import Scenario
from ballast.simulation.trace import Trace
from tests.reference.pulsar.comparison import EXAMPLES

FOLDER = Path(__file__).parents[2] / "examples" / "scenarios"
Json = dict[str, Any]


def leveled(raw: Json) -> Trace:
    world = Scenario.parse(raw)
    return simulate(world, from_name("AvgShedder", world))


def one_application(name: str) -> Json:
    raw: Json = yaml.safe_load((FOLDER / f"{name}.yaml").read_text(encoding="utf-8"))
    spec = raw["spec"]
    bundle = spec["applications"][0]
    bundle["executors"] = bundle.pop("copies", None) or bundle["executors"]
    for application in spec["applications"]:
        application["taskSeconds"] = 0.5
    spec["policy"]["placement"] = {"maxExecutorsPerNodePercent": 100}
    spec["policy"]["moves"]["maxConcurrentPerTopology"] = 100
    return raw


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_pool_with_one_application_is_leveled_by_its_task_metrics(name: str) -> None:
    found = run_metrics(leveled(one_application(name)))
    assert found.seconds_to_balance is not None
    assert (found.wrong_placements, found.over_unloadings, found.reversals) == (0, 0, 0)


@pytest.mark.parametrize("name", EXAMPLES)
def test_without_contention_below_saturation_nothing_is_gained_and_nothing_is_moved(name: str) -> None:
    """The control of the test above: tasks are as fast on every node that has free cores."""
    raw = one_application(name)
    del raw["spec"]["applications"][1:]
    for machines in raw["spec"]["nodes"]:
        machines["contention"] = 0
    raw["spec"]["policy"]["moves"]["saturationScore"] = 100
    idle = name == "pip364-scale-up"  # no executor tells how fast tasks would be on the nodes that join
    assert bool(leveled(raw).moves) is idle


POLICY = {
    "placement": {"maxExecutorsPerNodePercent": 100},
    "shedding": {"avgShedder": {"minHotScore": 50}},
    "moves": {"maxConcurrent": 9, "maxConcurrentPerTopology": 9, "cooldown": "0s", "budgets": []},
}


def pool(*nodes: Json, **job: Any) -> Json:
    application = {"name": "job", "taskSeconds": 0.5, **job}
    spec = {"duration": "3h", "nodes": list(nodes), "applications": [application], "policy": deepcopy(POLICY)}
    return {"metadata": {"name": "pool"}, "spec": spec}


def unequal(hot: int, cold: int, **node: Any) -> Json:
    """Two nodes of twenty cores, with so many executors of a core each."""
    nodes = {"name": "node", "count": 2, "cores": 20, **node}
    load, homes = {"cores": 1.0}, {"node-0": hot, "node-1": cold}
    return pool(nodes, executors=hot + cold, load=load, requests={"cpu": "500m"}, runsOn=homes)


def test_nodes_at_95_and_15_percent_are_leveled() -> None:
    trace = leveled(unequal(19, 3))
    assert gap(trace)[0] == 80.0
    assert run_metrics(trace).seconds_to_balance is not None


def test_by_saturation_alone_nodes_are_leveled_until_none_is_saturated() -> None:
    raw = unequal(19, 3, contention=0)
    raw["spec"]["policy"]["moves"]["maxConcurrentPerNode"] = 1  # moves that begin together are decided by one score
    trace = leveled(raw)
    assert trace.usage[0].tolist() == [95.0, 15.0]
    assert trace.usage[-1].tolist() == [85.0, 25.0]


@pytest.mark.parametrize("contention", [0, 0.8])
def test_executors_leave_saturated_nodes_even_if_most_of_their_application_is_there(contention: float) -> None:
    saturated = {"name": "hot", "count": 3, "cores": 4, "contention": contention}
    idle = {"name": "idle", "count": 3, "cores": 8, "contention": contention}
    homes = {"hot-0": 3, "hot-1": 3, "hot-2": 3, "idle-0": 1, "idle-1": 1, "idle-2": 1}
    job = {"executors": 12, "cores": 2, "load": {"cores": 2.0}, "requests": {"cpu": "500m"}}
    trace = leveled(pool(saturated, idle, **job, runsOn=homes))
    assert trace.usage[0].tolist() == [150.0, 150.0, 150.0, 25.0, 25.0, 25.0]
    assert trace.usage[-1].max() <= 100.0


def test_pressure_is_evidence_where_tasks_are_as_fast_everywhere() -> None:
    raw = unequal(17, 3, contention=0)
    assert leveled(raw).moves == ()
    raw["spec"]["metrics"] = {"pressure": True}
    trace = leveled(raw)
    assert trace.moves
    assert trace.usage[-1].max() < 80.0, "where something waits for less than a tenth of the time, nothing is gained"
