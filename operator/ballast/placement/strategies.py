"""The placement strategies by the names that policies use, and what they remember from pass to pass."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random

import numpy as np

from ballast.model import Executor, MovePhase, Phase, Snapshot
from ballast.model.arrays import IntArray
from ballast.placement.least_long_term_rate import LeastLongTermRate, Rates
from ballast.placement.least_resource_usage import Averages, LeastResourceUsage
from ballast.placement.node_locations import NodeLocations
from ballast.placement.placement_view import PlacementView, Pool
from ballast.placement.proximity import Effort, Proximity, parts
from ballast.placement.resource_aware import ResourceAware
from ballast.placement.strategy import Seats, Strategy, draw, one_by_one
from ballast.placement.workload import TopologyWorkload


def chosen(
    pool: Pool,
    snapshot: Snapshot,
    state: PlacementState,
    *,
    gated: Sequence[Executor],
    measured: Mapping[str, float],
    effort: Effort | None = None,
) -> Strategy:
    """The strategy that the pool's policy names, for one pass; Proximity for a name that is not known."""
    policy = pool.policy
    # Seeded by what is asked: the same question always has the same answer.
    random = Random(f"{min(e.uid for e in gated)} and {len(gated)}")  # noqa: S311 -- draws, no secrets
    if policy.strategy == "LeastLongTermRate":
        return LeastLongTermRate(pool, snapshot, state.rates, random=random)
    if policy.strategy == "LeastResourceUsage":
        return LeastResourceUsage(pool, state.usage, measured, random=random)
    if policy.strategy == "AvgShedder":
        return AvgShedder(random)
    if policy.strategy == "RoundRobin":
        return RoundRobin(pool.locations, state.turn)
    if policy.strategy == "ResourceAware":
        return ResourceAware(pool)
    return Proximity(len(gated), search_seconds=policy.search_seconds, effort=effort)


def sets(strategy: Strategy, workload: TopologyWorkload) -> list[list[int]]:
    """Groups to place together; Proximity solves parts that exchange nothing independently."""
    return parts(workload) if isinstance(strategy, Proximity) else [list(range(len(workload.groups)))]


def after(strategy: Strategy, state: PlacementState) -> PlacementState:
    """What the strategy itself adds to what is remembered."""
    return replace(state, turn=strategy.turn) if isinstance(strategy, RoundRobin) else state


@dataclass(frozen=True, slots=True)
class PlacementState:
    turn: str = ""
    """The node that was chosen last, for RoundRobin."""
    usage: Averages = field(default_factory=Averages)
    """Smoothed scores, for LeastResourceUsage."""
    rates: Rates = field(default_factory=Rates)
    """For LeastLongTermRate."""
    observed_at: float = 0.0
    """When figures were last added, seconds since the epoch."""
    sent: tuple[tuple[str, str], ...] = ()
    """Executor's uid and node, of those that were released and are not bound yet: nothing else shows them."""


class RoundRobin:
    """One node after the other, by name, going on after the one chosen last: one that joins or leaves shifts no turn.

    `turn`: name of the node that was chosen last; it need not exist any more. Source: Pulsar's
    `RoundRobinBrokerSelector`.
    """

    def __init__(self, locations: NodeLocations, turn: str) -> None:
        self._names = [node.name for node in locations.nodes]
        self.turn = turn

    def seats(self, view: PlacementView, turns: Sequence[int]) -> Seats:
        return one_by_one(view, turns, self._choose)

    def took(self, executor: Executor, node: int) -> None:
        """No turn was used."""

    def _choose(self, able: IntArray, _row: int) -> int:
        position = int(np.searchsorted(able, bisect_right(self._names, self.turn)))
        node = int(able[position % len(able)])
        self.turn = self._names[node]
        return node


class AvgShedder:
    """At random, except for what a move has decided (`decided`).

    So that the executors of a node that died do not all land on one other; drawn from a seed that the executors give,
    so that the same question has the same answer. Source: Pulsar's `AvgShedder.selectBroker`.
    """

    def __init__(self, random: Random) -> None:
        self._random = random

    def seats(self, view: PlacementView, turns: Sequence[int]) -> Seats:
        return one_by_one(view, turns, self._choose)

    def took(self, executor: Executor, node: int) -> None:
        """Chance has no memory."""

    def _choose(self, able: IntArray, _row: int) -> int:
        return draw(able, self._random)


def decided(snapshot: Snapshot, gated: Collection[Executor]) -> dict[str, str]:
    """Node by executor uid, where AvgShedder has decided already: the targets of moves whose replacement it is.

    A replacement is usually recognized by its move, and is not placed by a strategy then. Where that has not happened
    in time, the earliest executors of the same application and profile take the places that moves wait to fill.
    """
    waiting: dict[tuple[str, str, str], list[Executor]] = defaultdict(list)
    for executor in sorted(gated, key=lambda e: (e.created_at, e.key)):
        waiting[executor.namespace, executor.application, executor.resource_profile].append(executor)
    found: dict[str, str] = {}
    for move in sorted(snapshot.moves, key=lambda m: (m.started_at, m.namespace, m.name)):
        alike = waiting[move.namespace, move.application, move.resource_profile]
        if move.phase in (MovePhase.LEAVING, MovePhase.ARRIVING) and move.replacement_uid is None and alike:
            found[alike.pop(0).uid] = move.target
    return found


# Where executors go that have been released and are not bound yet: no node shows them, but their places are taken.


def headings(snapshot: Snapshot, sent: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Node by uid, where it is known: by the move that they are the replacement of, or by `sent`.

    `sent`: uid and node of those that earlier passes released.
    """
    replacing = {m.replacement_uid: m.target for m in snapshot.moves if m.phase.traveling and m.replacement_uid}
    known = replacing | dict(sent)
    unbound = (e.uid for e in snapshot.executors if e.phase is Phase.PENDING and e.node is None) if known else ()
    return {uid: known[uid] for uid in unbound if uid in known}
