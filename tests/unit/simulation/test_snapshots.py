from __future__ import annotations

import numpy as np
import pytest

from ballast.model import Executor, Phase
from ballast.simulation.meter import Reading
from ballast.simulation.snapshots import Roster
from tests.unit.simulation.small_world import SMALL_AND_LARGE, cluster

EPOCH = 1000.0


def reading(cores: list[float], *, available: bool = True) -> Reading:
    nodes = np.array([0.5, 0.5])
    return Reading(available, nodes, np.zeros(2), np.array(cores), np.array([1.0, 2.0]), nodes)


def test_executors_are_seen_with_what_is_measured_of_them() -> None:
    pool = cluster(
        [SMALL_AND_LARGE[0], {**SMALL_AND_LARGE[1], "speed": 2.0}],
        executors=2,
        runsOn={"large": 1, "small": 1},
        recordsPerCore=10,
        bytesPerCore=100,
        taskSeconds=3,
        state="1k",
    )
    first, second = Roster(pool, epoch=EPOCH).executors(reading([0.5, np.nan]))
    assert (first.node, first.phase, first.running_since) == ("large", Phase.RUNNING, EPOCH - 3600.0)
    assert first.usage is not None
    assert (first.usage.cpu_cores, first.usage.records_per_second, first.usage.bytes_per_second) == (0.5, 5.0, 50.0)
    assert (first.usage.task_seconds, first.usage.task_bytes, first.usage.state_bytes) == (3.0, None, 1000.0)
    assert second.usage is None
    (_, busy) = Roster(pool, epoch=EPOCH).executors(reading([0.5, 0.5]))
    assert busy.usage is not None
    assert busy.usage.records_per_second == 10.0, "a core of a machine of twice the speed does twice the work"
    assert busy.usage.task_seconds == pytest.approx(3.0), "at half the capacity that it would need"


def test_without_metrics_nothing_is_known() -> None:
    pool = cluster(SMALL_AND_LARGE, executors=1, runsOn=["large"])
    (only,) = Roster(pool, epoch=EPOCH).executors(reading([0.5], available=False))
    assert only.usage is None


def test_what_changes_is_seen_and_the_rest_is_as_it_was() -> None:
    pool = cluster(SMALL_AND_LARGE, executors=2, runsOn=["large"])
    roster = Roster(pool, epoch=EPOCH)
    before = list(roster.executors(reading([0.5, 0.5])))
    pool.order_to_leave(0, 10.0)
    leaving, same = roster.executors(reading([0.5, 0.5]))
    assert (leaving.phase, leaving.uid) == (Phase.LEAVING, before[0].uid)
    assert same == before[1]
    pool.advance(15.0)
    assert [e.uid for e in roster.executors(reading([np.nan, 0.5]))] == [same.uid]
    pool.advance(20.0)
    renewed: Executor = next(roster.executors(reading([np.nan, 0.5])))
    assert (renewed.phase, renewed.uid, renewed.last_gate_since) == (Phase.GATED, "0.1", EPOCH + 20.0)
