"""In which order executors are placed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from ballast.model import ExecutorOrder, Topology
from ballast.placement.crew import Crew


def sequence(crew: Crew, counts: Mapping[int, int], order: ExecutorOrder) -> list[int]:
    """Indices of the crew's groups, one entry per executor to place; `counts` says how many of each."""
    groups: dict[str, list[int]] = defaultdict(list)
    sizes: dict[str, int] = defaultdict(int)
    for group, count in sorted(counts.items()):
        name = crew.components[crew.groups[group].component]
        groups[name] += [group] * count
        sizes[name] += count
    components = _component_order(crew.topology, sizes, order)
    return _in_turns([groups[name] for name in components])


def _in_turns(queues: Sequence[list[int]]) -> list[int]:
    """One of each component, again and again, so that those that talk to each other land beside each other."""
    longest = max((len(queue) for queue in queues), default=0)
    return [queue[turn] for turn in range(longest) for queue in queues if turn < len(queue)]


def _component_order(topology: Topology, sizes: Mapping[str, int], order: ExecutorOrder) -> list[str]:
    if order is ExecutorOrder.CONNECTION_COUNT:
        return sorted(sizes, key=lambda name: (-_connections(topology, sizes, name), name))
    return _upstream_first(topology, sizes)


def _connections(topology: Topology, sizes: Mapping[str, int], name: str) -> int:
    own = sizes[name]
    return sum(
        own * sizes.get(other, 0)
        for source, target in {(stream.source, stream.target) for stream in topology.streams}
        for here, other in ((source, target), (target, source))
        if here == name and other != name
    )


def _upstream_first(topology: Topology, sizes: Mapping[str, int]) -> list[str]:
    """Depth first along the streams from those with nothing before them; a cycle is entered at its first name."""
    after: dict[str, list[str]] = defaultdict(list)
    for source, target in sorted({(s.source, s.target) for s in topology.streams if s.source != s.target}):
        if source in sizes and target in sizes:
            after[source].append(target)
    fed = {target for targets in after.values() for target in targets}
    seen: dict[str, None] = {}
    stack = [*sorted(fed & sizes.keys(), reverse=True), *sorted(sizes.keys() - fed, reverse=True)]
    while stack:
        name = stack.pop()
        if name not in seen:
            seen[name] = None
            stack.extend(reversed(after[name]))
    return list(seen)
