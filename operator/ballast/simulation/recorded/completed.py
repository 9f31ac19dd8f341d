"""A recording with what a snapshot of the same pool tells more exactly: what nodes offer, and which moves were made."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ballast.model import Move
from ballast.simulation.recorded.known import Known
from ballast.simulation.recorded.moved import MOVE_SECONDS
from ballast.simulation.recorded.slots import slots
from ballast.simulation.recording import RecordedNode, Recording


def completed(recording: Recording, known: Known) -> Recording:
    members = list(recording.executors)
    for index in _replacements(recording, known.moves):
        members[index] = replace(members[index], moved=True)
    nodes = tuple(_sized(node, known) for node in recording.nodes)
    return replace(recording, nodes=nodes, executors=tuple(members))


def _sized(node: RecordedNode, known: Known) -> RecordedNode:
    if not node.whole or node.name not in known.nodes:
        return node
    offered = known.nodes[node.name].allocatable
    return replace(node, cores=offered.cpu_cores, memory_bytes=offered.memory_bytes, whole=False)


def _replacements(recording: Recording, moves: tuple[Move, ...]) -> Iterator[int]:
    """Executors that began where one that was moved was to go, soon after it was decided."""
    left = {(move.namespace, move.executor_name): move for move in moves if move.left_at is not None}
    if not left:
        return
    successor = slots(recording).successor
    for index in np.flatnonzero(successor >= 0).tolist():
        executor, after = recording.executors[index], recording.executors[successor[index]]
        move = left.get((executor.namespace, executor.name))
        if move is None or recording.nodes[after.node].name != move.target:
            continue
        began = recording.start + after.first * recording.step_seconds
        if -recording.step_seconds <= began - move.started_at <= MOVE_SECONDS + recording.step_seconds:
            yield int(successor[index])
