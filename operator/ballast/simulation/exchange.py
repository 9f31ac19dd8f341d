"""What the applications of a scenario exchange, as the topologies that the planner reads."""

from __future__ import annotations

from collections.abc import Iterable

from ballast.model import Anchor, Component, Grouping, Levels, Stream, Topology
from ballast.simulation.crew import NAMESPACE, App
from ballast.simulation.scenario import ScenarioSpec


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
        anchors = tuple(Anchor((zone, *nearer), share) for zone, share in sorted(external.zones.items()))
        members.setdefault(key, []).append(Component(external.name, anchors=anchors, external=True))
    streams: dict[str, list[Stream]] = {}
    for stream in spec.streams:
        rate = float(stream.bytes_per_second) if stream.bytes_per_second is not None else None
        found = Stream(stream.from_, stream.to, Grouping(stream.grouping), rate)
        streams.setdefault(home[stream.to], []).append(found)
    return tuple(
        Topology(key, NAMESPACE, key.split("/", 1)[1], tuple(components), tuple(streams.get(key, ())))
        for key, components in sorted(members.items())
    )
