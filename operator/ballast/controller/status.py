"""What users see of a pass: the status of a policy and of the topologies in its pool."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from ballast.api.condition import Condition, ConditionStatus, drop_condition, set_condition
from ballast.api.policy import BalancingPolicy
from ballast.api.policy_status import (
    SHOWN,
    BudgetStatus,
    MoveRecommendation,
    MoveRecommendations,
    NodeScore,
    NodesStatus,
    Pair,
    Pairs,
    PolicyStatus,
)
from ballast.api.policy_status import Refusal as RefusalStatus
from ballast.api.policy_status import Refusals as RefusalsStatus
from ballast.api.topology import SparkTopology
from ballast.api.topology_status import ComponentStatus, ExecutorCounts, Locality, TopologyStatus
from ballast.controller.memory import application_status, hits_status, topology_placement
from ballast.model import (
    Executor,
    LocalityView,
    Memory,
    MovePhase,
    MovesMode,
    Phase,
    Plan,
    Policy,
    PoolView,
    Refusal,
    Snapshot,
)
from ballast.planner import budget

_DAY_SECONDS = 86400.0
_MESSAGE_LENGTH = 240


@dataclass(frozen=True, slots=True)
class Outlook:
    """One pass, as far as status is concerned."""

    snapshot: Snapshot
    policy: Policy
    plan: Plan
    memory: Memory
    now: float


def policy_status(resource: BalancingPolicy, outlook: Outlook) -> PolicyStatus:
    """The policy's status after this pass; conditions keep their transition times."""
    pool = outlook.plan.pool
    mode = outlook.policy.moves.mode
    declared = frozenset(t.key for t in outlook.snapshot.topologies if not t.implicit)
    return PolicyStatus(
        observed_generation=resource.metadata.generation,
        conditions=_policy_conditions(resource, outlook),
        nodes=_nodes(pool),
        hits=hits_status(outlook.memory),
        pairs=_pairs(pool),
        recommendations=_recommendations(outlook.plan) if mode is MovesMode.RECOMMEND else None,
        refusals=_refusals(outlook.plan.refusals, outlook.now),
        budget=_budget(outlook),
        moved=_moved(outlook),
        applications=application_status(outlook.memory, declared),
    )


def _policy_conditions(resource: BalancingPolicy, outlook: Outlook) -> tuple[Condition, ...]:
    health, plan = outlook.snapshot.metrics, outlook.plan
    judge = _Judge(resource.status.conditions, resource.metadata.generation, outlook.now)
    judge.set("Ready", holds=True, reason="Reconciled", message=f"{plan.pool.total} nodes looked at")
    judge.set("MetricsAvailable", holds=health.available, reason=health.reason, message=health.message)
    judge.set(
        "Balanced", holds=plan.pool.balanced, reason=_balance_reason(plan.pool), message=_balance_words(plan.pool)
    )
    judge.drop("Stalled")
    if plan.paused:
        judge.set("Paused", holds=True, reason="MovesDidNotHelp", message=f"moves rest in {', '.join(plan.paused[:5])}")
    else:
        judge.drop("Paused")
    return judge.conditions


def _balance_reason(pool: PoolView) -> str:
    return {None: "Unknown", True: "WithinThreshold", False: "GapTooWide"}[pool.balanced]


def _balance_words(pool: PoolView) -> str:
    if pool.balanced is None or pool.hottest is None:
        return "fewer than two nodes have fresh figures"
    score = {node.name: node.score or 0.0 for node in pool.nodes}
    coldest = pool.coldest or pool.hottest
    return f"{pool.hottest} is at {score[pool.hottest]:.0f}, {coldest} at {score[coldest]:.0f}"


