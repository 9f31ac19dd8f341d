"""How much of a shuffle crosses zones and racks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ballast.model import Anchor, Component, Executor, ExecutorUsage, Location, Stream
from ballast.report.exchange import Reads, Shuffle, Volume, declared_leaders, other_bytes, reads_of, shares, shuffle_of
from tests.builders import a_topology, an_executor


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


EVEN = {"a": 1 / 3, "b": 1 / 3, "c": 1 / 3}


def reads(before: str, after: str, leaders: dict[str, float], *, rate: float | None = 90.0) -> Reads | None:
    """`before`, `after`: the zone of each executor, one letter each."""
    anchors = tuple(Anchor((zone, None, None), share) for zone, share in leaders.items())
    kafka = Component("kafka", external=True, anchors=anchors)
    topology = a_topology(kafka, Component("ingest"), streams=(Stream("kafka", "ingest", bytes_per_second=rate),))
    here: list[Location] = [(zone, None, "n") for zone in before]
    there: list[Location] = [(zone, None, "n") for zone in after]
    return reads_of(declared_leaders(topology, "ingest"), Volume.DECLARED, here, there)


def test_the_option_makes_every_executor_read_in_its_own_zone() -> None:
    found = reads("abc", "aaa", EVEN)
    assert found is not None
    assert (found.now, found.with_client_rack) == pytest.approx((60.0, 0.0))


def test_one_zone_alone_brings_no_executor_nearer_to_leaders_in_all_zones() -> None:
    found = reads("abc", "aaa", EVEN)
    assert found is not None
    assert (found.placed, found.placed_with_client_rack) == pytest.approx((60.0, 0.0))


def test_placement_adds_what_executors_in_zones_without_brokers_read() -> None:
    found = reads("aaab", "aaaa", {"a": 0.5, "c": 0.5})
    assert found is not None
    assert (found.now, found.with_client_rack) == pytest.approx((90.0 * 5 / 8, 90.0 / 4))
    assert (found.placed, found.placed_with_client_rack) == pytest.approx((45.0, 0.0))


def test_a_zone_without_brokers_has_no_replica_to_read_from() -> None:
    found = reads("aaa", "bbb", {"b": 1.0})
    assert found is not None
    assert (found.now, found.with_client_rack, found.placed) == (90.0, 90.0, 0.0)


def test_what_the_network_carries_beside_the_shuffle_comes_at_most_from_elsewhere() -> None:
    usage = {"shuffle_read_bytes_per_second": 8.0, "shuffle_write_bytes_per_second": 8.0, "bytes_per_second": 22.0}
    pods = [measured(each, **usage) for each in executors(4)]
    # Of each executor's 8 B/s three quarters come from the others: 24 B/s, counted at both ends.
    assert other_bytes(pods, shuffle_of(pods, None)) == pytest.approx(88.0 - 48.0)


@pytest.mark.parametrize("missing", ["shuffle_read_bytes_per_second", "bytes_per_second"])
def test_without_shuffle_or_network_nothing_is_known_of_other_bytes(missing: str) -> None:
    usage = {"shuffle_read_bytes_per_second": 8.0, "bytes_per_second": 22.0}
    pods = [measured(each, **usage) for each in executors(3)]
    pods.append(measured(an_executor("exec-9"), **{key: value for key, value in usage.items() if key != missing}))
    assert other_bytes(pods, shuffle_of(pods, None)) is None


def test_nothing_is_said_about_reads_without_a_rate() -> None:
    assert reads("abc", "aaa", EVEN, rate=None) is None
