"""Recorded placements of single bundles as questions to `place`: brokers as nodes, a bundle as a gated executor."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ballast.model import Executor, Memory, Move, MovePhase, Phase, PlacementPolicy, Policy, Resources, Snapshot
from ballast.placement import strategies
from ballast.placement.placing import place
from ballast.placement.strategies import Averages, ComponentRate, PlacementState, Rates
from tests.builders import NOW, a_move, a_node, an_executor, gated

MOST_DRAWS = 400
"""Of one question; one of ten equally right nodes stays undrawn in all of them once in 10^18 times."""
ROOMY = Resources(1e6, 1e15, 10_000)
TOPOLOGY = "team/clicks"
OPEN = PlacementPolicy(max_executors_per_node_ratio=1.0, max_score_percent=1e9)
"""Nothing limits the choice but the strategy."""


@dataclass(frozen=True, slots=True)
class Question:
    """Where does one executor go?"""

    strategy: str
    nodes: Sequence[str]
    scores: Mapping[str, float]
    """Percent."""
    present: tuple[Executor, ...] = ()
    moves: tuple[Move, ...] = ()
    asked: str = "asked"
    """The executor's application and component."""
    limits: PlacementPolicy = OPEN

    @property
    def policy(self) -> Policy:
        policy = Policy("vectors", placement=replace(self.limits, strategy=self.strategy))
        return replace(policy, shedding=replace(policy.shedding, strategy="None"))

    def snapshot(self, *asked: Executor) -> Snapshot:
        nodes = tuple(a_node(name, allocatable=ROOMY) for name in self.nodes)
        return Snapshot(NOW, nodes, (*self.present, *asked), moves=self.moves)

    def once(self, state: PlacementState, draw: int = 0) -> tuple[str | None, PlacementState]:
        """The answer to the executor with this uid, and what is remembered."""
        asked = gated(f"{self.asked}-{draw}", application=self.asked, component=self.asked)
        found = place(self.snapshot(asked), self.policy, Memory(), gated=[asked], scores=self.scores, state=state)
        return found.placements[0].node, found.state

    def answers(self, state: PlacementState, *, wanted: Iterable[str]) -> set[str]:
        """Every node that is drawn until all the wanted ones were, or too often; executors differ in their uid only."""
        missing, seen = set(wanted), set[str]()
        for draw in range(MOST_DRAWS):
            node, _ = self.once(state, draw)
            seen |= {node} if node is not None else set()
            missing -= seen
            if not missing and draw >= len(seen):
                break
        return seen


def serving(name: str, node: str, *, phase: Phase = Phase.RUNNING) -> Executor:
    """An executor on a node; its component has its name."""
    return an_executor(name, node=node, component=name, phase=phase, requests=Resources())


def avg_shedder(
    application: str, nodes: Sequence[str], destinations: Mapping[str, str], *, wanted: Iterable[str]
) -> set[str]:
    """`destinations`: by application, where moves under way send its executor."""
    moves = (
        a_move(str(at), application=name, resource_profile="0", target=node, phase=MovePhase.LEAVING)
        for at, (name, node) in enumerate(destinations.items())
    )
    question = Question("AvgShedder", nodes, {}, moves=tuple(moves), asked=application)
    return question.answers(PlacementState(), wanted=wanted)


def least_long_term_rate(
    given: Mapping[str, Any], scores: Mapping[str, float], *, overloaded_percent: float, wanted: Iterable[str]
) -> set[str]:
    """As Pulsar, an executor that is booked counts although its broker's figures may include it already."""
    per_bundle = {row[0]: (row[1] + row[2]) * row[5] for row in given.get("bundles", ())}
    present, rates = list[Executor](), list[ComponentRate]()

    def count(name: str, node: str, rate: float, phase: Phase) -> None:
        present.append(serving(name, node, phase=phase))
        rates.append(ComponentRate(TOPOLOGY, name, rate, 1))

    for node in scores:
        rate_in, rate_out, *_ = given.get("timeAverage", {}).get(node, (0.0, 0.0))
        count(f"all of {node}", node, rate_in + rate_out, Phase.RUNNING)
        for bundle in given.get("preallocated", {}).get(node, ()):
            count(f"{bundle} to {node}", node, per_bundle[bundle], Phase.PENDING)
    limits = replace(OPEN, max_score_percent=overloaded_percent)
    question = Question("LeastLongTermRate", list(scores), scores, tuple(present), limits=limits)
    return question.answers(PlacementState(rates=Rates("records", tuple(rates))), wanted=wanted)


def usage_observed(
    given: Mapping[str, Any], scores: Mapping[str, float], averages: Averages, *, history_ratio: float
) -> Averages:
    """The averages with a round's figures; a broker without bundles, or with no traffic at all, serves nothing."""
    busy = {broker["name"]: broker["msgRateIn"] + broker["msgRateOut"] > 0 for broker in given["brokers"]}
    present = tuple(serving(f"of-{node}", node) for node in scores if busy[node] and given["owners"].get(node))
    there = {*given.get("activeBrokers", dict(averages.by_node)), *scores}
    snapshot = Question("LeastResourceUsage", sorted(there), scores, present).snapshot()
    return strategies.usage_observed(snapshot, scores, averages, history_ratio=history_ratio)


def least_resource_usage_of(
    nodes: Sequence[str], averages: Averages, *, difference_percent: float, wanted: Iterable[str]
) -> set[str]:
    """Where nothing has been placed since the averages were taken."""
    scores = {name: ratio * 100 for name, ratio in averages.by_node if name in nodes}
    question = Question("LeastResourceUsage", nodes, scores, limits=replace(OPEN, min_difference=difference_percent))
    return question.answers(PlacementState(usage=averages), wanted=wanted)
