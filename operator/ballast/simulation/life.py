"""When there is to be an executor in a slot, and when not any more: no policy decides that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    from ballast.simulation.cluster import Cluster


class Life(Protocol):
    def advance(self, cluster: Cluster, time: float) -> None:
        """Whoever is to come by then comes, and whoever is to end ends; times do not go backwards."""


class Lifetimes:
    """Each slot's executor is wanted from one time to another; what is wanted again is placed by the policy."""

    def advance(self, cluster: Cluster, time: float) -> None:
        wanted = (cluster.crew.starts <= time) & (time < cluster.crew.stops)
        if (wanted == cluster.alive).all():
            return
        for slot in np.flatnonzero(wanted & ~cluster.alive).tolist():
            cluster.ask(slot, time)
        for slot in np.flatnonzero(cluster.alive & ~wanted).tolist():
            cluster.empty(slot)
        cluster.alive = wanted
