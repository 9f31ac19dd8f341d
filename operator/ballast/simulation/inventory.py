"""The nodes, executor slots and topologies of a scenario, node by node and slot by slot as arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from ballast.api.topology import zone_ratios
from ballast.model import Anchor, Component, Levels, Location, Resources, Stream, Topology, Workload
from ballast.model.arrays import FloatArray, IntArray
from ballast.moves.speed import INSTANCE_TYPE
from ballast.simulation.scenario import ScenarioSpec
from ballast.simulation.scenario_models import Application, Machines

T = TypeVar("T")

_ZONE_LABEL = "topology.kubernetes.io/zone"
_HOST_LABEL = "kubernetes.io/hostname"


@dataclass(frozen=True, slots=True, eq=False)
class Fleet:
    names: tuple[str, ...]
    zones: tuple[str | None, ...]
    racks: tuple[str | None, ...]
    cores: FloatArray
    memory_bytes: FloatArray
    speed: FloatArray
    joins_at: FloatArray
    """Seconds since the run began; 0 = there from the beginning."""
    position: dict[str, int]
    """Index of each node."""
    groups: dict[str, tuple[int, ...]]
    """Indices of the nodes of each group of the scenario."""
    known_labels: tuple[Mapping[str, str], ...] = ()
    """Of each node, where it is known what they are; they count before `zones` and `racks`."""
    foreign: FloatArray | None = None
    """Nodes × (CPU cores, bytes of memory, pods): requests of others than executors; None: nothing."""

    def __len__(self) -> int:
        return len(self.names)

    @property
    def capacity(self) -> FloatArray:
        """Work that makes 100 points, in cores of an ordinary machine."""
        return self.cores * self.speed

    def index(self, name: str) -> int:
        return self.position[name]

    def named(self, subject: str) -> tuple[int, ...]:
        """The nodes of a group, or the node of that name."""
        return self.groups[subject] if subject in self.groups else (self.index(subject),)

    def locations(self, levels: Levels) -> tuple[Location, ...]:
        """One value per level: the zone's label, the host's label, and racks for whatever stands between."""
        return tuple(
            tuple(self._place(level.label, index) for level in levels.ordered) for index in range(len(self.names))
        )

    def labels(self, index: int, levels: Levels) -> dict[str, str]:
        found = {level.label: self._place(level.label, index) for level in levels.ordered}
        known = self.known_labels[index] if self.known_labels else {}
        placed = {label: value for label, value in found.items() if value is not None}
        kind = next((name for name, members in self.groups.items() if index in members), None)
        typed = {} if kind is None or self.known_labels else {INSTANCE_TYPE: kind}
        return {_HOST_LABEL: self.names[index], **typed, **placed, **known}

    def _place(self, label: str, index: int) -> str | None:
        if self.known_labels and label in self.known_labels[index]:
            return self.known_labels[index][label]
        return {_ZONE_LABEL: self.zones[index], _HOST_LABEL: self.names[index]}.get(label, self.racks[index])


def fleet(machines: tuple[Machines, ...]) -> Fleet:
    listed = [(name, each, turn) for each in machines for turn, name in enumerate(each.names)]
    listed.sort(key=lambda item: item[0])
    position = {name: index for index, (name, _, _) in enumerate(listed)}
    return Fleet(
        names=tuple(name for name, _, _ in listed),
        zones=tuple(_dealt(each.zones, turn) for _, each, turn in listed),
        racks=tuple(_dealt(each.racks, turn) for _, each, turn in listed),
        cores=np.array([each.cores for _, each, _ in listed]),
        memory_bytes=np.array([float(each.memory) for _, each, _ in listed]),
        speed=np.array([each.speed for _, each, _ in listed]),
        joins_at=np.array([each.joins.seconds if each.joins else 0.0 for _, each, _ in listed]),
        position=position,
        groups={each.name: tuple(position[name] for name in each.names) for each in machines},
    )


def _dealt(places: tuple[T, ...], turn: int) -> T | None:
    return places[turn % len(places)] if places else None


# The executors of a scenario, as slots: one is filled by an executor, by its replacement after a move, and so on.

NAMESPACE = "simulation"


@dataclass(frozen=True, slots=True)
class App:
    """One Spark application."""

    namespace: str
    name: str
    pods: str
    """What its executors' names begin with, before `-exec-`."""
    topology: str
    """Key of its topology."""
    component: str
    workload: Workload
    cores: float
    """Tasks at once of each executor."""
    requests: Resources
    records_per_core: float
    """NaN: not known, as with the two that follow."""
    bytes_per_core: float
    state_bytes: float
    task_seconds: float | None
    """On an ordinary idle machine; None: there are no task metrics."""
    exchange_bytes_per_second: float | None
    """Among its own executors; None: not said."""
    executors: int


