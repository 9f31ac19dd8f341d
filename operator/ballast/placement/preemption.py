"""Room of second choice: what kube-scheduler frees for executors by preempting pods of lower priority.

Overprovisioning ("balloon") pods keep room for pods of higher priority. kube-scheduler counts that room last, and so
does a pass: sets that find a place without it are placed without it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ballast.model import Executor, Memory, Placement, Policy, Resources, Snapshot
from ballast.placement.placing import Placed, place
from ballast.placement.strategies import PlacementState

_WORDS = "kube-scheduler may preempt pods of lower priority to make room for it"


def place_preempting(
    snapshot: Snapshot,
    policy: Policy,
    memory: Memory,
    *,
    gated: Sequence[Executor],
    reserved: Mapping[str, Resources],
    state: PlacementState,
    **known: Any,
) -> Placed:
    """As `place`; topologies that find no place in one zone then also use the room of pods that they may preempt."""
    first = place(snapshot, policy, memory, gated=gated, reserved=reserved, state=state, **known)
    short = _short(first.placements, gated)
    if not short or not any(node.preemptible for node in snapshot.nodes):
        return first
    kept = [each for each in first.placements if each.uid not in short]
    again = place(
        with_preemptible_room(snapshot),
        policy,
        memory,
        gated=list(short.values()),
        reserved=_with(reserved, kept, gated),
        state=first.state,
        **known,
    )
    if _badness(again.placements, short) >= _badness(first.placements, short):
        return first
    told = [replace(each, detail=each.detail or _WORDS) if each.node else each for each in again.placements]
    found = sorted([*kept, *told], key=lambda each: (each.executor, each.uid))
    before = {uid: node for uid, node in first.state.sent if uid not in short}
    return Placed(found, replace(again.state, sent=tuple(sorted({**dict(again.state.sent), **before}.items()))))


def with_preemptible_room(snapshot: Snapshot) -> Snapshot:
    """As if the pods that executors may preempt were gone."""
    nodes = tuple(
        node if node.preemptible is None else replace(node, requested=node.requested.minus(node.preemptible))
        for node in snapshot.nodes
    )
    return replace(snapshot, nodes=nodes)


def _short(placements: Iterable[Placement], gated: Iterable[Executor]) -> dict[str, Executor]:
    """The executors, by uid, of the topologies of which some have no node, or are in several zones."""
    by_uid = {executor.uid: executor for executor in gated}
    zones: dict[str, set[object]] = defaultdict(set)
    for each in placements:
        zones[by_uid[each.uid].topology].add(None if each.node is None else (each.location or each.node)[0])
    divided = {topology for topology, found in zones.items() if len(found) > 1 or None in found}
    return {uid: executor for uid, executor in by_uid.items() if executor.topology in divided}


def _badness(placements: Iterable[Placement], among: Mapping[str, Executor]) -> tuple[int, int]:
    """How many have no node, and how many zones the topologies have together."""
    mine = [each for each in placements if each.uid in among]
    zones = {(among[each.uid].topology, each.location[:1]) for each in mine if each.node is not None}
    return sum(each.node is None for each in mine), len(zones)


def _with(
    reserved: Mapping[str, Resources], placements: Iterable[Placement], gated: Iterable[Executor]
) -> dict[str, Resources]:
    """`reserved`, and what these placements take."""
    requests = {executor.uid: executor.requests for executor in gated}
    found = dict(reserved)
    for each in placements:
        if each.node is not None:
            found[each.node] = found.get(each.node, Resources()).plus(requests[each.uid])
    return found
