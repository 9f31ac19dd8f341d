"""How much work there is, step by step: of every executor's slot, and of every node's neighbors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import exp, pi, sqrt
from types import MappingProxyType
from typing import Any, TypeAlias
from zlib import crc32

import numpy as np

from ballast.model.arrays import FloatArray, IntArray
from ballast.simulation.inventory import ExecutorSlots, Fleet
from ballast.simulation.scenario import ScenarioSpec
from ballast.simulation.scenario_models import Bursts, Diurnal, HeavyTail, Load, Noise, RandomWalk, Series, Surge, Vary

# Factors on load over time, for many lanes (executors, nodes) at once.
#
# A lane is asked step by step, forward in time, and draws its chances from its own generator: what one curve does
# depends on nothing but the seed and the place it has in the scenario.

Random: TypeAlias = np.random.Generator
_MINUTE = 60.0
_HOUR = 3600.0


def random_for(seed: int, *place: str | int) -> Random:
    """The generator of one place of a scenario; others do not disturb it."""
    return np.random.default_rng(np.random.SeedSequence([seed, *(crc32(str(step).encode()) for step in place)]))


class Curve(ABC):
    """Factors of one variation."""

    @abstractmethod
    def at(self, time: float) -> FloatArray:
        """One factor per lane (or a single one for all) at `time`, seconds since the run began; never backwards."""


class _Diurnal(Curve):
    def __init__(self, vary: Diurnal, lanes: int, random: Random) -> None:
        del lanes, random
        self._amplitude, self._period, self._peak = vary.amplitude, vary.period.seconds, vary.peak.seconds

    def at(self, time: float) -> FloatArray:
        return np.array([1.0 + self._amplitude * np.cos(2.0 * pi * (time - self._peak) / self._period)])


class _Surge(Curve):
    def __init__(self, vary: Surge, lanes: int, random: Random) -> None:
        del lanes, random
        start, rise, lasts, fall = (span.seconds for span in (vary.at, vary.rise, vary.lasts, vary.fall))
        self._times = [start, start + rise, start + rise + lasts, start + rise + lasts + fall]
        self._factors = [1.0, vary.factor, vary.factor, 1.0]

    def at(self, time: float) -> FloatArray:
        return np.array([np.interp(time, self._times, self._factors)])


class _Series(Curve):
    def __init__(self, vary: Series, lanes: int, random: Random) -> None:
        del lanes, random
        self._values, self._every, self._repeat = np.array(vary.values), vary.every.seconds, vary.repeat

    def at(self, time: float) -> FloatArray:
        index = int(time / self._every + 1e-9)
        index = index % len(self._values) if self._repeat else min(index, len(self._values) - 1)
        return self._values[index : index + 1]


class _Stepped(Curve):
    """A curve that goes on from where it was."""

    def __init__(self, lanes: int, random: Random) -> None:
        self._lanes, self._random = lanes, random
        self._now: float | None = None

    def at(self, time: float) -> FloatArray:
        elapsed = 0.0 if self._now is None else time - self._now
        self._now = time
        return self._advance(time, elapsed)

    @abstractmethod
    def _advance(self, time: float, elapsed: float) -> FloatArray:
        """Factors at `time`, `elapsed` seconds after the last ones."""


class _Bursts(_Stepped):
    def __init__(self, vary: Bursts, lanes: int, random: Random) -> None:
        super().__init__(lanes, random)
        self._vary = vary
        self._until = np.zeros(lanes)

    def _advance(self, time: float, elapsed: float) -> FloatArray:
        begins = self._random.random(self._lanes) < 1.0 - exp(-self._vary.per_hour * elapsed / _HOUR)
        self._until[begins] = time + self._vary.lasts.seconds
        return np.where(self._until > time, self._vary.factor, 1.0)


class _RandomWalk(_Stepped):
    def __init__(self, vary: RandomWalk, lanes: int, random: Random) -> None:
        super().__init__(lanes, random)
        self._low, self._step = vary.low, vary.step
        self._width = max(vary.high - vary.low, 1e-9)
        self._value = np.clip(np.ones(lanes), vary.low, vary.high)

    def _advance(self, time: float, elapsed: float) -> FloatArray:
        del time
        moved = self._value + self._step * sqrt(elapsed / _MINUTE) * self._random.standard_normal(self._lanes)
        # Reflected at both bounds: a triangle wave of twice the width.
        folded = (moved - self._low) % (2.0 * self._width)
        self._value = self._low + np.where(folded > self._width, 2.0 * self._width - folded, folded)
        return self._value


class _Noise(_Stepped):
    def __init__(self, vary: Noise, lanes: int, random: Random) -> None:
        super().__init__(lanes, random)
        self._deviation, self._memory = vary.deviation, vary.memory.seconds
        self._value = random.standard_normal(lanes)

    def _advance(self, time: float, elapsed: float) -> FloatArray:
        del time
        if elapsed > 0.0:
            likeness = exp(-elapsed / self._memory) if self._memory > 0 else 0.0
            fresh = self._random.standard_normal(self._lanes)
            self._value = likeness * self._value + sqrt(1.0 - likeness**2) * fresh
        return np.maximum(0.0, 1.0 + self._deviation * self._value)


class _HeavyTail(_Stepped):
    def __init__(self, vary: HeavyTail, lanes: int, random: Random) -> None:
        super().__init__(lanes, random)
        self._alpha, self._most = vary.alpha, vary.most
        self._every = vary.renewed.seconds if vary.renewed else None
        self._drawn_for = 0
        self._value = self._draw()

    def _draw(self) -> FloatArray:
        scale = (self._alpha - 1.0) / self._alpha
        return np.minimum(self._most, scale * (1.0 + self._random.pareto(self._alpha, self._lanes)))

    def _advance(self, time: float, elapsed: float) -> FloatArray:
        del elapsed
        wanted = 0 if self._every is None else int(time / self._every)
        while self._drawn_for < wanted:
            self._value = self._draw()
            self._drawn_for += 1
        return self._value


_KINDS: Mapping[type, Callable[[Any, int, Random], Curve]] = MappingProxyType(
    {
        Diurnal: _Diurnal,
        Bursts: _Bursts,
        RandomWalk: _RandomWalk,
        Noise: _Noise,
        HeavyTail: _HeavyTail,
        Surge: _Surge,
        Series: _Series,
    }
)


def curve(vary: Vary, lanes: int, random: Random) -> Curve:
    """The curve that a scenario describes, for so many lanes."""
    return _KINDS[type(vary)](vary, lanes, random)


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

    def __init__(self, spec: ScenarioSpec, fleet: Fleet, executor_slots: ExecutorSlots, seed: int) -> None:
        self._slots, self._nodes = len(executor_slots), len(fleet)
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
