from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ballast.sizing.memory import (
    GIB,
    MIB,
    Collector,
    collector_for,
    heap_warnings,
    heap_within,
    jvm_options,
    new_generation,
    old_generation,
    overhead_bytes,
    pending_warnings,
    survivor_space,
    usable_heap,
)


def test_the_generations_of_the_tuning_notes() -> None:
    """1000 MB of new generation: 800 for new objects and 100 for each survivor space; and 1500 MB of old generation."""
    assert survivor_space(1000) == 100
    assert old_generation(new_bytes=1000, steady_old_bytes=500) == 1500


@pytest.mark.parametrize(("steady", "old"), [(500, 1500), (750, 1500), (751, 1502), (2000, 4000)])
def test_the_old_generation_is_twice_its_occupancy_or_half_more_than_the_new_one(steady: float, old: float) -> None:
    assert old_generation(new_bytes=1000, steady_old_bytes=steady) == old


def test_eden_holds_ten_seconds_of_allocation() -> None:
    new = new_generation(80 * MIB)
    assert new == 1000 * MIB
    assert new - 2 * survivor_space(new) == 800 * MIB


@pytest.mark.parametrize(
    ("heap_gib", "collector", "words"),
    [
        (12.0, Collector.G1, None),
        (12.1, Collector.G1, "above 12 GiB"),
        (12.1, Collector.ZGC, None),
        (31.9, Collector.G1, "above 12 GiB"),
        (32.0, Collector.G1, "32 GiB or more"),
        (32.0, Collector.ZGC, "32 GiB or more"),
    ],
)
def test_large_heaps_are_warned_of(heap_gib: float, collector: Collector, words: str | None) -> None:
    told = list(heap_warnings(heap_gib * GIB, collector))
    assert len(told) == (words is not None)
    assert words is None or words in told[0]


def test_no_heap_is_recommended_that_loses_compressed_pointers() -> None:
    assert usable_heap(40.0 * GIB) == 31 * GIB
    assert usable_heap(31.9 * GIB) == 31.9 * GIB


@given(st.floats(1e9, 1e12), st.booleans())
def test_heap_and_overhead_fit_into_the_container(container: float, python: bool) -> None:
    heap = heap_within(container, python=python)
    assert heap > 0
    assert heap + overhead_bytes(heap, python=python) <= container * (1 + 1e-9)


def test_a_container_without_room_for_the_overhead_has_no_heap() -> None:
    assert heap_within(100 * MIB, python=False) == 0


@pytest.mark.parametrize(("pending", "warned"), [(191, False), (193, True)])
def test_work_in_flight_must_be_well_under_the_heap(pending: float, warned: bool) -> None:
    assert bool(list(pending_warnings(pending_bytes=pending * MIB, heap_bytes=768 * MIB))) is warned


@pytest.mark.parametrize(
    ("java", "heap_gib", "latency", "collector"),
    [(17, 4, True, "G1"), (21, 4, True, "ZGC"), (21, 4, False, "G1"), (21, 20, False, "ZGC"), (17, 20, False, "G1")],
)
def test_generational_zgc_is_for_latency_and_large_heaps_from_java_21_on(
    java: int, heap_gib: float, latency: bool, collector: str
) -> None:
    assert collector_for(java=java, heap_bytes=heap_gib * GIB, latency=latency) == collector


def test_options_are_those_of_the_java_in_use() -> None:
    assert "-XX:+ZGenerational" in jvm_options(Collector.ZGC, java=21)
    assert "-XX:+ZGenerational" not in jvm_options(Collector.ZGC, java=23)
    assert "-XX:MaxGCPauseMillis=50" in jvm_options(Collector.G1, java=17)
    assert not any(option.startswith("-Xm") for option in jvm_options(Collector.G1, java=17))


def test_options_in_two_words_and_in_quotes_stay_as_they_are() -> None:
    own = "--add-opens a/b=ALL-UNNAMED --add-opens a/c=ALL-UNNAMED -Dx='y z'"
    assert " ".join(jvm_options(Collector.G1, java=17, own=own)).startswith(f"{own} -XX:+UseG1GC ")
