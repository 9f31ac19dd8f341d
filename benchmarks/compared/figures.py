"""What a row of the table says about one peer, worked out from where executors are and from nothing of Ballast's."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from statistics import fmean

from benchmarks.compared.case import BROKERS, Flow
from tests.testbed.nodes import NodeSpec

Homes = Mapping[str, Sequence[str | None]]
"""By application (and for the brokers), the node of each executor, None where it found none."""

ZONE_DISTANCE, RACK_DISTANCE, NODE_DISTANCE = 10.0, 3.0, 1.0


@dataclass(frozen=True, slots=True)
class Figures:
    """In the order in which they weigh."""

    unplaced: float
    cross_zone: float
    """Share of an all-to-all shuffle: 1 − Σp² over the zones' shares p, the mean of the applications."""
    cross_rack: float
    distance: float
    """Per byte, weighted with the traffic; of what applications and brokers send one another."""
    most_on_a_node: float
    """Executors of one application."""
    nodes_used: float
    seconds: float
    """From the creation of the last executor until all are bound."""


FIELDS = tuple(field.name for field in fields(Figures))


def figures(homes: Homes, flows: Sequence[Flow], nodes: Mapping[str, NodeSpec], *, seconds: float) -> Figures:
    applications = {name: places for name, places in homes.items() if name != BROKERS}
    bound = {name: [nodes[node] for node in places if node is not None] for name, places in applications.items()}
    on_nodes = [Counter(node.name for node in there) for there in bound.values()]
    return Figures(
        unplaced=float(sum(places.count(None) for places in map(list, applications.values()))),
        cross_zone=_crossing([[node.zone for node in there] for there in bound.values()]),
        cross_rack=_crossing([[node.rack for node in there] for there in bound.values()]),
        distance=_distance(homes, flows or [Flow(name, name, 1.0) for name in applications], nodes),
        most_on_a_node=float(max((max(counts.values(), default=0) for counts in on_nodes), default=0)),
        nodes_used=fmean(len(counts) for counts in on_nodes),
        seconds=seconds,
    )


def mean(several: Sequence[Figures]) -> Figures:
    """Of each figure, over those that know it."""
    return Figures(**{name: _mean([getattr(each, name) for each in several]) for name in FIELDS})


def _mean(values: Sequence[float]) -> float:
    known = [value for value in values if value == value]  # noqa: PLR0124 -- NaN
    return fmean(known) if known else float("nan")


def _crossing(applications: Sequence[Sequence[str]]) -> float:
    shares = [1.0 - sum((n / len(places)) ** 2 for n in Counter(places).values()) for places in applications if places]
    return fmean(shares) if shares else float("nan")


def _distance(homes: Homes, flows: Sequence[Flow], nodes: Mapping[str, NodeSpec]) -> float:
    """Each flow is spread evenly over all pairs of its two ends."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for name, places in homes.items():
        counts[name].update(node for node in places if node is not None)
    total = weighted = 0.0
    for flow in flows:
        ones, others = counts[flow.source], counts[flow.target]
        pairs = ones.total() * others.total()
        if not pairs:
            return float("nan")
        crossed = sum(n * m * _apart(nodes[a], nodes[b]) for a, n in ones.items() for b, m in others.items())
        weighted += flow.bytes_per_second * crossed / pairs
        total += flow.bytes_per_second
    return weighted / total


def _apart(one: NodeSpec, other: NodeSpec) -> float:
    if one.zone != other.zone:
        return ZONE_DISTANCE
    if one.rack != other.rack:
        return RACK_DISTANCE
    return 0.0 if one.name == other.name else NODE_DISTANCE
