"""The traffic that commands show for a topology: measured where that is known, else declared, else equal weights.

`report`, `plan` and `status` all show the shares of this traffic, so that they give one answer for one application.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial

from ballast.model import Component, Executor, LocalityView, Phase, Policy, Snapshot, Topology
from ballast.placement.locality import counts_by_topology, locality
from ballast.planner.replan import ReplannedTopology, compared, members_by_topology, placeable, placed_again


class Basis(StrEnum):
    """By what a topology's traffic is weighed; the weakest of its parts."""

    MEASURED = "Measured"
    """Spark's own shuffle metrics of every executor; rates of streams are declared."""
    DECLARED = "Declared"
    """The SparkTopology declares every rate."""
    EQUAL_WEIGHTS = "EqualWeights"
    """Some rate is neither measured nor declared: it weighs as much as the others do on average."""


@dataclass(frozen=True, slots=True)
class ShownTraffic:
    """One topology with the rates that its traffic is shown by."""

    topology: Topology
    basis: Basis
    weights: Mapping[str, float]
    """By uid: what an executor shuffles next to the mean of its component; empty where that is not measured."""


def shown_traffic(snapshot: Snapshot, *, remote_shuffle: Collection[str] = ()) -> Mapping[str, ShownTraffic]:
    """By topology. `remote_shuffle`: keys of topologies whose executors exchange nothing among themselves."""
    members: dict[str, list[Executor]] = defaultdict(list)
    for executor in snapshot.executors:
        if executor.phase in (Phase.RUNNING, Phase.PENDING):
            members[executor.topology].append(executor)
    known = {topology.key: topology for topology in snapshot.topologies}
    return {
        key: _shown(known.get(key) or undeclared(key), members.get(key, ()), remote=key in remote_shuffle)
        for key in sorted({*known, *members})
    }


def undeclared(key: str) -> Topology:
    """An application without a SparkTopology."""
    namespace, _, name = key.partition("/")
    return Topology(key, namespace, name, components=(), implicit=True)


def _shown(topology: Topology, members: Sequence[Executor], *, remote: bool) -> ShownTraffic:
    by_component: dict[str, list[Executor]] = defaultdict(list)
    for executor in members:
        by_component[executor.component].append(executor)
    components = {component.name: component for component in topology.components}
    weights: dict[str, float] = {}
    bases: set[Basis] = set()
    for name, executors in by_component.items():
        component = components.get(name) or Component(name)
        measured = None if remote else _measured_exchange(executors)
        if remote:
            component = replace(component, exchange_bytes_per_second=0.0)
        elif measured is not None and component.exchange_bytes_per_second != 0.0:
            component = replace(component, exchange_bytes_per_second=measured)
            weights |= _weights(executors)
            bases.add(Basis.MEASURED)
        components[name] = component
        if component.exchange_bytes_per_second is None:
            bases.add(Basis.EQUAL_WEIGHTS)
        elif measured is None or component.exchange_bytes_per_second == 0.0:
            bases.add(Basis.DECLARED)
    if any(stream.bytes_per_second is None for stream in topology.streams):
        bases.add(Basis.EQUAL_WEIGHTS)
    weakest = max(bases, key=list(Basis).index, default=Basis.EQUAL_WEIGHTS)
    return ShownTraffic(replace(topology, components=tuple(components.values())), weakest, weights)


def _measured_exchange(executors: Sequence[Executor]) -> float | None:
    """Bytes per second that they read of each other's output; None where one of them has no such metric.

    None as well while they read nothing: of nothing there are no shares.
    """
    reads = [each.usage.shuffle_read_bytes_per_second if each.usage else None for each in executors]
    known = [each for each in reads if each is not None]
    return sum(known) or None if len(known) == len(reads) else None


def _weights(executors: Sequence[Executor]) -> dict[str, float]:
    """The mean of what an executor has of all that is read and of all that is written, as far as that is known."""
    read = [(each.usage.shuffle_read_bytes_per_second or 0.0) if each.usage else 0.0 for each in executors]
    written = [each.usage.shuffle_write_bytes_per_second if each.usage else None for each in executors]
    both = [read, [each or 0.0 for each in written]] if None not in written else [read]
    told = [column for column in both if sum(column) > 0.0]
    if not told:
        return {}
    return {
        each.uid: len(executors) * sum(column[index] / sum(column) for column in told) / len(told)
        for index, each in enumerate(executors)
    }


def view_of(shown: ShownTraffic, executors: Iterable[Executor], snapshot: Snapshot, policy: Policy) -> LocalityView:
    """How far the traffic of these executors of the topology travels, as they are placed."""
    counts = counts_by_topology(executors, snapshot.nodes, shown.weights).get(shown.topology.key, {})
    ratio = policy.placement.max_executors_per_node_ratio
    return locality(shown.topology, counts, policy.levels, max_node_ratio=ratio)


def of_components(shown: ShownTraffic, components: Collection[str]) -> ShownTraffic:
    """The traffic that these components take part in."""
    own = shown.topology
    parts = tuple(
        each if each.name in components or each.external else replace(each, exchange_bytes_per_second=0.0)
        for each in own.components
    )
    streams = tuple(each for each in own.streams if each.source in components or each.target in components)
    return replace(shown, topology=replace(own, components=parts, streams=streams))


@dataclass(frozen=True, slots=True)
class PlacedTopology:
    placed: ReplannedTopology
    basis: Basis


def together(snapshot: Snapshot, policy: Policy, keys: Sequence[str]) -> tuple[PlacedTopology, ...]:
    """Topologies as they are, and as they would be if everything in the pool were placed again at once."""
    members: dict[str, list[Executor]] = {key: [] for key in keys}
    for executor in placeable(snapshot, policy):
        if executor.topology in members:
            members[executor.topology].append(executor)
    if not any(members.values()):
        return ()
    shown, placements = shown_traffic(snapshot), placed_again(snapshot, policy)
    whole = members_by_topology(snapshot.executors)
    return tuple(
        PlacedTopology(
            compared(key, own, placements, whole[key], partial(_view, shown[key], snapshot, policy)),
            shown[key].basis,
        )
        for key, own in members.items()
        if own
    )


def _view(shown: ShownTraffic, snapshot: Snapshot, policy: Policy, executors: Collection[Executor]) -> LocalityView:
    return view_of(shown, executors, snapshot, policy)
