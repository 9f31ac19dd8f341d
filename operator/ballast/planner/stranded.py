"""Executors that were pinned to a place where nothing can run them.

Affinity can't be loosened once a pod is released, so such a pod is deleted (no failure to Spark) and its successor
is placed again; after a few times its successors are released unpinned.
"""

from __future__ import annotations

from dataclasses import replace

from ballast.model import Attempts, Executor, Memory, Phase, Pin, Placement, Reason, Snapshot

PATIENCE_SECONDS = 20.0
"""How long a pinned pod may stay unschedulable: the room may be freed by one that is just leaving."""
MOST_ATTEMPTS = 3
FORGET_SECONDS = 900.0
"""After this long without a further attempt a component is pinned again."""

Key = tuple[str, str]


def stranded(snapshot: Snapshot, memory: Memory, now: float) -> tuple[tuple[Placement, ...], Memory]:
    """The pods to delete, as placements without a node, and the memory with the attempts counted."""
    found = sorted((e for e in snapshot.executors if _hopeless(e, now)), key=lambda e: e.key)
    known = {(a.topology, a.component): a for a in memory.attempts if now - a.last_at < FORGET_SECONDS}
    for key in sorted({(e.topology, e.component) for e in found}):
        known[key] = _counted(known.get(key), key, now)
    attempts = tuple(known[key] for key in sorted(known))
    return tuple(_delete(executor) for executor in found), replace(memory, attempts=attempts)


def given_up(memory: Memory, now: float) -> frozenset[Key]:
    """Components whose executors are released unpinned for now."""
    return frozenset(
        (a.topology, a.component)
        for a in memory.attempts
        if a.count >= MOST_ATTEMPTS and now - a.last_at < FORGET_SECONDS
    )


def _counted(before: Attempts | None, key: Key, now: float) -> Attempts:
    if before is None:
        return Attempts(*key, count=1, last_at=now)
    # A pod on its way out may be seen a few passes long: that is one attempt.
    if now - before.last_at < PATIENCE_SECONDS:
        return before
    return replace(before, count=before.count + 1, last_at=now)


def _hopeless(executor: Executor, now: float) -> bool:
    since = executor.unschedulable_since
    return (
        executor.pinned
        and executor.enforced
        and executor.phase is Phase.PENDING
        and executor.node is None
        and since is not None
        and now - since >= PATIENCE_SECONDS
    )


def _delete(executor: Executor) -> Placement:
    return Placement(
        executor.key, executor.uid, None, (), Pin.NONE, Reason.NO_ROOM, "its place can't run it; it is placed again"
    )
