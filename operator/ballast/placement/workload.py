"""The executors of one topology: those that run, those to place, and the places that they had before."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ballast.model import (
    Anchor,
    Component,
    Constraints,
    Executor,
    Location,
    Memory,
    Phase,
    Resources,
    Snapshot,
    Topology,
)
from ballast.model.arrays import BoolArray, FloatArray, IntArray
from ballast.placement.expectation import COMPLETE, ComponentKey, Expectation
from ballast.placement.node_locations import NodeLocations

# What the executors of one topology exchange, as weights between components.
#
# Rates are spread evenly over pairs of executors: Spark does not report which executors communicate, and with a
# hash shuffle every executor talks to every other.

_ALL_COMPLETE: Mapping[ComponentKey, Expectation] = {}
_DRIVER_SHARE, _DRIVER_SHARE_OF_KNOWN = 0.05, 0.005
"""Weight of the driver next to the topology's whole traffic: it decides between equals and never splits a set.

Where every rate is declared it weighs less, so that it draws no set out of the rack of a broker that it reads from.
"""


@dataclass(frozen=True, slots=True)
class Traffic:
    """Rates in bytes per second where at least one is declared, otherwise in units of one exchange."""

    components: tuple[str, ...]
    """Those that have executors; rows and columns follow this order."""
    between: FloatArray
    """(components, components): rate between two components, both directions; on the diagonal the exchange."""
    ends: tuple[Anchor, ...]
    """The fixed outer ends that any of them exchanges something with, each place once."""
    pulls: FloatArray
    """(components, ends): rate to each end."""
    driver: Anchor | None
    known: bool
    """Every rate was declared."""

    @property
    def total(self) -> float:
        """All traffic that can cost something, the driver's aside."""
        inner = 0.5 * float(self.between.sum() + self.between.trace())
        return inner + float(self.pulls.sum())

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
        return (_DRIVER_SHARE_OF_KNOWN if self.known else _DRIVER_SHARE) * (self.total or 1.0)


def traffic(topology: Topology, components: tuple[str, ...]) -> Traffic:
    """Weights among the named components and towards the topology's fixed ends."""
    index = {name: position for position, name in enumerate(components)}
    known = {component.name: component for component in topology.components}
    unit = _unit(topology)
    between = np.zeros((len(components), len(components)))
    for name, position in index.items():
        between[position, position] = _rate(_exchange(known.get(name)), unit)
    outer = _Outer()
    for stream in topology.streams:
        rate = _rate(stream.bytes_per_second, unit)
        ends = index.get(stream.source), index.get(stream.target)
        if ends[0] is not None and ends[1] is not None:
            between[ends[0], ends[1]] += rate
            if ends[0] != ends[1]:
                between[ends[1], ends[0]] += rate
        else:
            outer.pull(known.get(stream.source), ends[1], rate)
            outer.pull(known.get(stream.target), ends[0], rate)
    pulls = outer.rates(len(components))
    return Traffic(components, between, tuple(outer.ends), pulls, topology.driver, _declared(topology, components))


class _Outer:
    """The fixed ends of external components. Each may have thousands, and hundreds of streams may lead to them."""

    def __init__(self) -> None:
        self.ends: list[Anchor] = []
        self._index: dict[tuple[Location, str | None], int] = {}
        """Of the ends, by their place."""
        self._known: dict[int, tuple[IntArray, FloatArray]] = {}
        """Indexes of a component's ends and their shares, by identity of its anchors: several may have the same."""
        self._found: list[tuple[int, IntArray, FloatArray]] = []

    def pull(self, outer: Component | None, inner: int | None, rate: float) -> None:
        """Count the rate between a component and each end of `outer`; streams to one place count together."""
        if outer is None or inner is None or not outer.anchors:
            return
        if id(outer.anchors) not in self._known:
            self._known[id(outer.anchors)] = self._of(outer.anchors)
        indexes, shares = self._known[id(outer.anchors)]
        self._found.append((inner, indexes, rate * shares))

    def _of(self, anchors: Sequence[Anchor]) -> tuple[IntArray, FloatArray]:
        indexes = []
        for anchor in anchors:
            key = (anchor.location, anchor.node)
            if key not in self._index:
                self._index[key] = len(self.ends)
                self.ends.append(anchor)
            indexes.append(self._index[key])
        return np.array(indexes, dtype=np.int64), np.array([anchor.share for anchor in anchors])

    def rates(self, components: int) -> FloatArray:
        """(components, ends)"""
        result = np.zeros((components, len(self.ends)))
        for inner, indexes, rates in self._found:
            np.add.at(result[inner], indexes, rates)
        return result


def _exchange(component: Component | None) -> float | None:
    return None if component is None else component.exchange_bytes_per_second


def _rate(declared: float | None, unit: float) -> float:
    return unit if declared is None else max(0.0, declared)


def _unit(topology: Topology) -> float:
    """The weight of an undeclared rate: the mean of those declared."""
    declared = [s.bytes_per_second for s in topology.streams if s.bytes_per_second]
    declared += [c.exchange_bytes_per_second for c in topology.components if c.exchange_bytes_per_second]
    return sum(declared) / len(declared) if declared else 1.0


