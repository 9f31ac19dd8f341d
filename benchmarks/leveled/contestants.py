"""What levels in the scenarios: nothing, Ballast's policies, Pulsar's combinations, and one with foresight."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random

from ballast.simulation.engine import simulate
from ballast.simulation.policies import from_name
from ballast.simulation.scenario import Scenario
from ballast.simulation.trace import Trace
from benchmarks.leveled.offline import Foresight
from tests.reference.pulsar.comparison import DEFAULT, combinations
from tests.reference.pulsar.uncoupled import Placement, Uncoupled

_PULSAR_SECONDS = 60.0
"""Pulsar's load reports and its shedding go by a minute (loadBalancerSheddingIntervalMinutes)."""


@dataclass(frozen=True, slots=True)
class Contestant:
    """One way of leveling, as it is without any setting."""

    shedding: str
    placement: Placement | None = None
    """Pulsar's; None: Ballast's planner decides alone."""
    foresight: bool = False

    @property
    def name(self) -> str:
        if self.foresight:
            return "foresight"
        if self.placement is not None:
            return f"Pulsar: {self.shedding} + {self.placement}"
        return "nothing" if self.shedding == "None" else f"Ballast: {self.shedding}"

    def run(self, scenario: Scenario, seed: int) -> Trace:
        """Equal arguments give equal traces."""
        policy = from_name(self.shedding, scenario)
        if self.foresight:
            still = simulate(scenario, policy, seed=seed)
            foresight = Foresight(still.stretches, scenario.spec.level_points)
            return simulate(scenario, policy, seed=seed, label=self.name, planner=foresight)
        if self.placement is None:
            return simulate(scenario, policy, seed=seed, label=self.name)
        policy = replace(policy, window_seconds=_PULSAR_SECONDS, interval_seconds=_PULSAR_SECONDS)
        uncoupled = Uncoupled(self.placement, Random(seed))
        return simulate(scenario, policy, seed=seed, label=self.name, planner=uncoupled)


NOTHING = Contestant("None")
OURS = Contestant(DEFAULT)
FORESIGHT = Contestant("None", foresight=True)


def peers() -> Iterator[Contestant]:
    """Ballast's other shedders with the limits of a policy that says nothing, and Pulsar's combinations."""
    for each in combinations():
        if not each.ours:
            yield Contestant(each.shedding, each.placement)
