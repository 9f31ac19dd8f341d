from typing import Any

from examples.demo.findings import Move
from examples.demo.machine import Use
from tests.unit.demo.builders import around, batches, by_ballast, findings, move

PLACED = {"crossZoneRatio", "crossRackRatio", "zoneBytesPerRecord", "rackBytesPerRecord", "batchP50Seconds"}
SHAPE: dict[str, Any] = {
    "seed": None,
    "placement": {"default": PLACED, "ballast": PLACED},
    "move": {
        "phase",
        "reason",
        "from",
        "to",
        "hits",
        "predictedGain",
        "measuredGain",
        "secondsToLeave",
        "secondsToReplace",
    },
    "batches": {
        "quietP50Seconds",
        "beforeP50Seconds",
        "beforeP95Seconds",
        "duringMaxSeconds",
        "afterP50Seconds",
        "afterP95Seconds",
    },
    "records": {"source", "sink", "lost", "duplicated"},
    "machine": {"medianBusyPercent", "mostBusyPercent"},
}


def test_the_summary_has_the_shape_that_readers_rely_on() -> None:
    summary = findings().summary()
    assert summary.keys() == SHAPE.keys()
    for name in ("move", "batches", "records", "machine"):
        assert summary[name].keys() == SHAPE[name]
    for name, keys in SHAPE["placement"].items():
        assert summary["placement"][name].keys() == keys


def test_bytes_are_told_by_record() -> None:
    placed = by_ballast(zones=12, racks=30)
    assert (placed.zone_bytes_per_record, placed.rack_bytes_per_record) == (12, 30)


def test_the_machine_was_usually_as_busy_as_its_median() -> None:
    found = findings(uses=[Use(90.0), Use(30.0), Use(40.0)])
    assert (found.median_use, found.most_use) == (Use(40.0), Use(90.0))
    assert findings(uses=[]).median_use is None


def test_every_batch_counts_before_during_or_after() -> None:
    found = around(move(), batches())
    numbers = [batch.number for span in (found.quiet, found.before, found.during, found.after) for batch in span]
    assert numbers == [batch.number for batch in batches()]
    assert max(batch.ended_at for batch in found.before) < move().leaving_at
    assert min(batch.started_at for batch in found.after) >= move().settling_at


def test_a_move_is_read_from_its_object() -> None:
    found = Move.of(
        {
            "metadata": {"name": "m-1"},
            "spec": {
                "sourceNodeName": "a",
                "targetNodeName": "b",
                "executor": {"pod": "p-exec-1"},
                "reason": {"scores": {"from": "95", "to": "5"}, "hits": {"low": 3, "high": 2}},
                "predicted": {"hotAfter": "83", "coldAfter": "17"},
            },
            "status": {
                "phase": "Succeeded",
                "reason": "Helped",
                "replacement": {"pod": "p-exec-7", "node": "b"},
                "measured": {"gain": 21.0},
                "timings": {
                    "leaving": "2026-01-01T00:00:00Z",
                    "arriving": "2026-01-01T00:00:02Z",
                    "settling": "2026-01-01T00:00:09.5Z",
                    "ended": "2026-01-01T00:00:50Z",
                },
            },
        }
    )
    assert (found.predicted_gain, found.measured_gain, found.hits, found.reason) == (24.0, 21.0, 3, "Helped")
    assert (found.seconds_to_leave, found.seconds_to_replace) == (2.0, 7.5)
