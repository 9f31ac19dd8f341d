"""Everything that may happen next."""

from __future__ import annotations

from collections.abc import Iterator

from tests.properties.move_world.aging import aged
from tests.properties.move_world.operator_side import late, operator_events
from tests.properties.move_world.surroundings import kubelet_events, other_events, scheduler_events, spark_events
from tests.properties.move_world.world import Scenario, World


def events(scenario: Scenario, world: World) -> Iterator[tuple[str, World]]:
    """Each by its name, with what the world is like afterwards."""
    later = late(world)
    yield "tick", aged(later)
    yield from operator_events(scenario, world)
    yield from spark_events(scenario, later)
    yield from kubelet_events(later)
    yield from scheduler_events(later)
    yield from other_events(scenario, later)
