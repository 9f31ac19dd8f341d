"""Storm's recorded schedules against `place`: what they place, it places too, within the nodes, no farther apart."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from ballast.model import Resources
from ballast.placement.proximity import Effort
from tests.vectors.case import Case
from tests.vectors.outcome import Outcome, Record
from tests.vectors.storm_instance import Instance, from_storm

EFFORT = Effort(steps=500)
"""A fifth of a second at most; what the search would still find after it is a benchmark's question."""


def assert_within_the_nodes(instance: Instance, homes: Mapping[str, str]) -> None:
    asked = dict.fromkeys(homes.values(), Resources())
    for executor in instance.waiting:
        if executor.uid in homes:
            asked[homes[executor.uid]] = asked[homes[executor.uid]].plus(executor.requests)
    free = {node.name: node.free for node in instance.snapshot.nodes}
    assert all(amounts.fits_in(free[node]) for node, amounts in asked.items())


def placed(case: Case, record: Record, strategy: str) -> tuple[Instance, Mapping[str, str]]:
    """All that Storm placed; Storm's limits of heap and slots per process do not exist here."""
    instance = from_storm(case)
    homes = instance.solved(EFFORT, strategy=strategy)
    assert_within_the_nodes(instance, homes)
    if case.raw["want"]["status"] == "running-partial":
        record(Outcome(case, "running-partial"))
    elif case.raw["want"]["status"] == "success":
        assert homes.keys() == {executor.uid for executor in instance.waiting}
    return instance, homes


@pytest.mark.vectors("storm", "DefaultResourceAwareStrategy")
@pytest.mark.vectors("storm", "GenericResourceAwareStrategy")
def test_proximity_costs_no_more_than_storms_schedule(case: Case, record: Record) -> None:
    instance, homes = placed(case, record, "Proximity")
    if instance.storm_cost is not None:
        assert instance.cost(homes) <= instance.storm_cost + 1e-6


@pytest.mark.vectors("storm", "DefaultResourceAwareStrategy")
@pytest.mark.vectors("storm", "GenericResourceAwareStrategy")
def test_resource_aware_places_what_storm_places(case: Case, record: Record) -> None:
    placed(case, record, "ResourceAware")


@pytest.mark.vectors("storm", "RoundRobinResourceAwareStrategy")
def test_round_robin_uses_as_many_nodes_as_storm(case: Case, record: Record) -> None:
    instance, homes = placed(case, record, "RoundRobin")
    if case.raw["want"]["status"] == "success":
        running = {executor.node for executor in instance.snapshot.executors}
        theirs = {slot.rsplit(":", 1)[0] for slot in case.raw["want"]["workers"]} - running
        assert len(set(homes.values())) >= len(theirs)
