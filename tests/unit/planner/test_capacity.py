"""Capacity is not load: the four combinations of the two, and components that are used unevenly."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ballast.model import Executor, ExecutorUsage, Phase, Resources
from ballast.planner.capacity import ADVICE, Capacities, Combination, UnknownTopologyError, capacities
from tests.builders import a_snapshot, an_executor


def one(name: str, *, slots: float | None, cores: float | None, **changes: object) -> Executor:
    usage = ExecutorUsage(slot_ratio=slots, cpu_cores=cores)
    return replace(an_executor(name, node="a"), usage=usage, **changes)  # type: ignore[arg-type]


def found(*executors: Executor) -> Capacities:
    return capacities(a_snapshot(executors=executors), "team/clicks")


@pytest.mark.parametrize(
    ("slots", "cores", "combination"),
    [
        (0.9, 0.9, Combination.BUSY),
        (0.9, 0.1, Combination.WAITING),
        (0.1, 0.9, Combination.OTHER_WORK),
        (0.1, 0.1, Combination.IDLE),
        (0.6, 0.6, Combination.BUSY),
        (0.59, 0.59, Combination.IDLE),
        (None, 0.9, Combination.UNKNOWN),
        (0.9, None, Combination.UNKNOWN),
    ],
)
def test_each_combination_of_high_and_low_has_its_name(
    slots: float | None, cores: float | None, combination: Combination
) -> None:
    told = found(one("e-1", slots=slots, cores=cores))
    assert told.combinations == (combination,)


def test_an_executor_without_any_metrics_is_unknown() -> None:
    assert found(replace(an_executor("e-1"), usage=None)).combinations == (Combination.UNKNOWN,)


def test_every_combination_has_a_meaning_and_a_remedy() -> None:
    assert set(ADVICE) == set(Combination)
    assert all(words.meaning and words.remedies for words in ADVICE.values())


def test_a_task_that_began_before_the_window_makes_no_more_than_full_capacity() -> None:
    (standing,) = found(one("e-1", slots=3.0, cores=2.0)).standings
    assert (standing.capacity, standing.load) == (1.0, 1.0)


@pytest.mark.parametrize(("slots", "requested", "load"), [(4.0, 2.0, 0.5), (2.0, 4.0, 0.5), (2.0, 0.0, 0.5)])
def test_load_is_of_the_task_slots_or_of_a_smaller_request(slots: float, requested: float, load: float) -> None:
    sized = replace(one("e-1", slots=1.0, cores=1.0), cores=slots, requests=Resources(requested))
    assert found(sized).standings[0].load == load


def test_executors_are_in_the_order_of_components_and_names() -> None:
    told = found(
        one("e-2", slots=0.9, cores=0.9),
        one("e-1", slots=0.9, cores=0.9),
        one("f-1", slots=0.9, cores=0.9, component="a"),
    )
    assert [each.executor.name for each in told.standings] == ["f-1", "e-1", "e-2"]


@pytest.mark.parametrize(("slots", "uneven"), [((0.9, 0.1), ("ingest",)), ((0.9, 0.5), ()), ((0.1, 0.1), ())])
def test_a_component_with_busy_and_hardly_used_executors_is_uneven(
    slots: tuple[float, float], uneven: tuple[str, ...]
) -> None:
    executors = [one(f"e-{n}", slots=each, cores=each) for n, each in enumerate(slots)]
    assert found(*executors).uneven == uneven


def test_components_are_judged_one_by_one() -> None:
    told = found(one("e-1", slots=0.9, cores=0.9), one("f-1", slots=0.1, cores=0.1, component="other"))
    assert told.uneven == ()


@pytest.mark.parametrize("changes", [{"phase": Phase.GATED}, {"topology": "team/other"}])
def test_a_topology_without_running_executors_is_refused_with_those_that_have_some(changes: dict[str, object]) -> None:
    with pytest.raises(UnknownTopologyError, match="topologies with executors: team/"):
        found(one("e-1", slots=0.9, cores=0.9, **changes))
