"""A zone's upgrade: its nodes are announced to leave together, with executors on all of them."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from ballast.simulation.engine import simulate
from ballast.simulation.trace import Cause, Trace
from tests.unit.simulation.small_world import EAGER, by_spec, scenario

UPGRADED = {"a-0", "a-1", "a-2"}
UPGRADE: dict[str, Any] = {
    "duration": "30m",
    "nodes": [{"name": name, "count": 3, "cores": 16, "zones": [name]} for name in ("a", "b")],
    "applications": [
        {"name": "clicks", "executors": 9, "load": {"cores": 0.5}, "runsOn": dict.fromkeys(sorted(UPGRADED), 3)},
        {"name": "views", "executors": 6, "load": {"cores": 0.5}, "runsOn": dict.fromkeys(sorted(UPGRADED), 2)},
    ],
    "events": [{"at": "10m", "leave": ["a"], "notice": "6m"}],
}


def upgraded(**drain: Any) -> Trace:
    world = scenario(**UPGRADE)
    moves = {**EAGER["moves"], "drain": drain}
    return simulate(world, by_spec({**EAGER, "moves": moves, "shedding": {"strategy": "None"}}, world, name="drained"))


def lost(trace: Trace) -> int:
    """Executors that were on a node when it went."""
    return sum(placed.cause is Cause.LOST for placed in trace.placements)


def test_all_executors_leave_the_zone_within_its_notice_and_none_moves_twice() -> None:
    trace = upgraded()
    assert lost(trace) == 0
    assert len(trace.moves) == 15
    assert max(Counter(move.slot for move in trace.moves).values()) == 1
    assert {move.source for move in trace.moves} == UPGRADED
    assert not {move.target for move in trace.moves} & UPGRADED
    assert trace.executors[-1].sum() == 15


@pytest.mark.parametrize(
    "drain", [{"enabled": False}, {"taints": [{"key": "ToBeDeletedByClusterAutoscaler", "drain": False}]}]
)
def test_without_drains_all_of_them_are_lost(drain: dict[str, Any]) -> None:
    trace = upgraded(**drain)
    assert trace.moves == ()
    assert lost(trace) == 15
