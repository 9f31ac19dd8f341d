"""Which gated executors are let go now, and which wait for the rest of their set.

A set is one application's executors of one component that start together. Spark keeps streaming state where its
first batches ran, so a set is released at once or the early ones keep everything.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from ballast.model import Executor, Hold, Phase, PlacementMode, PlacementPolicy, Reason, Snapshot

_ASIDE_GATES = frozenset({"kueue.x-k8s.io/topology"})
"""Where another controller chooses the node, Ballast stands aside."""

SetKey = tuple[str, str, str]
"""Topology, application, component."""


@dataclass(frozen=True, slots=True)
class Releases:
    place: tuple[Executor, ...]
    """To be placed and released in this pass."""
    unpinned: tuple[tuple[Executor, Reason], ...]
    """To be released as they are."""
    holds: tuple[Hold, ...]


def releases(snapshot: Snapshot, placement: PlacementPolicy, now: float) -> Releases:
    """Split the gated executors of a snapshot; `now` and all times in seconds since the epoch."""
    gated = [e for e in snapshot.executors if e.phase is Phase.GATED]
    unpinned = [(e, reason) for e in gated if (reason := _stands_aside(e, placement)) is not None]
    aside = {e.uid for e, _ in unpinned}
    started = _started_sets(snapshot.executors)
    expected = _expected(snapshot)
    place: list[Executor] = []
    holds: list[Hold] = []
    for key, members in sorted(_sets(e for e in gated if e.uid not in aside).items()):
        waiting = [e for e in members if e.last_gate_since is None]
        ready = [e for e in members if e.last_gate_since is not None]
        holds += [Hold(e.key, e.uid, Reason.FOREIGN_GATE, None) for e in waiting]
        complete = expected.get((key[0], key[2]))
        until = _held_until(ready, placement, late=key in started, expected=complete)
        if until is None or now >= until:
            place += ready
        else:
            holds += [Hold(e.key, e.uid, Reason.WAITING_FOR_SET, until) for e in ready]
    return Releases(tuple(place), tuple(unpinned), tuple(holds))


def _stands_aside(executor: Executor, placement: PlacementPolicy) -> Reason | None:
    if placement.mode is not PlacementMode.ENFORCE or not executor.enforced:
        return Reason.NOT_ENFORCED
    if executor.scheduler != "default-scheduler":
        return Reason.FOREIGN_SCHEDULER
    return Reason.FOREIGN_GATE if _ASIDE_GATES.intersection(executor.gates) else None


def _set_of(executor: Executor) -> SetKey:
    return (executor.topology, executor.application, executor.component)


def _sets(gated: Iterable[Executor]) -> dict[SetKey, list[Executor]]:
    sets: dict[SetKey, list[Executor]] = defaultdict(list)
    for executor in gated:
        sets[_set_of(executor)].append(executor)
    return sets


def _started_sets(executors: Iterable[Executor]) -> set[SetKey]:
    going = (Phase.PENDING, Phase.RUNNING, Phase.LEAVING)
    return {_set_of(e) for e in executors if e.phase in going}


def _expected(snapshot: Snapshot) -> dict[tuple[str, str], int]:
    return {
        (topology.key, component.name): component.expected
        for topology in snapshot.topologies
        for component in topology.components
        if component.expected is not None
    }


def _held_until(ready: list[Executor], placement: PlacementPolicy, *, late: bool, expected: int | None) -> float | None:
    """None: go now. A set is complete, has gone quiet, or its first member's time is up, whichever comes first."""
    since = [e.last_gate_since for e in ready if e.last_gate_since is not None]
    if not since or late or (expected is not None and len(ready) >= expected):
        return None
    return min(max(since) + placement.debounce_seconds, min(since) + placement.gate_timeout_seconds)
