"""What users see of a pass in a SparkTopology's status."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate

from ballast.api.condition import Condition
from ballast.api.topology import SparkTopology
from ballast.api.topology_status import ComponentStatus, ExecutorCounts, Locality, Recommendation, TopologyStatus
from ballast.controller.breaker import refused_words
from ballast.controller.context import Context
from ballast.controller.membership import key_of
from ballast.controller.memory import PLACEMENT_BYTES, bounded_placement, topology_placement
from ballast.controller.status.limited import moves_limited
from ballast.controller.status.outlook import Judge, Outlook, Verdict
from ballast.model import ConditionReason, Executor, LocalityView, Phase, PlacementMode
from ballast.planner.limited import limited
from ballast.planner.release import MOST_KINDS, kinds_by_topology
from ballast.planner.replan import ReplannedTopology, replanned_topology
from ballast.sizing.status import sizing_status

# What placing a topology again would bring, for policies that only recommend. Worked out a few at a time.

AT_ONCE = 5
"""Topologies worked out in one pass."""


class Adviser:
    """Keeps the last recommendation of each topology.

    Each namespace has its turn, and in a namespace those first that have waited longest. Executors of others may be at
    the gates of another policy meanwhile, so those of one pass have no more kinds of executors than a pass places.
    """

    def __init__(self) -> None:
        self._known: dict[str, Recommendation] = {}
        self._rounds = 0
        self._advised: dict[str, int] = {}
        """By topology, the round in which it last had its turn."""

    def recommendations(self, context: Context, *, renew: bool) -> dict[str, Recommendation]:
        """By topology key; nothing unless the policy's placement only recommends. `renew`: work out the next few."""
        if context.policy.placement.mode is not PlacementMode.RECOMMEND:
            return {}
        keys = {topology.key for topology in context.snapshot.topologies if not topology.implicit}
        self._known = {key: found for key, found in self._known.items() if key in keys}
        self._advised = {key: at for key, at in self._advised.items() if key in keys}
        if renew:
            self._rounds += 1
            kinds = kinds_by_topology(executor for executor in context.snapshot.executors if executor.topology in keys)
            self._known = {key: found for key, found in self._known.items() if key in kinds}
            for key in self._turn(kinds):
                self._advised[key] = self._rounds
                self._advise(context, key)
        return self._known

    def _turn(self, kinds: Mapping[str, int]) -> list[str]:
        """One with too many kinds of executors for a pass has none."""
        able = (key for key, count in kinds.items() if count <= MOST_KINDS)
        ranked = sorted(able, key=lambda key: (self._advised.get(key, 0), key))[:AT_ONCE]
        together = accumulate(kinds[key] for key in ranked)
        return [key for key, sofar in zip(ranked, together, strict=True) if sofar <= MOST_KINDS]

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


_UNSEEN = (ConditionReason.EXTERNAL_NOT_FOUND, ConditionReason.EXTERNAL_NAMESPACE_NOT_ALLOWED)


def topology_status(resource: SparkTopology, outlook: Outlook) -> TopologyStatus:
    """The topology's status after a pass of the policy in whose pool its executors are."""
    key = key_of(resource)
    executors = outlook.executors.get(key, [])
    components = tuple(
        _component(key, component.name, executors, outlook)
        for component in resource.spec.components
        if component.external is None
    )
    expected = [component.executors for component in resource.spec.components if component.executors]
    locality, recommendation = outlook.locality.get(key), outlook.recommendations.get(key)
    sized = sizing_status(resource.spec.sizing) if resource.spec.sizing is not None else None
    room = PLACEMENT_BYTES if recommendation is None else PLACEMENT_BYTES // 2
    return TopologyStatus(
        observed_generation=resource.metadata.generation,
        conditions=_topology_conditions(resource, key, executors, outlook, sized=None if sized is None else sized[1]),
        policy=outlook.policy.name,
        executors=_counts(executors, sum(expected)),
        components=components,
        locality=in_status(locality) if locality else None,
        placement=topology_placement(outlook.memory, key, most_bytes=room) or None,
        recommendation=recommendation,
        sizing=None if sized is None else sized[0],
    )


def _counts(executors: list[Executor], expected: int) -> ExecutorCounts:
    running = sum(e.phase is Phase.RUNNING for e in executors)
    return ExecutorCounts(
        text=f"{running}/{expected}" if expected else str(running),
        running=running,
        expected=expected,
        gated=sum(e.phase is Phase.GATED for e in executors),
    )


def _component(topology: str, name: str, executors: list[Executor], outlook: Outlook) -> ComponentStatus:
    mine = [e for e in executors if e.component == name]
    homes = {e.node for e in mine if e.node is not None}
    return ComponentStatus(
        name=name,
        executors=len(mine),
        gated=sum(e.phase is Phase.GATED for e in mine),
        running=sum(e.phase is Phase.RUNNING for e in mine),
        scope=outlook.scopes.get((topology, name), "") if mine else "",
        nodes=len(homes),
        zones=len({outlook.zones[home] for home in homes if home in outlook.zones}),
    )


def _topology_conditions(
    resource: SparkTopology, key: str, executors: list[Executor], outlook: Outlook, *, sized: str | None
) -> tuple[Condition, ...]:
    """`sized`: what a sizing recommends first; None without one."""
    health = outlook.snapshot.metrics
    gated = sum(e.phase is Phase.GATED for e in executors)
    judge = Judge(resource.status.conditions, resource.metadata.generation, outlook.now)
    judge.set(
        "Ready", holds=True, reason=ConditionReason.RECONCILED, message=f"steered by policy {outlook.policy.name}"
    )
    judge.set(
        "Placed",
        holds=bool(executors) and not gated,
        reason=_placed_reason(len(executors), gated),
        message=f"{gated} executors are held" if gated else f"{len(executors)} executors",
    )
    metrics = Verdict(health.available, health.reason, health.message_for_users(outlook.policy.name))
    judge.set_while("MetricsAvailable", _fault(outlook, key, ConditionReason.QUERY_NOT_ALLOWED) or metrics)
    judge.drop("Stalled")
    rest = outlook.rests.get(resource.metadata.namespace or "")
    refused = None if rest is None else Verdict(False, ConditionReason.RELEASE_REFUSED, refused_words(rest))
    judge.set_while("Gating", refused)
    judge.set_while("ExternalFound", _fault(outlook, key, *_UNSEEN))
    judge.set_while("SelectorsDisjoint", _fault(outlook, key, ConditionReason.SELECTORS_OVERLAP))
    paused = Verdict(True, ConditionReason.MOVES_DID_NOT_HELP, "its last moves did not help")
    judge.set_while("Paused", paused if key in outlook.plan.paused else None)
    own = {executor.key for executor in executors}
    kept = [refusal for refusal in limited(outlook.plan) if refusal.subject in own]
    judge.set_while("MovesLimited", moves_limited(kept, outlook.policy.moves))
    judge.set_while("Sized", None if sized is None else Verdict(True, ConditionReason.RECOMMENDED, sized))
    return judge.conditions


def _placed_reason(executors: int, gated: int) -> ConditionReason:
    if gated:
        return ConditionReason.WAITING
    return ConditionReason.PLACED if executors else ConditionReason.NO_EXECUTORS


def _fault(outlook: Outlook, key: str, *reasons: ConditionReason) -> Verdict | None:
    """By the last finding about the topology that has one of these reasons."""
    found = next((each for each in reversed(outlook.found.get(key, ())) if each.reason in reasons), None)
    return None if found is None else Verdict(False, found.reason, found.message)
