"""What users see of a pass in a policy's status."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

from ballast.api.condition import Condition
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
from ballast.controller.breaker import refused_words
from ballast.controller.memory import application_status, attempts_status, failures_status, hits_status, state_status
from ballast.controller.status.limited import moves_limited
from ballast.controller.status.outlook import Judge, Outlook, Verdict
from ballast.kube import names
from ballast.model import (
    DEFAULT_LEVELS,
    FAULTS,
    PLACED,
    Cause,
    CauseCount,
    ConditionReason,
    Executor,
    MetricsHealth,
    MovePhase,
    MovesMode,
    Phase,
    PlacementMode,
    Plan,
    Policy,
    PoolView,
    Reason,
    Refusal,
    Unplaced,
    by_cause,
)
from ballast.moves import budget, rules
from ballast.planner.limited import limited
from ballast.planner.plan import node_hits

_DAY_SECONDS = 86400.0
_MESSAGE_LENGTH = 240
_NAMED = 5
"""The most names in one message."""
_SWITCH_OFF = (
    "`ballast release --all` turned the gate switch off, so new executors are not gated and not placed: restart the "
    "operator's Deployment to gate them again"
)
_STOPPED = Verdict(
    True, ConditionReason.STOPPED, "spec.stopped is true, so nothing is gated, placed or moved: kubectl ballast start"
)
_NO_NODES = (
    "no node matches nodeSelector, so nothing is placed or moved: correct nodeSelector, or label the nodes of the pool"
)


def policy_status(resource: BalancingPolicy, outlook: Outlook) -> PolicyStatus:
    """The policy's status after this pass; conditions keep their transition times."""
    pool = outlook.plan.pool
    mode = outlook.policy.moves.mode
    declared = frozenset(t.key for t in outlook.snapshot.topologies if not t.implicit)
    return PolicyStatus(
        observed_generation=resource.metadata.generation,
        conditions=_policy_conditions(resource, outlook),
        nodes=_nodes(pool),
        hits=hits_status(node_hits(outlook.memory, outlook.policy, [node.name for node in pool.nodes])),
        pairs=_pairs(pool),
        recommendations=_recommendations(outlook.plan) if mode is MovesMode.RECOMMEND else None,
        refusals=_refusals(outlook.plan.refusals, outlook.now),
        budget=_budget(outlook),
        moved=_moved(outlook),
        applications=application_status(outlook.memory, declared),
        attempts=attempts_status(outlook.memory),
        failures=failures_status(outlook.failures),
        state=state_status(outlook.memory),
    )


def _policy_conditions(resource: BalancingPolicy, outlook: Outlook) -> tuple[Condition, ...]:
    health, plan = outlook.snapshot.metrics, outlook.plan
    judge = Judge(resource.status.conditions, resource.metadata.generation, outlook.now)
    _judge_ready(judge, plan.pool)
    _judge_metrics(judge, health, plan.pool.dropped)
    judge.set(
        "Balanced", holds=plan.pool.balanced, reason=_balance_reason(plan.pool), message=_balance_words(plan.pool)
    )
    judge.drop("Stalled")
    judge.set_while("Stopped", _STOPPED if resource.spec.stopped else None)
    judge.set_while("Gating", _gating(outlook))
    judge.set_while("MovesPossible", _moves_possible(outlook.policy))
    judge.set_while("LevelsFound", _levels_found(outlook))
    judge.set_while("TopologiesFound", _topologies_found(outlook.snapshot.executors))
    judge.set_while("NamespacesFollowed", _namespaces_followed(outlook.left_out))
    judge.set_while("ExecutorsPlaced", _executors_placed(outlook.plan.unplaced))
    judge.set_while("Paused", _paused(plan.paused))
    judge.set_while("MovesLimited", moves_limited(limited(plan), outlook.policy.moves))
    return judge.conditions


def _judge_ready(judge: Judge, pool: PoolView) -> None:
    if pool.total:
        judge.set("Ready", holds=True, reason=ConditionReason.RECONCILED, message=f"reconciled {pool.total} nodes")
    else:
        judge.set("Ready", holds=False, reason=ConditionReason.NO_NODES, message=_NO_NODES)


def _gating(outlook: Outlook) -> Verdict | None:
    if outlook.stays_off and outlook.policy.placement.mode is PlacementMode.ENFORCE:
        return Verdict(False, ConditionReason.SWITCH_OFF, _SWITCH_OFF)
    if not outlook.rests:
        return _gate_missing(outlook.plan.unplaced)
    names = sorted(outlook.rests)
    message = f"executors in {_first(names)} are not gated for now: {refused_words(outlook.rests[names[0]])}"
    return Verdict(False, ConditionReason.RELEASE_REFUSED, message)


def _gate_missing(rows: Iterable[Unplaced]) -> Verdict | None:
    found = next((each for each in by_cause(rows) if each.cause is Cause.GATE_MISSING), None)
    if found is None:
        return None
    message = f"{found.executors} executors that opted in are not gated; {found.first.executor}: {found.first.detail}"
    return Verdict(False, ConditionReason.GATE_MISSING, message)


def _moves_possible(policy: Policy) -> Verdict | None:
    unheld = rules.unheld(policy)
    if unheld is None:
        return None
    message = (
        f"moves.mode is {policy.moves.mode}, but placement.mode is {policy.placement.mode}: nothing moves, because "
        "a replacement would not be gated for its destination; set placement.mode: Enforce"
    )
    return Verdict(False, unheld[0], message)


