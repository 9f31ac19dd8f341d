"""A reconcile: one pass over every pool. It reads the state, plans, releases, advances moves and reports."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

from ballast.api import BalancingPolicy
from ballast.controller import logs
from ballast.controller.actuator import Actuator
from ballast.controller.breaker import refused_words
from ballast.controller.cluster_objects import ClusterObjects, MoveReader, Observer, OpenMove, Read, planner_moves
from ballast.controller.cluster_view import ClusterView, Pools, blocked, pools_of
from ballast.controller.context import Context
from ballast.controller.deleted_moves import DeletedMoves
from ballast.controller.failures import Failure, Failures
from ballast.controller.gateclock import GateClock
from ballast.controller.loop import earliest
from ballast.controller.memory import recalled, recalled_failures
from ballast.controller.metrics_reader import MetricsReader
from ballast.controller.metrics_requests import MetricsRequests, PolicyMetrics
from ballast.controller.misjudged import Misjudged
from ballast.controller.movers import Movers
from ballast.controller.observe import Pool
from ballast.controller.other_releases import AnotherReleaseError
from ballast.controller.quarantine import Quarantine, logged
from ballast.controller.released import Released
from ballast.controller.reporter import Reporter
from ballast.controller.switch import Switch, wanted
from ballast.controller.telemetry import UNUSABLE, Telemetry
from ballast.controller.topology_turns import TopologyTurns
from ballast.controller.unclaimed import unclaimed
from ballast.controller.ungated import Ungated
from ballast.errors import described
from ballast.kube.errors import KubeError
from ballast.model import ConditionReason, Memory, Plan, Reason
from ballast.moves.budget import ExecutorCounts, pool_budgets_left
from ballast.planner.plan import plan

_LOG = logging.getLogger(__name__)
_REST_SECONDS = 1.0
"""Until pods whose opting in is in doubt are read again."""
_SOON_SECONDS = 0.4
"""Before executors are to be released: about as long as a reconcile takes while a user creates thousands of objects."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts that a reconcile calls. Built once, by the operator."""

    observer: Observer
    metrics: MetricsReader
    movers: Movers
    actuator: Actuator
    reporter: Reporter
    switch: Switch
    telemetry: Telemetry
    released: Released = field(default_factory=Released)


@dataclass(slots=True)
class _Kept:
    """What a policy's passes keep between them, next to status."""

    memory: Memory
    quarantine: Quarantine
    metrics: PolicyMetrics = field(default_factory=PolicyMetrics)


class _Decided(NamedTuple):
    context: Context
    plan: Plan
    memory: Memory


