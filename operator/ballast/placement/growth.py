"""Where an autoscaler provides nodes, and which executors wait for it to do so.

An autoscaler can meet a required zone, and the new node is then surely near the rest of the set: a zone that is only
preferred lets kube-scheduler bind the executor to whichever new node is ready first.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from ballast.model import Constraints, Executor, Levels, Location, Node, Phase, PlacementPolicy, Resources, Snapshot
from ballast.model.arrays import BoolArray
from ballast.placement.admission import Admission
from ballast.placement.node_locations import NodeLocations, node_locations
from ballast.placement.placement_view import Pool
from ballast.placement.room import Room, fits, kinds, take_off
from ballast.placement.tie import untied
from ballast.placement.workload import TopologyWorkload

GROUP_LABELS = (
    "karpenter.sh/nodepool",
    "eks.amazonaws.com/nodegroup",
    "cloud.google.com/gke-nodepool",
    "kubernetes.azure.com/agentpool",
)
"""A node with one of these belongs to a group that Karpenter or cluster-autoscaler can enlarge."""


def can_grow(nodes: Sequence[Node]) -> BoolArray:
    """(N,): which nodes show that an autoscaler provides such nodes."""
    return np.fromiter(
        (any(label in node.labels for label in GROUP_LABELS) for node in nodes), dtype=np.bool_, count=len(nodes)
    )


def requires_zone(pool: Pool, workload: TopologyWorkload, group_index: int, location: Location) -> bool:
    """Whether executors without room may require the zone of `location`: an autoscaler provides such nodes there.

    Not where a limit or a separation of zones may forbid the zone.
    """
    zone = location[0] if len(location) > 1 else None
    if zone is None or _limits_zones(pool.policy, workload):
        return False
    there = _in_zone(pool.locations, zone) & pool.admission.mask(workload.groups[group_index].constraints)
    return bool(can_grow([pool.locations.nodes[int(node)] for node in np.flatnonzero(there)]).any())


def _limits_zones(policy: PlacementPolicy, workload: TopologyWorkload) -> bool:
    apart = any(separation.by == "Zone" for separation in workload.topology.separate)
    return apart or policy.max_executors_per_zone_ratio < 1.0


def _in_zone(locations: NodeLocations, zone: str) -> BoolArray:
    result: BoolArray = locations.labels[0] == locations.values[0].get(zone, -2)
    return result


def awaited_zones(executors: Iterable[Executor], levels: Levels) -> dict[tuple[str, str], str]:
    """By topology and component: the zone in which most of its executors that have no node yet have to be."""
    found: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for executor in executors:
        if executor.phase is Phase.PENDING and executor.node is None:
            zones = _required_zones(executor.constraints, levels)
            if len(zones) == 1:
                found[executor.topology, executor.component].update(zones)
    return {key: min(zones, key=lambda zone: (-zones[zone], zone)) for key, zones in found.items()}


def _required_zones(constraints: Constraints, levels: Levels) -> set[str]:
    """Empty if some term names none."""
    label = levels.ordered[0].label if len(levels.ordered) > 1 else ""
    by_term = [{each.values for each in term if each.key == label} for term in constraints.affinity_terms]
    return {zone for values in by_term for each in values for zone in each} if all(by_term) else set()


def awaiting_nodes(
    snapshot: Snapshot, levels: Levels, executors: Sequence[Executor], *, unbound: Mapping[str, Resources]
) -> frozenset[str]:
    """Those of `executors`, by uid, that are where an autoscaler provides nodes, and that no other place has room for.

    `executors`: released, with a place that Ballast requires. `unbound`: as in `room`.
    """
    if not executors:
        return frozenset()
    places = node_locations(snapshot.nodes, levels)
    space, admission = Room(places, kinds(e.requests for e in executors)), Admission(places.nodes)
    take_off(space, places, unbound)
    growing = can_grow(places.nodes)
    found = set()
    for executor in executors:
        required = admission.mask(executor.constraints)
        others = admission.mask(untied(executor, levels).constraints) & ~required
        roomy = fits(space.free, space.vector(executor.requests), space.slack)
        if (growing & required).any() and not (roomy & others).any():
            found.add(executor.uid)
    return frozenset(found)
