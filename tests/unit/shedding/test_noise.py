from __future__ import annotations

import numpy as np
import pytest

from ballast.shedding.noise import Noise, Size, observe
from tests.properties.score_noise import Scores, even, gaussian


def learned(rows: Scores, noise: Noise | None = None) -> Noise:
    known = noise or Noise()
    for row in rows:
        deviations = {f"n{index:04d}": float(score) for index, score in enumerate(row - np.median(row))}
        known = observe(known, deviations, elapsed_seconds=60.0, memory_seconds=300.0)
    return known


def test_nothing_is_known_before_the_second_pass() -> None:
    assert learned(gaussian(20, 1, 5.0, 1)).extreme == 0.0


def test_a_calm_pool_has_no_noise() -> None:
    assert learned(0.0 * gaussian(20, 60, 5.0, 1)).extreme == 0.0


@pytest.mark.parametrize("passes", [15, 45])
def test_a_few_passes_tell_the_size_of_the_noise(passes: int) -> None:
    """The deviation exceeded once in a hundred times is 2.3 to 2.6 standard deviations of 5 points."""
    assert 8.0 < learned(gaussian(50, passes, 5.0, 1)).extreme < 17.0


def test_in_the_long_run_the_bound_of_bounded_noise_is_found() -> None:
    assert 9.0 < learned(even(50, 1440, 5.0, 1)).extreme < 13.0


def test_an_event_on_one_node_hardly_shows() -> None:
    rows = 0.1 * gaussian(20, 60, 5.0, 1)
    calm = learned(rows).extreme
    rows[45:, 0] += 40.0
    assert learned(rows).extreme < calm + 1.0


def test_a_constant_difference_is_no_noise() -> None:
    rows = 0.0 * gaussian(20, 120, 5.0, 1)
    rows[:, 0] += 40.0
    assert learned(rows).extreme < 1.0


def test_of_many_nodes_a_sample_is_watched_that_stays_the_same() -> None:
    before = learned(gaussian(1000, 1, 5.0, 1))
    names = {name for name, *_ in before.nodes}
    after = observe(before, {f"n{index:04d}": 0.0 for index in range(1001)}, elapsed_seconds=60.0, memory_seconds=300.0)
    assert len(names) == 64
    assert len(names & {name for name, *_ in after.nodes}) >= 63


def test_a_node_that_joins_teaches_nothing_in_its_first_pass() -> None:
    before = learned(0.0 * gaussian(2, 50, 5.0, 1))
    after = observe(before, {"n0000": 0.0, "n0001": 0.0, "new": 80.0}, elapsed_seconds=60.0, memory_seconds=300.0)
    assert after.extreme == 0.0
    assert ("new", 80.0, 80.0, 0.0) in after.nodes


def test_a_pass_that_shows_nothing_teaches_nothing() -> None:
    assert observe(Noise(passes=3, extreme=2.0), {}, elapsed_seconds=60.0, memory_seconds=300.0) == Noise(3, 2.0)


def test_a_step_of_many_nodes_that_were_left_out_meanwhile_is_no_noise() -> None:
    before, after = {"a": 10.0, "b": -10.0, "c": 0.0}, {"a": 0.0, "b": -20.0, "c": 20.0}
    noise = Noise()
    for deviations in (before, before, {"b": -20.0, "c": 20.0}, after, after):
        noise = observe(noise, deviations, elapsed_seconds=60.0, memory_seconds=300.0)
    assert noise.extreme == 0.0


def test_nodes_that_come_and_go_in_each_pass_hide_the_noise_of_none() -> None:
    rows = gaussian(10, 200, 5.0, 1)
    noise = Noise()
    for index, row in enumerate(rows):
        seen = {f"n{i}": float(score) for i, score in enumerate(row) if i not in {index % 10, (index + 1) % 10}}
        noise = observe(noise, seen, elapsed_seconds=60.0, memory_seconds=300.0)
    assert noise.extreme > 0.5 * learned(rows).extreme


def test_a_step_of_all_others_is_no_noise_right_after_the_nodes_started_again() -> None:
    noise = Noise()
    renewed = []
    for left_out, step in (("", 0.0), ("", 0.0), ("ab", 0.0), ("", -10.0), ("", -10.0)):
        deviations = {name: step for name in "abcdef" if name not in left_out}
        noise = observe(noise, deviations, elapsed_seconds=60.0, memory_seconds=300.0)
        renewed.append(noise.renewed)
    assert renewed == [False, False, True, False, False]
    assert noise.extreme == 0.0


def test_a_step_that_nothing_explains_is_noise() -> None:
    noise = Noise()
    for deviations in ({"a": 10.0, "b": -10.0}, {"a": 0.0, "b": 0.0}):
        noise = observe(noise, deviations, elapsed_seconds=60.0, memory_seconds=300.0)
    assert noise.extreme > 5.0


@pytest.mark.parametrize("bursty", [1, 4])
def test_what_few_restless_nodes_do_is_no_noise_of_the_others(bursty: int) -> None:
    """One user's bursts on them would keep all other nodes from being leveled."""
    rows = 0.3 * gaussian(20, 600, 5.0, 1)
    calm = learned(rows).extreme
    rows[:, :bursty] += 50.0 * ((np.arange(600) // 2) % 2)[:, None]
    noise = learned(rows)
    restless = tuple(f"n{index:04d}" for index in range(bursty))
    assert noise.restless == restless
    assert noise.extreme > 3 * calm
    assert noise.of(hot="n0010", cold="n0011")[0] < 2 * calm
    assert noise.of(hot="n0010", cold="n0000") == (noise.of(hot="n0010", cold="n0011")[0], noise.extreme)
    assert noise.of(hot="n0000", cold="n0010") == (noise.extreme, noise.extreme), (
        "bursts are followed no more than before"
    )


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("times", [0.4, 1.0, 2.0])
def test_by_chance_alone_no_node_is_restless(seed: int, times: float) -> None:
    noise = Noise()
    for row in times * gaussian(50, 300, 5.0, seed):
        deviations = {f"n{index:04d}": float(score) for index, score in enumerate(row - np.median(row))}
        noise = observe(noise, deviations, elapsed_seconds=60.0, memory_seconds=300.0)
        assert noise.restless == ()
    assert noise.calm == Size(noise.extreme, noise.change, noise.spread)
    assert noise.of(hot="n0000", cold="n0001") == (noise.extreme, noise.extreme)


@pytest.mark.parametrize("bursty", [3, 8])
def test_bursts_that_are_new_become_no_noise_of_the_other_nodes(bursty: int) -> None:
    """Until their nodes are known to be restless, they count for all."""
    rows = 0.3 * gaussian(20, 900, 5.0, 1)
    rows[600:, :bursty] += 50.0 * ((np.arange(300) // 15) % 2)[:, None]
    noise = learned(rows)
    assert noise.restless == tuple(f"n{index:04d}" for index in range(bursty))
    assert noise.calm.extreme < 12.0


def test_nodes_stay_restless_while_others_are_left_out_for_a_few_passes() -> None:
    """Moves leave their nodes out, and all nodes start again then."""
    rows = 0.3 * gaussian(20, 600, 5.0, 1)
    rows[:, :5] += 50.0 * ((np.arange(600) // 15) % 2)[:, None]
    noise = learned(rows)
    assert len(noise.restless) == 5
    for row in rows[:30]:
        deviations = {f"n{index:04d}": float(score) for index, score in enumerate(row - np.median(row)) if index < 15}
        noise = observe(noise, deviations, elapsed_seconds=60.0, memory_seconds=300.0)
        assert len(noise.restless) == 5