def _declared(topology: Topology, components: tuple[str, ...]) -> bool:
    placed = [topology.component(name) for name in components]
    exchanges = all(c is not None and c.exchange_bytes_per_second is not None for c in placed)
    return exchanges and all(stream.bytes_per_second is not None for stream in topology.streams)


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
class TopologyWorkload:
    topology: Topology
    traffic: Traffic
    totals: FloatArray
    """(components,): executors that there are with these, or that the topology declares, if that is more. Limits are
    shares of these: of what a label promises, or the last run had, none may ever come."""
    present: IntArray
    """(components, nodes): those that run, or will run where they are bound."""
    vacancies: IntArray
    """(components, nodes): places where executors ran before and do not run now."""
    outer: FloatArray
    """(components, nodes): what the fixed outer ends cost one executor on the node."""
    groups: tuple[Group, ...]
    to_come: IntArray
    """(components,): executors that are expected, and are not there yet."""
    sizes: FloatArray
    """(components,): `totals` once they have come."""
    open_ended: BoolArray
    """(components,): whether nothing says how many there will be."""

    @property
    def growing(self) -> bool:
        """Whether executors of a component that is to be placed will come later, or may."""
        own = [group.component for group in self.groups]
        return bool(self.to_come[own].any() or self.open_ended[own].any())

    @property
    def components(self) -> tuple[str, ...]:
        return self.traffic.components


def workloads(
    snapshot: Snapshot,
    locations: NodeLocations,
    memory: Memory,
    *,
    gated: Sequence[Executor],
    bound: Mapping[str, str],
    sticky: bool,
    loads: Mapping[str, float],
    crowded: bool = False,
    expected: Mapping[ComponentKey, Expectation] = _ALL_COMPLETE,
) -> Iterator[TopologyWorkload]:
    """One workload per topology that has something to place; the largest demand first, which is the hardest to fit.

    `crowded`: there is not room for all, so the one with the largest executor comes first.

    One at a time: with thousands of topologies, their tables together would not be small.

    `bound`: node by uid of executors that have been sent there, by this pass or an earlier one, and are on no node yet;
    they count as present. `expected`: a component that is not in it is complete with `gated`.
    """
    staff = _staff(snapshot, gated, bound)
    remembered = _remembered(memory, snapshot) if sticky else {}
    topologies = {topology.key: topology for topology in snapshot.topologies}
    waiting: dict[str, list[Executor]] = defaultdict(list)
    for executor in gated:
        waiting[executor.topology].append(executor)
    cores = {key: [e.requests.cpu_cores for e in members] for key, members in waiting.items()}
    for key in sorted(waiting, key=lambda key: (-max(cores[key]) if crowded else 0.0, -sum(cores[key]), key)):
        members = waiting[key]
        yield _workload(
            topologies.get(key) or _implicit(key, members[0]),
            locations,
            staff=staff.get(key, {}),
            remembered=remembered.get(key, {}),
            gated=members,
            loads=loads,
            expected=expected,
        )


def _implicit(key: str, executor: Executor) -> Topology:
    """An application without a SparkTopology: its components exchange among their own executors."""
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
    """Where executors ran, except for the places that a move under way has just given up: there was a reason for it."""
    given_up = Counter((m.topology, m.component, m.source) for m in snapshot.moves if m.phase.in_flight)
    result: dict[str, dict[str, tuple[tuple[str, int], ...]]] = defaultdict(dict)
    for topology, component, counts in memory.placements:
        kept = tuple((node, count - given_up[topology, component, node]) for node, count in counts)
        result[topology][component] = kept
    return result


def _workload(
    topology: Topology,
    locations: NodeLocations,
    *,
    staff: _Staff,
    remembered: Mapping[str, tuple[tuple[str, int], ...]],
    gated: Sequence[Executor],
    loads: Mapping[str, float],
    expected: Mapping[ComponentKey, Expectation],
) -> TopologyWorkload:
    names = tuple(sorted({*staff, *(executor.component for executor in gated)}))
    index = {name: position for position, name in enumerate(names)}
    present = _table(locations, {index[name]: tuple(counts.items()) for name, counts in staff.items()}, len(names))
    before = _table(locations, {index[n]: c for n, c in remembered.items() if n in index}, len(names))
    waiting = Counter(executor.component for executor in gated)
    there = {name: sum(counts.values()) for name, counts in staff.items()}
    declared = {component.name: component.expected or 0 for component in topology.components}
    known = [expected.get((topology.key, name), COMPLETE) for name in names]
    counts = np.array([there.get(name, 0) + waiting[name] for name in names], dtype=np.float64)
    totals = np.maximum(counts, [declared.get(name, 0) for name in names])
    to_come = np.array([each.to_come for each in known], dtype=np.int64)
    flows = traffic(topology, names)
    return TopologyWorkload(
        topology=topology,
        traffic=flows,
        totals=totals,
        present=present,
        vacancies=np.maximum(before - present, 0),
        # Once for all views of the workload, of which there is one for each of its parts.
        outer=locations.distances_to(flows.ends, flows.pulls / np.maximum(totals, 1.0)[:, None]),
        groups=_groups(index, gated, loads),
        to_come=to_come,
        sizes=np.maximum(totals, counts + to_come),
        open_ended=np.array([not each.known for each in known], dtype=np.bool_),
    )


def _table(locations: NodeLocations, counts: Mapping[int, Sequence[tuple[str | None, int]]], rows: int) -> IntArray:
    table = np.zeros((rows, len(locations.nodes)), dtype=np.int64)
    for row, by_node in counts.items():
        for node, count in by_node:
            if node is not None and node in locations.index:
                table[row, locations.index[node]] = count
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
