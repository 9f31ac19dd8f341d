"""The policy that a user wrote, as the values that the planner reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from ballast.api.labels import LabelSelector
from ballast.api.policy import BalancingPolicy
from ballast.api.policy_moves import Drain, Moves
from ballast.api.policy_moves import LeavingTaint as LeavingTaintSpec
from ballast.api.policy_placement import LeastLongTermRate, LeastResourceUsage, Placement, PlacementStrategy, Proximity
from ballast.api.policy_shedding import (
    AvgShedder,
    OverloadShedder,
    Shedding,
    ThresholdShedder,
    TransferShedder,
    UniformLoadShedder,
)
from ballast.api.profile import Budget as BudgetSpec
from ballast.enums import Pin
from ballast.errors import InvalidField
from ballast.model.leaving import LEAVING_TAINTS, LeavingTaint, with_rows
from ballast.model.location import Level, Levels
from ballast.model.policy import (
    MAX_SCORE_PERCENT,
    AvgShedderPolicy,
    Budget,
    ComponentLimit,
    DrainPolicy,
    MovesPolicy,
    PlacementPolicy,
    Policy,
    SheddingPolicy,
    Weights,
)
from ballast.model.shedders import OverloadSettings, ThresholdSettings, TransferSettings, UniformSettings

NodeLabels = Mapping[str, Mapping[str, str]]


def policy_from(resource: BalancingPolicy, node_labels: NodeLabels | None = None) -> Policy:
    """`node_labels` (node name → labels) resolves the selectors of favored and unfavored nodes."""
    spec = resource.spec
    return Policy(
        name=resource.metadata.name,
        levels=Levels(tuple(Level(level.label, level.distance) for level in spec.levels)),
        interval_seconds=spec.interval.seconds,
        window_seconds=spec.metrics.window.seconds,
        max_age_seconds=spec.metrics.max_age.seconds,
        weights=Weights(*spec.metrics.weights.ratios()),
        placement=_placement(spec.placement, node_labels or {}),
        shedding=_shedding(spec.shedding),
        moves=replace(_moves(spec.moves), scheduler_names=spec.placement.scheduler_names),
    )


def _placement(spec: Placement, node_labels: NodeLabels) -> PlacementPolicy:
    proximity = spec.advanced.proximity or Proximity()
    rate = spec.advanced.least_long_term_rate or LeastLongTermRate()
    usage = spec.advanced.least_resource_usage or LeastResourceUsage()
    most = {PlacementStrategy.LEAST_LONG_TERM_RATE: float(rate.overload_threshold)}
    return PlacementPolicy(
        mode=spec.mode,
        scheduler_names=spec.scheduler_names,
        strategy=spec.strategy.value,
        order=spec.order,
        packing=spec.packing,
        pin=spec.pin,
        sticky=spec.sticky,
        scope_higher_bound_ratio=spec.scope.higher_bound_percent / 100,
        scope_lower_bound_ratio=spec.scope.lower_bound_percent / 100,
        max_executors_per_node_ratio=spec.max_executors_per_node_percent / 100,
        max_executors_per_zone_ratio=spec.max_executors_per_zone_percent / 100,
        debounce_seconds=spec.debounce.seconds,
        gate_timeout_seconds=spec.gate_timeout.seconds,
        favored_nodes=_selected(spec.favored_nodes, node_labels),
        unfavored_nodes=_selected(spec.unfavored_nodes, node_labels),
        limits=tuple(ComponentLimit(limit.component, limit.max_per_node) for limit in spec.limits),
        max_score_percent=most.get(spec.strategy, MAX_SCORE_PERCENT),
        search_seconds=proximity.search_time.seconds,
        long_window_seconds=rate.long_window.seconds,
        min_difference=usage.min_difference,
        history_ratio=usage.history_weight_percent / 100,
    )


def _selected(selector: LabelSelector | None, node_labels: NodeLabels) -> tuple[str, ...]:
    if selector is None:
        return ()
    return tuple(sorted(name for name, labels in node_labels.items() if selector.matches(labels)))


def _shedding(spec: Shedding) -> SheddingPolicy:
    blocks = spec.advanced
    return SheddingPolicy(
        strategy=spec.strategy.value,
        avg_shedder=_avg_shedder(spec.avg_shedder or AvgShedder()),
        threshold_shedder=_threshold_shedder(blocks.threshold_shedder or ThresholdShedder()),
        overload_shedder=OverloadSettings((blocks.overload_shedder or OverloadShedder()).threshold),
        uniform_load_shedder=_uniform_load_shedder(blocks.uniform_load_shedder or UniformLoadShedder()),
        transfer_shedder=_transfer_shedder(blocks.transfer_shedder or TransferShedder()),
    )


def _threshold_shedder(spec: ThresholdShedder) -> ThresholdSettings:
    return ThresholdSettings(
        threshold=spec.threshold,
        history_ratio=spec.history_weight_percent / 100,
        min_bytes_per_second=float(spec.min_throughput),
        lower_boundary=spec.lower_boundary,
    )


def _uniform_load_shedder(spec: UniformLoadShedder) -> UniformSettings:
    return UniformSettings(
        rate_difference_percent=spec.rate_difference_percent,
        bytes_ratio=spec.throughput_percent / 100,
        max_unload_ratio=spec.max_unload_percent / 100,
        min_rate_per_second=float(spec.min_rate),
        min_bytes_per_second=float(spec.min_throughput),
        max_executors=spec.max_executors,
    )


def _transfer_shedder(spec: TransferShedder) -> TransferSettings:
    return TransferSettings(
        target_std_ratio=spec.target_std_dev / 100,
        hits=spec.hits,
        max_nodes=spec.max_nodes_per_pass,
        overload_threshold=spec.overload_threshold,
        history_ratio=spec.history_weight_percent / 100,
        cooldown_seconds=spec.delay.seconds,
        ttl_seconds=spec.max_age.seconds,
        max_candidates=spec.max_candidates,
    )


def _avg_shedder(spec: AvgShedder) -> AvgShedderPolicy:
    return AvgShedderPolicy(
        unit=spec.unit,
        low_threshold=spec.low_threshold,
        high_threshold=spec.high_threshold,
        low_hits=spec.low_hits,
        high_hits=spec.high_hits,
        min_hot_score=spec.min_hot_score,
        persistent_hits=spec.persistent_hits,
        max_unload_ratio=spec.max_unload_percent / 100,
        min_rate=float(spec.min_rate),
        min_throughput_bytes=float(spec.min_throughput),
    )


def _moves(spec: Moves) -> MovesPolicy:
    return MovesPolicy(
        mode=spec.mode,
        pin=Pin(spec.pin),
        max_state_bytes=float(spec.max_state_size),
        allow_unknown_state=spec.allow_unknown_state,
        max_concurrent=spec.max_concurrent,
        max_concurrent_per_node=spec.max_concurrent_per_node,
        max_concurrent_per_topology=spec.max_concurrent_per_topology,
        max_concurrent_per_topology_percent=spec.max_concurrent_per_topology_percent,
        settle_seconds=spec.settle.seconds,
        min_executor_age_seconds=spec.min_executor_age.seconds,
        min_gain=spec.min_gain,
        min_slowness=spec.min_slowness_percent / 100,
        min_pressure=spec.min_pressure_percent / 100,
        saturation_score=spec.saturation_score,
        max_locality_loss=spec.max_locality_loss_percent / 100,
        max_failure_percent=spec.max_failure_percent,
        cooldown_seconds=spec.cooldown.seconds,
        leave_timeout_seconds=spec.leave_timeout.seconds,
        arrive_timeout_seconds=spec.arrive_timeout.seconds,
        approval_timeout_seconds=spec.approval_timeout.seconds,
        ttl_seconds=spec.ttl_after_finished.seconds,
        allow_ungraceful=spec.allow_ungraceful,
        allow_kueue_managed=spec.allow_kueue_managed,
        budgets=tuple(_budget(budget) for budget in spec.budgets),
        pause_after_failures=spec.pause_after_failures,
        drain=_drain(spec.drain),
    )


def _drain(spec: Drain) -> DrainPolicy:
    known = {row.key: row for row in LEAVING_TAINTS}

    def changed(row: LeavingTaintSpec) -> LeavingTaint:
        before = known.get(row.key) or LeavingTaint(row.key, f"it has the taint {row.key}")
        seconds = before.notice_seconds if row.notice is None else row.notice.seconds
        drains = row.drain and not before.dead
        return replace(before, notice_seconds=seconds, drains=drains, source="moves.drain.taints")

    return DrainPolicy(
        enabled=spec.enabled,
        max_concurrent=spec.max_concurrent,
        max_concurrent_ratio=spec.max_concurrent_percent / 100,
        taints=with_rows(LEAVING_TAINTS, map(changed, spec.taints)),
    )


def _budget(spec: BudgetSpec) -> Budget:
    return Budget(
        moves=spec.moves,
        percent=spec.percent or 0,
        per_seconds=spec.per.seconds if spec.per else None,
        scope=spec.scope.value,
        schedule=spec.schedule or "",
        time_zone=spec.time_zone or "UTC",
        duration_seconds=spec.duration.seconds if spec.duration else 0.0,
    )


_A_DAY = datetime(2026, 1, 1, tzinfo=UTC)
_FIVE_FIELDS = "write five fields such as 0 8 * * 1-5"


def defect(policy: BalancingPolicy) -> InvalidField | None:
    """The first thing that makes the policy impossible to follow: its field, its value and the remedy."""
    for position, budget in enumerate(policy.spec.moves.budgets):
        at = f"spec.moves.budgets[{position}]"
        wrong = schedule_defect(budget.schedule or "", budget.time_zone or "UTC", at=at, time_zone_field="timeZone")
        if wrong is not None:
            return wrong
    return None


def schedule_defect(schedule: str, time_zone: str, *, at: str, time_zone_field: str) -> InvalidField | None:
    """What keeps the schedule of a budget from ever coming; none is always. `at`: where the budget stands."""
    if not schedule:
        return None
    try:
        ZoneInfo(time_zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        remedy = "no such time zone; write one such as Europe/Berlin"
        return InvalidField(f"{at}.{time_zone_field}", time_zone, remedy)
    try:
        next(CronSim(schedule, _A_DAY, reverse=True))
    except (CronSimError, ValueError) as error:  # Python reads numbers of 4 300 digits at most
        return InvalidField(f"{at}.schedule", schedule, f"{error}; {_FIVE_FIELDS}")
    except StopIteration:
        return InvalidField(f"{at}.schedule", schedule, f"there is no such day; {_FIVE_FIELDS}")
    return None
