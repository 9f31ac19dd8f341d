"""The whole report: every application as it is, as it would have been placed, and what that saves."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ballast.model import (
    Anchor,
    Component,
    Executor,
    Location,
    Memory,
    Policy,
    Snapshot,
    Topology,
    Workload,
)
from ballast.planner.plan import plan
from ballast.planner.replan import members_by_topology, placed_again, settled
from ballast.report.exchange import (
    Reads,
    Shares,
    Shuffle,
    Volume,
    declared_leaders,
    other_bytes,
    reads_of,
    shares,
    shuffle_of,
)
from ballast.report.findings import ApplicationReport, PoolReport, Traffic, Verdict, running, slowness
from ballast.report.names import application_names
from ballast.report.price import Price
from ballast.report.traffic import ShownTraffic, of_components, shown_traffic, view_of

_NOTICEABLE = 0.005
"""Of the shuffle: a smaller change of a share is none."""
_TOGETHER = 0.9
"""Of a remote shuffle service's workers: with that many in one zone, executors would be placed in it."""


@dataclass(frozen=True, slots=True)
class Known:
    """What neither pods nor metrics tell of applications, which are named `namespace/id`."""

    remote_shuffle: frozenset[str] = frozenset()
    """They shuffle through a service."""
    kafka: frozenset[str] = frozenset()
    """They read from Kafka."""
    broker_zones: tuple[str, ...] = ()
    """Where the brokers lead partitions, in equal parts. Empty: in every zone of the pool."""


NOTHING = Known()


def report(snapshot: Snapshot, policy: Policy, *, price: Price | None, hints: Known = NOTHING) -> PoolReport:
    """Everything that shuffles within itself is placed again in one go, so that all of it fits at once."""
    known, pool = declarations(snapshot), assumed(snapshot)
    remote = {key for key, each in known.items() if each.remote_shuffle} | hints.remote_shuffle
    by_application = _applications(snapshot)
    places = {node.name: _whole(node.location, node.name) for node in pool.nodes}
    zones = sorted({place[0] for place in places.values() if len(place) > 1 and place[0] is not None})
    brokers = hints.broker_zones or tuple(zones)
    # What a SparkTopology declares of a remote shuffle is known to the placement; a hint alone is not.
    hinted = {each.topology for key in hints.remote_shuffle for each in by_application.get(key, ())}
    targets = {each.uid: each.node for each in placed_again(snapshot, policy, left_out=hinted)}
    pool_seen = _Pool(snapshot, policy, places, targets, members_by_topology(snapshot.executors))
    shown = shown_traffic(snapshot, remote_shuffle=hinted)
    names = application_names(snapshot.executors)
    reports = [
        _application(
            _Case(
                key,
                executors,
                known.get(key, Declared()),
                remote=key in remote,
                broker_zones=brokers if key in hints.kafka else (),
                schedulers=policy.placement.scheduler_names,
                name=names.get(key, key),
                traffic=of_components(shown[executors[0].topology], {each.component for each in executors}),
                hinted=executors[0].topology in hinted,
            ),
            pool_seen,
            price=price,
        )
        for key, executors in by_application.items()
    ]
    decided, _ = plan(pool, impatient(policy), Memory(), pool.taken_at)
    return PoolReport(
        taken_at=pool.taken_at,
        nodes=len(pool.nodes),
        zones=len(zones),
        assumed_broker_zones=brokers,
        applications=tuple(sorted(reports, key=_order)),
        price=price,
        metrics=pool.metrics,
        slowness=slowness(pool, policy),
        moves=decided.moves,
        refusals=decided.refusals,
    )


def _order(each: ApplicationReport) -> tuple[float, float, str]:
    gain = (each.before.shares.zone or 0.0) - (each.after.shares.zone or 0.0)
    return -(each.saved_dollars_per_month or 0.0), -gain, each.key


def _whole(location: Location, name: str) -> Location:
    """With the node's own name where the nearest level has no label."""
    return location if not location or location[-1] is not None else (*location[:-1], name)


def _applications(pool: Snapshot) -> dict[str, list[Executor]]:
    """Executors on the pool's nodes."""
    homes = {node.name for node in pool.nodes}
    found: dict[str, list[Executor]] = defaultdict(list)
    for executor in running(pool.executors):
        if executor.node in homes:
            found[key_of(executor)].append(executor)
    return dict(sorted(found.items()))


@dataclass(frozen=True, slots=True)
class _Case:
    key: str
    executors: list[Executor]
    declared: Declared
    remote: bool
    broker_zones: tuple[str, ...]
    """Of the Kafka that it reads from; empty if that is not known."""
    name: str
    traffic: ShownTraffic
    """What it takes part in."""
    hinted: bool
    """That its shuffle is remote is no declaration: where its traffic goes is not known."""
    schedulers: tuple[str, ...]
    """Whose executors are placed."""

    @property
    def aside(self) -> str | None:
        """Why Ballast would not place one of its executors."""
        for each in self.executors:
            if each.scheduler not in self.schedulers:
                return f"its scheduler {each.scheduler} is not in placement.schedulerNames"
            if each.gang:
                return f"it is a gang ({each.gang})"
        return None


@dataclass(frozen=True, slots=True)
class _Pool:
    snapshot: Snapshot
    policy: Policy
    places: Mapping[str, Location]
    """By node."""
    targets: Mapping[str, str | None]
    """Of each executor that was placed again, by uid; None if no node would take it."""
    members: Mapping[str, Sequence[Executor]]
    """By topology: every executor whose traffic counts."""


