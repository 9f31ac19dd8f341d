from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ballast.sizing.memory import (
    idle_sources,
    next_partitions,
    power_of_two,
    source_tasks,
    source_warnings,
    usable_cores,
)


@pytest.mark.parametrize(("cores", "usable"), [(1, 1), (4, 4), (7, 7), (8, 7), (16, 15)])
def test_a_core_is_left_to_the_system_at_high_core_counts(cores: int, usable: int) -> None:
    assert usable_cores(cores) == usable


@pytest.mark.parametrize(
    ("partitions", "cores", "tasks"), [(16, 16, 16), (12, 6, 6), (12, 5, 4), (16, 15, 8), (7, 6, 1), (4, 100, 4)]
)
def test_source_tasks_divide_the_partitions(partitions: int, cores: int, tasks: int) -> None:
    assert source_tasks(partitions=partitions, cores=cores) == tasks


@given(st.integers(1, 2000), st.integers(1, 500))
def test_source_tasks_are_the_most_that_share_partitions_evenly(partitions: int, cores: int) -> None:
    found = source_tasks(partitions=partitions, cores=cores)
    assert partitions % found == 0
    assert found <= cores
    assert not any(partitions % more == 0 for more in range(found + 1, min(cores, partitions) + 1))


def test_sources_beyond_the_partitions_sit_idle() -> None:
    assert idle_sources(partitions=12, source_tasks=16) == 4
    assert idle_sources(partitions=12, source_tasks=12) == 0


@pytest.mark.parametrize(
    ("partitions", "cores", "declared", "words"),
    [
        (16, 16, 16, []),
        (16, 16, None, []),
        (12, 12, 16, ["4 of 16 declared source tasks sit idle"]),
        (12, 12, 5, ["no multiple of 5 source tasks"]),
        (12, 16, None, ["4 of 16 cores have no partition"]),
        (12, 5, None, ["no multiple of 5 cores"]),
    ],
)
def test_idle_and_uneven_sources_are_warned_of(
    partitions: int, cores: int, declared: int | None, words: list[str]
) -> None:
    told = list(source_warnings(partitions=partitions, cores=cores, declared_tasks=declared))
    assert len(told) == len(words)
    assert all(word in warning for word, warning in zip(words, told, strict=True))


def test_the_next_partitions_keep_all_cores_busy() -> None:
    assert next_partitions(partitions=12, cores=5) == 15


@given(st.floats(0.0, 1e12))
def test_buffers_are_powers_of_two_larger_than_what_they_hold(least: float) -> None:
    slots = power_of_two(least)
    assert slots > least
    assert slots & (slots - 1) == 0
    assert slots == 1 or slots // 2 <= least
