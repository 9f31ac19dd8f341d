"""The nodes and the executors of a recording, as the simulation has them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ballast.model import Component, Resources, Topology, Workload
from ballast.simulation.crew import App, Crew
from ballast.simulation.fleet import Fleet
from ballast.simulation.recorded.known import Known, KnownApplication, pods_of
from ballast.simulation.recorded.slots import Slots
from ballast.simulation.recording import RecordedExecutor, Recording

_AMPLE_BYTES = float(1 << 60)
"""Of a node whose memory is not known: never what counts."""


def recorded_fleet(recording: Recording, known: Known) -> Fleet:
    nodes = recording.nodes
    seen = [known.nodes.get(node.name) for node in nodes]
    nothing = Resources(0.0, 0.0, 0.0)
    foreign = [known.foreign.get(node.name, nothing) for node in nodes]
    return Fleet(
        names=tuple(node.name for node in nodes),
        zones=(None,) * len(nodes),
        racks=(None,) * len(nodes),
        cores=np.array([node.cores for node in nodes]),
        memory_bytes=np.array([min(node.memory_bytes, _AMPLE_BYTES) for node in nodes]),
        speed=np.array([node.speed if node else 1.0 for node in seen]),
        joins_at=np.where(recording.present[0], 0.0, np.inf),
        position={node.name: index for index, node in enumerate(nodes)},
        groups={},
        known_labels=tuple(node.labels if node else {} for node in seen),
        foreign=np.array([(each.cpu_cores, each.memory_bytes, each.pods) for each in foreign]),
    )


def recorded_crew(recording: Recording, slots: Slots, known: Known) -> Crew:
    members: dict[tuple[str, str], list[RecordedExecutor]] = {}
    for each in recording.executors:
        members.setdefault((each.namespace, each.application), []).append(each)
    position = {key: index for index, key in enumerate(members)}
    apps = tuple(_app(executors, known) for executors in members.values())
    app_of = np.zeros(slots.count, dtype=np.int64)
    for index, each in enumerate(recording.executors):
        app_of[slots.slot_of[index]] = position[each.namespace, each.application]
    amounts = [(app.requests.cpu_cores, app.requests.memory_bytes, 1.0) for app in apps]
    begun = slots.node[0] >= 0
    return Crew(
        apps=apps,
        app_of=app_of,
        homes=slots.node[0].copy(),
        requests=np.array(amounts).reshape(-1, 3)[app_of],
        cores=np.array([app.cores for app in apps])[app_of],
        movable=np.array([app.workload is Workload.STREAMING for app in apps], dtype=np.int64)[app_of],
        starts=np.where(begun, 0.0, np.inf),
        stops=np.full(slots.count, np.inf),
    )


def _app(executors: Sequence[RecordedExecutor], known: Known) -> App:
    first = executors[0]
    pods = pods_of(first.name)
    found = known.application(first.namespace, first.application, pods)
    requests = _requests(executors, found)
    rates = [each.bytes_per_core for each in executors if each.bytes_per_core is not None]
    key = f"{first.namespace}/{first.application}"
    same_run = found is not None and (found.id == first.application or _declared(found, known))
    return App(
        namespace=first.namespace,
        name=first.application,
        pods=pods,
        topology=found.topology if found is not None and same_run else key,
        component=found.component if found is not None and same_run else first.application,
        workload=found.workload if found is not None and found.workload is not None else Workload.STREAMING,
        cores=found.cores if found else max(1.0, requests.cpu_cores),
        requests=requests,
        records_per_core=float("nan"),
        bytes_per_core=float(np.mean(rates)) if rates else float("nan"),
        state_bytes=found.state_bytes if found is not None and found.state_bytes is not None else 0.0,
        task_seconds=None,
        exchange_bytes_per_second=None,
        executors=len(executors),
    )


def _declared(found: KnownApplication, known: Known) -> bool:
    """Whether its topology is one that users wrote: it then outlasts the run of an application."""
    return any(topology.key == found.topology and not topology.implicit for topology in known.topologies)


def _requests(executors: Sequence[RecordedExecutor], found: KnownApplication | None) -> Resources:
    """Of each executor: the largest recorded one, or what the snapshot says; else nothing."""
    cpu = [each.request_cores for each in executors if each.request_cores is not None]
    memory = [each.request_memory_bytes for each in executors if each.request_memory_bytes is not None]
    told = found.requests if found is not None else Resources(0.0, 0.0, 1.0)
    return Resources(max(cpu, default=told.cpu_cores), max(memory, default=told.memory_bytes), 1.0)


def recorded_topologies(crew: Crew, known: Known) -> tuple[Topology, ...]:
    """Those of the snapshot, and one for each application that is in none of them."""
    told = {topology.key: topology for topology in known.topologies}
    for app in crew.apps:
        if app.topology not in told:
            component = Component(app.component, app.workload)
            told[app.topology] = Topology(app.topology, app.namespace, app.name, (component,), implicit=True)
    return tuple(told[key] for key in sorted(told))
