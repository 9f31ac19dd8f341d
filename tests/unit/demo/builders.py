"""Values for the demonstration's tests, complete except for what a test is about."""

from __future__ import annotations

from typing import Any

from examples.demo.findings import WARMUP_SECONDS, Durations, Findings, Move, Placed, Played, Trail
from examples.demo.machine import Use
from examples.demo.pool import Spread, pool_nodes
from examples.demo.streaming.batches import Batch
from examples.demo.streaming.records import Comparison
from tests.testbed.network import Crossed

START = 1_000.0
TOGETHER = Spread(0.0, 0.0, {"large-b1-1": 2, "large-b1-2": 2, "large-b1-3": 2})


def move(**changes: Any) -> Move:
    fields: dict[str, Any] = {
        "name": "m",
        "phase": "Succeeded",
        "reason": "Helped",
        "message": "the gap went from 90.0 to 60.0 points",
        "source": "large-b1-3",
        "target": "large-b1-4",
        "executor": "placed-exec-5",
        "replacement": "placed-exec-7",
        "landed_on": "large-b1-4",
        "hits": 2,
        "predicted_gain": 24.0,
        "measured_gain": 30.0,
        "leaving_at": START + 60,
        "arriving_at": START + 62,
        "settling_at": START + 70,
        "ended_at": START + 110,
    }
    return Move(**{**fields, **changes})


SETTLED_AT = START + 70 + WARMUP_SECONDS


def batches(*, noisy: float = 1.6, moved: float = 1.0) -> list[Batch]:
    """One every two seconds for 140 seconds, and how long they take next to the noise and after the move."""

    def seconds(at: float) -> float:
        return 1.0 if at < START + 30 else noisy if at < SETTLED_AT else moved

    return [Batch(number, at, seconds(at), 400) for number, at in enumerate(START + 2 * n for n in range(70))]


def placed(spread: Spread, *, seconds: float = 1.0, zones: int = 0, racks: int = 0, count: int = 8) -> Placed:
    """Batches of `seconds` each, in which so many bytes a record crossed zones and racks."""
    made = [Batch(number, START + 2 * number, seconds, 400) for number in range(count)]
    return Placed(spread, made, Crossed(racks * 400 * count, zones * 400 * count))


def by_default(**changes: Any) -> Placed:
    spread = Spread(0.44, 0.5, {spec.name: 1 for spec in pool_nodes()[:6]})
    return placed(spread, **{"seconds": 1.5, "zones": 900, "racks": 1_100, **changes})


def by_ballast(spread: Spread = TOGETHER, **changes: Any) -> Placed:
    return placed(spread, **changes)


def around(made: Move, found: list[Batch]) -> Durations:
    return Durations.around(made, found, quiet_at=START, noise_at=START + 30, until=START + 140)


def findings(**changes: Any) -> Findings:
    made = changes.get("move") or move()
    durations = around(made, batches())
    fields: dict[str, Any] = {
        "seed": 7,
        "default": by_default(),
        "default_records": Comparison(source=9_000, sink=9_000, lost=0, duplicated=0, altered=0),
        "ballast": by_ballast(),
        "move": made,
        "durations": durations,
        "records": Comparison(source=28_000, sink=28_000, lost=0, duplicated=0, altered=0),
        "uses": [Use(41.0), Use(71.0), Use(44.0)],
    }
    return Findings(**{**fields, **changes})


def played(**changes: Any) -> Played:
    found = findings(**changes)
    marks = [(START + 30, "noise"), (START + 58, "decided"), (START + 60, "leaving"), (START + 70, "settling")]
    history = {
        spec.name: [(START + 3 * step, 20.0 + index * 9.0) for step in range(45)]
        for index, spec in enumerate(pool_nodes())
    }
    after = Spread(0.0, 0.0, {"large-b1-1": 2, "large-b1-2": 2, "large-b1-3": 1, "large-b1-4": 1})
    return Played(found, after, Trail(marks), history, batches(), quiet_at=START, until=START + 140)
