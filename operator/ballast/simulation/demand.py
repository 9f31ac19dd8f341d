"""How much work there is, step by step: of every executor's slot, and of every node's neighbors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ballast.model.arrays import FloatArray, IntArray
from ballast.simulation.crew import Crew
from ballast.simulation.curve import Curve, curve, random_for
from ballast.simulation.fleet import Fleet
from ballast.simulation.scenario import ScenarioSpec
from ballast.simulation.scenario_load import Load


@dataclass(slots=True)
class _Lanes:
    """One load: where it applies, how much, and how it varies."""

    places: IntArray
    base: FloatArray
    curves: list[tuple[Curve, IntArray | None]]
    """Each with the lane of every place; None where the lanes are the places."""

    def at(self, time: float) -> FloatArray:
        amount = self.base
        for each, lanes in self.curves:
            factors = each.at(time)
            amount = amount * (factors if lanes is None or len(factors) == 1 else factors[lanes])
        return amount


class Demand:
    """Nothing that a policy does changes it. Times must not go backwards."""

    def __init__(self, spec: ScenarioSpec, fleet: Fleet, crew: Crew, seed: int) -> None:
        self._slots, self._nodes = len(crew), len(fleet)
        self._work: list[_Lanes] = []
        first = 0
        for each in spec.applications:
            places = np.arange(first, first + each.total)
            sharing = (places - first) // each.executors
            self._work.append(_lanes(each.load, places, sharing, seed, f"application/{each.name}"))
            first += each.total
        self._neighbors = [
            _lanes(
                each.neighbor,
                np.array(fleet.groups[each.name]),
                np.zeros(len(each.names), dtype=np.int64),
                seed,
                f"nodes/{each.name}",
            )
            for each in spec.nodes
            if each.neighbor is not None
        ]

    def work(self, time: float) -> FloatArray:
        """By slot, in cores of an ordinary machine."""
        return _spread(self._work, self._slots, time)

    def neighbors(self, time: float) -> FloatArray:
        """By node, in its own cores."""
        return _spread(self._neighbors, self._nodes, time)


def _spread(loads: list[_Lanes], count: int, time: float) -> FloatArray:
    amounts = np.zeros(count)
    for each in loads:
        amounts[each.places] = each.at(time)
    return amounts


def _lanes(load: Load, places: IntArray, sharing: IntArray, seed: int, name: str) -> _Lanes:
    """`sharing`: by place, which lane it has of a curve that several share."""
    curves: list[tuple[Curve, IntArray | None]] = []
    for index, vary in enumerate(load.vary):
        lanes = int(sharing.max()) + 1 if vary.shared else len(places)
        made = curve(vary, lanes, random_for(seed, name, index))
        curves.append((made, sharing if vary.shared else None))
    return _Lanes(places, np.resize(np.array(load.dealt, dtype=np.float64), len(places)), curves)
