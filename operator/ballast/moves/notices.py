"""Since when nodes are about to go. Most taints carry no time, so it counts when they were first seen."""

from __future__ import annotations

from dataclasses import replace

from ballast.model import Memory, Node, Snapshot


def with_first_seen(snapshot: Snapshot, memory: Memory) -> Snapshot:
    """Each deadline without a time begins when a pass first saw it, which may be now."""
    known = {(node, taint): since for node, taint, since in memory.notices}

    def dated(node: Node) -> Node:
        found = node.notice
        if found is None or found.seconds is None or found.since is not None:
            return node
        since = min(snapshot.taken_at, known.get((node.name, found.taint), snapshot.taken_at))
        return replace(node, notice=replace(found, since=since))

    if all(node.notice is None for node in snapshot.nodes):
        return snapshot
    return replace(snapshot, nodes=tuple(dated(node) for node in snapshot.nodes))


def first_seen(snapshot: Snapshot) -> tuple[tuple[str, str, float], ...]:
    """What the next pass is to remember. A taint that has gone is forgotten: if it comes back, it is a new one."""
    return tuple(
        (node.name, found.taint, found.since)
        for node in snapshot.nodes
        if (found := node.notice) is not None and found.seconds is not None and found.since is not None
    )
