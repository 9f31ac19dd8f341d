"""The placement strategies by the names that policies use, and what they remember from pass to pass."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from ballast.model import Executor, Phase, PlacementPolicy, Snapshot
from ballast.placement.avg_shedder import AvgShedder
from ballast.placement.least_long_term_rate import LeastLongTermRate, Rates, RateSettings
from ballast.placement.least_resource_usage import Averages, LeastResourceUsage, UsageSettings
from ballast.placement.placement_view import Pool
from ballast.placement.proximity import Effort, Proximity, parts
from ballast.placement.resource_aware import ResourceAware
from ballast.placement.round_robin import RoundRobin
from ballast.placement.strategy import Strategy
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
        return LeastLongTermRate(
            pool, snapshot, state.rates, settings=RateSettings(policy.max_score_percent), random=random
        )
    if policy.strategy == "LeastResourceUsage":
        return LeastResourceUsage(pool, state.usage, measured, settings=usage_settings(policy), random=random)
    if policy.strategy == "AvgShedder":
        return AvgShedder(random)
    if policy.strategy == "RoundRobin":
        return RoundRobin(pool.locations, state.turn)
    if policy.strategy == "ResourceAware":
        return ResourceAware(pool)
    return Proximity(len(gated), search_seconds=policy.search_seconds, effort=effort)


def usage_settings(policy: PlacementPolicy) -> UsageSettings:
    return UsageSettings(policy.history_ratio, policy.min_difference)


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


# Where executors go that have been released and are not bound yet: no node shows them, but their places are taken.


def headings(snapshot: Snapshot, sent: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Node by uid, where it is known: by the move that they are the replacement of, or by `sent`.

    `sent`: uid and node of those that earlier passes released.
    """
    replacing = {m.replacement_uid: m.target for m in snapshot.moves if m.phase.traveling and m.replacement_uid}
    known = replacing | dict(sent)
    unbound = (e.uid for e in snapshot.executors if e.phase is Phase.PENDING and e.node is None) if known else ()
    return {uid: known[uid] for uid in unbound if uid in known}
