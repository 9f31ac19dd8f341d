"""The nodes of a scenario, one by one, as arrays in the order of their names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from ballast.model import Levels, Location
from ballast.model.arrays import FloatArray
from ballast.simulation.scenario_pool import Machines

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
        return {_HOST_LABEL: self.names[index], **placed, **known}

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
