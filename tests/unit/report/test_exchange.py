"""How much of a shuffle crosses zones and racks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ballast.model import Executor, ExecutorUsage, Location
from ballast.report.exchange import Shuffle, Volume, shares, shuffle_of
from tests.builders import an_executor


def executors(count: int) -> list[Executor]:
    return [an_executor(f"exec-{i}") for i in range(count)]


def measured(executor: Executor, **usage: float) -> Executor:
    return replace(executor, usage=ExecutorUsage(**usage))


def crossing(shuffle: Shuffle, *zones: str | None) -> float | None:
    places: list[Location] = [(zone, f"{zone}-r", f"n{i}") for i, zone in enumerate(zones)]
    return shares(shuffle.parts, places).zone


def test_two_thirds_of_a_shuffle_over_three_zones_cross_them() -> None:
    assert crossing(shuffle_of(executors(3), None), "a", "b", "c") == pytest.approx(2 / 3)


def test_one_minus_the_sum_of_squares_crosses() -> None:
    assert crossing(shuffle_of(executors(4), None), "a", "a", "a", "b") == pytest.approx(1 - 9 / 16 - 1 / 16)


def test_an_executor_that_reads_more_counts_more() -> None:
    heavy, light = (
        measured(each, shuffle_read_bytes_per_second=rate, shuffle_write_bytes_per_second=rate)
        for each, rate in zip(executors(2), (9.0, 1.0), strict=True)
    )
    found = shuffle_of([heavy, light], None)
    assert (found.volume, found.bytes_per_second) == (Volume.MEASURED, 10.0)
    assert crossing(found, "a", "b") == pytest.approx(1 - 0.81 - 0.01)


def test_a_shuffle_is_not_measured_while_one_executor_has_no_metrics() -> None:
    known = measured(an_executor("exec-1"), shuffle_read_bytes_per_second=5.0)
    assert shuffle_of([known, an_executor("exec-2")], None).volume is Volume.UNKNOWN


def test_measured_bytes_win_over_declared_ones_and_those_over_the_network() -> None:
    pod = measured(an_executor("exec-1"), bytes_per_second=4.0)
    spark = measured(an_executor("exec-1"), bytes_per_second=4.0, shuffle_read_bytes_per_second=3.0)
    assert shuffle_of([spark], 7.0).bytes_per_second == 3.0
    assert shuffle_of([pod], 7.0).bytes_per_second == 7.0
    assert shuffle_of([pod, pod], None).volume is Volume.UPPER_BOUND


def test_the_networks_bytes_count_once_for_both_ends_and_not_for_what_stays_on_an_executor() -> None:
    """Four executors exchange 16 B/s all to all: a quarter stays, the other 12 B/s enter and leave the network."""
    pods = [measured(each, bytes_per_second=6.0) for each in executors(4)]
    assert shuffle_of(pods, None).bytes_per_second == pytest.approx(16.0)


def test_a_zone_without_a_label_makes_the_share_unknown() -> None:
    assert crossing(shuffle_of(executors(2), None), "a", None) is None


def test_racks_are_unknown_where_the_levels_have_none() -> None:
    found = shares(shuffle_of(executors(2), None).parts, [("a", "n1"), ("b", "n2")])
    assert found.zone == pytest.approx(0.5)
    assert found.rack is None
