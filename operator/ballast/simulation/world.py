"""What a policy is tried in: everything of a run that the policy does not decide."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ballast.model import Topology
from ballast.simulation.cluster import Cluster
from ballast.simulation.meter import Meter
from ballast.simulation.recorder import Title
from ballast.simulation.scenario import Moving


@dataclass(frozen=True, slots=True)
class World:
    """Made again for each run, which changes its parts."""

    title: Title
    cluster: Cluster
    meter: Meter
    topologies: tuple[Topology, ...]
    moving: Moving
    epoch: float
    """The planner's time when the run begins."""
    passes: Iterator[float]
    """When they are due, in seconds since the run began; ascending and without end."""
    step_seconds: float
    scrape_seconds: float