@dataclass(frozen=True, slots=True, eq=False)
class ExecutorSlots:
    """Executors of all applications, application by application."""

    apps: tuple[App, ...]
    app_of: IntArray
    """By slot."""
    homes: IntArray
    """By slot: node index where it runs when the run begins; -1: it is placed by the policy."""
    requests: FloatArray
    """Slots × (CPU cores, bytes of memory, pods)."""
    cores: FloatArray
    """By slot: tasks at once."""
    movable: IntArray
    """By slot: 1 where the workload may be moved at all."""
    starts: FloatArray
    """By slot: when there is to be an executor, in seconds since the run began."""
    stops: FloatArray
    """By slot: when there is to be none any more; infinite: never."""

    def __len__(self) -> int:
        return len(self.app_of)


def executor_slots(spec: ScenarioSpec, fleet: Fleet) -> ExecutorSlots:
    apps = tuple(app for each in spec.applications for app in _apps(each))
    app_of = np.array([i for i, app in enumerate(apps) for _ in range(app.executors)], dtype=np.int64)
    amounts = [(app.requests.cpu_cores, app.requests.memory_bytes, 1.0) for app in apps]
    return ExecutorSlots(
        apps=apps,
        app_of=app_of,
        homes=np.array([home for each in spec.applications for home in _homes(each, fleet)], dtype=np.int64),
        requests=np.array(amounts).reshape(-1, 3)[app_of],
        cores=np.array([app.cores for app in apps])[app_of],
        movable=np.array([app.workload is Workload.STREAMING for app in apps], dtype=np.int64)[app_of],
        starts=np.array([each.starts.seconds for each in spec.applications for _ in range(each.total)]),
        stops=np.array([_stop(each) for each in spec.applications for _ in range(each.total)]),
    )


def _stop(each: Application) -> float:
    return each.stops.seconds if each.stops else float("inf")


def _apps(each: Application) -> list[App]:
    return [
        App(
            namespace=NAMESPACE,
            name=name,
            pods=name,
            topology=f"{NAMESPACE}/{each.topology or name}",
            component=name,
            workload=Workload(each.workload),
            cores=each.cores,
            requests=Resources(float(each.requests.cpu), float(each.requests.memory), 1.0),
            records_per_core=each.records_per_core,
            bytes_per_core=float(each.bytes_per_core),
            state_bytes=float(each.state),
            task_seconds=each.task_seconds,
            exchange_bytes_per_second=float(each.exchange) if each.exchange is not None else None,
            executors=each.executors,
        )
        for name in each.names
    ]


def _homes(each: Application, fleet: Fleet) -> list[int]:
    if isinstance(each.runs_on, tuple):
        nodes = [node for subject in each.runs_on for node in fleet.named(subject)] or [-1]
        return [nodes[i % len(nodes)] for i in range(each.total)]
    placed = [fleet.index(name) for name, count in each.runs_on.items() for _ in range(count)]
    return placed + [-1] * (each.total - len(placed))


# What the applications of a scenario exchange, as the topologies that the planner reads.


def topologies(apps: Iterable[App], spec: ScenarioSpec, levels: Levels) -> tuple[Topology, ...]:
    members: dict[str, list[Component]] = {}
    home: dict[str, str] = {}
    for app in apps:
        component = Component(app.component, app.workload, app.executors, app.exchange_bytes_per_second)
        members.setdefault(app.topology, []).append(component)
        home[app.name] = app.topology
    nearer = (None,) * (len(levels.ordered) - 1)
    for external in spec.externals:
        key = home[external.name] = f"{NAMESPACE}/{external.topology}"
        anchors = tuple(Anchor((zone, *nearer), share) for zone, share in zone_ratios(external.zones).items())
        members.setdefault(key, []).append(Component(external.name, anchors=anchors, external=True))
    streams: dict[str, list[Stream]] = {}
    for stream in spec.streams:
        rate = float(stream.bytes_per_second) if stream.bytes_per_second is not None else None
        found = Stream(stream.from_, stream.to, stream.grouping, rate)
        streams.setdefault(home[stream.to], []).append(found)
    return tuple(
        Topology(key, NAMESPACE, key.split("/", 1)[1], tuple(components), tuple(streams.get(key, ())))
        for key, components in sorted(members.items())
    )
