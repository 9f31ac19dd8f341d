"""Room of second choice: what kube-scheduler frees for executors by preempting pods of lower priority.

Overprovisioning ("balloon") pods keep room for pods of higher priority. kube-scheduler counts that room last, and
preempts no pod for one that finds a node without. So does a pass: it is for executors that otherwise find no node.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ballast.model import Executor, Memory, Phase, Placement, Policy, Resources, Snapshot
from ballast.placement.placing import Placed, place
from ballast.placement.room import expected
from ballast.placement.strategies import PlacementState, awaited_by_moves, headings

_WORDS = "kube-scheduler may preempt pods of lower priority to make room for it"


def place_preempting(
    snapshot: Snapshot,
    policy: Policy,
    memory: Memory,
    *,
    gated: Sequence[Executor],
    unbound: Mapping[str, Resources],
    state: PlacementState,
    **known: Any,
) -> Placed:
    """As `place`; executors that find no node then also use the room of pods that they may preempt.

    The others keep the places that they have without that room, also where their sets are split.
    """
    first = place(snapshot, policy, memory, gated=gated, unbound=unbound, state=state, **known)
    nodes = {each.uid: each.node for each in first.placements if each.node is not None}
    short = [executor for executor in gated if executor.uid not in nodes]
    if not short or not any(node.preemptible for node in snapshot.nodes):
        return first
    ahead = with_preemptible_room(_released(snapshot, nodes, gated))
    again = place(
        ahead,
        policy,
        memory,
        gated=short,
        # What earlier passes sent to such room is there, and takes it.
        unbound=expected(ahead, policy.levels, sent=headings(ahead, first.state.sent)),
        state=first.state,
        **known,
    )
    found = {each.uid: _told(each) for each in again.placements if each.node is not None}
    if not found:
        return first
    return Placed([found.get(each.uid, each) for each in first.placements], again.state)


def with_preemptible_room(snapshot: Snapshot) -> Snapshot:
    """As if the pods that executors may preempt were gone."""
    nodes = tuple(
        node if node.preemptible is None else replace(node, requested=node.requested.minus(node.preemptible))
        for node in snapshot.nodes
    )
    return replace(snapshot, nodes=nodes)


def _released(snapshot: Snapshot, nodes: Mapping[str, str], gated: Sequence[Executor]) -> Snapshot:
    """As the next pass would see it once those of `nodes`, by uid, were released there."""
    executors = tuple(
        replace(
            executor,
            phase=Phase.PENDING,
            nominated=nodes[executor.uid],
            pinned_at=snapshot.taken_at,
            never_unschedulable=False,
        )
        if executor.uid in nodes
        else executor
        for executor in snapshot.executors
    )
    awaited = awaited_by_moves(snapshot, gated)
    filled = {(move.namespace, move.name): uid for uid, move in awaited.items() if uid in nodes}
    moves = tuple(
        replace(move, replacement_uid=filled.get((move.namespace, move.name), move.replacement_uid))
        for move in snapshot.moves
    )
    return replace(snapshot, executors=executors, moves=moves)


def _told(placement: Placement) -> Placement:
    return replace(placement, detail=placement.detail or _WORDS)
