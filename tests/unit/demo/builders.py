"""Values for the demonstration's tests, complete but for what a test is about."""

from __future__ import annotations

from typing import Any

from examples.demo.findings import Durations, Findings, Move, Played, Trail
from examples.demo.machine import Use
from examples.demo.pool import Spread, pool_nodes
from examples.demo.streaming.batches import Batch
from examples.demo.streaming.records import Comparison

START = 1_000.0


def move(**changes: Any) -> Move:
    fields: dict[str, Any] = {
        "name": "m",
        "phase": "Succeeded",
        "message": "the gap went from 90.0 to 60.0 points",
        "source": "large-b2-1",
        "target": "large-b2-2",
        "executor": "placed-exec-5",
        "replacement": "placed-exec-7",
        "landed_on": "large-b2-2",
        "hits": 2,
        "predicted_gain": 24.0,
        "measured_gain": 30.0,
        "leaving_at": START + 60,
        "arriving_at": START + 62,
        "settling_at": START + 70,
        "ended_at": START + 110,
    }
    return Move(**{**fields, **changes})


def batches(seconds: float = 1.0) -> list[Batch]:
    """One every two seconds for 140 seconds."""
    return [Batch(number, START + 2 * number, seconds, 400) for number in range(70)]


def findings(**changes: Any) -> Findings:
    made = changes.get("move") or move()
    durations = Durations.around(made, batches(), quiet_at=START, noise_at=START + 30, until=START + 140)
    fields: dict[str, Any] = {
        "default": Spread(0.44, 0.72, {spec.name: 1 for spec in pool_nodes()[:6]}),
        "default_records": Comparison(source=9_000, sink=9_000, lost=0, duplicated=0, altered=0),
        "ballast": Spread(0.0, 0.41, {"large-b1-1": 2, "large-b1-2": 2, "large-b2-1": 2}),
        "move": made,
        "durations": durations,
        "records": Comparison(source=28_000, sink=28_000, lost=0, duplicated=0, altered=0),
        "busiest": Use(71.0),
    }
    return Findings(**{**fields, **changes})


def played(**changes: Any) -> Played:
    found = findings(**changes)
    marks = [(START + 30, "noise"), (START + 58, "decided"), (START + 60, "leaving"), (START + 70, "settling")]
    history = {
        spec.name: [(START + 3 * step, 20.0 + index * 9.0) for step in range(45)]
        for index, spec in enumerate(pool_nodes())
    }
    after = Spread(0.0, 0.41, {"large-b1-1": 2, "large-b1-2": 2, "large-b2-1": 1, "large-b2-2": 1})
    return Played(found, after, Trail(marks), history, batches(), quiet_at=START, until=START + 140)
