"""The parts of the benchmark adversary: it would find nothing if its yardsticks were wrong."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from random import Random

import pytest
import yaml

from ballast.cli.situation import dump, load
from ballast.placement.limit import most_per_node
from ballast.simulation.scenario import Scenario
from benchmarks.adversarial import large_sets, loads, small_sets
from benchmarks.adversarial.search import hunt
from benchmarks.quality.exact import least_cost
from tests.vectors.storm_instance import Instance


def by_trying_all(instance: Instance) -> float:
    """The least cost within room and node limits."""
    uids = [executor.uid for executor in instance.executors]
    names = [node.name for node in instance.snapshot.nodes]
    layouts = (dict(zip(uids, homes, strict=True)) for homes in product(names, repeat=len(uids)))
    return min(instance.cost(homes) for homes in layouts if _is_allowed(instance, homes))


def _is_allowed(instance: Instance, homes: dict[str, str]) -> bool:
    for node in instance.snapshot.nodes:
        there = [executor for executor in instance.executors if homes[executor.uid] == node.name]
        free = node.free
        for executor in there:
            if not executor.requests.fits_in(free):
                return False
            free = free.minus(executor.requests)
            total = sum(other.component == executor.component for other in instance.executors)
            most = most_per_node(instance.policy.placement, executor.component, total)
            if sum(other.component == executor.component for other in there) > most:
                return False
    return True


def test_the_optimum_counts_streams_own_exchange_and_fixed_ends() -> None:
    random, compared = Random(1), 0
    while compared < 6:
        case = small_sets.drawn(random)
        instance = small_sets.as_instance(case)
        if len(instance.snapshot.nodes) ** len(instance.executors) > 5000:
            continue
        if len(small_sets.placed(case)) == len(instance.executors):
            assert least_cost(instance, seconds=300.0) == pytest.approx(by_trying_all(instance), rel=1e-6, abs=1.0)
            compared += 1


def test_a_climb_ends_where_no_change_is_worse() -> None:
    judged: list[int] = []

    def badness(case: int) -> float:
        judged.append(case)
        return -abs(case - 50.0)

    found = hunt(
        lambda random: random.randrange(100),
        lambda case, random: case + random.choice((-1, 1)),
        badness,
        random=Random(3),
        in_time=lambda: len(judged) < 2000,
    )
    assert found.worst[0].case == 50
    assert found.judged == len(judged)


def test_one_case_is_judged_even_without_any_time() -> None:
    found = hunt(lambda _: "case", lambda case, _: case, lambda _: 1.0, random=Random(1), in_time=lambda: False)
    assert (found.judged, len(found.worst)) == (1, 1)


def test_a_pool_is_the_same_when_it_is_read_again(tmp_path: Path) -> None:
    case = small_sets.changed(small_sets.drawn(Random(5)), Random(6))
    (tmp_path / "case.yaml").write_text(dump(case), encoding="utf-8")
    assert load(tmp_path / "case.yaml") == case


def test_a_large_pool_holds_all_of_its_executors() -> None:
    random = Random(2)
    for _ in range(5):
        shape = large_sets.certain(large_sets.changed(large_sets.drawn(random, most=100), random, most=100))
        assert large_sets.left_out(shape) == 0


def test_drawn_loads_are_scenarios() -> None:
    random = Random(4)
    spec = loads.drawn(random)
    for _ in range(30):
        spec = loads.changed(spec, random)
        assert isinstance(yaml.safe_load(loads.text(spec)), dict)
        Scenario.parse(yaml.safe_load(loads.text(loads.constant(spec))))
