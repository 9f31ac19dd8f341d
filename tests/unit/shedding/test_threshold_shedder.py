from __future__ import annotations

from dataclasses import replace

import pytest

from ballast.model.shedders import ThresholdSettings
from ballast.shedding.load import PoolLoad
from ballast.shedding.pulsar_shedders import Averages, threshold_shedder
from tests.unit.shedding.builders import MIB, busy, pool

TEN = [i * 2 * MIB for i in range(1, 11)]


def chosen(load: PoolLoad, settings: ThresholdSettings | None = None, memory: Averages | None = None) -> list[str]:
    result = threshold_shedder(load, settings or ThresholdSettings(), memory or Averages())
    return [suggestion.executor for suggestion in result.suggestions]


def test_the_largest_leave_until_the_need_is_met() -> None:
    assert chosen(pool(busy("a", 99.9, volumes=TEN), busy("b", 1, volumes=[1.0, 1.0]))) == ["a/9", "a/8", "a/7"]


def test_what_must_stay_is_passed_over() -> None:
    hot = busy("a", 99.9, volumes=TEN)
    held = tuple(replace(executor, movable=executor.name not in ("a/9", "a/8")) for executor in hot.executors)
    load = pool(replace(hot, executors=held), busy("b", 1, volumes=[1.0, 1.0]))
    assert chosen(load) == ["a/7", "a/6", "a/5", "a/4"]


def test_a_sole_executor_stays() -> None:
    assert chosen(pool(busy("a", 99.9, volumes=[100 * MIB]), busy("b", 1))) == []


@pytest.mark.parametrize(("score", "sheds"), [(50.0, True), (49.9, False)])
def test_the_threshold_itself_counts(score: float, *, sheds: bool) -> None:
    """Means of 40 and a little less; ten points above it is due."""
    assert bool(chosen(pool(busy("a", score, volumes=[200 * MIB, 200 * MIB]), busy("b", 30)))) is sheds


def test_an_unloaded_pool_sheds_nothing() -> None:
    assert chosen(pool(busy("a", 0, volumes=TEN), busy("b", 0))) == []


def test_too_little_traffic_is_not_worth_it() -> None:
    assert chosen(pool(busy("a", 90, volumes=[MIB, MIB]), busy("b", 10))) == []


def test_usage_is_smoothed() -> None:
    load = pool(busy("a", 50), busy("b", 20))
    result = threshold_shedder(load, ThresholdSettings(history_ratio=0.9), Averages((("a", 0.9), ("gone", 0.5))))
    assert dict(result.memory.by_node) == pytest.approx({"a": 0.86, "b": 0.2})


def ten_and_one(low: float) -> PoolLoad:
    return pool(*(busy(f"n{i}", 80, volumes=[200 * MIB, 200 * MIB]) for i in range(10)), busy("low", low))


def test_the_lower_boundary_unloads_the_hottest_for_the_one_that_is_too_cold() -> None:
    settings = ThresholdSettings(lower_boundary=True)
    assert chosen(ten_and_one(0)) == []
    assert chosen(ten_and_one(0), settings) == ["n0/0"]
    assert chosen(ten_and_one(80), settings) == []


def test_the_lower_boundary_smooths_once_unless_asked_to_do_as_pulsar() -> None:
    before = Averages(tuple((node.name, 0.0) for node in ten_and_one(0).nodes))
    once = threshold_shedder(ten_and_one(0), ThresholdSettings(lower_boundary=True, history_ratio=0.5), before)
    twice = threshold_shedder(
        ten_and_one(0), ThresholdSettings(lower_boundary=True, history_ratio=0.5, average_twice=True), before
    )
    assert dict(once.memory.by_node)["n0"] == pytest.approx(0.4)
    assert dict(twice.memory.by_node)["n0"] == pytest.approx(0.6)


def test_an_empty_pool() -> None:
    assert threshold_shedder(PoolLoad(()), ThresholdSettings(), Averages()).suggestions == ()


def test_departed_nodes_are_kept_when_asked_for() -> None:
    load, before = pool(busy("a", 50), busy("b", 20)), Averages((("gone", 0.5),))
    kept = threshold_shedder(load, ThresholdSettings(keep_departed=True), before).memory
    assert dict(kept.by_node)["gone"] == 0.5
    assert dict(kept.within({"a"}).by_node).keys() == {"a"}


def test_the_figures_behind_a_suggestion() -> None:
    """A mean of 60 and twenty points above it: 20 − 10 + 5 percent of the bytes have to leave."""
    load = pool(busy("a", 80, volumes=[100 * MIB, 60 * MIB, 60 * MIB]), busy("b", 40))
    (made,) = threshold_shedder(load, ThresholdSettings(), Averages()).suggestions
    assert (made.executor, made.source, made.target, made.hot_score) == ("a/0", "a", None, 80)
    assert made.difference == pytest.approx(20)


@pytest.mark.parametrize(("minimum", "sheds"), [(33.0, True), (33.1, False)])
def test_the_need_itself_is_enough(minimum: float, *, sheds: bool) -> None:
    load = pool(busy("a", 80, volumes=[100 * MIB, 60 * MIB, 60 * MIB]), busy("b", 40))
    assert bool(chosen(load, ThresholdSettings(min_bytes_per_second=minimum * MIB - 1))) is sheds


@pytest.mark.parametrize(("minimum", "sheds"), [(20.0, True), (20.1, False)])
def test_the_lower_boundary_moves_a_twentieth(minimum: float, *, sheds: bool) -> None:
    settings = ThresholdSettings(lower_boundary=True, min_bytes_per_second=minimum * MIB - 1)
    assert bool(chosen(ten_and_one(0), settings)) is sheds


def test_executors_without_traffic_stay_unless_asked_to_do_as_pulsar() -> None:
    """The one that has some is not enough for the need."""
    load = pool(busy("a", 80, volumes=[MIB, 0.0], volume=400 * MIB), busy("b", 40))
    assert chosen(load) == ["a/0"]
    assert chosen(load, ThresholdSettings(idle_too=True)) == ["a/0", "a/1"]
