"""Nominations (status.nominatedNodeName) of executors that are placed.

Of many nodes that can take a pod kube-scheduler scores only some, so that the preferred node may not be among them. A
nominated node it looks at first, and keeps its room from other pods of equal or lower priority. It costs a second
request for each executor, so where neither matters there is none.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from ballast.model import Executor, Levels, Phase, Pin, Placement, Snapshot
from ballast.moves.arriving import NOMINATED_SECONDS

_SEVERAL = 2
"""Namespaces of nominated executors that kube-scheduler can't bind."""


def scored_nodes(nodes: int) -> int:
    """How many nodes kube-scheduler looks for that can take a pod, in a cluster of so many.

    With percentageOfNodesToScore unset. Source: `numFeasibleNodesToFind` of kube-scheduler.
    """
    return min(nodes, max(100, nodes * max(5, 50 - nodes // 125) // 100))


def with_nominations(placements: tuple[Placement, ...], snapshot: Snapshot, levels: Levels) -> tuple[Placement, ...]:
    """Nominate executors where kube-scheduler may not look at their node, or others are about to take its room.

    A nomination to another node, as an operator that crashed leaves it, is replaced, too. An executor that waits for
    a ResourceClaim or PodGroup is not nominated: these need not exist, and kube-scheduler would keep the room for good.
    Nor is one whose pod is so long that kube-scheduler can't write that no node takes it.
    Nor are further executors of a namespace of which kube-scheduler can't bind one that was nominated.
    """
    if not any(placement.node is not None for placement in placements):
        return placements
    depths = {pin: index + 1 if (index := levels.index_of(pin)) is not None else 0 for pin in Pin}
    sizes = Counter(node.location[:depth] for depth in set(depths.values()) for node in snapshot.nodes if node.open)
    before = {executor.uid for executor in snapshot.executors if executor.nominated is not None}
    scored = scored_nodes(len(snapshot.nodes))

    misjudged = misjudged_namespaces(snapshot)
    doubtful = {each.uid for each in snapshot.executors if each.never_unschedulable or each.namespace in misjudged}

    def matters(placement: Placement) -> bool:
        if placement.uid in doubtful:
            return False
        choice = sizes[placement.location[: depths[placement.pin]]]
        return choice > scored or snapshot.contended or bool(snapshot.pending) or placement.uid in before

    return tuple(replace(each, nominated=matters(each)) if each.node is not None else each for each in placements)


def misjudged_namespaces(snapshot: Snapshot) -> frozenset[str]:
    """Namespaces of nominated executors that kube-scheduler finds no node for, and those known of."""
    return frozenset((*snapshot.misjudged_namespaces, *(e.namespace for e in snapshot.executors if _misjudged(e))))


def overdue_nominations(snapshot: Snapshot, now: float) -> tuple[tuple[str, ...], float | None]:
    """The uids of executors whose nomination is to be cleared, and when the next one may be.

    At once for executors that are being deleted, which finalizers may keep for good, and for those that have been
    released and of which kube-scheduler may never say that no node takes them.

    Karpenter provides no node for a pod that is nominated, and kube-scheduler keeps the room of its node. Moves clear
    those of their replacements themselves. A time far in the future is overdue, too: a user may write into
    managedFields when the pod was pinned.

    At once, too, where kube-scheduler could not bind nominated executors of several namespaces: a user may have many,
    and keep the room of all nodes by one after the other.
    """
    patience = NOMINATED_SECONDS if len(misjudged_namespaces(snapshot)) < _SEVERAL else 0.0
    aimless = {executor.uid for executor in snapshot.executors if executor.nominated and _keeps_room_in_vain(executor)}
    of_moves = {move.replacement_uid for move in snapshot.moves if move.phase.in_flight}
    since = [
        (executor.unschedulable_since, executor.uid)
        for executor in snapshot.executors
        if executor.nominated and executor.unschedulable_since is not None and executor.uid not in of_moves
    ]
    overdue = aimless.union(uid for at, uid in since if abs(now - at) >= patience)
    return tuple(sorted(overdue)), min((at + patience for at, _ in since if abs(now - at) < patience), default=None)


def _keeps_room_in_vain(executor: Executor) -> bool:
    return executor.phase is Phase.LEAVING or (executor.phase is Phase.PENDING and executor.never_unschedulable)


def _misjudged(executor: Executor) -> bool:
    """Whether kube-scheduler found no node for it, although it kept the room of one for it.

    It asks for something that Ballast does not look at, such as a volume. Its author may create it again and again, and
    kube-scheduler would keep the room of each nomination until Ballast clears it. One that is only pinned may have come
    too late for its room: then a nomination is what helps.
    """
    return executor.node is None and executor.unschedulable_since is not None and executor.nominated is not None
