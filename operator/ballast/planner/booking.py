"""What a pass has placed, for the moves that the same pass decides after it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ballast.model import Placement, Policy, Resources, Snapshot
from ballast.moves.load import Loads
from ballast.moves.score import points_per_core


def bookings(
    reserved: Mapping[str, Resources], snapshot: Snapshot, placements: Iterable[Placement]
) -> dict[str, Resources]:
    """Amounts by node that are spoken for: `reserved` by moves under way, and what this pass places."""
    booked = dict(reserved)
    requests = {executor.uid: executor.requests for executor in snapshot.executors}
    for placement in placements:
        if placement.node is not None and placement.uid in requests:
            booked[placement.node] = booked.get(placement.node, Resources()).plus(requests[placement.uid])
    return booked


def with_placed(
    scores: Mapping[str, float], snapshot: Snapshot, policy: Policy, loads: Loads, placements: Iterable[Placement]
) -> dict[str, float]:
    """The scores (percent) with the load that placed executors will bring."""
    ahead = dict(scores)
    chosen = {placement.uid: placement.node for placement in placements if placement.node in ahead}
    if not chosen:
        return ahead
    points = points_per_core(snapshot, policy)
    for executor in snapshot.executors:
        node = chosen.get(executor.uid)
        if node is not None:
            ahead[node] += loads.expected(executor) * points[node]
    return ahead
