"""Spread limits and separations as rows of an exact model."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping

from ballast.model import Policy, Snapshot
from ballast.placement.limit import most_per_node, zone_allowance
from benchmarks.quality.model import Model

Counts = Mapping[tuple[str, str, str], dict[int, float]]
"""(topology, component, node): the linear expression of its count."""


def limit(model: Model, snapshot: Snapshot, policy: Policy, counts: Counts) -> None:
    """At most so many executors of a component on one node and in one zone; all executors are gated."""
    totals = Counter((e.topology, e.component) for e in snapshot.executors)
    expected = {(t.key, c.name): c.expected or 0 for t in snapshot.topologies for c in t.components}
    for (topology, component), waiting in totals.items():
        size = max(waiting, expected.get((topology, component), 0))
        per_node = most_per_node(policy.placement, component, size)
        per_zone = zone_allowance(size, policy.placement.max_executors_per_zone_ratio)
        for level, most in ((2, per_node), (0, per_zone)):
            if most < waiting:
                for terms in _by_place(snapshot, lambda n: counts[topology, component, n], level):  # noqa: B023
                    model.row(terms, 0.0, most)


def separate(model: Model, snapshot: Snapshot, counts: Counts) -> None:
    """Components that keep apart share no place of their level."""
    for topology in snapshot.topologies:
        for separation in topology.separate:
            level = {"Zone": 0, "Rack": 1, "Node": 2}[separation.by]
            there: dict[Hashable, dict[int, float]] = defaultdict(dict)
            for component in separation.components:
                for place, terms in _places(snapshot, lambda n: counts[topology.key, component, n], level):  # noqa: B023
                    flag = model.variable(integral=True)
                    model.row({flag: 1.0}, 0.0, 1.0)
                    model.row({**terms, flag: -float(len(snapshot.executors))}, -float("inf"), 0.0)
                    there[place][flag] = 1.0
            for flags in there.values():
                model.row(flags, 0.0, 1.0)


def _by_place(snapshot: Snapshot, terms: Callable[[str], dict[int, float]], level: int) -> Iterable[dict[int, float]]:
    return (found for _, found in _places(snapshot, terms, level))


def _places(
    snapshot: Snapshot, terms: Callable[[str], dict[int, float]], level: int
) -> list[tuple[Hashable, dict[int, float]]]:
    """The counts in each place of a level, where there are any."""
    found: dict[Hashable, dict[int, float]] = defaultdict(dict)
    for node in snapshot.nodes:
        found[node.location[: level + 1]].update(terms(node.name))
    return [(place, sums) for place, sums in found.items() if sums]