def _levels_found(outlook: Outlook) -> Verdict | None:
    """Racks are the one default level that a cluster may well do without."""
    levels, nodes = outlook.policy.levels, outlook.snapshot.nodes
    expected = levels.ordered[:1] if levels == DEFAULT_LEVELS else levels.ordered
    missing = [
        level.label for index, level in enumerate(expected) if all(node.location[index] is None for node in nodes)
    ]
    if not nodes or not missing:
        return None
    message = (
        f"no node of the pool has the label {', '.join(missing)}, so that level counts for nothing: label the "
        "nodes, or correct spec.levels"
    )
    return Verdict(False, ConditionReason.LEVEL_LABEL_MISSING, message)


def _topologies_found(executors: Sequence[Executor]) -> Verdict | None:
    named = {
        f"{e.namespace}/{e.unknown_topology}" for e in executors if e.unknown_topology and e.phase is not Phase.ENDED
    }
    if not named:
        return None
    message = (
        f"executors' label {names.TOPOLOGY} names what is no SparkTopology: {_first(sorted(named))}; correct the "
        "label, or create the SparkTopology in that namespace"
    )
    return Verdict(False, Reason.UNKNOWN_TOPOLOGY, message)


def _namespaces_followed(left_out: Mapping[str, str]) -> Verdict | None:
    if not left_out:
        return None
    namespaces = sorted(left_out)
    message = (
        f"passes leave out {_first(namespaces)}, with whose objects they fail ({left_out[namespaces[0]]}); executors "
        "there are released as they are: see the log, and report it"
    )
    return Verdict(False, ConditionReason.PASS_FAILED, message)


def _executors_placed(rows: Sequence[Unplaced]) -> Verdict | None:
    """False while a user should see to some of them; True where all are placed, though not as they ask for."""
    found = by_cause(rows)
    faults = [each for each in found if each.cause in FAULTS]
    if faults:
        first = faults[0]
        clauses = [
            f"{_counted(faults)[0]} executors that opted in are not placed: {_counted(faults)[1]}",
            f"{first.first.executor}: {first.first.detail}",
        ]
        if others := [each for each in found if each.cause not in FAULTS | PLACED]:
            clauses.append("{} others need nothing from you: {}".format(*_counted(others)))
        if placed := [each for each in found if each.cause in PLACED]:
            clauses.append("{} are placed, though not as asked for: {}".format(*_counted(placed)))
        return Verdict(False, first.cause, "; ".join(clauses))
    overruled = next((each for each in found if each.cause is Cause.CONSTRAINTS_OVERRULED), None)
    if overruled is None:
        return None
    message = f"{overruled.executors} executors are placed; of {overruled.first.executor}, {overruled.first.detail}"
    return Verdict(True, overruled.cause, message)


def _counted(causes: Sequence[CauseCount]) -> tuple[int, str]:
    """How many executors they are together, and by cause."""
    words = ", ".join(f"{each.executors} {each.cause}" for each in causes)
    return sum(each.executors for each in causes), words


def _paused(topologies: Sequence[str]) -> Verdict | None:
    if not topologies:
        return None
    return Verdict(True, ConditionReason.MOVES_DID_NOT_HELP, f"moves rest in {_first(topologies)}")


def _first(found: Sequence[str]) -> str:
    more = len(found) - _NAMED
    return ", ".join(found[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def _judge_metrics(judge: Judge, health: MetricsHealth, dropped: tuple[str, ...]) -> None:
    reason, message = health.reason, health.message
    if health.available and dropped:
        names = ", ".join(dropped)
        words = f"no node has values of {names}, so that does not count: {_remedy(dropped)}, or set its weight to 0"
        reason, message = ConditionReason.SIGNAL_DROPPED, "; ".join(filter(None, (words, message)))
    judge.set("MetricsAvailable", holds=health.available, reason=reason, message=message)


def _remedy(dropped: Iterable[str]) -> str:
    """A rate needs two samples, and Prometheus 3 leaves out one at the beginning of the window."""
    rates = any(each != "memory" for each in dropped)
    return f"see to its query{', and that metrics.window holds three scrapes' if rates else ''}"


def _balance_reason(pool: PoolView) -> ConditionReason:
    if pool.balanced is None:
        return ConditionReason.UNKNOWN
    return ConditionReason.WITHIN_THRESHOLD if pool.balanced else ConditionReason.GAP_TOO_WIDE


def _balance_words(pool: PoolView) -> str:
    if pool.balanced is None or pool.hottest is None:
        return "fewer than two nodes have fresh metrics"
    score = {node.name: node.score or 0.0 for node in pool.nodes}
    coldest = pool.coldest or pool.hottest
    return f"{pool.hottest} is at {score[pool.hottest]:.0f}, {coldest} at {score[coldest]:.0f}"


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
            namespace=move.namespace,
            executor=move.pod,
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
    moves, now = budget.of_pool(outlook.snapshot.moves), outlook.now
    in_force = [b for b in outlook.policy.moves.budgets if b.scope == "Pool" and budget.active(b, now)]
    if not in_force:
        return None
    executors = budget.ExecutorCounts.of(outlook.snapshot.executors).pool
    left = {each: budget.allowed(each, executors) - budget.used(each, moves, now) for each in in_force}
    tightest = min(in_force, key=lambda each: left[each])
    used = budget.used(tightest, moves, now)
    reset = budget.next_reset(tightest, moves, now)
    return BudgetStatus(
        used=used,
        remaining=max(0, left[tightest]),
        next_reset=datetime.fromtimestamp(round(reset), UTC) if reset is not None else None,
    )


def _moved(outlook: Outlook) -> int:
    since = outlook.now - _DAY_SECONDS
    return sum(m.phase is MovePhase.SUCCEEDED and (m.ended_at or 0.0) >= since for m in outlook.snapshot.moves)
