"""The nodes that a move may go to at all, whoever moves; the others only give."""

from __future__ import annotations

from ballast.model import Constraints, Snapshot, Taint, Toleration


def takers(snapshot: Snapshot) -> frozenset[str]:
    """Their names: they are open, and no taint of theirs keeps every executor off."""
    shut = _tolerated_by_nobody(snapshot)
    return frozenset(node.name for node in snapshot.nodes if node.open and node.taints not in shut)


def _tolerated_by_nobody(snapshot: Snapshot) -> set[tuple[Taint, ...]]:
    left = {node.taints for node in snapshot.nodes if node.taints}
    seen: set[tuple[Toleration, ...]] = set()
    for executor in snapshot.executors:
        tolerations = executor.constraints.tolerations
        if not left:
            break
        if tolerations not in seen:
            seen.add(tolerations)
            pod = Constraints(tolerations=tolerations)
            left = {taints for taints in left if pod.untolerated(taints) is not None}
    return left