class _Judge:
    """Sets conditions one after the other on what was there before."""

    def __init__(self, conditions: tuple[Condition, ...], generation: int, now: float) -> None:
        self.conditions = conditions
        self._generation = generation
        self._now = datetime.fromtimestamp(now, UTC)

    def set(self, type_: str, *, holds: bool | None, reason: str, message: str = "") -> None:
        self.conditions = set_condition(
            self.conditions,
            type_=type_,
            status=ConditionStatus.of(holds),
            reason=reason,
            message=message,
            observed_generation=self._generation,
            now=self._now,
        )

    def drop(self, type_: str) -> None:
        self.conditions = drop_condition(self.conditions, type_)


def _nodes(pool: PoolView) -> NodesStatus:
    scores = {node.name: _rounded(node.score) for node in pool.nodes if node.score is not None}
    ends = [NodeScore(name=name, score=scores[name]) if name else None for name in (pool.hottest, pool.coldest)]
    gap = ends[0].score - ends[1].score if ends[0] and ends[1] else None
    return NodesStatus(
        total=pool.total,
        eligible=pool.eligible,
        stale=pool.stale,
        mean=_rounded(pool.mean) if pool.mean is not None else None,
        std_dev=_rounded(pool.std_dev) if pool.std_dev is not None else None,
        gap=_rounded(gap) if gap is not None else None,
        hottest=ends[0],
        coldest=ends[1],
    )


def _rounded(value: float) -> float:
    """Tenths: finer changes are no news and would write the status for nothing."""
    return round(value, 1)


def _pairs(pool: PoolView) -> Pairs:
    views = {node.name: node for node in pool.nodes}
    items = tuple(
        Pair(
            hot=hot,
            cold=cold,
            hot_score=_rounded(views[hot].projected or 0.0),
            cold_score=_rounded(views[cold].projected or 0.0),
            low_hits=max(views[hot].low_hits, views[cold].low_hits),
            high_hits=max(views[hot].high_hits, views[cold].high_hits),
        )
        for hot, cold, _ in pool.pairs[:SHOWN]
    )
    return Pairs(items=items, more=max(0, len(pool.pairs) - SHOWN))


def _recommendations(plan: Plan) -> MoveRecommendations:
    ranked = sorted(plan.moves, key=lambda move: (-move.gain, move.executor))
    items = tuple(
        MoveRecommendation(
            namespace=move.executor.split("/", 1)[0],
            executor=move.executor.split("/", 1)[1],
            topology=move.topology.split("/", 1)[-1],
            component=move.component,
            from_=move.source,
            to=move.target,
            gain=_rounded(move.gain),
            message=f"{move.hot_score:.0f} and {move.cold_score:.0f} would become "
            f"{move.hot_after:.0f} and {move.cold_after:.0f}",
        )
        for move in ranked[:SHOWN]
    )
    return MoveRecommendations(items=items, more=max(0, len(ranked) - SHOWN))


def _refusals(refusals: Iterable[Refusal], now: float) -> RefusalsStatus:
    """One entry a reason, the most frequent first, with the first case as an example."""
    first: dict[str, Refusal] = {}
    counts: Counter[str] = Counter()
    for refusal in refusals:
        first.setdefault(refusal.reason.value, refusal)
        counts[refusal.reason.value] += 1
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    items = tuple(_refusal(first[reason], count, now) for reason, count in ranked[:SHOWN])
    return RefusalsStatus(items=items, more=max(0, len(ranked) - SHOWN))


def _refusal(refusal: Refusal, count: int, now: float) -> RefusalStatus:
    namespace, _, pod = refusal.subject.rpartition("/")
    return RefusalStatus(
        reason=refusal.reason.value,
        namespace=namespace,
        executor=pod,
        to=refusal.target or "",
        message=refusal.detail[:_MESSAGE_LENGTH],
        count=count,
        last_time=datetime.fromtimestamp(now - now % 60, UTC),
    )