class Reconciler:
    """Runs passes. `clock`: seconds since the epoch; `monotonic`: seconds that are never set back.

    `leading`: asked before everything that acts; `reported`: executors that were seen to fail since it was last asked;
    `check_alone`: raises AnotherReleaseError where another release acts;
    `release_promised`: whether executors that came to their gates during a reconcile are due for the next one;
    `patience_seconds`: how long a reconcile waits for metrics, over all policies.
    """

    def __init__(
        self,
        parts: Parts,
        *,
        clock: Callable[[], float],
        monotonic: Callable[[], float],
        leading: Callable[[], bool],
        reported: Callable[[], Iterable[Failure]] = tuple,
        check_alone: Callable[[], object] = tuple,
        release_promised: Callable[[], bool] = lambda: False,
        patience_seconds: float = 1.0,
    ) -> None:
        self._parts, self._clock, self._monotonic, self._leading = parts, clock, monotonic, leading
        self._reported, self._check_alone = reported, check_alone
        self._requests = MetricsRequests(monotonic, patience_seconds)
        self._release_promised = release_promised
        self._gates = GateClock(created_within_seconds=1.0)
        self._failures, self._ungated = Failures(), Ungated()
        self._gate_missing: tuple[str, ...] = ()
        """Executors (`namespace/pod`) that came without the gate, as of this reconcile."""
        self._move_reader, self._topology_turns = MoveReader(), TopologyTurns()
        self._deleted_moves = DeletedMoves()
        self._deleted: list[OpenMove] = []
        self._kept: dict[str, _Kept] = {}
        self._forgetful = False
        """Set by another thread than that of the rounds."""
        self._confirmed: frozenset[str] = frozenset()
        """Gated pods that were not opted in, or no policy's, when that was last read from the API server, by uid."""
        self._seen: set[str] = set()
        """Executors that a pass of this reconcile covered, by uid."""
        self._failed: dict[str, str] = {}
        """Policies whose pass failed in this reconcile, by the namespaces that they are about."""
        self._misjudged = Misjudged(monotonic)
        self._looked_at = 0.0
        """Monotonic seconds at which this reconcile read the state."""
        self.release_at: float | None = None
        """When executors are next to be released, as far as the last reconcile knows (seconds since the epoch)."""

    def close(self) -> None:
        """Does not wait for metrics that were asked for."""
        self._requests.close()

    def forget(self) -> None:
        """Start the next reconcile afresh from status, as after having lost and won leadership again."""
        self._forgetful = True

    def run(self) -> float | None:
        """One reconcile over all policies; returns when the next one is due (seconds since the epoch).

        A reconcile that loses the lease on its way ends there, and is due again at once. One that begins without it
        only puts down what was kept.
        """
        if not self._may_act():
            return self._clock()
        self._requests.begin()
        objects = self._look()
        if not self._leading():
            return self._clock()
        pools = pools_of(objects.policies, objects.lists.nodes)
        self._keep_switch(objects, pools)
        cluster_view, moves = self._begin(objects, pools)
        due = self._visit_all(cluster_view, moves)
        if due is None:
            return self._clock()
        due.append(self._release_strays(objects))
        self._clear_strays(objects)
        self._parts.movers.turn_away(cluster_view.own_moves(moves, None))
        self._parts.telemetry.unclaimed.set(self._unclaimed(objects))
        self._forget_all_but({read.resource.metadata.name for read in objects.policies})
        due.append(self._parts.reporter.conclude())
        due.append(self._topology_turns.again_at(self._clock()))
        # A clock that was set back meanwhile must not put the next reconcile off.
        set_back_seconds = min(0.0, self._clock() - cluster_view.now)
        return earliest(at + set_back_seconds for at in due if at is not None)

    def _may_act(self) -> bool:
        """Whether this replica leads. Raises AnotherReleaseError. What was kept is put down if others may act."""
        if not self._leading():
            self._put_down()
            return False
        if self._forgetful:
            self._forgetful = False
            self._put_down()
        try:
            self._check_alone()
        except AnotherReleaseError:
            self._put_down()
            raise
        return True

    def _look(self) -> ClusterObjects:
        objects = self._parts.observer.look()
        self._gates = self._gates.after(objects.lists.pods, self._clock())
        recalled = recalled_failures((read.resource for read in objects.policies), objects.lists.namespaces)
        self._failures = self._failures.after(objects.lists.pods, self._reported(), recalled)
        return objects

    def _begin(self, objects: ClusterObjects, pools: Pools) -> tuple[ClusterView, list[OpenMove]]:
        """What all passes of the reconcile see, and the moves that there are."""
        read, broken = self._move_reader.read(objects.moves, now=self._clock())
        moves = self._parts.movers.as_they_count(read)
        policies = {read.resource.metadata.name for read in objects.policies}
        self._deleted = self._deleted_moves.look(moves, self._clock(), policies=policies)
        gated = self._gates.holds_alone(objects.lists.pods)
        self._topology_turns.begin((read.resource for read in objects.topologies), self._clock(), gated=gated)
        now, self._looked_at = self._clock(), self._monotonic()
        cluster_view = ClusterView(objects, pools, self._gates, now, self._failures, moves, self._topology_turns)
        self._parts.movers.keep(moves, release_due=self._release_due)
        lists = objects.lists
        gates = self._parts.switch.gates
        self._gate_missing = self._ungated.look(lists.pods, lists.namespaces, gates=gates, now=now)
        self._parts.released.keep({pod.uid for pod in lists.pods})
        self._parts.reporter.begin(policies, [*objects.broken, *broken], objects.excesses)
        self._seen, self._failed, self.release_at = set(), {}, None
        return cluster_view, moves

    def _release_strays(self, objects: ClusterObjects) -> float | None:
        """Release gated pods that no pass has seen; returns when to try again if `_confirm` says no."""
        gated = [pod for pod in objects.lists.pods if pod.held is not None]
        strays = [pod for pod in gated if pod.uid not in self._seen]
        if not self._confirm(pod.uid for pod in strays):
            return self._clock() + _REST_SECONDS
        self._parts.actuator.release_strays(strays, self._failed)
        self._confirmed &= {pod.uid for pod in gated}
        return None

    def _unclaimed(self, objects: ClusterObjects) -> int:
        """How many executors opted in and are no policy's, except where a policy's pass failed."""
        pods = (pod for pod in objects.lists.pods if pod.namespace not in self._failed)
        return len(unclaimed(pods, objects.lists.namespaces, self._seen))

    def _clear_strays(self, objects: ClusterObjects) -> None:
        """Clear the nominations of pods that no pass has seen.

        kube-scheduler would keep the room of their nodes for good. A user may have taken an executor's labels away, or
        its policy is gone. A gated pod loses its nomination when it is released, unless it is being deleted.
        """
        nominated = [pod for pod in objects.lists.pods if pod.nominated is not None and pod.uid not in self._seen]
        strays = [pod for pod in nominated if pod.held is None or pod.leaving]
        self._parts.actuator.clear_nominations_of(strays)

    def _forget_all_but(self, policies: set[str]) -> None:
        for name in self._kept.keys() - policies:
            del self._kept[name]
            self._parts.telemetry.forget(name)
            self._parts.metrics.forget(name)

    def _release_due(self) -> bool:
        """Whether executors are to be released soon: what they need not wait for is left to a later reconcile.

        "Soon", because the next reconcile begins a moment after this one, and what is under way has to end.
        """
        planned = self.release_at is not None and self._clock() >= self.release_at - _SOON_SECONDS
        return planned or self._release_promised()

    def _put_down(self) -> None:
        """Another may lead meanwhile: it tells of the policies then, and turns the switch."""
        for name in self._kept:
            self._parts.telemetry.forget(name)
        self._kept.clear()
        self._ungated = Ungated()
        self._parts.switch.forget()
        self._parts.telemetry.switched_off.set(0)
        self._parts.telemetry.unclaimed.set(0)

    def _visit_all(self, cluster_view: ClusterView, moves: list[OpenMove]) -> list[float | None] | None:
        """When to look at each policy again. None where the lease was lost on the way: whose pods and moves those of
        the other policies are is then not known, and they must not be taken for orphaned.
        """
        due: list[float | None] = []
        for read in cluster_view.objects.policies:
            if not self._leading():
                return None
            due.append(self._visit(read, cluster_view, moves))
        return due if self._leading() else None

    def _keep_switch(self, objects: ClusterObjects, pools: Pools) -> None:
        """A failed write of the switch must not block releasing pods that are already gated."""
        followed = (read.resource for read in objects.policies if blocked(read.resource, pools) is None)
        try:
            self._parts.switch.keep(wanted(followed, objects.lists.namespaces))
        except KubeError as error:
            if error.of_server:
                raise
            _LOG.warning("the gate switch stays as it is: %s", error)
        self._parts.telemetry.switched_off.set(self._parts.switch.stays_off)

    def _visit(self, read: Read[BalancingPolicy], cluster_view: ClusterView, moves: list[OpenMove]) -> float | None:
        name = read.resource.metadata.name
        why_not = blocked(read.resource, cluster_view.pools)
        if why_not is not None:
            return self._parts.reporter.stalled(read, *why_not)
        started = self._monotonic()
        try:
            return self._pass(read, cluster_view, moves)
        except Exception as error:
            # What one policy brings about must not stop the others.
            if isinstance(error, KubeError) and error.of_server:
                raise
            why = described(error)
            told = {"policy": name, "error": why}
            logs.note(logs.Line.PASS_FAILED, f"the pass of policy {name} failed", told, trace=True)
            self._failed |= dict.fromkeys(
                Pool.of(read.resource.spec).namespaces(cluster_view.objects.lists.namespaces), name
            )
            self._parts.telemetry.passes.labels(name, "error").inc()
            self._parts.reporter.stalled(read, ConditionReason.PASS_FAILED, why)
            return cluster_view.now + read.resource.spec.interval.seconds
        finally:
            self._parts.telemetry.pass_seconds.labels(name).observe(self._monotonic() - started)

    def _pass(self, read: Read[BalancingPolicy], cluster_view: ClusterView, moves: list[OpenMove]) -> float | None:
        name = read.resource.metadata.name
        kept = self._recall(read, cluster_view)
        full = self._renewed(read, cluster_view, kept)
        context, decided, memory = self._decide(read, cluster_view, kept, [*moves, *self._deleted])
        self._seen |= {executor.uid for executor in context.snapshot.executors}
        self._failed |= dict.fromkeys(context.left_out, name)
        # Executors first: nothing that a move does, or waits for, may delay one at its gate.
        confirmed = self._release(context, decided)
        self._parts.released.add(
            {each.uid: each.reason for each in decided.placements if each.node is None and each.reason is not None}
            | self._parts.actuator.take_as_is()
        )
        self._parts.actuator.delete_stranded(context, decided)
        self._parts.actuator.clear_nominations(context, decided)
        self._parts.actuator.report_displaced(context, decided)
        self.release_at = earliest((self.release_at, decided.wake_at))
        own = cluster_view.own_moves(moves, name)
        waiting = [each for each in own if each.namespace in context.left_out]
        followed = [each for each in own if each.namespace not in context.left_out]
        mine, moves_wake = self._parts.movers.run(context, followed)
        self._deleted_moves.advanced(mine)
        context = _with_moves(context, [*mine, *waiting, *cluster_view.own_moves(self._deleted, name)])
        # A notice does not wait for new metrics.
        urgent = tuple(move for move in decided.moves if move.taint and context.policy.moves.mode.acts)
        due = decided.moves if full else urgent
        self._parts.actuator.create_moves(context, replace(decided, moves=due))
        self._deleted_moves.created(self._parts.actuator.take_created())
        if not full:
            # Between full passes the metrics are unchanged: their hits are counted already.
            memory = replace(memory, shedding=context.memory.shedding, scopes=context.memory.scopes)
        kept.memory = memory
        self._measure(name, context, decided, full=full)
        status_due = self._parts.reporter.report(context, decided, memory, renew=full)
        metrics_in = self._requests.next_in(kept.metrics, read.resource.spec, self._looked_at)
        unconfirmed_due = None if confirmed else cluster_view.now + _REST_SECONDS
        ends = (status_due, decided.wake_at, moves_wake, unconfirmed_due)
        return earliest((cluster_view.now + metrics_in, *ends))

    def _decide(
        self, read: Read[BalancingPolicy], cluster_view: ClusterView, kept: _Kept, moves: list[OpenMove]
    ) -> _Decided:
        """Acts on nothing, since it is tried without each namespace whose objects may be why it fails.

        Moves that are under way count for budgets in any case.
        """
        reading = kept.metrics.usable(read.resource.spec, cluster_view.now)
        ungated = {namespace: refused_words(rest) for namespace, rest in self._parts.switch.rests.items()}

        def decide(left_out: frozenset[str]) -> _Decided:
            counted = [each for each in moves if each.state.phase.in_flight or each.namespace not in left_out]
            context = cluster_view.without(left_out).context(read, kept.memory, reading, counted)
            context = replace(
                context,
                snapshot=replace(
                    context.snapshot,
                    closed_namespaces=self._parts.actuator.closed_namespaces() | ungated,
                    ungated_namespaces=ungated,
                    misjudged_namespaces=self._misjudged.remembered(context.snapshot),
                    gate_missing=self._gate_missing,
                    released_as_is=self._parts.released.reasons,
                ),
            )
            return _Decided(context, *plan(context.snapshot, context.policy, context.memory, cluster_view.now))

        try:
            decided, left_out = kept.quarantine.decide(decide, cluster_view.namespaces)
        except Exception:
            if kept.memory == Memory():
                raise
            words = "policy %s forgets what its earlier passes remembered: its pass fails"
            _LOG.exception(words, read.resource.metadata.name)
            # It was read from status, which may hold anything, and would make every pass fail.
            kept.memory = Memory()
            decided, left_out = kept.quarantine.decide(decide, cluster_view.namespaces)
        return decided._replace(context=decided.context.leaving_out(left_out, cluster_view.objects))

    def _release(self, context: Context, decided: Plan) -> bool:
        """Executors that would be released because nothing opted them in come last, and only if that is certain.

        Our gate is in them, so admission saw a label, on the pod or its namespace, that what was read may not have yet.
        Other executors do not wait while it is read again. Returns whether all of the plan was released.

        What an earlier pass asked for may have been answered while this one was planned: asking again would be refused.
        On a busy API server that was half of all requests.
        """
        done = self._parts.observer.released(each.uid for each in decided.placements)
        certain, doubtful = (
            tuple(
                each
                for each in decided.placements
                if each.uid not in done and (each.reason is Reason.NOT_ENFORCED) is doubt
            )
            for doubt in (False, True)
        )
        still_gated = self._parts.actuator.release(context, replace(decided, placements=certain))
        confirmed = not doubtful or self._confirm(each.uid for each in doubtful)
        if doubtful and confirmed:
            still_gated += self._parts.actuator.release(context, replace(decided, placements=doubtful))
        elif doubtful:
            still_gated += len(doubtful)
        self._parts.telemetry.gated.labels(context.name).set(len(decided.holds) + still_gated)
        return confirmed

    def _confirm(self, uids: Iterable[str]) -> bool:
        """Whether what was read of these pods is known to be right. False: it has changed since.

        Callers do not try again at once, because a user may change a topology all the time. A change that matters marks
        the agenda.
        """
        new = frozenset(uids) - self._confirmed
        if new and not self._parts.observer.confirm():
            return False
        self._confirmed |= new
        return True

    def _renewed(self, read: Read[BalancingPolicy], cluster_view: ClusterView, kept: _Kept) -> bool:
        """Ask for new metrics if they are due. Returns whether they make this pass a full one."""
        ask = partial(cluster_view.read_metrics, read, self._parts.metrics)
        return self._requests.renew(
            kept.metrics, read.resource.spec, ask, now=cluster_view.now, looked_at=self._looked_at
        )

    def _recall(self, read: Read[BalancingPolicy], cluster_view: ClusterView) -> _Kept:
        name = read.resource.metadata.name
        if name not in self._kept:
            self._parts.telemetry.introduce(name)
            topologies = [topology.resource for topology in cluster_view.objects.topologies]
            self._kept[name] = _Kept(
                recalled(read.resource.status, topologies), Quarantine(self._monotonic, logged(name))
            )
        return self._kept[name]

    def _measure(self, name: str, context: Context, decided: Plan, *, full: bool) -> None:
        telemetry = self._parts.telemetry
        telemetry.last_pass.labels(name).set(self._clock())
        telemetry.interval.labels(name).set(context.policy.interval_seconds)
        telemetry.passes.labels(name, "ok").inc()
        for reason, count in Counter(refusal.reason.value for refusal in decided.refusals).items():
            telemetry.refusals.labels(name, reason).inc(count if full else 0)
        for cause, count in context.reading.dropped.items():
            telemetry.samples_dropped.labels(name, cause).inc(count if full else 0)
        telemetry.keep_age(name, context.snapshot.metrics.age_seconds)
        telemetry.keep_health(name, context.reading.health)
        telemetry.keep_nodes(name, decided.pool.nodes)
        telemetry.keep_executors(name, context.snapshot.executors)
        telemetry.keep_unplaced(name, decided.unplaced)
        telemetry.keep_localities(name, decided.locality)
        moves, counts = context.snapshot.moves, ExecutorCounts.of(context.snapshot.executors)
        telemetry.keep_moves(name, moves, pool_budgets_left(moves, context.policy.moves, counts, self._clock()))
        telemetry.paused.labels(name).set(len(decided.paused))
        telemetry.stopped.labels(name).set(context.read.resource.spec.stopped)
        if full and context.reading.health.reason in UNUSABLE:
            telemetry.unusable_readings.labels(name, context.reading.health.reason.value).inc()
        if full and context.reading.at is not None:
            # Last, so that a reader of it also sees the results of these metrics.
            telemetry.metrics_at.labels(name).set(context.reading.at)


def _with_moves(context: Context, moves: list[OpenMove]) -> Context:
    known = planner_moves(moves, context.points_per_core)
    return replace(context, snapshot=replace(context.snapshot, moves=known))
