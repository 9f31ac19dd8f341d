from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ballast.api.topology_sizing import Goal
from ballast.sizing.batch_regimes import Breakpoint, Fetch, Regimes, choose, kafka_batch, smallest_stable

CURVE = Regimes(
    base_seconds=0.2,
    slow_seconds_per_row=1e-4,
    sharp_seconds_per_row=1e-3,
    flat_until=Breakpoint(300, 250, 350),
    sharp_from=Breakpoint(3000, 2900, 3100),
    noise_ratio=0.05,
    batches=100,
    smallest_rows=50,
    largest_rows=8000,
    knee_rows=300,
    bend_rows=3000,
)
OPEN = replace(CURVE, sharp_seconds_per_row=0.0, sharp_from=None, bend_rows=float("inf"))


def test_the_kafka_example_of_the_tuning_notes() -> None:
    """12 partitions, 100 000 B a fetch, records of 1000 ± 100 B."""
    found = kafka_batch(partitions=12, max_fetch_bytes=100_000, smallest_record_bytes=900, largest_record_bytes=1100)
    assert found == Fetch(1080, 1332, 1_186_920, 1_200_000)


def test_a_record_larger_than_the_fetch_comes_alone() -> None:
    found = kafka_batch(partitions=2, max_fetch_bytes=100, smallest_record_bytes=500, largest_record_bytes=500)
    assert found == Fetch(2, 2, 1000, 1000)


@given(st.integers(1, 400), st.integers(0, 200), st.integers(1, 40_000))
def test_a_fetch_of_records_of_one_size_is_within_the_bounds(smallest: int, spread: int, limit: int) -> None:
    found = kafka_batch(
        partitions=1, max_fetch_bytes=limit, smallest_record_bytes=smallest, largest_record_bytes=smallest + spread
    )
    for size in range(smallest, smallest + spread + 1):
        count = max(limit // size, 1)
        assert found.fewest_records <= count <= found.most_records
        assert found.fewest_bytes <= count * size <= found.most_bytes


@given(st.integers(1, 50), st.integers(0, 20), st.integers(1, 2000))
def test_the_bounds_of_a_fetch_are_reached(smallest: int, spread: int, limit: int) -> None:
    found = kafka_batch(
        partitions=1, max_fetch_bytes=limit, smallest_record_bytes=smallest, largest_record_bytes=smallest + spread
    )
    sizes = [max(limit // size, 1) * size for size in range(smallest, smallest + spread + 1)]
    assert (found.fewest_bytes, found.most_bytes) == (min(sizes), max(sizes))


def test_a_batch_is_near_the_top_of_slow_growth_and_comfortably_under_sharp_growth() -> None:
    choice = choose(CURVE, Goal.THROUGHPUT)
    assert choice.rows == pytest.approx(2320)
    assert choice.seconds == pytest.approx(0.2 + 1e-4 * 2020)
    assert choice.rows_per_second == pytest.approx(choice.rows / choice.seconds)


def test_a_sharp_regime_whose_place_is_not_sure_is_kept_away_from() -> None:
    choice = choose(replace(CURVE, sharp_from=None), Goal.THROUGHPUT)
    assert choice.rows == 2400
    assert "not sure" in choice.reason


def test_nothing_larger_than_the_measured_batches_is_chosen() -> None:
    choice = choose(OPEN, Goal.THROUGHPUT)
    assert choice.rows == 8000
    assert "no sharp growth" in choice.reason


def test_for_latency_the_smallest_batch_that_keeps_the_rate_is_chosen() -> None:
    choice = choose(CURVE, Goal.LATENCY, rate=4000.0)
    assert "keeps the rate" in choice.reason
    assert choice.rows < 2320
    assert choice.seconds == pytest.approx(0.8 * choice.rows / 4000.0, rel=1e-3)


@pytest.mark.parametrize("rate", [None, 1e9])
def test_for_latency_without_a_reachable_rate_throughput_decides(rate: float | None) -> None:
    assert choose(CURVE, Goal.LATENCY, rate=rate).rows == pytest.approx(2320)


def test_a_batch_time_bounds_the_batch() -> None:
    choice = choose(CURVE, Goal.THROUGHPUT, most_seconds=0.3)
    assert choice.seconds == pytest.approx(0.3, rel=1e-3)
    assert choice.rows == pytest.approx(1300, abs=1)


def test_no_batch_keeps_a_rate_that_is_too_high() -> None:
    assert smallest_stable(CURVE, 1e9) is None
