from __future__ import annotations

import pytest

from ballast.model.shedders import UniformSettings
from ballast.shedding.load import PoolLoad, Suggestion
from ballast.shedding.pulsar_shedders import uniform_load_shedder
from tests.unit.shedding.builders import MIB, busy, pool


def chosen(load: PoolLoad, settings: UniformSettings) -> list[str]:
    return [suggestion.executor for suggestion in uniform_load_shedder(load, settings)]


FIVE = pool(
    *(
        busy(f"b{i}", 50, [rate / 5] * 5, volumes=[volume * MIB / 5] * 5)
        for i, (rate, volume) in enumerate(
            [(50_000.0, 50.0), (60_000.0, 60.0), (70_000.0, 70.0), (10_000.0, 80.0), (20_000.0, 10.0)]
        )
    )
)


@pytest.mark.parametrize(
    ("percent", "ratio", "source"),
    [(50, 0, "b2"), (0, 2, "b3"), (50, 2, "b2")],
    ids=["by records", "by bytes", "records have priority"],
)
def test_the_busiest_node_unloads(percent: float, ratio: float, source: str) -> None:
    settings = UniformSettings(
        rate_difference_percent=percent, bytes_ratio=ratio, max_unload_ratio=0.5, max_executors=1
    )
    assert chosen(FIVE, settings) == [f"{source}/0"]


@pytest.mark.parametrize(("busiest", "sheds"), [(1500.0, False), (1501.0, True)])
def test_the_difference_must_exceed_the_threshold(busiest: float, *, sheds: bool) -> None:
    load = pool(busy("a", 50, [busiest / 10] * 10), busy("b", 50, [1000.0]))
    settings = UniformSettings(max_unload_ratio=0.5, min_rate_per_second=0)
    assert bool(chosen(load, settings)) is sheds


def test_an_idle_node_counts_as_one_record_a_second() -> None:
    load = pool(busy("a", 50, [100.0] * 5), busy("b", 50))
    assert len(chosen(load, UniformSettings(max_unload_ratio=0.5, min_rate_per_second=0))) == 2


def test_too_small_a_need_is_left() -> None:
    load = pool(busy("a", 50, [100.0] * 5), busy("b", 50))
    assert chosen(load, UniformSettings(max_unload_ratio=0.5, min_rate_per_second=1000)) == []


def test_a_sole_executor_stays() -> None:
    assert chosen(pool(busy("a", 50, [100.0]), busy("b", 50)), UniformSettings(min_rate_per_second=0)) == []


def test_idle_executors_stay_unless_asked_to_do_as_pulsar() -> None:
    load = pool(busy("a", 50, [900.0, 300.0, 0.0]), busy("b", 50))
    ours = UniformSettings(max_unload_ratio=0.5, min_rate_per_second=0)
    theirs = UniformSettings(max_unload_ratio=0.5, min_rate_per_second=0, whole_numbers=True)
    assert chosen(load, ours) == ["a/1"]
    assert chosen(load, theirs) == ["a/1", "a/2"]


def test_large_figures_are_kept_unless_asked_to_do_as_pulsar() -> None:
    load = pool(busy("a", 50, volumes=[1e9] * 5), busy("b", 50, volumes=[2e9, 2e9]))
    ours = UniformSettings(bytes_ratio=1.5, max_unload_ratio=0.5)
    theirs = UniformSettings(bytes_ratio=1.5, max_unload_ratio=0.5, whole_numbers=True)
    assert chosen(load, ours) == []
    assert chosen(load, theirs) == ["a/0"]


def test_an_empty_pool() -> None:
    assert uniform_load_shedder(PoolLoad(()), UniformSettings()) == ()


def test_the_figures_behind_a_suggestion() -> None:
    load = pool(busy("a", 55, [1500.0, 1500.0]), busy("b", 50, [100.0], rate=0.0))
    settings = UniformSettings(max_unload_ratio=0.5, min_rate_per_second=1500.0)
    assert uniform_load_shedder(load, settings) == ()
    settings = UniformSettings(max_unload_ratio=0.6, min_rate_per_second=1799.0)
    assert uniform_load_shedder(load, settings) == (Suggestion("a/0", "a", None, 55),)


def test_the_need_itself_is_enough() -> None:
    """(2 001 − 1) / 2 records: as much as the minimum, and as much as the executor has."""
    load = pool(busy("a", 50, [1000.0, 1001.0]), busy("b", 50))
    assert chosen(load, UniformSettings(max_unload_ratio=0.5, min_rate_per_second=1000.0)) == ["a/0"]


def test_no_more_than_so_many_at_once() -> None:
    load = pool(busy("a", 50, [100.0] * 8), busy("b", 50))
    settings = UniformSettings(max_unload_ratio=0.9, min_rate_per_second=0, max_executors=3)
    assert len(chosen(load, settings)) == 3


def test_what_leaves_is_subtracted_from_the_need() -> None:
    load = pool(busy("a", 50, [300.9, 300.5, 0.9]), busy("b", 50))
    settings = UniformSettings(max_unload_ratio=0.5, min_rate_per_second=0)
    whole = UniformSettings(max_unload_ratio=0.5, min_rate_per_second=0, whole_numbers=True)
    assert chosen(load, settings) == ["a/1"]  # need 300.65
    assert chosen(load, whole) == ["a/2"]  # need 300


def test_where_nothing_can_move_for_records_bytes_are_looked_at_unless_asked_to_do_as_pulsar() -> None:
    load = pool(
        busy("chatty", 50, [9000.0], volumes=[MIB]),
        busy("heavy", 50, [1000.0, 1000.0], volumes=[10 * MIB, 90 * MIB]),
    )
    assert chosen(load, UniformSettings()) == ["heavy/0"]
    assert chosen(load, UniformSettings(rate_only=True)) == []
