"""The executors of one topology: those that run, those to place, and the places that they had before."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ballast.model import Constraints, Executor, Memory, Phase, Resources, Snapshot, Topology
from ballast.model.arrays import FloatArray, IntArray
from ballast.placement.grid import Grid
from ballast.placement.traffic import Traffic, traffic


@dataclass(frozen=True, slots=True)
class Group:
    """Interchangeable executors: one component, one template."""

    component: int
    requests: Resources
    constraints: Constraints
    load_cores: float
    executors: tuple[Executor, ...]
    """Sorted by key; their order has no meaning beyond that."""


@dataclass(frozen=True, slots=True)
class Crew:
    topology: Topology
    traffic: Traffic
    totals: FloatArray
    """(components,): executors there are, will be with these, or are expected, whichever is most."""
    present: IntArray
    """(components, nodes): those that run, or will run where they are bound."""
    vacancies: IntArray
    """(components, nodes): places where executors ran before and do not run now."""
    groups: tuple[Group, ...]

    @property
    def components(self) -> tuple[str, ...]:
        return self.traffic.components


def crews(
    snapshot: Snapshot,
    grid: Grid,
    memory: Memory,
    *,
    gated: Sequence[Executor],
    bound: Mapping[str, str],
    sticky: bool,
    loads: Mapping[str, float],
) -> Iterator[Crew]:
    """One crew per topology that has something to place; the largest demand first, for it is the hardest to fit.

    One at a time: with thousands of topologies, their tables together would not be small.

    `bound`: node by uid of executors that have been sent there, by this pass or an earlier one, and are on no node yet;
    they count as present.
    """
    staff = _staff(snapshot, gated, bound)
    remembered = _remembered(memory, snapshot) if sticky else {}
    topologies = {topology.key: topology for topology in snapshot.topologies}
    waiting: dict[str, list[Executor]] = defaultdict(list)
    for executor in gated:
        waiting[executor.topology].append(executor)
    for key in sorted(waiting, key=lambda key: (-sum(e.requests.cpu_cores for e in waiting[key]), key)):
        members = waiting[key]
        yield _crew(
            topologies.get(key) or _implicit(key, members[0]),
            grid,
            staff=staff.get(key, {}),
            remembered=remembered.get(key, {}),
            gated=members,
            loads=loads,
        )


def _implicit(key: str, executor: Executor) -> Topology:
    """An application that nobody described: its components exchange among their own executors."""
    return Topology(key, executor.namespace, key.rsplit("/", 1)[-1], components=(), implicit=True)


_Staff = dict[str, Counter[str | None]]
"""Per component: executors by node, None for one that is not bound yet."""


def _staff(snapshot: Snapshot, gated: Iterable[Executor], bound: Mapping[str, str]) -> dict[str, _Staff]:
    wanted = {executor.topology for executor in gated}
    coming = {**bound, **_targets(snapshot, {executor.uid for executor in gated})}
    staff: dict[str, _Staff] = {key: defaultdict(Counter) for key in wanted}
    for executor in snapshot.executors:
        if executor.topology not in wanted:
            continue
        if executor.phase in (Phase.RUNNING, Phase.PENDING) or coming.get(executor.uid) is not None:
            where = coming.get(executor.uid, executor.node)
            staff[executor.topology][executor.component][where] += 1
    return staff


def _targets(snapshot: Snapshot, placed_now: Collection[str]) -> dict[str, str | None]:
    """Where moves bring those who leave, by uid; None once there is a replacement, for that counts instead.

    One that waits at the gate for its move to send it on is there already; those of `placed_now` are not.
    """
    gates = {executor.uid: executor.phase is Phase.GATED for executor in snapshot.executors}
    targets: dict[str, str | None] = {}
    for move in snapshot.moves:
        replacement = move.replacement_uid
        if move.phase.departing:
            targets[move.executor_uid] = None if replacement in gates else move.target
        if replacement is not None and gates.get(replacement) and move.phase.traveling:
            targets[replacement] = move.target
    return {uid: node for uid, node in targets.items() if uid not in placed_now}


def _remembered(memory: Memory, snapshot: Snapshot) -> dict[str, dict[str, tuple[tuple[str, int], ...]]]:
    """Where executors ran, but for the places that a move under way has just given up: there was a reason for it."""
    given_up = Counter((m.topology, m.component, m.source) for m in snapshot.moves if m.phase.in_flight)
    result: dict[str, dict[str, tuple[tuple[str, int], ...]]] = defaultdict(dict)
    for topology, component, counts in memory.placements:
        kept = tuple((node, count - given_up[topology, component, node]) for node, count in counts)
        result[topology][component] = kept
    return result


def _crew(
    topology: Topology,
    grid: Grid,
    *,
    staff: _Staff,
    remembered: Mapping[str, tuple[tuple[str, int], ...]],
    gated: Sequence[Executor],
    loads: Mapping[str, float],
) -> Crew:
    names = tuple(sorted({*staff, *(executor.component for executor in gated)}))
    index = {name: position for position, name in enumerate(names)}
    present = _table(grid, {index[name]: tuple(counts.items()) for name, counts in staff.items()}, len(names))
    before = _table(grid, {index[n]: c for n, c in remembered.items() if n in index}, len(names))
    waiting = Counter(executor.component for executor in gated)
    there = {name: sum(counts.values()) for name, counts in staff.items()}
    expected = {component.name: component.expected or 0 for component in topology.components}
    totals = [max(there.get(name, 0) + waiting[name], expected.get(name, 0)) for name in names]
    return Crew(
        topology=topology,
        traffic=traffic(topology, names),
        totals=np.array(totals, dtype=np.float64),
        present=present,
        vacancies=np.maximum(before - present, 0),
        groups=_groups(index, gated, loads),
    )


def _table(grid: Grid, counts: Mapping[int, Sequence[tuple[str | None, int]]], rows: int) -> IntArray:
    table = np.zeros((rows, len(grid.nodes)), dtype=np.int64)
    for row, by_node in counts.items():
        for node, count in by_node:
            if node is not None and node in grid.index:
                table[row, grid.index[node]] = count
    return table


def _groups(index: Mapping[str, int], gated: Sequence[Executor], loads: Mapping[str, float]) -> tuple[Group, ...]:
    alike: dict[tuple[str, Resources, Constraints], list[Executor]] = defaultdict(list)
    for executor in gated:
        alike[executor.component, executor.requests, executor.constraints].append(executor)
    groups = [
        Group(
            component=index[component],
            requests=requests,
            constraints=constraints,
            load_cores=max(loads.get(executor.uid, requests.cpu_cores) for executor in members),
            executors=tuple(sorted(members, key=lambda executor: (executor.key, executor.uid))),
        )
        for (component, requests, constraints), members in alike.items()
    ]
    return tuple(sorted(groups, key=lambda group: (group.component, group.executors[0].key, group.executors[0].uid)))
