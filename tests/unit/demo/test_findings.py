from typing import Any

import pytest

from examples.demo.findings import Durations, Move
from examples.demo.machine import Use
from examples.demo.pool import Spread
from examples.demo.streaming.records import Comparison
from tests.unit.demo.builders import START, batches, findings, move

LOST = Comparison(source=5, sink=4, lost=1, duplicated=0, altered=0)
ALTERED = Comparison(source=5, sink=5, lost=0, duplicated=0, altered=1)
SHAPE: dict[str, Any] = {
    "placement": {"default": {"crossZoneRatio", "crossRackRatio"}, "ballast": {"crossZoneRatio", "crossRackRatio"}},
    "move": {"from", "to", "hits", "predictedGain", "measuredGain", "secondsToLeave", "secondsToReplace"},
    "batches": {"beforeP50Seconds", "beforeP95Seconds", "duringMaxSeconds", "afterP50Seconds", "afterP95Seconds"},
    "records": {"source", "sink", "lost", "duplicated"},
}


def test_the_summary_has_the_shape_that_readers_rely_on() -> None:
    summary = findings().summary()
    assert summary.keys() == SHAPE.keys()
    for name in ("move", "batches", "records"):
        assert summary[name].keys() == SHAPE[name]
    for name, keys in SHAPE["placement"].items():
        assert summary["placement"][name].keys() == keys


def test_nothing_is_missing_when_all_went_well() -> None:
    assert findings().failures() == []


@pytest.mark.parametrize("ballast", [Spread(0.44, 0.5, {}), Spread(0.2, 0.72, {})])
def test_nearer_by_zones_or_by_racks_is_nearer(ballast: Spread) -> None:
    assert findings(ballast=ballast).failures() == []


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"ballast": Spread(0.5, 0.4, {})}, "not placed nearer"),
        ({"ballast": Spread(0.4, 0.8, {})}, "not placed nearer"),
        ({"ballast": Spread(0.44, 0.72, {"large-b1-1": 6})}, "not placed nearer"),
        ({"move": move(phase="Failed")}, "the move ended Failed"),
        ({"move": move(measured_gain=-1.0)}, "the gap did not narrow"),
        ({"move": move(measured_gain=None)}, "the gap did not narrow"),
        ({"move": move(landed_on="large-b2-1")}, "not large-b2-2"),
        ({"default_records": LOST}, "source and sink disagree under kube-scheduler"),
        ({"records": LOST}, "source and sink disagree under Ballast"),
        ({"records": ALTERED}, "source and sink disagree under Ballast"),
        ({"busiest": Use(85.0)}, "was 85 % busy while"),
        ({"busiest": Use(91.0, 20.4)}, "91 % busy (20 % stolen by its host)"),
        ({"busiest": None}, "an unknown share busy"),
    ],
)
def test_what_was_not_shown_is_told(changes: dict[str, Any], words: str) -> None:
    failures = findings(**changes).failures()
    assert any(words in failure for failure in failures), failures


@pytest.mark.parametrize("busiest", [Use(100.0), None])
def test_a_limit_of_a_hundred_percent_lets_a_busy_machine_pass(busiest: Use | None) -> None:
    assert findings(busiest=busiest).failures(busy_limit_percent=99.9)
    assert findings(busiest=busiest).failures(busy_limit_percent=100.0) == []


def test_every_batch_counts_before_during_or_after() -> None:
    found = Durations.around(move(), batches(), quiet_at=START, noise_at=START + 30, until=START + 140)
    numbers = [batch.number for span in (found.quiet, found.before, found.during, found.after) for batch in span]
    assert numbers == [batch.number for batch in batches()]
    assert max(batch.ended_at for batch in found.before) < move().leaving_at
    assert min(batch.started_at for batch in found.after) >= move().settling_at


def test_a_move_is_read_from_its_object() -> None:
    found = Move.of(
        {
            "metadata": {"name": "m-1"},
            "spec": {
                "from": "a",
                "to": "b",
                "executor": {"pod": "p-exec-1"},
                "reason": {"scores": {"from": 95.0, "to": 5.0}, "hits": {"low": 3, "high": 2}},
                "predicted": {"hotAfter": 83.0, "coldAfter": 17.0},
            },
            "status": {
                "phase": "Succeeded",
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
    assert (found.predicted_gain, found.measured_gain, found.hits) == (24.0, 21.0, 3)
    assert (found.seconds_to_leave, found.seconds_to_replace) == (2.0, 7.5)
