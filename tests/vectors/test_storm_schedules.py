"""Storm's resource-aware strategies: what they place, ours places, within the same limits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

import numpy as np
import pytest

from tests.reference.storm.process_packing import Process, Schedule
from tests.reference.storm.resource_aware import resource_aware
from tests.reference.storm.round_robin import round_robin
from tests.vectors.case import Case
from tests.vectors.outcome import Outcome, Record
from tests.vectors.storm_cluster import component_graph, demands, process_rules, running, site


def waiting(case: Case) -> set[int]:
    given = case.raw["given"]
    return set(demands(given)) - running(given)


def theirs(case: Case) -> list[Process[int]]:
    """Storm's new processes."""
    given = case.raw["given"]
    at = {node["id"]: position for position, node in enumerate(given["nodes"])}
    before = running(given)
    return [
        Process(at[slot.rsplit(":", 1)[0]], tuple(executors))
        for slot, executors in case.raw["want"]["workers"].items()
        if not before.intersection(executors)
    ]


def assert_within_limits(case: Case, processes: Iterable[Process[int]]) -> None:
    given, rules = case.raw["given"], process_rules(case.config)
    asked, where = demands(given), site(given, case.config)
    left, started = where.room.free.copy(), Counter[int]()
    for process in processes:
        inside = [asked[executor] for executor in process.executors]
        assert sum(demand.heap for demand in inside) <= rules.heap + 1e-6
        assert not rules.one_executor or len(inside) == 1
        assert not rules.one_component or len({demand.component for demand in inside}) == 1
        left[process.node] -= np.sum([demand.amounts for demand in inside], axis=0)
        started[process.node] += 1
    assert (left >= -1e-6).all()
    assert all(count <= where.free_processes[node] for node, count in started.items())


def compare(case: Case, ours: Schedule[int], record: Record) -> None:
    assert_within_limits(case, ours.processes)
    assert_within_limits(case, theirs(case))
    placed = [executor for process in ours.processes for executor in process.executors]
    assert sorted([*placed, *ours.missing]) == sorted(waiting(case))
    if case.raw["want"]["status"] == "running-partial":
        record(Outcome(case, "running-partial"))
    elif case.raw["want"]["status"] == "success":
        assert ours.missing == ()


def compare_schedule(case: Case, record: Record, strategy: Callable[..., Schedule[int]]) -> None:
    given = case.raw["given"]
    ours = strategy(
        component_graph(given, waiting(case)),
        demands(given),
        site(given, case.config),
        rules=process_rules(case.config),
        proximity=case.config["topology.ras.order.executors.by.proximity.needs"],
    )
    compare(case, ours, record)


@pytest.mark.vectors("storm", "DefaultResourceAwareStrategy")
@pytest.mark.vectors("storm", "GenericResourceAwareStrategy")
def test_resource_aware(case: Case, record: Record) -> None:
    compare_schedule(case, record, resource_aware)


@pytest.mark.vectors("storm", "RoundRobinResourceAwareStrategy")
def test_round_robin(case: Case, record: Record) -> None:
    compare_schedule(case, record, round_robin)