def _budget(outlook: Outlook) -> BudgetStatus | None:
    """The tightest pool-wide budget that is in force."""
    moves, now = outlook.snapshot.moves, outlook.now
    in_force = [b for b in outlook.policy.moves.budgets if b.scope == "Pool" and budget.active(b, now)]
    if not in_force:
        return None
    tightest = min(in_force, key=lambda b: b.moves - budget.used(b, moves, now))
    used = budget.used(tightest, moves, now)
    reset = budget.next_reset(tightest, moves, now)
    return BudgetStatus(
        used=used,
        remaining=max(0, tightest.moves - used),
        next_reset=datetime.fromtimestamp(round(reset), UTC) if reset is not None else None,
    )


def _moved(outlook: Outlook) -> int:
    since = outlook.now - _DAY_SECONDS
    return sum(m.phase is MovePhase.SUCCEEDED and (m.ended_at or 0.0) >= since for m in outlook.snapshot.moves)


def topology_status(resource: SparkTopology, outlook: Outlook) -> TopologyStatus:
    """The topology's status after a pass of the policy in whose pool its executors are."""
    key = f"{resource.metadata.namespace}/{resource.metadata.name}"
    executors = [e for e in outlook.snapshot.executors if e.topology == key and e.phase is not Phase.ENDED]
    components = tuple(
        _component(component.name, executors, outlook)
        for component in resource.spec.components
        if component.external is None
    )
    expected = [component.executors for component in resource.spec.components if component.executors]
    locality = next((view for view in outlook.plan.locality if view.topology == key), None)
    return TopologyStatus(
        observed_generation=resource.metadata.generation,
        conditions=_topology_conditions(resource, key, executors, outlook),
        policy=outlook.policy.name,
        executors=_counts(executors, sum(expected)),
        components=components,
        locality=_locality(locality) if locality else None,
        placement=topology_placement(outlook.memory, key) or None,
        recommendation=resource.status.recommendation,
        sizing=resource.status.sizing,
    )


def _counts(executors: list[Executor], expected: int) -> ExecutorCounts:
    running = sum(e.phase is Phase.RUNNING for e in executors)
    return ExecutorCounts(
        text=f"{running}/{expected}" if expected else str(running),
        running=running,
        expected=expected,
        gated=sum(e.phase is Phase.GATED for e in executors),
    )


def _component(name: str, executors: list[Executor], outlook: Outlook) -> ComponentStatus:
    mine = [e for e in executors if e.component == name]
    location = {node.name: node.location for node in outlook.snapshot.nodes}
    homes = {e.node for e in mine if e.node is not None}
    scope = next((s for t, c, s in outlook.memory.scopes if c == name and mine and t == mine[0].topology), "")
    return ComponentStatus(
        name=name,
        executors=len(mine),
        gated=sum(e.phase is Phase.GATED for e in mine),
        running=sum(e.phase is Phase.RUNNING for e in mine),
        scope=scope,
        nodes=len(homes),
        zones=len({location[home][0] for home in homes if home in location and location[home][0] is not None}),
    )


def _topology_conditions(
    resource: SparkTopology, key: str, executors: list[Executor], outlook: Outlook
) -> tuple[Condition, ...]:
    health = outlook.snapshot.metrics
    gated = sum(e.phase is Phase.GATED for e in executors)
    judge = _Judge(resource.status.conditions, resource.metadata.generation, outlook.now)
    judge.set("Ready", holds=True, reason="Reconciled", message=f"steered by policy {outlook.policy.name}")
    judge.set(
        "Placed",
        holds=bool(executors) and not gated,
        reason="Placed" if executors and not gated else "Waiting" if gated else "NoExecutors",
        message=f"{gated} executors are held" if gated else f"{len(executors)} executors",
    )
    judge.set("MetricsAvailable", holds=health.available, reason=health.reason, message=health.message)
    judge.drop("Stalled")
    if key in outlook.plan.paused:
        judge.set("MovesPaused", holds=True, reason="MovesDidNotHelp", message="its last moves did not help")
    else:
        judge.drop("MovesPaused")
    return judge.conditions


def _locality(view: LocalityView) -> Locality:
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
