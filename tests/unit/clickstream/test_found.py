from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest

from examples.clickstream.__main__ import Found
from examples.clickstream.acts import READS_ON, Look, Played
from examples.clickstream.traffic import Sample, Watch
from tests.testbed.network import Crossed
from tests.testbed.testbed import Testbed

ALONE = Look(zone_bytes_per_click=500.0, rack_bytes_per_click=500.0)
NEAR_AT_FIRST = [(200 * at, 0) for at in range(30)]
FAR_WHILE_STALLED = [(200 * 30, 200 * at) for at in range(30)]
NEAR_AGAIN = [(200 * (30 + at), 200 * 30) for at in range(30)]
BACKING_OFF = [*NEAR_AT_FIRST, *FAR_WHILE_STALLED, *NEAR_AGAIN]
NEVER = [(200 * at, 0) for at in range(90)]


def watch(written: Sequence[tuple[int, int]] = BACKING_OFF) -> Watch:
    """Of a second each: the records in zones a and b so far. The reader of zone a reads on after a minute."""
    samples = [
        Sample(float(at), {"zone-a": a, "zone-b": b}, {"zone-a": 0, "zone-b": 0}, Crossed(0, 0))
        for at, (a, b) in enumerate(written)
    ]
    marks = [(30.0, "near reader stalls"), (60.0, READS_ON)]
    return Watch(Testbed(), "b:9092", "visits", {"zone-a": [0], "zone-b": [1]}, samples=samples, marks=marks)


def played(zone_bytes: float, *, behind_seconds: float = 1.0, sent: int = 100, delivered: int = 100) -> Played:
    looked = Look(zone_bytes, zone_bytes, behind_seconds)
    return Played(Counter({"zone-a": 4}), looked, sent, delivered, min(sent, delivered), "", True, watch())


FOUND = Found(alone=ALONE, plain=played(1500.0), near=played(700.0))


def test_what_kafka_replicates_is_not_counted_for_the_job() -> None:
    assert FOUND.zone_ratio == 0.2
    assert not list(FOUND.failures())


def test_too_many_bytes_a_job_behind_and_a_record_twice_are_failures() -> None:
    assert "40% of the bytes" in next(replace(FOUND, near=played(900.0)).failures())
    assert "was 30 s behind" in next(replace(FOUND, near=played(500.0, behind_seconds=30.0)).failures())
    assert "100 sent, 101 arrived" in next(replace(FOUND, near=played(500.0, delivered=101)).failures())


@pytest.mark.parametrize(
    ("written", "failure"),
    [(NEVER, "100% of the records went to the stalled"), ([*NEAR_AT_FIRST, *FAR_WHILE_STALLED] * 2, "came back")],
)
def test_records_that_stay_at_a_stalled_reader_or_do_not_come_back_are_failures(
    written: Sequence[tuple[int, int]], failure: str
) -> None:
    assert failure in next(replace(FOUND, near=replace(FOUND.near, watch=watch(written))).failures())


def test_a_ledger_that_is_not_balanced_is_a_failure_though_the_count_agrees() -> None:
    assert list(replace(FOUND, near=replace(FOUND.near, balanced=False)).failures())


def test_the_plot_has_a_line_for_each_zone_and_the_marks() -> None:
    plot = watch().plot()
    assert plot.count("<polyline") == 2
    assert all(
        text in plot for text in ("zone-a", "zone-b", "near reader stalls", 'xmlns="http://www.w3.org/2000/svg"')
    )
