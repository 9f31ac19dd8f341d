"""Which gated executors are released now, and which wait for the rest of their set.

A set is one application's executors of one component that start together. Spark keeps streaming state where its
first batches ran, so a set is released at once or the early ones keep everything.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf

from ballast.model import (
    Attempts,
    Constraints,
    Executor,
    Hold,
    Levels,
    Memory,
    MovePhase,
    Phase,
    Pin,
    Placement,
    PlacementMode,
    PlacementPolicy,
    Reason,
    Resources,
    Snapshot,
)
from ballast.moves.loads import profile_of
from ballast.placement.aside import never_placed
from ballast.placement.expectation import declared_sizes
from ballast.placement.growth import awaiting_nodes

# Executors that were pinned to a place where nothing can run them.
#
# Affinity can't be loosened once a pod is released, so such a pod is deleted (no failure to Spark) and its successor
# is placed again; after a few times its successors are released unpinned.

PATIENCE_SECONDS = 20.0
"""How long a pinned pod may stay unschedulable: the room may be freed by one that is just leaving."""
BARRED_SECONDS = 10.0
"""The same where it does not lack room: Ballast sees room there, and would choose that place again. So there is one
try, and its successors are released unpinned.
"""
NODE_SECONDS = 120.0
"""The same where an autoscaler may provide a node and no other place has room: then a new pod would not be better off.
Once, for then the autoscaler can't: the successors' zone is only preferred.
"""
MOST_ATTEMPTS = 3
FORGET_SECONDS = 900.0
"""After this long without a further attempt a component is pinned again."""

Key = tuple[str, str]


def unschedulable(
    snapshot: Snapshot, levels: Levels, memory: Memory, now: float, *, unbound: Mapping[str, Resources]
) -> tuple[tuple[Placement, ...], Memory]:
    """The pods to delete, as placements without a node, and the memory with the attempts counted.

    `unbound`: amounts by node that pending pods will take.
    """
    known = _remembered(memory, now)
    stuck = [each for each in snapshot.executors if _waits(each, now, _patience_seconds(each))]
    hopeful = [e for e in stuck if (e.topology, e.component) not in known and not _waits(e, now, NODE_SECONDS)]
    awaiting = awaiting_nodes(snapshot, levels, hopeful, unbound=unbound)
    found = sorted((e for e in stuck if e.uid not in awaiting), key=lambda e: e.key)
    for key in sorted({(e.topology, e.component) for e in found}):
        known[key] = _counted(known.get(key), key, now)
    for key in {(e.topology, e.component) for e in found if not e.lacks_room}:
        known[key] = replace(known[key], count=max(known[key].count, MOST_ATTEMPTS))
    attempts = tuple(known[key] for key in sorted(known))
    return tuple(_delete(executor) for executor in found), replace(memory, attempts=attempts)


def tried_lately(memory: Memory, now: float) -> frozenset[Key]:
    """Components whose executors could not run in their place lately: one without room requires none."""
    return frozenset(_remembered(memory, now))


def given_up(memory: Memory, now: float) -> frozenset[Key]:
    """Components whose executors' places are preferred for now, not required."""
    return frozenset(key for key, each in _remembered(memory, now).items() if each.count >= MOST_ATTEMPTS)


def _remembered(memory: Memory, now: float) -> dict[Key, Attempts]:
    """A time far in the future, as a status may have it, is forgotten, too."""
    return {(a.topology, a.component): a for a in memory.attempts if abs(now - a.last_at) < FORGET_SECONDS}


def _counted(before: Attempts | None, key: Key, now: float) -> Attempts:
    if before is None:
        return Attempts(*key, count=1, last_at=now)
    # A pod on its way out may be seen a few passes long: that is one attempt.
    if now - before.last_at < PATIENCE_SECONDS:
        return before
    return replace(before, count=before.count + 1, last_at=now)


def patience_ends(snapshot: Snapshot, now: float) -> float | None:
    """When the next executor will have been unschedulable in its place for as long as it may; None if none is."""
    ends = (
        executor.unschedulable_since + seconds
        for executor in snapshot.executors
        if executor.unschedulable_since is not None and _waits(executor, now, -inf)
        for seconds in (_patience_seconds(executor), NODE_SECONDS)
    )
    return min((at for at in ends if at > now), default=None)


