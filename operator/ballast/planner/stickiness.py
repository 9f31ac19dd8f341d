"""Where executors were last seen running: what the next placement returns them to."""

from __future__ import annotations

from collections import Counter, defaultdict

from ballast.model import Executor, Memory, Phase, Snapshot

Places = tuple[tuple[str, str, tuple[tuple[str, int], ...]], ...]


def remembered(snapshot: Snapshot, memory: Memory) -> Places:
    """Executors per node of each component.

    While executors of a component are missing, or are not running yet, the places they had are kept. Topologies
    that exist no more are forgotten.
    """
    running: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    unsettled: set[tuple[str, str]] = set()
    for executor in snapshot.executors:
        _count(executor, running, unsettled)
    known = {topology.key for topology in snapshot.topologies} | {executor.topology for executor in snapshot.executors}
    kept = {
        (topology, component): counts
        for topology, component, counts in memory.placements
        if topology in known and ((topology, component) not in running or (topology, component) in unsettled)
    }
    for key, counts in running.items():
        if key not in kept:
            kept[key] = tuple(sorted(counts.items()))
    return tuple((topology, component, counts) for (topology, component), counts in sorted(kept.items()))


def _count(executor: Executor, running: dict[tuple[str, str], Counter[str]], unsettled: set[tuple[str, str]]) -> None:
    key = (executor.topology, executor.component)
    if executor.phase is Phase.RUNNING and executor.node is not None:
        running[key][executor.node] += 1
    elif executor.phase is not Phase.ENDED:
        unsettled.add(key)
