"""How many executors of a component one node or one zone may hold, and which components keep apart."""

from __future__ import annotations

from math import ceil, floor

import numpy as np

from ballast.model import PlacementPolicy, Separation, Topology
from ballast.model.arrays import BoolArray, FloatArray, IntArray
from ballast.placement.node_locations import NodeLocations
from ballast.placement.workload import TopologyWorkload


def zone_allowance(total: float, ratio: float) -> int:
    """The largest whole number within a ratio of the total, but never less than one."""
    return max(1, floor(total * ratio + 1e-9))


def node_allowance(total: float, ratio: float) -> int:
    """How many of a component one node may host by its share: rounded up, so that small jobs fit near each other.

    At least two where there are three or more, and below a ratio of 1 never the whole component.
    """
    whole = ceil(total - 1e-9)
    share = ceil(total * ratio - 1e-9)
    return max(1, whole if ratio >= 1 else min(max(2, share), whole - 1))


def most_per_node(policy: PlacementPolicy, component: str, total: float) -> int:
    """How many of a component's executors one node may host, by their share and by the component's own limit."""
    limits = [limit.max_per_node for limit in policy.limits if limit.component == component]
    return min([node_allowance(total, policy.max_executors_per_node_ratio), *limits])


def node_limit_words(policy: PlacementPolicy, component: str, total: float) -> str:
    """The limit that holds, as a user knows it."""
    most = most_per_node(policy, component, total)
    if most < node_allowance(total, policy.max_executors_per_node_ratio):
        return f"limits allow {most} of {component}"
    percent = policy.max_executors_per_node_ratio * 100
    return f"maxExecutorsPerNodePercent {percent:.0f} allows {most} of {total:g} of {component}"


def zone_limit_words(policy: PlacementPolicy, component: str, total: float) -> str:
    """As `node_limit_words`."""
    ratio = policy.max_executors_per_zone_ratio
    most = zone_allowance(total, ratio)
    return f"maxExecutorsPerZonePercent {ratio * 100:.0f} allows {most} of {total:g} of {component}"


def node_limits(workload: TopologyWorkload, policy: PlacementPolicy) -> IntArray:
    """(components, nodes): how many more executors of each component each node may take."""
    pairs = zip(workload.components, workload.totals, strict=True)
    most = np.array([most_per_node(policy, component, total) for component, total in pairs], dtype=np.int64)
    return most[:, None] - workload.present


def zone_limits(workload: TopologyWorkload, locations: NodeLocations, policy: PlacementPolicy) -> IntArray:
    """(components, zones): the same for each zone; a pool in one zone has no other zone to send the rest to."""
    shape = len(workload.components), locations.sizes[0]
    if locations.last == 0 or locations.sizes[0] == 1:
        return np.full(shape, 1 << 40, dtype=np.int64)
    there = np.zeros(shape, dtype=np.int64)
    # Of the nodes of a large pool, a topology is on few.
    rows, nodes = np.nonzero(workload.present)
    np.add.at(there, (rows, locations.codes[0, nodes]), workload.present[rows, nodes])
    return _allowances(workload.totals, policy.max_executors_per_zone_ratio)[:, None] - there


def _allowances(totals: FloatArray, ratio: float) -> IntArray:
    return np.array([zone_allowance(total, ratio) for total in totals], dtype=np.int64)


def separations(
    topology: Topology, components: tuple[str, ...], locations: NodeLocations
) -> tuple[tuple[int, IntArray], ...]:
    """(level, components) for every separation that at least two of the components fall under."""
    result: list[tuple[int, IntArray]] = []
    for separation in topology.separate:
        members = [components.index(name) for name in sorted(set(separation.components)) if name in components]
        if len(members) > 1:
            result.append((separation_level(separation, locations.last), np.array(members, dtype=np.int64)))
    return tuple(result)


def kept_away(
    locations: NodeLocations, present: IntArray, apart: tuple[tuple[int, IntArray], ...], component: int
) -> BoolArray:
    """(nodes,): where a component that is there already keeps this one away."""
    mask = np.zeros(len(locations.nodes), dtype=np.bool_)
    for level, members in apart:
        if component in members:
            there = present[members[members != component]].any(axis=0)
            if there.any():
                mask |= np.isin(locations.codes[level], locations.codes[level][there])
    return mask


def separation_level(separation: Separation, last: int) -> int:
    """The level, far to near, of which no place may hold both; `last` is the nodes' own.

    A policy without that level separates by the next nearer one.
    """
    if separation.by == "Zone":
        return 0
    return last - 1 if separation.by == "Rack" and last >= 2 else last