def _application(case: _Case, pool: _Pool, *, price: Price | None) -> ApplicationReport:
    component = case.declared.component
    shuffle = shuffle_of(case.executors, component.exchange_bytes_per_second if component else None)
    if case.remote:
        # What goes through the service is not known: no costs, which is not the same as none.
        shuffle = Shuffle(shuffle.parts, None, Volume.UNKNOWN)
    nodes = [pool.targets.get(each.uid, each.node) for each in case.executors]
    moved, whole = settled(case.executors, pool.targets), pool.members[case.executors[0].topology]
    here, there = ([pool.places[each.node or ""] for each in members] for members in (case.executors, moved))
    before = _traffic(shuffle, here, _shares(case, here, whole, pool), price)
    after = _traffic(shuffle, there, _shares(case, there, settled(whole, pool.targets), pool), price)
    reads = _reads(case, shuffle, here, there)
    verdict, why = _verdict(case, before.shares, after.shares, reads)
    return ApplicationReport(
        key=case.key,
        name=case.name,
        basis=case.traffic.basis,
        executors=len(case.executors),
        zones=_zones(here),
        placed_zones=_zones(there),
        racks=Counter((place[-2] or "") if len(place) > 2 else "" for place in here),
        volume=shuffle.volume,
        shuffle_bytes_per_second=shuffle.bytes_per_second,
        before=before,
        after=after,
        relocated=(Counter(here) - Counter(there)).total(),
        unplaced=sum(node is None for node in nodes),
        verdict=verdict,
        why=why,
        reads=reads,
        remote_shuffle=case.remote,
    )


def _zones(places: Sequence[Location]) -> Mapping[str, int]:
    return Counter((place[0] or "") if len(place) > 1 else "" for place in places)


def _reads(case: _Case, shuffle: Shuffle, here: Sequence[Location], there: Sequence[Location]) -> Reads | None:
    """As declared; else at most what the network carries in addition to the shuffle, if Kafka is read."""
    topology, component = case.declared.topology, case.declared.component
    if topology is not None and component is not None and (leaders := declared_leaders(topology, component.name)):
        return reads_of(leaders, Volume.DECLARED, here, there)
    most = None if case.remote else other_bytes(case.executors, shuffle)
    if most is None or not case.broker_zones:
        return None
    return reads_of(
        {zone: most / len(case.broker_zones) for zone in case.broker_zones}, Volume.UPPER_BOUND, here, there
    )


def _shares(case: _Case, labeled: Sequence[Location], whole: Sequence[Executor], pool: _Pool) -> Shares:
    """Of all its traffic, as `plan` and `status` show it. `labeled`: where its own executors are.

    `whole`: the executors of its topology.
    """
    if case.hinted:
        return Shares(None, None)
    view = view_of(case.traffic, whole, pool.snapshot, pool.policy)
    depth = min((len(place) for place in labeled), default=0)
    zoned = depth > 1 and all(place[0] is not None for place in labeled)
    racked = depth > 2 and all(place[-2] is not None for place in labeled)
    return Shares(view.cross_zone_ratio if zoned else None, view.cross_rack_ratio if racked else None)


def _traffic(shuffle: Shuffle, places: Sequence[Location], shown: Shares, price: Price | None) -> Traffic:
    found, volume = shares(shuffle.parts, places), shuffle.bytes_per_second
    zone = None if volume is None or found.zone is None else volume * found.zone
    rack = None if volume is None or found.rack is None else volume * found.rack
    return Traffic(shown, zone, rack, None if zone is None or price is None else price.per_month(zone))


def _verdict(case: _Case, before: Shares, after: Shares, reads: Reads | None) -> tuple[Verdict, str]:
    if case.aside is not None:
        return Verdict.UNKNOWN, f"not placed: {case.aside}"
    return _remote(case) if case.remote else _weighed(case, before, after, reads)


def _weighed(case: _Case, before: Shares, after: Shares, reads: Reads | None) -> tuple[Verdict, str]:
    if len(case.executors) < 2:
        return Verdict.NOTHING_TO_GAIN, "one executor: its shuffle does not leave it"
    if before.zone is None and before.rack is None:
        return Verdict.UNKNOWN, "a node of its executors has no zone label"
    gained = [
        f"{name} {here:.0%} -> {there:.0%}"
        for name, here, there in (("cross-zone", before.zone, after.zone), ("cross-rack", before.rack, after.rack))
        if here is not None and there is not None and here - there > _NOTICEABLE
    ]
    if gained:
        return Verdict.GAIN, ", ".join(gained)
    if reads is not None and reads.now - reads.placed > _NOTICEABLE * reads.total_bytes_per_second:
        return Verdict.GAIN, "nearer to its brokers"
    together = (before.zone or 0.0) < _NOTICEABLE and (before.rack or 0.0) < _NOTICEABLE
    why = "its executors are together already" if together else "no placement that fits the pool is nearer"
    return Verdict.NOTHING_TO_GAIN, why


def _remote(case: _Case) -> tuple[Verdict, str]:
    """Workers that are spread over the zones are as far from one zone as from another."""
    workers: dict[str, float] = {}
    topology = case.declared.topology
    for component in topology.components if topology else ():
        for anchor in component.anchors if component.external else ():
            if anchor.location and anchor.location[0] is not None:
                zone = anchor.location[0]
                workers[zone] = workers.get(zone, 0.0) + anchor.share
    whole = sum(workers.values())
    zone, most = max(workers.items(), key=lambda item: item[1], default=("", 0.0))
    if whole and most / whole >= _TOGETHER:
        return Verdict.UNKNOWN, f"remote shuffle with its workers in zone {zone}: ask `ballast plan`, which knows them"
    return Verdict.NOTHING_TO_GAIN, "remote shuffle service: executors send each other nothing to place by"


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
