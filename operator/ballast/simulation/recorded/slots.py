"""Recorded executors as slots: where one has ended and another of its application begins, it is its replacement."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ballast.model.arrays import IntArray
from ballast.simulation.recording import RecordedExecutor, Recording

_REPLACED_SECONDS = 300.0
"""A replacement begins within this time."""
_OVERLAP_SECONDS = 60.0
"""For so long it may be there next to the one that it replaces, which is on its way out."""


@dataclass(frozen=True, slots=True, eq=False)
class Slots:
    occupant: IntArray
    """Steps × slots: index of the executor in the slot; -1 = none."""
    node: IntArray
    """Steps × slots: index of the node where it was; -1 = there was none."""
    successor: IntArray
    """By executor: its replacement; -1 = none."""
    slot_of: IntArray
    """By executor."""

    @property
    def count(self) -> int:
        return int(self.occupant.shape[1])


def slots(recording: Recording) -> Slots:
    """In the order of namespace, application, and when their first executors began."""
    executors = recording.executors
    successor = np.full(len(executors), -1, dtype=np.int64)
    slot_of = np.full(len(executors), -1, dtype=np.int64)
    count = 0
    for members in _applications(executors):
        for index, before in _chained(members, recording):
            if before is None:
                slot_of[index] = count
                count += 1
            else:
                successor[before], slot_of[index] = index, slot_of[before]
    occupant = np.full((recording.steps, count), -1, dtype=np.int64)
    for index, each in enumerate(executors):
        # Where two overlap, the newer one is in the slot.
        after = executors[successor[index]].first if successor[index] >= 0 else recording.steps
        occupant[each.first : min(each.last + 1, after), slot_of[index]] = index
    nodes = np.array([each.node for each in executors] + [-1], dtype=np.int64)
    return Slots(occupant, nodes[occupant], successor, slot_of)


def _applications(executors: Sequence[RecordedExecutor]) -> Iterator[list[int]]:
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    for index, each in enumerate(executors):
        groups[each.namespace, each.application].append(index)
    for _, members in sorted(groups.items()):
        yield sorted(members, key=lambda index: (executors[index].first, _natural(executors[index].name)))


def _natural(name: str) -> tuple[int, str]:
    """`exec-10` after `exec-9`."""
    return len(name), name


def _chained(members: Sequence[int], recording: Recording) -> Iterator[tuple[int, int | None]]:
    """Each executor with the one that it replaces: of those that end about when it begins, the nearest in time."""
    executors = recording.executors
    later = _REPLACED_SECONDS / recording.step_seconds
    sooner = max(1.0, (_OVERLAP_SECONDS + recording.lingering_seconds) / recording.step_seconds)
    ends: list[int] = []
    for index in members:
        first = executors[index].first
        away = {each: first - executors[each].last for each in ends if executors[each].first < first}
        possible = [each for each, steps in away.items() if -sooner <= steps <= max(1.0, later)]
        before = min(possible, key=lambda each: (abs(away[each] - 1), each), default=None)
        if before is not None:
            ends.remove(before)
        # Those that ended long ago are not replaced any more.
        ends = [each for each in ends if first - executors[each].last <= max(1.0, later)]
        ends.append(index)
        yield index, before


# Which executors of a recording are there because the operator moved them.

MOVE_SECONDS = 360.0
"""From the decision until the replacement is on its way: leaving and arriving, as a policy limits them by default."""


def with_moved(recording: Recording, decided: IntArray) -> Recording:
    """`decided`: by step, the moves that the operator decided on since the step before.

    Which executors they were about is not recorded: they are the first ones of which a replacement began on another
    node that was there all along, soon after. Others that come elsewhere were lost or restarted.
    """
    if not decided.any():
        return recording
    members = list(recording.executors)
    longest = max(1, int(np.ceil(MOVE_SECONDS / recording.step_seconds)))
    successor = slots(recording).successor
    waiting = sorted(
        (members[after].first, before, int(after)) for before, after in enumerate(successor.tolist()) if after >= 0
    )
    missing = 0
    for step in np.flatnonzero(decided).tolist():
        soon = [
            (first, before, after)
            for first, before, after in waiting
            if step - 1 <= first <= step + longest
            and members[before].node != members[after].node
            and recording.present[first, members[before].node]
        ]
        for found in soon[: int(decided[step])]:
            members[found[2]] = replace(members[found[2]], moved=True)
            waiting.remove(found)
        missing += max(0, int(decided[step]) - len(soon))
    told = (f"{missing} of {int(decided.sum())} moves that the operator decided on left no trace",) if missing else ()
    return replace(recording, executors=tuple(members), unknown=(*recording.unknown, *told))
