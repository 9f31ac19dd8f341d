from __future__ import annotations

from dataclasses import replace

import pytest

from ballast.shedding.transfer_pool import Activity, top_executors

PLAIN = Activity("plain", 1e6, 1e6, 1000.0, 1000, 1_000_000)


@pytest.mark.parametrize(
    "busier",
    [
        replace(PLAIN, name="busier", bytes_in_per_second=1.1e6),
        replace(PLAIN, name="busier", bytes_out_per_second=1.1e6),
        replace(PLAIN, name="busier", rate_per_second=1100.0),
        replace(PLAIN, name="busier", connections=1500),
        replace(PLAIN, name="busier", cache_bytes=1_100_000),
    ],
    ids=["bytes in", "bytes out", "records", "connections", "cache"],
)
def test_the_busiest_is_reported_last(busier: Activity) -> None:
    assert top_executors([busier, PLAIN], most=2) == ("plain", "busier")


def test_the_busiest_by_both_directions_unless_asked_to_do_as_pulsar() -> None:
    inward = replace(PLAIN, name="in", bytes_in_per_second=2e6, bytes_out_per_second=0.0)
    outward = replace(PLAIN, name="out", bytes_out_per_second=9e6)
    assert top_executors([inward, outward], most=2) == ("in", "out")
    assert top_executors([inward, outward], most=2, inbound_first=True) == ("out", "in")


@pytest.mark.parametrize("inbound_first", [False, True])
def test_bytes_come_before_records(*, inbound_first: bool) -> None:
    fast = replace(PLAIN, name="fast", rate_per_second=9e6, connections=9_000)
    assert top_executors(
        [fast, replace(PLAIN, name="big", bytes_out_per_second=2e6)], most=2, inbound_first=inbound_first
    ) == (
        "fast",
        "big",
    )


def test_small_differences_do_not_count() -> None:
    almost = replace(PLAIN, name="almost", bytes_in_per_second=1.04e6, connections=999)
    assert top_executors([PLAIN, almost], most=1) == ("plain",)


def test_only_the_busiest_are_reported() -> None:
    many = [replace(PLAIN, name=str(index), bytes_in_per_second=index * 1e6) for index in range(1, 6)]
    assert top_executors(many, most=2) == ("4", "5")


def test_those_without_bytes_are_left_out() -> None:
    assert top_executors([replace(PLAIN, bytes_in_per_second=0.0, bytes_out_per_second=0.0)], most=3) == ()
