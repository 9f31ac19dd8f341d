from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ballast.sizing.littles_law import (
    Stage,
    bounds,
    median_of_slowest,
    parallelism_needed,
    slowest_quantile,
    source_limits,
)


@pytest.mark.parametrize(
    ("rate", "latency", "tasks"),
    [(2000, 0.008, 16), (2001, 0.008, 17), (10, 0.1, 1), (1, 0.001, 1), (125, 0.008, 1)],
)
def test_parallelism_is_rate_times_latency_rounded_up(rate: float, latency: float, tasks: int) -> None:
    assert parallelism_needed(records_per_second=rate, latency_seconds=latency) == tasks


def test_a_stage_passes_parallelism_over_latency() -> None:
    assert Stage("work", 0.008, 16).capacity == 2000


def test_a_remote_service_caps_what_its_stage_passes() -> None:
    assert Stage("lookup", 0.008, 16, remote_rate_limit=500).capacity == 500


def test_a_pipeline_is_as_fast_as_its_slowest_stage_and_no_faster_than_the_sum_of_latencies() -> None:
    found = bounds([Stage("read", 0.001, 4), Stage("slow", 0.1, 1), Stage("store", 0.02, 4)])
    assert (found.records_per_second, found.slowest) == (10, "slow")
    assert found.latency_seconds == pytest.approx(0.121)


def test_a_stage_after_one_that_multiplies_records_is_reached_by_more_of_them() -> None:
    chain = [Stage("split", 0.001, 1, output_ratio=5.0), Stage("store", 0.001, 1)]
    assert source_limits(chain) == [1000, 200]
    assert bounds(chain).slowest == "store"


def test_a_stage_that_nothing_reaches_limits_nothing() -> None:
    assert source_limits([Stage("filter", 1.0, 1, output_ratio=0.0), Stage("store", 1.0, 1)]) == [1, math.inf]


STAGES = st.lists(
    st.builds(
        Stage,
        name=st.just("stage"),
        latency_seconds=st.floats(1e-4, 10.0),
        parallelism=st.integers(1, 100),
        output_ratio=st.floats(0.1, 10.0),
    ),
    min_size=1,
    max_size=6,
)


@given(STAGES)
def test_no_stage_gets_more_than_it_passes_at_the_bound(chain: list[Stage]) -> None:
    arriving = bounds(chain).records_per_second
    for stage in chain:
        assert arriving <= stage.capacity * (1 + 1e-9)
        arriving *= stage.output_ratio


def test_of_20_parallel_tasks_the_median_of_the_slowest_is_the_96_6th_percentile() -> None:
    assert slowest_quantile(20) == pytest.approx(0.966, abs=0.0005)
    assert slowest_quantile(1) == 0.5


@pytest.mark.parametrize("tasks", [2, 5, 20, 100])
def test_a_simulation_agrees_with_the_quantile_of_the_slowest(tasks: int) -> None:
    """Real sets of tasks: their slowest is above the quantile in half of the sets."""
    chance = np.random.default_rng(5)
    pool = chance.lognormal(mean=0.0, sigma=0.7, size=200_000)
    predicted = median_of_slowest(pool, tasks)
    slowest = chance.choice(pool, size=(20_000, tasks)).max(axis=1)
    assert np.mean(slowest > predicted) == pytest.approx(0.5, abs=0.02)
    assert predicted == pytest.approx(float(np.median(slowest)), rel=0.03)