def _patience_seconds(executor: Executor) -> float:
    return PATIENCE_SECONDS if executor.lacks_room else BARRED_SECONDS


def _waits(executor: Executor, now: float, seconds: float) -> bool:
    """Whether it has been unschedulable in its place for so long.

    Its condition goes on saying so once kube-scheduler has a node for it, and waits for its volume or for pods that it
    preempts there.
    """
    since = executor.unschedulable_since
    return (
        executor.pinned
        and executor.enforced
        and executor.phase is Phase.PENDING
        and executor.node is None
        and not executor.room_kept
        and since is not None
        and now - since >= seconds
    )


def _delete(executor: Executor) -> Placement:
    return Placement(
        executor.key, executor.uid, None, (), Pin.NONE, Reason.NO_ROOM, "its place can't run it; it is placed again"
    )


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
    gated, awaited = _moves_first(snapshot, placement, now)
    unpinned = [(e, reason) for e in gated if (reason := stands_aside(e, placement)) is not None]
    aside = {e.uid for e, _ in unpinned}
    started = _started_sets(snapshot.executors)
    sizes = declared_sizes(snapshot)
    place: list[Executor] = []
    holds = [_awaiting(e, placement) for e in awaited]
    for key, members in sorted(_sets(e for e in gated if e.uid not in aside).items()):
        waiting = [e for e in members if e.last_gate_since is None]
        ready = [e for e in members if e.last_gate_since is not None]
        holds += [Hold(e.key, e.uid, Reason.FOREIGN_GATE, None) for e in waiting]
        until = _held_until(ready, placement, late=key in started, size=sizes.get((key[0], key[2])))
        if until is None or now >= until:
            place += ready
        else:
            holds += [Hold(e.key, e.uid, Reason.WAITING_FOR_SET, until) for e in ready]
    return Releases(tuple(place), tuple(unpinned), tuple(holds))


def waiting_sets(found: Releases, executors: Iterable[Executor]) -> dict[SetKey, list[Executor]]:
    """The sets that are held until they are complete; the one that has waited longest first."""
    held = {hold.uid for hold in found.holds if hold.reason is Reason.WAITING_FOR_SET}
    sets = _sets(executor for executor in executors if executor.uid in held) if held else {}
    return dict(sorted(sets.items(), key=lambda item: (min(e.last_gate_since or 0.0 for e in item[1]), item[0])))


def without_waiting(found: Releases, sets: Iterable[Sequence[Executor]]) -> Releases:
    """`found`, with these sets placed now: the pool has no room for some of them.

    Waiting brings them nothing: all room there is goes to those that are there. An autoscaler provides nodes only for
    pods that kube-scheduler has found no node for, so not for gated ones.
    """
    waiting = [executor for members in sets for executor in members]
    uids = {executor.uid for executor in waiting}
    return replace(found, place=(*found.place, *waiting), holds=tuple(h for h in found.holds if h.uid not in uids))


MOST_KINDS = 500
"""Of executors that one pass places, a topology counting as one more: they take about a second on 1 000 nodes."""
TURN_SECONDS = 1.0
"""Until the next pass, unless what this one has released brings it about."""


def of_one_pass(found: Releases, placement: PlacementPolicy, now: float) -> Releases:
    """`found`, with no more topologies to be placed now than a pass should take time for; the others are held.

    Next to its `fair_part`, a pass places one topology of any size: the one that has waited longest. What has waited
    for longer than its gate timeout has no such precedence, since what can't be released would have it for good.
    """
    chosen = fair_part(found.place)
    since = _waiting_since(found.place)
    if len(chosen) == len(since):
        return found
    in_time = [key for key in since if now - since[key] < placement.gate_timeout_seconds]
    longest = min(in_time or since, key=lambda key: (since[key], key))
    if in_time or not chosen:
        chosen = chosen | {longest}
    until = now + TURN_SECONDS
    held = tuple(Hold(e.key, e.uid, Reason.WAITING_FOR_TURN, until) for e in found.place if e.topology not in chosen)
    place = tuple(executor for executor in found.place if executor.topology in chosen)
    return replace(found, place=place, holds=(*found.holds, *held))


