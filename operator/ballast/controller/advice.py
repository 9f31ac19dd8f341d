"""What placing a topology again would bring, for policies that only recommend. Worked out a few at a time."""

from __future__ import annotations

from ballast.api.topology_status import Locality, Recommendation
from ballast.controller.context import Context
from ballast.controller.memory import PLACEMENT_BYTES, bounded_placement
from ballast.model import LocalityView, PlacementMode
from ballast.planner.replan import ReplannedTopology, replanned_topology

AT_ONCE = 5
"""Topologies worked out in one pass; each may take as long as a placement."""


class Adviser:
    """Keeps the last recommendation of each topology."""

    def __init__(self) -> None:
        self._known: dict[str, Recommendation] = {}
        self._turn = 0

    def recommendations(self, context: Context, *, renew: bool) -> dict[str, Recommendation]:
        """By topology key; nothing unless the policy's placement only recommends. `renew`: work out the next few."""
        if context.policy.placement.mode is not PlacementMode.RECOMMEND:
            return {}
        keys = sorted(topology.key for topology in context.snapshot.topologies if not topology.implicit)
        self._known = {key: self._known[key] for key in keys if key in self._known}
        if renew and keys:
            for offset in range(min(AT_ONCE, len(keys))):
                self._advise(context, keys[(self._turn + offset) % len(keys)])
            self._turn = (self._turn + AT_ONCE) % len(keys)
        return self._known

    def _advise(self, context: Context, key: str) -> None:
        found = replanned_topology(context.snapshot, context.policy, key)
        if found is None:
            self._known.pop(key, None)
        else:
            self._known[key] = recommendation(found)


def recommendation(found: ReplannedTopology) -> Recommendation:
    """Small enough for a status, at any size of the topology."""
    places = {component: counts.items() for component, counts in found.places.items()}
    return Recommendation(
        locality=in_status(found.after),
        placement=bounded_placement(places, most_bytes=PLACEMENT_BYTES // 2) or None,
    )


def in_status(view: LocalityView) -> Locality:
    """Rounded, so that status is written for news and not for the last digit."""
    return Locality(
        cross_zone_ratio=_share(view.cross_zone_ratio),
        cross_rack_ratio=_share(view.cross_rack_ratio),
        cross_node_ratio=_share(view.cross_node_ratio),
        cross_zone_bytes_per_second=view.cross_zone_bytes_per_second,
        cost=round(view.cost, 3),
        lower_bound=round(view.lower_bound, 3),
    )


def _share(ratio: float | None) -> float | None:
    return None if ratio is None else round(min(1.0, max(0.0, ratio)), 3)
