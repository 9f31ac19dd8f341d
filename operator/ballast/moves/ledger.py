"""What the metrics do not show yet: load on its way from one node to another.

A figure is a mean over the metric window, so the effect of something that happened `t` seconds ago is in it to
`t / window`; the rest is added here. Shedding and placing see the same ledger.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from ballast.model import Executor, Move, Phase, Policy, Snapshot
from ballast.moves.score import Loads, points_per_core


def projected(snapshot: Snapshot, policy: Policy, loads: Loads, measured: Mapping[str, float]) -> dict[str, float]:
    """Measured scores (percent) plus what is arriving minus what is leaving.

    The CPU weight applies as it does to the measured score; a node without a measured score has no projected one.
    """
    points = points_per_core(snapshot, policy)
    cores = _unseen_cores(snapshot, policy, loads)
    return {name: max(0.0, score + cores.get(name, 0.0) * points.get(name, 0.0)) for name, score in measured.items()}


def _unseen_cores(snapshot: Snapshot, policy: Policy, loads: Loads) -> dict[str, float]:
    cores: dict[str, float] = defaultdict(float)
    now, window = snapshot.taken_at, policy.window_seconds
    booked = {move.replacement_uid for move in snapshot.moves if _reaches(move)}
    for move in snapshot.moves:
        _book_move(cores, move, now=now, window_seconds=window)
    for executor in snapshot.executors:
        if executor.uid not in booked:
            _book_newcomer(cores, executor, loads, now=now, window_seconds=window)
    return cores


def _book_move(cores: dict[str, float], move: Move, *, now: float, window_seconds: float) -> None:
    """The source shows the loss once its executor has gone, the target the gain once the replacement runs."""
    if _reaches(move):
        cores[move.target] += move.load_cores * _unseen_share(move.arrived_at, now, window_seconds)
    left_at = move.arrived_at if move.left_at is None else move.left_at
    if move.phase.traveling or left_at is not None:
        cores[move.source] -= move.load_cores * _unseen_share(left_at, now, window_seconds)


def _reaches(move: Move) -> bool:
    """Whether its load counts for its target; what became of one that failed is an executor like any other."""
    return move.phase.traveling or move.arrived_at is not None


def _unseen_share(since: float | None, now: float, window_seconds: float) -> float:
    """Of what has happened then; all of what has not happened yet, or only by a clock that is ahead."""
    return 1.0 if since is None else min(1.0, max(0.0, 1.0 - (now - since) / window_seconds))


def _book_newcomer(
    cores: dict[str, float], executor: Executor, loads: Loads, *, now: float, window_seconds: float
) -> None:
    if executor.node is None or executor.phase not in (Phase.PENDING, Phase.RUNNING):
        return
    unseen = _unseen_share(executor.running_since, now, window_seconds)
    if unseen > 0:
        cores[executor.node] += loads.expected(executor) * unseen
