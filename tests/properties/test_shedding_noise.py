"""AvgShedder with unit Usage on a pool that is balanced except for noise, and on one that is not."""

from __future__ import annotations

import pytest

from tests.examples import seeds
from tests.properties.noisy_pool import EAGER, acted_upon, first_acted_upon, pulsar_unloads
from tests.properties.score_noise import DAY_PASSES, NOISES, even, gaussian

BALANCE = 75.0
MEMORY_PASSES = 5.0
"""Noise that lasts five minutes, longer than the metric window of two."""
SEEDS = seeds(20)


@pytest.mark.parametrize("nodes", [6, 20, 100])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_day_of_correlated_noise_moves_nothing(nodes: int, seed: int) -> None:
    assert list(acted_upon(BALANCE + even(nodes, DAY_PASSES, MEMORY_PASSES, seed))) == []


@pytest.mark.parametrize("nodes", [6, 20])
@pytest.mark.parametrize("kind", NOISES)
@pytest.mark.parametrize("seed", seeds(3, always=1))
def test_whatever_the_shape_of_the_noise(nodes: int, kind: str, seed: int) -> None:
    assert list(acted_upon(BALANCE + NOISES[kind](nodes, DAY_PASSES, MEMORY_PASSES, seed))) == []


@pytest.mark.parametrize("beginning", [1, 2, 3, 8, 12, 20])
@pytest.mark.parametrize("seed", seeds(3, always=1))
def test_executors_that_begin_now_here_now_there_do_not_hide_the_noise(beginning: int, seed: int) -> None:
    """One user's restarts kept noise from being learned, and others' executors were moved by chance."""
    assert list(acted_upon(BALANCE + even(20, DAY_PASSES, MEMORY_PASSES, seed), beginning=beginning)) == []


@pytest.mark.parametrize("memory_passes", [1.0, 2.0])
def test_noise_as_long_as_the_metric_window_moves_nothing(memory_passes: float) -> None:
    assert list(acted_upon(BALANCE + even(20, DAY_PASSES, memory_passes, 1))) == []


@pytest.mark.parametrize("nodes", [6, 20])
def test_the_real_rule_unloads_on_the_same_noise(nodes: int) -> None:
    """Otherwise the noise would prove nothing."""
    assert pulsar_unloads(BALANCE + even(nodes, DAY_PASSES, MEMORY_PASSES, 1)) > nodes


@pytest.mark.parametrize("nodes", [2, 3, 6, 20, 100])
@pytest.mark.parametrize("amplitude", [0.0, 0.1, 0.2])
def test_a_lasting_gap_of_twenty_points_is_acted_on_within_fifteen_passes(nodes: int, amplitude: float) -> None:
    rows = BALANCE + amplitude * gaussian(nodes, 15, MEMORY_PASSES, 1)
    rows[:, 0] += 20.0
    assert first_acted_upon(rows, "n000") is not None


@pytest.mark.parametrize("nodes", [6, 20, 100])
def test_a_gap_that_opens_in_a_calm_pool_is_acted_on_within_fifteen_passes(nodes: int) -> None:
    rows = BALANCE + 0.2 * gaussian(nodes, 135, MEMORY_PASSES, 1)
    rows[120:, 0] += 20.0
    assert first_acted_upon(rows, "n000", after=120) is not None


@pytest.mark.parametrize("nodes", [6, 20])
def test_a_gap_of_twenty_points_is_mostly_seen_through_the_noise_within_the_hour(nodes: int) -> None:
    found = 0
    for seed in range(10):
        rows = BALANCE + even(nodes, 300, MEMORY_PASSES, seed)
        rows[240:, 0] += 20.0
        found += first_acted_upon(rows, "n000", after=240) is not None
    assert found >= 8


def test_a_gap_above_the_high_threshold_is_acted_on_within_three_passes() -> None:
    rows = BALANCE + 0.2 * gaussian(20, 3, MEMORY_PASSES, 1)
    rows[:, 0] += 45.0
    assert first_acted_upon(rows, "n000") is not None


def test_one_spike_in_overlapping_windows_is_one_hit() -> None:
    """Two minutes of it fill the two-minute window and leave it again."""
    rows = BALANCE + 0.0 * even(6, 12, MEMORY_PASSES, 1)
    rows[3:5, 0] += 60.0
    assert list(acted_upon(rows)) == []
    assert EAGER.window_seconds == 120.0
