"""The nodes of a scenario, one by one, as arrays in the order of their names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from ballast.model import Levels, Location
from ballast.simulation.arrays import FloatArray
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
            tuple(_place(level.label, name, zone, rack) for level in levels.ordered)
            for name, zone, rack in zip(self.names, self.zones, self.racks, strict=True)
        )

    def labels(self, index: int, levels: Levels) -> dict[str, str]:
        name, zone, rack = self.names[index], self.zones[index], self.racks[index]
        found = {level.label: _place(level.label, name, zone, rack) for level in levels.ordered}
        return {_HOST_LABEL: name, **{label: value for label, value in found.items() if value is not None}}


def _place(label: str, name: str, zone: str | None, rack: str | None) -> str | None:
    return {_ZONE_LABEL: zone, _HOST_LABEL: name}.get(label, rack)


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
