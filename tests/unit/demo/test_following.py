import io
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest
from rich.console import Console

from examples.demo.findings import Trail
from examples.demo.following import Follower, UnfinishedMoveError
from examples.demo.screen import Screen
from examples.demo.watch import Watch
from tests.testbed.testbed import Testbed

Json = dict[str, Any]
TIMINGS = {
    "leaving": "2026-01-01T00:00:00Z",
    "arriving": "2026-01-01T00:00:02Z",
    "settling": "2026-01-01T00:00:09Z",
    "ended": "2026-01-01T00:00:50Z",
}


def move(phase: str, **status: Any) -> Json:
    return {
        "metadata": {"name": "m-1", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {
            "sourceNodeName": "a",
            "targetNodeName": "b",
            "executor": {"pod": "p-exec-1"},
            "reason": {"scores": {"from": "95", "to": "5"}, "hits": {"low": 3, "high": 2}},
            "predicted": {"hotAfter": "83", "coldAfter": "17"},
        },
        "status": {"phase": phase, **status},
    }


REPLACED = {"replacement": {"pod": "p-exec-7", "node": "b"}, "timings": TIMINGS}


@dataclass
class Stage:
    """A cluster whose only move is another one each time it is read."""

    seen: Iterator[list[Json]]
    text: io.StringIO = field(default_factory=io.StringIO)
    trail: Trail = field(default_factory=Trail)

    def get(self, _path: str) -> Json:
        return {"items": next(self.seen)}

    def follower(self) -> Follower:
        testbed = cast("Testbed", SimpleNamespace(api=self))
        watch = cast("Watch", SimpleNamespace(move=""))
        return Follower(testbed, Screen(Console(file=self.text)), watch, self.trail, "analytics", poll_seconds=0.0)


def test_a_move_is_told_from_its_decision_to_its_judgment() -> None:
    ended = move("Succeeded", reason="Helped", message="it helped", measured={"gain": 21.0}, **REPLACED)
    phases = [[], [move("Proposed")], [move("Leaving")], [move("Arriving")], [move("Settling", **REPLACED)], [ended]]
    stage = Stage(iter(phases))
    found = stage.follower().follow()
    assert (found.phase, found.reason, found.landed_on) == ("Succeeded", "Helped", "b")
    assert [text for _, text in stage.trail.marks] == ["executor leaves", "replacement runs", "judged"]
    told = [line.partition("  ")[2] for line in stage.text.getvalue().splitlines()]
    assert told == [
        "decided after 3 low and 2 high hits: p-exec-1 from a to b",
        "predicted: a 95 → 83, b 5 → 17; cost of traffic +0%",
        "leaving",
        "arriving",
        "settling: p-exec-7 runs on b",
        "Succeeded, Helped: it helped",
        "it left in 2.0 s, its replacement ran 7.0 s later and counts after another 15 s",
    ]


def test_a_move_that_ends_before_its_replacement_runs_is_an_error() -> None:
    stage = Stage(iter([[move("Proposed")], [move("Expired", message="it is gone")]]))
    with pytest.raises(UnfinishedMoveError, match="m-1 ended Expired before a replacement ran: it is gone"):
        stage.follower().follow()
