"""Nodes whose scores change for a reason that is known: executors begin there, or a move leaves or reaches them.

What such a node does is no noise. Were it learned as noise, a pool would take its own start, and each move, for chance
and overlook real gaps for hours. Executors of batch jobs come and go all the time: that is noise.
"""

from __future__ import annotations

from ballast.model import Executor, Move, Phase, Policy, Snapshot, Workload
from ballast.moves.cooldown import left


def unsettled(snapshot: Snapshot, policy: Policy, now: float) -> frozenset[str]:
    """Their names; `now` in seconds since the epoch."""
    streaming = {
        (topology.key, component.name)
        for topology in snapshot.topologies
        for component in topology.components
        if component.workload is Workload.STREAMING
    }
    settled_seconds = max(policy.moves.min_executor_age_seconds, policy.window_seconds)
    begun = {
        executor.node
        for executor in snapshot.executors
        if executor.node is not None
        and _begins(executor, now - settled_seconds)
        and (executor.topology, executor.component) in streaming
    }
    moving = {node for move in snapshot.moves if _under_way(move, now - policy.window_seconds) for node in _ends(move)}
    return frozenset(begun | moving)


def _begins(executor: Executor, since: float) -> bool:
    if executor.phase is Phase.RUNNING:
        return executor.running_since is not None and executor.running_since > since
    return executor.phase is Phase.PENDING


def _under_way(move: Move, since: float) -> bool:
    if not left(move):
        return False
    return move.ended_at is None or move.ended_at > since


def _ends(move: Move) -> tuple[str, str]:
    return move.source, move.target
