"""The operator's own metrics and its probes. Built once in `main` with its own registry, and passed down."""

from __future__ import annotations

from collections import Counter as Counts
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info

from ballast.errors import BallastError
from ballast.kube.client import Action
from ballast.kube.errors import KubeError
from ballast.model import (
    ConditionReason,
    Executor,
    LocalityView,
    MetricsHealth,
    Move,
    MovePhase,
    NodeView,
    Phase,
    Reason,
    Unplaced,
    counts_of,
)
from ballast.prometheus import DROPPED

_PASS_BUCKETS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
_OPEN = tuple(phase for phase in MovePhase if phase.in_flight or phase is MovePhase.PROPOSED)
UNUSABLE = (
    ConditionReason.UNREACHABLE,
    ConditionReason.SECRET_NOT_READ,
    ConditionReason.NO_NODE_METRICS,
    ConditionReason.METRICS_AMBIGUOUS,
    ConditionReason.CLOCKS_DISAGREE,
)
"""Why no pass can use a reading of Prometheus."""
_HOLD_BUCKETS = (0.1, 0.3, 1.0, 2.0, 3.0, 5.0, 7.5, 10.0, 15.0, 30.0)
_PROMISED_SECONDS = 15.0
"""For which our gate may hold an executor: the longest gate timeout, and 5 s."""


class _Place(NamedTuple):
    namespace: str
    pod: str
    node: str
    application: str


