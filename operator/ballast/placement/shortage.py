"""Where the nodes lack room for all executors of a pass: which ones come first, and which sets need not wait.

A user may create any number of gated executors that ask for all room there is, and need never use it. So where room is
short, what a namespace asks for beyond its fair share of it comes after what others ask for.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ballast.model import Constraints, Demand, Executor, Levels, Phase, Resources, Snapshot
from ballast.model.arrays import BoolArray, FloatArray
from ballast.placement.admission import Admission
from ballast.placement.node_locations import node_locations
from ballast.placement.room import Room, by_shape, fits, kinds, take_off

_NOTHING = Resources()


@dataclass(frozen=True, slots=True)
class Round:
    """Executors that are placed together, before those of later rounds."""

    executors: Sequence[Executor]
    crowded: bool = False
    """Their nodes may lack room for all of them."""


def rounds(executors: Sequence[Executor], space: Room, admission: Admission) -> list[Round]:
    """The executors in the order in which they are to be placed.

    One round where there is room for all, or where all are of one namespace. Otherwise a namespace is crowded if its
    nodes lack room for all that is asked for. The rounds are:

    1. crowded namespaces that ask for no more than their share,
    2. of each other crowded namespace as much as its share,
    3. what these ask for beyond it, one namespace after the other,
    4. all namespaces that are not crowded: a user may ask for next to nothing on a full node, which must not break up
       the sets of others,
    5. executors that no node could take if they were alone. Shares are counted without them.

    Shares are max-min fair: what one namespace does not ask for is shared by the others. What is shared is what is free
    for the namespace that has least. A namespace that asks for no more than its share of what is free for itself comes
    as a whole in 3.
    """
    members: dict[str, list[Executor]] = defaultdict(list)
    for executor in executors:
        members[executor.namespace].append(executor)
    names = sorted(members)
    if len(names) < 2:
        return [Round(executors)]
    demand = np.array([np.sum([space.vector(e.requests) for e in members[name]], axis=0) for name in names])
    free = np.array([_free_for(members[name], space, admission) for name in names])
    short = demand.sum(axis=0) > free + space.slack
    crowded = (short & (demand > 0)).any(axis=1)
    if not crowded.any():
        return [Round(executors)]
    able = placeable(executors, space, admission)
    if len(able) < len(executors):
        uids = {executor.uid for executor in able}
        hopeless = [executor for executor in executors if executor.uid not in uids]
        return [*rounds(able, space, admission), Round(hopeless)]
    roomy = [executor for name, lacks in zip(names, crowded, strict=True) if not lacks for executor in members[name]]
    by_namespace = {name: members[name] for name, lacks in zip(names, crowded, strict=True) if lacks}
    return [
        *_by_shares(by_namespace, demand[crowded], free[crowded], everyone=demand, space=space),
        *([Round(roomy)] if roomy else []),
    ]


def _by_shares(
    members: Mapping[str, list[Executor]], demand: FloatArray, free: FloatArray, *, everyone: FloatArray, space: Room
) -> Iterator[Round]:
    """Rounds 1 to 3, of the crowded namespaces: their demand by kind, and what is free for each of them.

    `everyone`: the demand of all namespaces.
    """
    least = free.min(axis=0)
    short = everyone.sum(axis=0) > least + space.slack
    share = np.where(
        short, [_share(amounts, there) for amounts, there in zip(everyone.T, least.tolist(), strict=True)], np.inf
    )
    first: list[Executor] = []
    second: list[Executor] = []
    rest: list[tuple[float, str, list[Executor]]] = []
    for (name, mine), asked, there in zip(members.items(), demand, free, strict=True):
        within, beyond = _split(mine, share + space.slack, space)
        if not beyond:
            first += within
            continue
        if (np.minimum(everyone, asked).sum(axis=0) <= there + space.slack).all():
            within, beyond = [], mine
        second += within
        rest.append((float((asked[short] / np.maximum(least, 1e-9)[short]).max()), name, beyond))
    if first:
        yield Round(first)
    if second:
        yield Round(second, crowded=True)
    for _, _, beyond in sorted(rest, key=lambda each: each[:2]):
        yield Round(beyond, crowded=True)


def placeable(executors: Iterable[Executor], space: Room, admission: Admission) -> list[Executor]:
    """The executors that some node could take if they were alone."""
    known: dict[tuple[Resources, Constraints], bool] = {}
    found: list[Executor] = []
    for executor in executors:
        shape = (executor.requests, executor.constraints)
        if shape not in known:
            open_to = fits(space.free, space.vector(executor.requests), space.slack)
            known[shape] = bool((open_to & admission.mask(executor.constraints)).any())
        if known[shape]:
            found.append(executor)
    return found


def _split(executors: Sequence[Executor], share: FloatArray, space: Room) -> tuple[list[Executor], list[Executor]]:
    """Those within the share, which the first one always is, and those beyond it; the largest topology comes first."""
    cores: dict[str, float] = defaultdict(float)
    for executor in executors:
        cores[executor.topology] += executor.requests.cpu_cores
    within: list[Executor] = []
    beyond: list[Executor] = []
    taken = np.zeros_like(share)
    for executor in sorted(executors, key=lambda e: (-cores[e.topology], e.topology, e.key, e.uid)):
        more = taken + space.vector(executor.requests)
        if within and (more > share).any():
            beyond.append(executor)
        else:
            within.append(executor)
            taken = more
    return within, beyond


def _free_for(members: Iterable[Executor], space: Room, admission: Admission) -> FloatArray:
    """(kinds,): what is free on the nodes that admit any of these; infinite if there is none."""
    able: BoolArray = np.logical_or.reduce([admission.mask(each) for each in {e.constraints for e in members}])
    free: FloatArray = (
        np.maximum(space.free, 0.0)[able].sum(axis=0) if able.any() else np.full(len(space.kinds), np.inf)
    )
    return free


def _share(amounts: FloatArray, free: float) -> float:
    """What each may have at least, so that all together have no more than is free."""
    left = free
    for done, amount in enumerate(sorted(amounts.tolist())):
        share = left / (len(amounts) - done)
        if amount > share:
            return share
        left -= amount
    return np.inf


def short_of_room(
    snapshot: Snapshot,
    levels: Levels,
    sets: Iterable[Sequence[Executor]],
    *,
    reserved: Mapping[str, Resources],
    unbound: Mapping[str, Resources],
) -> tuple[bool, ...]:
    """For each set, taken in this order, whether the pool lacks room for some of it.

    Executors that are leaving count as gone, and so do pods that executors may preempt. Each node is filled before the
    next one is used, so that what is left is as useful as can be. `reserved`, `unbound`: as in `room`.
    """
    sets = list(sets)
    places = node_locations(snapshot.nodes, levels)
    space, admission = Room(places, kinds(e.requests for members in sets for e in members)), Admission(places.nodes)
    take_off(
        space, places, {node.name: _NOTHING.minus(node.preemptible) for node in snapshot.nodes if node.preemptible}
    )
    take_off(space, places, reserved)
    take_off(space, places, unbound)
    for executor in snapshot.executors:
        if executor.phase is Phase.LEAVING and executor.node in places.index:
            space.free[places.index[executor.node]] += space.vector(executor.requests)
    left = [len(members) for members in sets]
    number = {executor.uid: index for index, members in enumerate(sets) for executor in members}
    for part in rounds([executor for members in sets for executor in members], space, admission):
        by_set: dict[int, list[Executor]] = defaultdict(list)
        for executor in part.executors:
            by_set[number[executor.uid]].append(executor)
        for index in sorted(by_set):
            left[index] -= _fill(space, admission, by_set[index])
    return tuple(missing > 0 for missing in left)


def _fill(space: Room, admission: Admission, members: Iterable[Executor]) -> int:
    """How many of them find room, which they then take."""
    placed = 0
    for (requests, constraints), count in by_shape(Demand(e.requests, e.constraints) for e in members):
        demand = space.vector(requests)
        capacity = space.capacity(demand) * admission.mask(constraints)
        taken = np.clip(count - (np.cumsum(capacity) - capacity), 0, capacity)
        space.free -= np.outer(taken, demand)
        placed += int(taken.sum())
    return placed
