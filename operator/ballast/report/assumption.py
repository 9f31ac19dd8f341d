"""The topology that is assumed of every application: one component that shuffles within itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ballast.model import Anchor, Component, Executor, Policy, Snapshot, Topology, Workload

COMPONENT = "executors"


@dataclass(frozen=True, slots=True)
class Declared:
    """What a snapshot's own topology says of one application; all None where nothing is declared."""

    topology: Topology | None = None
    component: Component | None = None

    @property
    def remote_shuffle(self) -> bool:
        """Its executors send each other nothing: they shuffle through a service, or not at all."""
        return self.component is not None and self.component.exchange_bytes_per_second == 0.0


def key_of(executor: Executor) -> str:
    """Of its application: `namespace/id`."""
    return f"{executor.namespace}/{executor.application}"


def declarations(snapshot: Snapshot) -> Mapping[str, Declared]:
    """By application."""
    topologies = {topology.key: topology for topology in snapshot.topologies if not topology.implicit}
    found: dict[str, Declared] = {}
    for executor in snapshot.executors:
        topology = topologies.get(executor.topology)
        if topology is not None and key_of(executor) not in found:
            found[key_of(executor)] = Declared(topology, topology.component(executor.component))
    return found


def assumed(snapshot: Snapshot) -> Snapshot:
    """The same pool, where each application is a topology, and every executor as if it had opted in.

    An application whose workload is not declared counts as Streaming: of others, Ballast would move none.
    """
    known = declarations(snapshot)
    executors = tuple(
        replace(each, topology=key_of(each), component=COMPONENT, enforced=True, labeled=True)
        for each in snapshot.executors
    )
    drivers: dict[str, Anchor | None] = {}
    ends = {topology.key: topology.driver for topology in snapshot.topologies}
    for each in snapshot.executors:
        drivers[key_of(each)] = ends.get(each.topology)
    topologies = tuple(_topology(key, known.get(key), driver) for key, driver in sorted(drivers.items()))
    return replace(snapshot, executors=executors, topologies=topologies, moves=())


def _topology(key: str, declared: Declared | None, driver: Anchor | None) -> Topology:
    own = declared.component if declared else None
    component = Component(COMPONENT, (own.workload if own else None) or Workload.STREAMING)
    namespace, _, name = key.partition("/")
    return Topology(key, namespace, name, (component,), implicit=True, driver=driver)


def impatient(policy: Policy) -> Policy:
    """One look must do: a gap counts at once, as if it had been seen often enough."""
    shedder = replace(policy.shedding.avg_shedder, low_hits=1, high_hits=1)
    return replace(policy, shedding=replace(policy.shedding, avg_shedder=shedder))