class Telemetry:
    """Counters and gauges under the prefix `ballast_`; pod names are labels of executors' places alone."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        self._nodes: dict[str, frozenset[str]] = {}
        self._places: dict[str, frozenset[_Place]] = {}
        self._topologies: dict[str, frozenset[str]] = {}
        self._budgets: dict[str, frozenset[str]] = {}
        self.pass_seconds = Histogram(
            "ballast_pass_duration_seconds", "Time of one pass over a pool", ["policy"], registry=registry,
            buckets=_PASS_BUCKETS,
        )  # fmt: skip
        self.passes = Counter("ballast_passes", "Passes by result", ["policy", "result"], registry=registry)
        self.last_pass = Gauge(
            "ballast_last_pass_timestamp_seconds", "When the last pass ended well", ["policy"], registry=registry
        )
        self.interval = Gauge(
            "ballast_policy_interval_seconds", "`spec.interval` of the policy", ["policy"], registry=registry
        )
        self.decisions = Counter(
            "ballast_decisions", "Placements and moves decided", ["policy", "kind"], registry=registry
        )
        self.refusals = Counter("ballast_refusals", "Refusals by reason", ["policy", "reason"], registry=registry)
        self.transitions = Counter(
            "ballast_move_transitions", "Phases that moves entered", ["policy", "phase"], registry=registry
        )
        self.moves = Counter("ballast_moves", "Moves that ended, by phase", ["policy", "phase"], registry=registry)
        self.predicted_gain = Gauge(
            "ballast_move_predicted_gain_points", "Predicted gain of the last move", ["policy"], registry=registry
        )
        self.measured_gain = Gauge(
            "ballast_move_measured_gain_points", "Measured gain of the last judged move", ["policy"], registry=registry
        )
        self.gate_hold = Histogram(
            "ballast_gate_hold_seconds", "How long executors were gated", ["policy"], registry=registry,
            buckets=_HOLD_BUCKETS,
        )  # fmt: skip
        self.gated_too_long_at = Gauge(
            "ballast_gated_too_long_timestamp_seconds",
            "When this replica last found an executor that Ballast's gate alone had held for more than 15 s; 0: never",
            registry=registry,
        )
        self.gated = Gauge(
            "ballast_gated_executors", "Executors that the last pass left gated", ["policy"], registry=registry
        )
        self.unknown_topology = Gauge(
            "ballast_unknown_topology_executors",
            "Executors of which the label `ballast.dev/topology` names no SparkTopology", ["policy"], registry=registry,
        )  # fmt: skip
        self.unplaced_sets = Counter(
            "ballast_unplaced_sets", "Sets of which executors were released without a place, by cause",
            ["policy", "cause"], registry=registry,
        )  # fmt: skip
        self.unplaced = Gauge(
            "ballast_unplaced_executors", "Executors of the policy that opted in and are not placed, by cause",
            ["policy", "cause"],
            registry=registry,
        )  # fmt: skip
        self.unclaimed = Gauge(
            "ballast_unclaimed_executors", "Executors that opted in although no BalancingPolicy includes them",
            registry=registry,
        )  # fmt: skip
        self.metrics_at = Gauge(
            "ballast_metrics_timestamp_seconds", "Time of the metrics that the newest full pass used",
            ["policy"], registry=registry,
        )  # fmt: skip
        self.samples_dropped = Counter(
            "ballast_samples_dropped", "Samples of Prometheus that were not used, by cause", ["policy", "cause"],
            registry=registry,
        )  # fmt: skip
        self.metrics_age = Gauge(
            "ballast_metrics_age_seconds", "Age of the oldest node metric used", ["policy"], registry=registry
        )
        self.node_score = Gauge("ballast_node_score_percent", "Score of a node", ["policy", "node"], registry=registry)
        self.node_hits = Gauge(
            "ballast_node_hits", "Times in a row that a node was in too wide a gap", ["policy", "node", "threshold"],
            registry=registry,
        )  # fmt: skip
        self.imbalance = Gauge(
            "ballast_pool_gap_points", "Score of the hottest less that of the coldest node", ["policy"],
            registry=registry,
        )  # fmt: skip
        self.executor = Gauge(
            "ballast_executor_info", "1 while the executor is on the node", ["policy", *_Place._fields],
            registry=registry,
        )  # fmt: skip
        self.cross_zone_ratio = Gauge(
            "ballast_topology_cross_zone_ratio", "Share of a topology's traffic that crosses zones",
            ["policy", "topology"], registry=registry,
        )  # fmt: skip
        self.cross_rack_ratio = Gauge(
            "ballast_topology_cross_rack_ratio", "Share of a topology's traffic that crosses racks",
            ["policy", "topology"], registry=registry,
        )  # fmt: skip
        self.cross_zone_bytes = Gauge(
            "ballast_topology_cross_zone_bytes_per_second",
            "Traffic of a topology that crosses zones, where its rates are known", ["policy", "topology"],
            registry=registry,
        )  # fmt: skip
        self.open_moves = Gauge(
            "ballast_open_moves", "Moves that have not ended, by phase", ["policy", "phase"], registry=registry
        )
        self.budget_left = Gauge(
            "ballast_budget_moves_left", "Moves that a budget of the whole pool still allows now",
            ["policy", "budget"], registry=registry,
        )  # fmt: skip
        self.paused = Gauge(
            "ballast_paused_topologies", "Topologies whose moves rest because earlier ones did not help",
            ["policy"], registry=registry,
        )  # fmt: skip
        self.stopped = Gauge(
            "ballast_policy_stopped", "1 while `kubectl ballast stop` has stopped the policy", ["policy"],
            registry=registry,
        )  # fmt: skip
        self.unusable_readings = Counter(
            "ballast_prometheus_errors", "Readings of Prometheus that no pass can use, by reason",
            ["policy", "reason"], registry=registry,
        )  # fmt: skip
        self.unusable = Gauge(
            "ballast_metrics_unusable", "1 while no pass can use the newest reading of Prometheus, by reason",
            ["policy", "reason"], registry=registry,
        )  # fmt: skip
        self.clock_behind = Gauge(
            "ballast_clock_behind_seconds",
            "By how much this machine's clock is behind the API server's, where it is corrected; negative: ahead",
            registry=registry,
        )
        self.leading = Gauge("ballast_leading", "1 while this replica leads", registry=registry)
        self.switched_off = Gauge(
            "ballast_gate_switched_off",
            "1 while `ballast release --all` keeps the gate switch off, so that the leader gates nothing",
            registry=registry,
        )
        self.requests = Counter(
            "ballast_api_requests", "Requests to the API server; code 0: no answer", ["verb", "resource", "code"],
            registry=registry,
        )  # fmt: skip
        self.build = Info("ballast_build", "Versions of Ballast and of Python", registry=registry)
        self.writes = Counter("ballast_api_writes", "Writes to the API by kind and result", ["kind", "result"],
                              registry=registry)  # fmt: skip

        self.watch_age = Gauge(
            "ballast_watch_age_seconds", "Since the watch of a resource was last heard of, bookmarks included",
            ["resource"], registry=registry,
        )  # fmt: skip
        self.watch_restarts = Gauge(
            "ballast_watch_restarts", "How often the watch of a resource broke, or was silent, and was opened again",
            ["resource"], registry=registry,
        )  # fmt: skip

        self._of_policies = (
            self.executor,
            self.pass_seconds, self.passes, self.last_pass, self.decisions, self.refusals, self.transitions,
            self.moves, self.predicted_gain, self.measured_gain, self.gate_hold, self.metrics_age, self.node_score,
            self.node_hits, self.imbalance, self.metrics_at, self.samples_dropped, self.gated, self.unplaced_sets,
            self.unknown_topology, self.unplaced, self.cross_zone_ratio, self.cross_rack_ratio, self.cross_zone_bytes,
            self.open_moves, self.budget_left, self.paused, self.stopped, self.unusable_readings, self.unusable,
            self.interval,
        )  # fmt: skip

    def count_request(self, action: Action, status: int) -> None:
        """An Observer of requests."""
        self.requests.labels(action.verb, action.resource, str(status)).inc()

    def count_write(self, kind: str, result: object) -> None:
        """A write that came to this outcome or error."""
        self.writes.labels(kind, type(result).__name__).inc()

    def count_unplaced(self, policy: str, causes: Iterable[str]) -> None:
        """Empty where no policy answers for the executors."""
        for cause in causes:
            self.unplaced_sets.labels(policy, cause).inc()

    def count_hold(self, policy: str, seconds: float, *, now: float) -> None:
        """An executor was released, which our gate alone had held for so long. `policy`: empty if there is none."""
        self.gate_hold.labels(policy).observe(seconds)
        self.note_gated(seconds, now=now)

    def note_gated(self, seconds: float, *, now: float) -> None:
        """Our gate alone has held an executor for so long. A time is kept, since no scrape may see a short breach."""
        if seconds > _PROMISED_SECONDS:
            self.gated_too_long_at.set(now)

    def introduce(self, policy: str) -> None:
        """Start a policy's counters at zero, so that rates are right from the first event on."""
        self.gate_hold.labels(policy)
        for reason in Reason:
            self.refusals.labels(policy, reason.value)
        for phase in MovePhase:
            self.transitions.labels(policy, phase.value)
        for phase in (MovePhase.SUCCEEDED, MovePhase.FAILED, MovePhase.EXPIRED, MovePhase.REFUSED):
            self.moves.labels(policy, phase.value)
        for kind in ("placement", "release", "move", "recommendation"):
            self.decisions.labels(policy, kind)
        for result in ("ok", "error"):
            self.passes.labels(policy, result)
        for cause in DROPPED:
            self.samples_dropped.labels(policy, cause)
        for unusable in UNUSABLE:
            self.unusable_readings.labels(policy, unusable.value)

    def forget(self, policy: str) -> None:
        """Drop the series of a policy that is gone; they would look like those of one that hangs."""
        self._nodes.pop(policy, None)
        self._places.pop(policy, None)
        self._topologies.pop(policy, None)
        self._budgets.pop(policy, None)
        for metric in self._of_policies:
            metric.remove_by_labels({"policy": policy})

    def keep_nodes(self, policy: str, nodes: Sequence[NodeView]) -> None:
        """The nodes' scores and hits; series of nodes that left the pool, or have no metrics, are dropped."""
        scores = {node.name: node.score for node in nodes if node.score is not None}
        known = self._nodes.get(policy, frozenset())
        for gone in known - scores.keys():
            self.node_score.remove(policy, gone)
            for threshold in ("low", "high"):
                self.node_hits.remove(policy, gone, threshold)
        for node in nodes:
            if node.score is not None:
                self.node_score.labels(policy, node.name).set(node.score)
                self.node_hits.labels(policy, node.name, "low").set(node.low_hits)
                self.node_hits.labels(policy, node.name, "high").set(node.high_hits)
        self._nodes[policy] = frozenset(scores)
        if scores:
            self.imbalance.labels(policy).set(max(scores.values()) - min(scores.values()))
        else:
            self.imbalance.remove(policy)

    def keep_localities(self, policy: str, localities: Sequence[LocalityView]) -> None:
        """How far the traffic of topologies travels; series of a topology of which that is unknown are dropped."""
        topologies = frozenset(each.topology for each in localities)
        for gone in self._topologies.get(policy, frozenset()) - topologies:
            for metric in (self.cross_zone_ratio, self.cross_rack_ratio, self.cross_zone_bytes):
                metric.remove(policy, gone)
        for each in localities:
            for metric, value in (
                (self.cross_zone_ratio, each.cross_zone_ratio),
                (self.cross_rack_ratio, each.cross_rack_ratio),
                (self.cross_zone_bytes, each.cross_zone_bytes_per_second),
            ):
                if value is None:
                    metric.remove(policy, each.topology)
                else:
                    metric.labels(policy, each.topology).set(value)
        self._topologies[policy] = topologies

    def keep_moves(self, policy: str, moves: Iterable[Move], budgets_left: Mapping[str, int]) -> None:
        """The policy's own open moves, and what its budgets leave by their place in `moves.budgets`."""
        phases = Counts(move.phase for move in moves if not move.elsewhere)
        for phase in _OPEN:
            self.open_moves.labels(policy, phase.value).set(phases[phase])
        for gone in self._budgets.get(policy, frozenset()) - budgets_left.keys():
            self.budget_left.remove(policy, gone)
        for budget, left in budgets_left.items():
            self.budget_left.labels(policy, budget).set(left)
        self._budgets[policy] = frozenset(budgets_left)

    def keep_watches(self, ages: Mapping[str, float], restarts: Mapping[str, int]) -> None:
        """By resource."""
        for resource, seconds in ages.items():
            self.watch_age.labels(resource).set(seconds)
        for resource, count in restarts.items():
            self.watch_restarts.labels(resource).set(count)

    def keep_age(self, policy: str, age_seconds: float | None) -> None:
        """Of the pool's metrics. Without metrics there is no series: the last value would be misleading."""
        if age_seconds is None:
            self.metrics_age.remove(policy)
        else:
            self.metrics_age.labels(policy).set(age_seconds)

    def keep_health(self, policy: str, health: MetricsHealth) -> None:
        """Whether passes can use the newest reading of Prometheus."""
        for unusable in UNUSABLE:
            self.unusable.labels(policy, unusable.value).set(health.reason is unusable)

    def keep_executors(self, policy: str, executors: Sequence[Executor]) -> None:
        """Where they are; of those that are nowhere, and not any more, there are no series.

        And how many of them, wherever they are, have a label that names no SparkTopology.
        """
        strays = sum(each.unknown_topology != "" and each.phase is not Phase.ENDED for each in executors)
        self.unknown_topology.labels(policy).set(strays)
        places = frozenset(
            _Place(each.namespace, each.name, each.node, each.application)
            for each in executors
            if each.node is not None and each.phase is not Phase.ENDED
        )
        known = self._places.get(policy, frozenset())
        for gone in known - places:
            self.executor.remove(policy, *gone)
        for new in places - known:
            self.executor.labels(policy, *new).set(1)
        self._places[policy] = places

    def keep_unplaced(self, policy: str, rows: Iterable[Unplaced]) -> None:
        """How many executors each cause has."""
        for cause, count in counts_of(rows).items():
            self.unplaced.labels(policy, cause.value).set(count)


