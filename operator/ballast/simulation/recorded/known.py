"""What a snapshot of the same pool tells that no recording holds: places, speeds, and what applications are."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from ballast.model import Executor, Move, Node, Resources, Snapshot, Topology, Workload
from ballast.simulation.recorded.slots import MOVE_SECONDS, slots
from ballast.simulation.recording import RecordedNode, Recording

_RUN = re.compile(r"-[0-9a-f]{16}$")
"""What Spark puts behind an application's name in the names of its pods, again for each run."""
_POD = re.compile(r"-exec-[^-]+$")


@dataclass(frozen=True, slots=True)
class KnownApplication:
    id: str
    topology: str
    """Key of its topology."""
    component: str
    workload: Workload | None
    cores: float
    """Tasks at once of each executor."""
    requests: Resources
    state_bytes: float | None
    """Of an executor."""


@dataclass(frozen=True, slots=True)
class Known:
    nodes: Mapping[str, Node] = field(default_factory=dict)
    foreign: Mapping[str, Resources] = field(default_factory=dict)
    """By node: requests of pods that are not Spark executors."""
    applications: Mapping[tuple[str, str], KnownApplication] = field(default_factory=dict)
    """By namespace and name: the application's id, and what its pods are called in every run."""
    topologies: tuple[Topology, ...] = ()
    moves: tuple[Move, ...] = ()
    """That the operator made within their ttl before the snapshot."""

    def application(self, namespace: str, id_: str, pods: str) -> KnownApplication | None:
        """`pods`: what its executors' names begin with. Another run of the same application counts."""
        found = self.applications.get((namespace, id_))
        return found or self.applications.get((namespace, in_every_run(pods)))


def pods_of(executor_name: str) -> str:
    """What all executors of one run of an application have in their names."""
    return _POD.sub("", executor_name)


def in_every_run(pods: str) -> str:
    """What the executors of an application have in their names whenever it runs."""
    return _RUN.sub("", pods)


def known(snapshot: Snapshot) -> Known:
    topologies = {topology.key: topology for topology in snapshot.topologies}
    members: dict[tuple[str, str], list[Executor]] = defaultdict(list)
    for executor in snapshot.executors:
        members[executor.namespace, executor.application].append(executor)
    applications: dict[tuple[str, str], KnownApplication] = {}
    for (namespace, id_), executors in sorted(members.items()):
        found = _application(id_, executors, topologies.get(executors[0].topology))
        applications[namespace, in_every_run(pods_of(executors[0].name))] = applications[namespace, id_] = found
    return Known(
        nodes={node.name: node for node in snapshot.nodes},
        foreign=_foreign(snapshot),
        applications=applications,
        topologies=snapshot.topologies,
        moves=snapshot.moves,
    )


def _application(id_: str, executors: list[Executor], topology: Topology | None) -> KnownApplication:
    first = executors[0]
    component = topology.component(first.component) if topology else None
    sizes = [e.usage.state_bytes for e in executors if e.usage is not None and e.usage.state_bytes is not None]
    return KnownApplication(
        id=id_,
        topology=first.topology,
        component=first.component,
        workload=component.workload if component else None,
        cores=max(executor.cores for executor in executors),
        requests=first.requests,
        state_bytes=float(np.mean(sizes)) if sizes else None,
    )


def _foreign(snapshot: Snapshot) -> dict[str, Resources]:
    """What is requested beyond the executors that the snapshot shows there."""
    ours: dict[str, list[Resources]] = defaultdict(list)
    for executor in snapshot.executors:
        if executor.node is not None:
            ours[executor.node].append(executor.requests)
    return {node.name: _beyond(node.requested, ours[node.name]) for node in snapshot.nodes}


def _beyond(whole: Resources, parts: Iterable[Resources]) -> Resources:
    listed = list(parts)
    return Resources(
        max(0.0, whole.cpu_cores - sum(part.cpu_cores for part in listed)),
        max(0.0, whole.memory_bytes - sum(part.memory_bytes for part in listed)),
        max(0.0, whole.pods - sum(part.pods for part in listed)),
    )


# A recording with what a snapshot of the same pool tells more exactly: what nodes offer, and which moves were made.


def completed(recording: Recording, known: Known) -> Recording:
    members = list(recording.executors)
    for index in _replacements(recording, known.moves):
        members[index] = replace(members[index], moved=True)
    nodes = tuple(_sized(node, known) for node in recording.nodes)
    return replace(recording, nodes=nodes, executors=tuple(members))


def _sized(node: RecordedNode, known: Known) -> RecordedNode:
    if not node.whole or node.name not in known.nodes:
        return node
    offered = known.nodes[node.name].allocatable
    return replace(node, cores=offered.cpu_cores, memory_bytes=offered.memory_bytes, whole=False)


def _replacements(recording: Recording, moves: tuple[Move, ...]) -> Iterator[int]:
    """Executors that began where one that was moved was to go, soon after it was decided."""
    left = {(move.namespace, move.executor_name): move for move in moves if move.left_at is not None}
    if not left:
        return
    successor = slots(recording).successor
    for index in np.flatnonzero(successor >= 0).tolist():
        executor, after = recording.executors[index], recording.executors[successor[index]]
        move = left.get((executor.namespace, executor.name))
        if move is None or recording.nodes[after.node].name != move.target:
            continue
        began = recording.start + after.first * recording.step_seconds
        if -recording.step_seconds <= began - move.started_at <= MOVE_SECONDS + recording.step_seconds:
            yield int(successor[index])
