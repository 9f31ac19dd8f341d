"""What the small world of test_move_exploration finds out about a move is what the real gathering finds out.

The world gathers by itself, since it does so a hundred thousand times. Here both look at the same states, of a sample.
What the world decides by chance is left out: whether revalidation objects, scores, and what a budget has answered.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from ballast.moves import Facts, Pod
from tests.properties.move_world.as_read import BASE, gathered
from tests.properties.move_world.events import events
from tests.properties.move_world.operator_side import facts
from tests.properties.move_world.world import Scenario
from tests.properties.test_move_exploration import BOUNDED, WHOLE, at_rest

SCENARIOS = (*WHOLE, *(scenario for _, scenario in BOUNDED))
WALKS, STEPS = 12, 60


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_the_small_world_and_the_real_gathering_find_the_same(scenario: Scenario) -> None:
    chance, looked_at = Random(scenario.name), 0
    for _ in range(WALKS):
        world, trail = scenario.start(), list[str]()
        for _ in range(STEPS):
            if at_rest(world):
                break
            event, world = chance.choice(list(events(scenario, world)))
            trail.append(event)
            for index, move in enumerate(world.moves):
                if move is not None and not move.phase.ended:
                    real, mine = _comparable(gathered(world, index)), facts(scenario, world, index)
                    same = replace(real, revalidation=mine.revalidation, scores=mine.scores)
                    same = replace(same, eviction_refused=mine.eviction_refused)
                    assert same == _sorted(mine), f"move {index}, after {' → '.join(trail)}"
                    looked_at += 1
    assert looked_at > WALKS


def _comparable(found: Facts) -> Facts:
    """In the world's time; when an executor began to run, and what it requests, mean nothing there."""
    found = replace(found, newcomers=tuple(_in_world(each) for each in found.newcomers))
    return _sorted(replace(found, executor=None if found.executor is None else _in_world(found.executor)))


def _in_world(pod: Pod) -> Pod:
    return replace(
        pod,
        created_at=pod.created_at - BASE,
        gate_since=_ago(pod.gate_since),
        unschedulable_since=_ago(pod.unschedulable_since),
        deadline=_ago(pod.deadline),
        running_since=None,
        requests=None,
    )


def _ago(at: float | None) -> float | None:
    return None if at is None else at - BASE


def _sorted(found: Facts) -> Facts:
    newcomers = tuple(sorted(found.newcomers, key=lambda pod: pod.uid))
    return replace(found, newcomers=newcomers, rivals=tuple(sorted(found.rivals, key=lambda rival: rival.key)))
