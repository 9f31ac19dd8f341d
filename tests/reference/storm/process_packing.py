"""Executors put into processes on nodes, within what nodes and processes can hold; every step can be taken back."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic

import numpy as np

from ballast.placement.executor_order import Id
from ballast.placement.resource_aware import Availability, Flags, Floats, Ints, Layout

ROUNDING = 1e-9
"""Amounts are sums of many; one that is over by no more than this still fits."""


@dataclass(frozen=True, slots=True)
class Demand:
    """What an executor asks for: one amount per resource of the room, and its part of the process's heap."""

    component: str
    amounts: Floats
    heap: float = 0.0


@dataclass(frozen=True, slots=True)
class ProcessRules:
    """What executors may share a process."""

    heap: float = math.inf
    """Most that the executors of one process may take of its heap together."""
    one_executor: bool = False
    one_component: bool = False


@dataclass(frozen=True, slots=True)
class Site:
    """The nodes, what is free on them, and in how many new processes; favorites by position, in order."""

    layout: Layout
    room: Availability
    free_processes: Ints
    favored: tuple[int, ...] = ()
    unfavored: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Process(Generic[Id]):
    """One new process: the node's position and the executors in it."""

    node: int
    executors: tuple[Id, ...]


@dataclass(frozen=True, slots=True)
class Schedule(Generic[Id]):
    processes: tuple[Process[Id], ...]
    missing: tuple[Id, ...] = ()
    """Executors for which no place was found."""


@dataclass(slots=True)
class _Open(Generic[Id]):
    """A process that was started here."""

    node: int
    executors: list[Id] = field(default_factory=list)
    heap_used: float = 0.0


class Packing(Generic[Id]):
    """What has been put where so far."""

    def __init__(self, site: Site, demands: Mapping[Id, Demand], rules: ProcessRules) -> None:
        self._demands = demands
        self._rules = rules
        self._rare = site.room.rare
        self._free = site.room.free.copy()
        self._placed = site.room.placed.copy()
        self._startable = site.free_processes.copy()
        self._open: list[list[_Open[Id]]] = [[] for _ in range(len(self._startable))]

    @property
    def room(self) -> Availability:
        """What is left; it changes with every step."""
        return Availability(free=self._free, placed=self._placed, rare=self._rare)

    def wide_enough(self, executor: Id) -> Flags:
        """By node, whether its room would do."""
        fits: Flags = np.logical_and.reduce(self._free + ROUNDING >= self._demands[executor].amounts, axis=1)
        return fits

    def ways_on(self, executor: Id, nodes: Iterable[int]) -> Iterator[tuple[int, int]]:
        """Node and process of every way there is for it, in the order of `nodes`.

        On a node: the processes started here by number, then a new one (all new ones are alike).
        """
        wide_enough = self.wide_enough(executor)
        for node in nodes:
            if wide_enough[node]:
                for number in self._ways(executor, node):
                    yield node, number

    def _ways(self, executor: Id, node: int) -> Iterator[int]:
        for number, process in enumerate(self._open[node]):
            if self._admits(process, executor):
                yield number
        if self._startable[node] > 0 and self._demands[executor].heap <= self._rules.heap:
            yield len(self._open[node])

    def put(self, executor: Id, node: int, number: int) -> None:
        """Goes one way that `ways_on` gave."""
        if number == len(self._open[node]):
            self._open[node].append(_Open(node))
            self._startable[node] -= 1
        process = self._open[node][number]
        process.executors.append(executor)
        process.heap_used += self._demands[executor].heap
        self._free[node] -= self._demands[executor].amounts
        self._placed[node] += 1

    def take_back(self, executor: Id, node: int, number: int) -> None:
        """Undoes the latest `put`."""
        process = self._open[node][number]
        process.executors.pop()
        process.heap_used -= self._demands[executor].heap
        if not process.executors:
            self._open[node].pop()
            self._startable[node] += 1
        self._free[node] += self._demands[executor].amounts
        self._placed[node] -= 1

    def schedule(self, missing: Sequence[Id] = ()) -> Schedule[Id]:
        started = (process for on_node in self._open for process in on_node)
        processes = tuple(Process(process.node, tuple(process.executors)) for process in started)
        return Schedule(processes, tuple(missing))

    def _admits(self, process: _Open[Id], executor: Id) -> bool:
        demand, rules = self._demands[executor], self._rules
        if rules.one_executor or process.heap_used + demand.heap > rules.heap + ROUNDING:
            return False
        return not rules.one_component or self._demands[process.executors[0]].component == demand.component
