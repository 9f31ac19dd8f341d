"""What the executors of one topology exchange, as weights between components.

Rates are spread evenly over pairs of executors: nothing in Spark reports who talks to whom, and with a hash shuffle
every executor talks to every other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ballast.model import Anchor, Component, Topology
from ballast.model.arrays import FloatArray

_DRIVER_SHARE = 0.05
"""Weight of the driver beside the topology's whole traffic: it decides between equals and never splits a set."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """Rates in bytes per second where at least one is declared, otherwise in units of one exchange."""

    components: tuple[str, ...]
    """Those that have executors; rows and columns follow this order."""
    between: FloatArray
    """(components, components): rate between two components, both directions; on the diagonal the exchange."""
    pulls: tuple[tuple[int, Anchor, float], ...]
    """Component, fixed outer end, rate to it."""
    driver: Anchor | None
    known: bool
    """Every rate was declared."""

    @property
    def total(self) -> float:
        """All traffic that can cost something, the driver's aside."""
        inner = 0.5 * float(self.between.sum() + self.between.trace())
        return inner + sum(rate for _, _, rate in self.pulls)

    def per_pair(self, totals: FloatArray) -> FloatArray:
        """Weight of each unordered pair of executors, for component sizes `totals`.

        All-to-all among n executors: each ordered pair carries 1/n² of the exchange, the pairs of an executor with
        itself included, so that shares p cost 1 − Σp² of it.
        """
        sizes = np.maximum(totals, 1.0)
        weights: FloatArray = self.between / np.outer(sizes, sizes)
        np.fill_diagonal(weights, 2.0 * weights.diagonal())
        return weights

    @property
    def driver_rate(self) -> float:
        return _DRIVER_SHARE * (self.total or 1.0)


def traffic(topology: Topology, components: tuple[str, ...]) -> Traffic:
    """Weights among the named components and towards the topology's fixed ends."""
    index = {name: position for position, name in enumerate(components)}
    known = {component.name: component for component in topology.components}
    unit = _unit(topology)
    between = np.zeros((len(components), len(components)))
    for name, position in index.items():
        between[position, position] = _rate(_exchange(known.get(name)), unit)
    pulls: list[tuple[int, Anchor, float]] = []
    for stream in topology.streams:
        rate = _rate(stream.bytes_per_second, unit)
        ends = index.get(stream.source), index.get(stream.target)
        if ends[0] is not None and ends[1] is not None:
            between[ends[0], ends[1]] += rate
            if ends[0] != ends[1]:
                between[ends[1], ends[0]] += rate
        else:
            pulls += _outer(known, stream.source, ends[1], rate) + _outer(known, stream.target, ends[0], rate)
    return Traffic(components, between, tuple(pulls), topology.driver, _declared(topology, components))


def _outer(known: dict[str, Component], outer: str, inner: int | None, rate: float) -> list[tuple[int, Anchor, float]]:
    component = known.get(outer)
    if inner is None or component is None:
        return []
    return [(inner, anchor, rate * anchor.share) for anchor in component.anchors]


def _exchange(component: Component | None) -> float | None:
    return None if component is None else component.exchange_bytes_per_second


def _rate(declared: float | None, unit: float) -> float:
    return unit if declared is None else max(0.0, declared)


def _unit(topology: Topology) -> float:
    """What a rate that nobody declared weighs: the mean of those declared."""
    declared = [s.bytes_per_second for s in topology.streams if s.bytes_per_second]
    declared += [c.exchange_bytes_per_second for c in topology.components if c.exchange_bytes_per_second]
    return sum(declared) / len(declared) if declared else 1.0


def _declared(topology: Topology, components: tuple[str, ...]) -> bool:
    placed = [topology.component(name) for name in components]
    exchanges = all(c is not None and c.exchange_bytes_per_second is not None for c in placed)
    return exchanges and all(stream.bytes_per_second is not None for stream in topology.streams)
