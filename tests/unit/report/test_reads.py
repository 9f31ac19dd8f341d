"""What `client.rack` alone saves, and what placement adds."""

from __future__ import annotations

import pytest

from ballast.model import Anchor, Component, Location, Stream
from ballast.report.reads import Reads, reads_of
from tests.builders import a_topology

EVEN = {"a": 1 / 3, "b": 1 / 3, "c": 1 / 3}


def reads(before: str, after: str, leaders: dict[str, float], *, rate: float | None = 90.0) -> Reads | None:
    """`before`, `after`: the zone of each executor, one letter each."""
    anchors = tuple(Anchor((zone, None, None), share) for zone, share in leaders.items())
    kafka = Component("kafka", external=True, anchors=anchors)
    topology = a_topology(kafka, Component("ingest"), streams=(Stream("kafka", "ingest", bytes_per_second=rate),))
    here: list[Location] = [(zone, None, "n") for zone in before]
    there: list[Location] = [(zone, None, "n") for zone in after]
    return reads_of(topology, "ingest", here, there)


def test_one_value_for_an_application_over_three_zones_saves_nothing() -> None:
    found = reads("abc", "aaa", EVEN)
    assert found is not None
    assert (found.now, found.with_client_rack) == pytest.approx((60.0, 60.0))


def test_in_one_zone_the_option_is_true_for_every_executor() -> None:
    found = reads("abc", "aaa", EVEN)
    assert found is not None
    assert (found.placed, found.placed_with_client_rack) == pytest.approx((60.0, 0.0))


def test_the_option_alone_saves_where_most_executors_are_in_one_zone() -> None:
    found = reads("aaab", "aaaa", EVEN)
    assert found is not None
    assert (found.now, found.with_client_rack) == pytest.approx((60.0, 90.0 / 4))


def test_a_zone_without_brokers_has_no_replica_to_read_from() -> None:
    found = reads("aaa", "bbb", {"b": 1.0})
    assert found is not None
    assert (found.now, found.with_client_rack, found.placed) == (90.0, 90.0, 0.0)


def test_nothing_is_said_about_reads_without_a_rate() -> None:
    assert reads("abc", "aaa", EVEN, rate=None) is None
