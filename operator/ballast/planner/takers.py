"""The nodes that a move may go to at all, whoever moves; the others only give."""

from __future__ import annotations

from ballast.model import Constraints, Snapshot


def takers(snapshot: Snapshot) -> frozenset[str]:
    """Their names: they are open, and no taint of theirs keeps every executor off."""
    tolerations = {executor.constraints.tolerations for executor in snapshot.executors}
    pods = [Constraints(tolerations=each) for each in tolerations]
    return frozenset(
        node.name
        for node in snapshot.nodes
        if node.open and (not node.taints or any(pod.untolerated(node.taints) is None for pod in pods))
    )
