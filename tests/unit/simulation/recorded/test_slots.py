from __future__ import annotations

import pytest

from ballast.simulation.recorded.slots import slots
from ballast.simulation.recording import RecordedExecutor
from tests.unit.simulation.recordings import executor, recording


@pytest.mark.parametrize(
    ("executors", "chained"),
    [
        ([executor(1, 0, last=3), executor(2, 1, first=4)], [[1, 2]]),
        ([executor(1, 0, last=3), executor(2, 1, first=5)], [[1, 2]]),
        ([executor(1, 0, last=4), executor(2, 1, first=4)], [[1, 2]]),
        ([executor(1, 0, last=3), executor(2, 1, first=9)], [[1], [2]]),
        ([executor(1, 0), executor(2, 1, first=4)], [[1], [2]]),
        ([executor(1, 0, last=3), executor(2, 1, first=4, application="other")], [[1], [2]]),
        ([executor(1, 0, last=3), executor(2, 1, first=4, namespace="other")], [[1], [2]]),
        ([executor(1, 0, last=3), executor(2, 1, last=5), executor(3, 0, first=4), executor(4, 1, first=6)],
         [[1, 3], [2, 4]]),
        ([executor(1, 0, last=3), executor(2, 1, first=4, last=6), executor(3, 0, first=7)], [[1, 2, 3]]),
    ],
    ids=["at once", "a step later", "overlapping", "too late", "beside", "of another application",
         "of another namespace", "each its own", "one after the other"],
)  # fmt: skip
def test_an_executor_that_begins_where_one_of_its_application_ends_replaces_it(
    executors: list[RecordedExecutor], chained: list[list[int]]
) -> None:
    found = slots(recording(executors))
    lanes: dict[int, list[int]] = {}
    for each, slot in zip(executors, found.slot_of.tolist(), strict=True):
        lanes.setdefault(slot, []).append(int(each.name.rsplit("-", 1)[1]))
    assert sorted(lanes.values()) == chained


def test_of_two_that_overlap_the_newer_one_is_in_the_slot() -> None:
    found = slots(recording([executor(1, 0, last=5), executor(2, 1, first=5)]))
    assert found.occupant[:, 0].tolist() == [0] * 5 + [1] * 5
    assert found.node[:, 0].tolist() == [0] * 5 + [1] * 5
    assert found.successor.tolist() == [1, -1]
    brief = slots(recording([executor(1, 0, last=5), executor(2, 1, first=5, last=5)]))
    assert brief.occupant[:, 0].tolist() == [0] * 5 + [1] + [-1] * 4


def test_figures_that_outlast_an_executor_do_not_hide_its_replacement() -> None:
    late = [executor(1, 0, last=8), executor(2, 1, first=4)]
    assert slots(recording(late)).count == 2
    assert slots(recording(late, lingering_seconds=300.0)).count == 1
