"""The arbiter's second look at a move that is about to leave, or whose replacement is about to be pinned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ballast.model import Executor, Move, MovePhase, Phase, Policy, Reason, Refusal, Snapshot
from ballast.placement.room import in_flight
from ballast.planner import budget
from ballast.planner.candidates import Candidates

Clearance = tuple[Refusal | None, str | None]
"""Why not, or another destination than the move's; both None: go on."""


def clearance(
    snapshot: Snapshot,
    policy: Policy,
    move: Move,
    *,
    candidates: Candidates,
    scores: Mapping[str, float],
    now: float,
) -> Clearance:
    """Everything that could forbid the move now, its own part in budgets and reservations left out.

    `candidates` are of the same executors and nodes; `snapshot.moves` may be newer.
    """
    others = replace(snapshot, moves=tuple(m for m in snapshot.moves if (m.namespace, m.name) != _key(move)))
    candidates = candidates.given(booked=in_flight(others), now=now)
    if move.phase is MovePhase.ARRIVING:
        replacement = next((e for e in snapshot.executors if e.uid == move.replacement_uid), None)
        return (None, None) if replacement is None else _destination(replacement, move, candidates, scores)
    executor = next((e for e in snapshot.executors if e.uid == move.executor_uid), None)
    if executor is None:
        return None, None
    refusal = _objection(executor, move, others=others, policy=policy, candidates=candidates, now=now)
    return (refusal, None) if refusal is not None else _destination(executor, move, candidates, scores)


def _key(move: Move) -> tuple[str, str]:
    return (move.namespace, move.name)


def _objection(
    executor: Executor, move: Move, *, others: Snapshot, policy: Policy, candidates: Candidates, now: float
) -> Refusal | None:
    if not others.metrics.available:
        return Refusal(executor.key, Reason.NO_METRICS, f"{others.metrics.reason}: {others.metrics.message}")
    own = candidates.objection(executor)
    if own is not None:
        return Refusal(executor.key, own, candidates.words(executor.key))
    if move.topology in budget.paused_topologies(others.moves, policy.moves):
        return Refusal(executor.key, Reason.PAUSED, f"moves of {move.topology} are paused")
    # Moves that are only proposed, or wait for their own second look, must not block each other for ever.
    ahead = [m for m in others.moves if m.phase is not MovePhase.PROPOSED and not _behind(m, move)]
    found = budget.objection(
        ahead, policy.moves, topology=move.topology, source=move.source, target=move.target, now=now
    )
    return Refusal(executor.key, found[0], found[1], move.target) if found else None


def _behind(other: Move, move: Move) -> bool:
    """Whether the other one is approved as well, but later: the earlier goes first."""
    return other.phase is MovePhase.APPROVED and (other.started_at, *_key(other)) > (move.started_at, *_key(move))


def _destination(executor: Executor, move: Move, candidates: Candidates, scores: Mapping[str, float]) -> Clearance:
    """The move's own destination, else the next coldest that takes it and stays colder than the source."""
    refused = candidates.refusal(executor.key, move.target, ())
    if refused is None:
        return None, None
    limit = scores.get(move.source, float("inf"))
    for name in sorted(scores, key=lambda node: (scores[node], node)):
        if name in (move.source, move.target) or scores[name] >= limit:
            continue
        if candidates.refusal(executor.key, name, ()) is None and _levels(executor, name, candidates, scores, limit):
            return None, name
    return Refusal(executor.key, refused, f"{move.target} can't take it, and no other cold node can", move.target), None


def _levels(executor: Executor, name: str, candidates: Candidates, scores: Mapping[str, float], limit: float) -> bool:
    """Whether the node stays at or below the source once the executor is there; a replacement has left already."""
    if executor.phase is not Phase.RUNNING:
        return True
    return scores[name] + candidates.points_on(executor, name) <= limit - candidates.points_on(
        executor, executor.node or name
    )