def fair_part(executors: Sequence[Executor]) -> set[str]:
    """The topologies of those that are placed at once, of up to `MOST_KINDS`; all if they are no more.

    Each namespace gets as much; in a namespace, the topology that has waited longest comes first.
    """
    sizes = kinds_by_topology(executors)
    if len(sizes) < 2 or sum(sizes.values()) <= MOST_KINDS:
        return set(sizes)
    asked = Counter[str]()
    up_to: dict[str, int] = {}
    since = _waiting_since(executors)
    for key in sorted(since, key=lambda key: (since[key], key)):
        namespace = key.partition("/")[0]
        asked[namespace] += sizes[key]
        up_to[key] = asked[namespace]
    chosen: set[str] = set()
    used = 0
    for key in sorted(up_to, key=up_to.__getitem__):
        if used + sizes[key] <= MOST_KINDS:
            chosen.add(key)
            used += sizes[key]
    return chosen


def kinds_by_topology(executors: Iterable[Executor]) -> dict[str, int]:
    """How many kinds of executors each of their topologies has to place, and one more for itself."""
    kinds: dict[str, set[tuple[str, Resources, Constraints]]] = defaultdict(set)
    for each in executors:
        kinds[each.topology].add((each.component, each.requests, each.constraints))
    return {key: 1 + len(found) for key, found in kinds.items()}


def _waiting_since(gated: Iterable[Executor]) -> dict[str, float]:
    """By topology: since when one of them waits at its gate."""
    since: dict[str, float] = {}
    for executor in gated:
        since[executor.topology] = min(since.get(executor.topology, inf), executor.last_gate_since or 0.0)
    return since


def _moves_first(snapshot: Snapshot, placement: PlacementPolicy, now: float) -> tuple[list[Executor], list[Executor]]:
    """The gated executors that this pass decides about, and those that a move may be waiting for.

    A move pins the replacement that it has recognized by itself, so that one is in neither list; until it has one
    that is still there, none of its kind is given away. Beyond the gate timeout every executor is this pass's business.
    """
    claimed = {move.replacement_uid for move in snapshot.moves if move.phase.in_flight}
    there = {executor.uid for executor in snapshot.executors if executor.phase is not Phase.ENDED}
    expecting = {
        (move.namespace, move.application, move.resource_profile)
        for move in snapshot.moves
        if move.phase in (MovePhase.LEAVING, MovePhase.ARRIVING) and move.replacement_uid not in there
    }
    free: list[Executor] = []
    awaited: list[Executor] = []
    for executor in snapshot.executors:
        if executor.phase is not Phase.GATED:
            continue
        if placement.mode is not PlacementMode.ENFORCE or _time_is_up(executor, placement, now):
            free.append(executor)
        elif profile_of(executor) in expecting:
            awaited.append(executor)
        elif executor.uid not in claimed:
            free.append(executor)
    return free, awaited


def _time_is_up(executor: Executor, placement: PlacementPolicy, now: float) -> bool:
    since = executor.last_gate_since
    return since is not None and now - since >= placement.gate_timeout_seconds


def _awaiting(executor: Executor, placement: PlacementPolicy) -> Hold:
    since = executor.last_gate_since
    until = None if since is None else since + placement.gate_timeout_seconds
    return Hold(executor.key, executor.uid, Reason.IN_FLIGHT, until)


def stands_aside(executor: Executor, placement: PlacementPolicy) -> Reason | None:
    if placement.mode is not PlacementMode.ENFORCE or not executor.enforced:
        return Reason.NOT_ENFORCED
    why = never_placed(executor, placement.scheduler_names)
    return None if why is None else why[0]


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


def _held_until(ready: list[Executor], placement: PlacementPolicy, *, late: bool, size: int | None) -> float | None:
    """None: go now. The first executors of a set wait a moment for those that come with them; later ones join them."""
    since = [(e.last_gate_since, e.first_read) for e in ready if e.last_gate_since is not None]
    if not since or late or (size is not None and len(ready) >= size):
        return None
    first_read = min(alone if read is None else read for alone, read in since)
    first = min(alone for alone, _ in since)
    return min(first_read + placement.debounce_seconds, first + placement.gate_timeout_seconds)
