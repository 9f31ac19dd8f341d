"""Why an executor found no node, and why a set is not together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ballast.model import Executor, Location, Node, Reason
from ballast.model.arrays import BoolArray, FloatArray, IntArray
from ballast.placement.admission import Admission, refusal
from ballast.placement.limit import (
    kept_away,
    node_limit_words,
    node_limits,
    separations,
    zone_limit_words,
    zone_limits,
)
from ballast.placement.placement_view import PlacementView, Pool
from ballast.placement.room import counts_that_fit
from ballast.placement.strategy import Seats
from ballast.placement.workload import TopologyWorkload


def why_not(pool: Pool, workload: TopologyWorkload, group_index: int) -> tuple[Reason, str]:
    """The reason that stands nearest to a placement: no room before not admitted, limits before no room."""
    group = workload.groups[group_index]
    admitted = pool.admission.mask(group.constraints)
    if not admitted.any():
        return common_refusal(group.executors[0], pool.locations.nodes, pool.admission)
    roomy = admitted & (pool.room.capacity(pool.room.vector(group.requests)) > 0)
    if not roomy.any():
        return Reason.POOL_FULL, no_room_words(int(admitted.sum()))
    name, row = workload.components[group.component], group.component
    on_node = roomy & (node_limits(workload, pool.policy)[row] <= 0)
    in_zone = roomy & (zone_limits(workload, pool.locations, pool.policy)[row][pool.locations.codes[0]] <= 0)
    apart = separations(workload.topology, workload.components, pool.locations)
    away = roomy & kept_away(pool.locations, workload.present, apart, row)
    if not (on_node | in_zone | away)[roomy].all():
        return Reason.NO_DESTINATION, f"nodes have room for it, and {pool.policy.strategy} chose none of them"
    total = float(workload.totals[row])
    found = [
        (on_node, Reason.SPREAD_LIMIT, f"{node_limit_words(pool.policy, name, total)} per node"),
        (in_zone, Reason.SPREAD_LIMIT, f"{zone_limit_words(pool.policy, name, total)} per zone"),
        (away, Reason.SEPARATED, f"a component that must be kept apart from {name} is there"),
    ]
    told = [(int(mask.sum()), reason, words) for mask, reason, words in found if mask.any()]
    _, reason, _ = max(told, key=lambda each: each[0])
    words = "; ".join(f"{count} of {int(roomy.sum())} nodes with room: {why}" for count, _, why in told)
    return reason, words


def no_room_words(admitting: int) -> str:
    none = f"none of {admitting} nodes that admit it has room for its requests"
    return f"{none}; released, so that an autoscaler can provide one"


def split_by(view: PlacementView, seats: Seats) -> dict[int, str]:
    """By component: the limit without which one zone, or one rack, would hold all that is placed of it here.

    Components that are in one zone and rack, or that no place would hold without a limit, are not in it.
    """
    locations, found = view.pool.locations, dict[int, str]()
    for component in sorted(set(view.component.tolist())):
        rows = np.flatnonzero(view.component == component)
        placed = np.array([node for row in rows for node in seats[row]], dtype=np.int64)
        for level in range(locations.last):
            places = len(set(locations.codes[level][placed].tolist()))
            if places > 1:
                words = _splitting(view, component, rows, level)
                if words:
                    found[component] = f"split over {places} {'zones' if level == 0 else 'racks'}: {words}"
                break
    return found


def _splitting(view: PlacementView, component: int, rows: IntArray, level: int) -> str:
    """The limit that keeps every place of the level from holding these groups, empty if it is not a limit."""
    locations, wanted = view.pool.locations, view.counts[rows][:, None]
    codes, size = locations.codes[level], locations.sizes[level]
    roomy = np.array([counts_that_fit(view.room, view.demand[row], view.slack) * view.allowed[row] for row in rows])
    fits = _holding(roomy, codes, size, wanted)
    limited = _holding(np.minimum(roomy, np.maximum(view.node_limit[component], 0)), codes, size, wanted)
    name, total = view.workload.components[component], float(view.workload.totals[component])
    if fits.any() and not limited.any():
        return f"{node_limit_words(view.pool.policy, name, total)} per node"
    if level == 0 and limited.any() and not (limited & (view.zone_limit[component] >= wanted.sum())).any():
        return f"{zone_limit_words(view.pool.policy, name, total)} per zone"
    return ""


def _holding(capacity: IntArray, codes: IntArray, size: int, wanted: IntArray) -> BoolArray:
    """(places,): whether each group fits, taken alone."""
    holds = np.array([np.bincount(codes, weights=row, minlength=size) for row in capacity])
    result: BoolArray = np.logical_and.reduce(holds >= wanted)
    return result


def common_refusal(executor: Executor, nodes: Sequence[Node], admission: Admission) -> tuple[Reason, str]:
    """What keeps it off most nodes; an empty pool is full. `admission`: of these nodes."""
    objections = [(reason, where) for reason, where in admission.first_objections(executor.constraints) if where.any()]
    if not objections:
        return Reason.POOL_FULL, "the pool has no nodes"
    reason, where = min(objections, key=lambda each: (-int(each[1].sum()), each[0].value))
    found, count = refusal(executor, nodes[int(np.argmax(where))]), int(where.sum())
    example = found[1] if found is not None else ""
    return reason, f"{example}; {count} of {len(nodes)} nodes say the same" if count > 1 else example


def preferred_location(
    pool: Pool, workload: TopologyWorkload, group_index: int, *, awaited: str | None = None
) -> Location:
    """Zone and racks in which most of the component is, else most of its topology, else the driver or most traffic.

    `awaited`: the zone in which the component's executors wait for nodes; it counts if none of the component is on one.
    If the pool has no node for the group in the driver's zone, or if nothing is known, it is the zone with most nodes
    that admit the group: an autoscaler then provides the nodes of a set in one zone. Never a node; None where nothing
    is known.
    """
    group, depth = workload.groups[group_index], len(pool.locations.steps)
    present = workload.present[group.component]
    if not present.any() and awaited is not None:
        return (awaited, *(None for _ in range(depth - 1)))
    for counts in (present, workload.present.sum(axis=0)):
        if counts.any():
            return _center(pool, counts.astype(np.float64))
    location, driver = _outer_end(workload, depth), workload.traffic.driver
    admitted = pool.admission.mask(group.constraints)
    known = any(location) and (driver is None or _has_place(pool, location[0], admitted))
    if known or not admitted.any():
        return location
    return (_center(pool, admitted.astype(np.float64))[0], *(None for _ in range(depth - 1)))


def _has_place(pool: Pool, zone: str | None, admitted: BoolArray) -> bool:
    labels, values = pool.locations.labels[0], pool.locations.values[0]
    return zone is None or bool((admitted & (labels == values.get(zone, -2))).any())


def _outer_end(workload: TopologyWorkload, depth: int) -> Location:
    flows = workload.traffic
    end = flows.driver
    if end is None and flows.ends:
        end = flows.ends[int(np.argmax(flows.pulls.max(axis=0)))]
    known = (*end.location, *(None for _ in range(depth))) if end is not None else (None,) * depth
    return (*known[: depth - 1], None)


def _center(pool: Pool, counts: FloatArray) -> Location:
    locations = pool.locations
    result: list[str | None] = []
    mask = np.ones(len(counts), dtype=np.bool_)
    for level in range(locations.last):
        by_place = np.bincount(locations.codes[level], weights=counts * mask, minlength=locations.sizes[level])
        mask &= locations.codes[level] == int(np.argmax(by_place))
        result.append(locations.nodes[int(np.argmax(mask))].location[level])
    return (*result, None)