# Liveness and readiness: a replica is alive while its loop finishes reconciles, and ready once it has done one.

ALIVE_SECONDS = 90.0
"""Without a finished reconcile for so long (and three intervals of the policies), the replica is to be restarted."""


@dataclass(slots=True)
class Pulse:
    """When something was last done. `clock`: monotonic seconds."""

    clock: Callable[[], float]
    beaten_at: float | None = None
    expected_seconds: float = 60.0
    """How long a reconcile may take to come."""
    failing: str = ""
    """What kind of failure the last reconcile ended in; empty when it did not fail."""
    _failed_at: float = 0.0
    started_at: float = field(init=False)

    def __post_init__(self) -> None:
        self.started_at = self.clock()

    def beat(self, *, next_in_seconds: float = 0.0) -> None:
        self.beaten_at, self.failing = self.clock(), ""
        self.expected_seconds = max(60.0, next_in_seconds)

    def fail(self, error: Exception, *, alive: bool = False) -> None:
        """Not ready until the next beat. `alive`: a restart would not help."""
        self.failing, self._failed_at = _kind(error), self.clock()
        if alive:
            self.beaten_at = self.clock()

    def explain(self, otherwise: str) -> str:
        """What the probes answer. `otherwise`: if nothing has failed."""
        if not self.failing:
            return otherwise
        return f"{self.failing} ({self.clock() - self._failed_at:.0f} s ago; the log has more)"

    @property
    def alive(self) -> bool:
        since = self.beaten_at if self.beaten_at is not None else self.started_at
        return self.clock() - since < max(ALIVE_SECONDS, 3 * self.expected_seconds)

    @property
    def ready(self) -> bool:
        """Also the last thing that it did went well."""
        return self.beaten_at is not None and self.alive and not self.failing


def _kind(error: Exception) -> str:
    """Without what the error names: pods of every namespace reach the probes, and may not see each other's objects."""
    if isinstance(error, BallastError) and error.public:
        return str(error)
    return error.kind if isinstance(error, KubeError) else "the last reconcile failed"
