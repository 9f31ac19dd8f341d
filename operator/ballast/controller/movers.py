"""Carrying the open ExecutorMoves of a pool forward: writing states, doing what they ask for."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ballast.controller import logs
from ballast.controller.cluster_objects import OpenMove, planner_moves
from ballast.controller.context import Context, Kin
from ballast.controller.loop import earliest
from ballast.controller.telemetry import Telemetry
from ballast.controller.turns import MoveTurns
from ballast.kube import actions, kinds, names, nomination
from ballast.kube.bulkhead import Bulkhead
from ballast.kube.client import Client
from ballast.kube.errors import Conflict, KubeError, NotFound
from ballast.kube.events import EventRecorder, Notice, Regarding
from ballast.kube.objects import delete_object, write_status
from ballast.kube.pods import Pod as SeenPod
from ballast.model import Executor, MovePhase, MovesPolicy, Phase, Pin, Placement, Reason, Refusal
from ballast.moves import (
    ClearNomination,
    DeleteUnscheduled,
    Effect,
    Emit,
    Evict,
    Facts,
    MoveState,
    PinReplacement,
    Pod,
    ReleaseUnpinned,
    Revalidation,
    Rival,
    Step,
    advance,
    record,
    turned_away,
)
from ballast.moves.revalidation import revalidate
from ballast.moves.rules import DRIFT_POINTS

# The facts of one pass about each open move.


def facts(each: OpenMove, context: Context, known: Mapping[str, OpenMove], now: float) -> Facts:
    """`known`: every move of the pool by its key, as it was last written."""
    executor = _in_its_namespace(each, context.pods.get(each.state.orders.executor_uid))
    kin = _kin(each, executor)
    return Facts(
        executor=_pod(executor, context.executors) if executor else None,
        stranger=_misnamed(each, executor) if executor else _stranger(each, context),
        newcomers=tuple(_pod(pod, context.executors) for pod in context.kin(kin) if pod is not executor),
        rivals=_rivals(each, known, kin),
        revalidation=_revalidation(each, context, known, now),
        expected_executors=_expected(each, context),
        application_ended=_application_ended(context, kin),
        scores=context.measured,
        slowness=context.slownesses,
        batch_p50_seconds=context.reading.batch_p50_seconds.get(kin[:2]),
        batch_p95_seconds=context.reading.batch_p95_seconds.get(kin[:2]),
    )


def _in_its_namespace(each: OpenMove, pod: SeenPod | None) -> SeenPod | None:
    """A pod of another namespace counts as none: what a move's author is told must not show whether it exists."""
    return pod if pod is not None and pod.namespace == each.state.orders.namespace else None


def _misnamed(each: OpenMove, executor: SeenPod) -> Refusal | None:
    """A right to move one pod must not move another: name and uid have to be those of one pod."""
    orders = each.state.orders
    if executor.name == orders.executor_name:
        return None
    words = f"the uid {orders.executor_uid} is that of another pod, not of {orders.namespace}/{orders.executor_name}"
    return Refusal(orders.executor_name, Reason.MISDESCRIBED, words)


def _stranger(each: OpenMove, context: Context) -> Refusal | None:
    """Asked for only before anything is touched: later the pod may well be gone."""
    orders, phase = each.state.orders, each.state.phase
    if phase not in (MovePhase.PROPOSED, MovePhase.APPROVED):
        return None
    pod = _in_its_namespace(each, context.objects.lists.pod(orders.executor_uid))
    if pod is None:
        return None
    if pod.is_driver:
        return Refusal(orders.executor_name, Reason.DRIVER, f"{pod.name} is a driver: drivers are never moved")
    return Refusal(orders.executor_name, Reason.NOT_OPTED_IN, f"{pod.name} is no Spark executor: only those are moved")


def _kin(each: OpenMove, executor: SeenPod | None) -> Kin:
    """Of the executor while it is there, else as the move remembers it."""
    namespace, subject = each.state.orders.namespace, each.state.subject
    if executor is not None and executor.executor is not None:
        return namespace, executor.executor.application, executor.executor.resource_profile
    return namespace, subject.application, subject.resource_profile


def _revalidation(each: OpenMove, context: Context, known: Mapping[str, OpenMove], now: float) -> Revalidation:
    """With every move as it was last written, in this pass too."""
    points = context.points_per_core
    move = each.planned(points)
    if not move.phase.traveling:
        return Revalidation()
    snapshot = replace(context.snapshot, moves=planner_moves(known.values(), points))
    predicted = each.state.orders.predicted.gap is not None
    return revalidate(
        snapshot,
        context.policy,
        move,
        candidates=context.candidates,
        measured=context.measured,
        now=now,
        tolerance_points=DRIFT_POINTS if predicted else 0.0,
    )


def _pod(pod: SeenPod, views: Mapping[str, Executor]) -> Pod:
    facts, view = pod.executor, views.get(pod.uid)
    return Pod(
        uid=pod.uid,
        name=pod.name,
        phase=pod.phase,
        created_at=pod.created_at,
        application=facts.application if facts else "",
        resource_profile=facts.resource_profile if facts else "",
        executor_id=facts.executor_id if facts else "",
        node=pod.node,
        gate_since=_gate_since(pod, view) if pod.phase is Phase.GATED else None,
        unschedulable_since=facts.unschedulable_since if facts else None,
        running_since=facts.running_since if facts else None,
        pinned=facts is not None and facts.pinned_at is not None,
        nominated=pod.nominated is not None,
        deadline=pod.deadline,
        exit_code=facts.exit_code if facts else None,
    )


def _gate_since(pod: SeenPod, view: Executor | None) -> float | None:
    """A pod that was read again has no view where the watch lags behind: a stale watch must not keep it waiting."""
    if view is not None:
        return view.last_gate_since
    return pod.created_at if pod.gates == (names.GATE,) else None


def _rivals(each: OpenMove, known: Mapping[str, OpenMove], kin: Kin) -> tuple[Rival, ...]:
    # `leaving_at` is checked first because it is cheap: it excludes nearly all moves of a junk flood.
    found = (
        Rival.of(other.state)
        for other in known.values()
        if other.state.timings.leaving_at is not None and _kin(other, None) == kin and other.key != each.key
    )
    return tuple(sorted((rival for rival in found if rival is not None), key=lambda rival: rival.key))


def _expected(each: OpenMove, context: Context) -> int | None:
    orders = each.state.orders
    topology = next((t for t in context.snapshot.topologies if t.key == orders.topology), None)
    component = topology.component(orders.component) if topology else None
    return component.expected if component else None


def _application_ended(context: Context, kin: Kin) -> bool:
    """Its driver is a pod that has ended; a driver outside the cluster tells nothing."""
    drivers = context.drivers(kin[0], kin[1])
    return bool(drivers) and all(pod.ended for pod in drivers)


_LOG = logging.getLogger(__name__)
_MOST_STEPS = 6
_FRESH_SECONDS = 5.0
"""How old an answer may be for which a move has waited."""
_NOT_READ: tuple[float, list[SeenPod] | None] = 0.0, None
_PAUSE_SECONDS = 30.0
"""Until something that the server refused is tried again."""
_NO_POLICY = MovesPolicy()
"""For orphaned moves, whose policy is gone."""


Reread = Callable[[str, str, str], list[SeenPod]]
"""Pods of a namespace: those of the Spark application with this id, or, without one, of the pod with this name."""


@dataclass(slots=True)
class _Answers:
    """What the API server answered this process; a new process asks again."""

    eviction: dict[str, str] = field(default_factory=dict)
    """By a disruption budget."""
    failure: dict[str, str] = field(default_factory=dict)
    """Of an eviction, for another reason."""
    pin: dict[str, str] = field(default_factory=dict)
    pods: dict[str, tuple[float, list[SeenPod] | None]] = field(default_factory=dict)
    """Those that a move is about, and when they were read."""

    def told(self, key: str, facts: Facts) -> Facts:
        return replace(
            facts,
            eviction_refused=self.eviction.get(key, ""),
            eviction_failed=self.failure.get(key, ""),
            pin_refused=self.pin.get(key, ""),
        )

    def keep(self, keys: Collection[str]) -> None:
        for answers in (self.eviction, self.failure, self.pin, self.pods):
            for key in answers.keys() - keys:
                answers.pop(key, None)


class Movers:
    """Advances moves. `clock`: seconds since the epoch.

    `reread`: the pods that a move is about, read from the API server, where a context's pods may be older than what was
    last written about the move. None: a context's pods were always read after its moves.
    """

    def __init__(
        self,
        client: Client,
        *,
        events: EventRecorder,
        telemetry: Telemetry,
        clock: Callable[[], float],
        reread: Reread | None = None,
    ) -> None:
        self._client, self._events, self._telemetry, self._clock = client, events, telemetry, clock
        self._reread = reread
        self._answers, self._turns, self._bulkhead = _Answers(), MoveTurns(), Bulkhead(client.connections)
        # A page of pods may be 16 MiB long, and takes more while it is read.
        self._reading = Bulkhead(client.connections, most_while_slow=1, most_slow=3)

    def keep(self, moves: Sequence[OpenMove], *, gated: bool = False) -> None:
        """A reconcile begins with these moves, which are all that there are: what is known of others is forgotten.

        `gated`: whether executors wait for Ballast alone.
        """
        self._answers.keep({each.key for each in moves})
        self._turns.begin(moves, gated=gated)

    def run(
        self, context: Context, moves: list[OpenMove], *, release_due: Callable[[], bool] = lambda: False
    ) -> tuple[list[OpenMove], float | None]:
        """Advance each of the pool's open moves that has its turn as far as it goes now.

        `release_due`: whether executors are to be released now. Returns all of them in their new state, and when to
        look again although nothing happens.
        """
        known = {each.key: each for each in moves}
        wake = [
            self._guarded(each, lambda move: self._advance(move, context, known))
            for each in self._in_turn(moves, release_due)
        ]
        return list(known.values()), earliest([*wake, self._turns.again_at(self._clock())])

    def _in_turn(self, moves: Iterable[OpenMove], release_due: Callable[[], bool]) -> Iterator[OpenMove]:
        for each in self._turns.order(moves):
            if release_due():
                self._turns.hurry()
            if self._turns.comes(each):
                began = self._clock()
                yield each
                self._turns.spent(self._clock() - began)

    def _guarded(self, each: OpenMove, work: Callable[[OpenMove], float | None]) -> float | None:
        """An error about one move must not block the other moves, or the executors that are gated.

        A server in trouble is no error of one move.
        """
        try:
            return work(each)
        except Exception as error:
            if isinstance(error, KubeError) and error.of_server:
                raise
            known = isinstance(error, KubeError)
            _LOG.warning("move %s was left as it is: %s", each.key, error, exc_info=not known)
        return self._clock() + _PAUSE_SECONDS

    def _advance(self, each: OpenMove, context: Context, known: dict[str, OpenMove]) -> float | None:
        if each.state.phase.ended:
            self._expire(each, context.policy.moves)
            return None
        if self._bulkhead.under_way(each.key) or self._reading.under_way(each.key):
            return self._clock() + 1.0
        return self._carry(each, context, known)

    def turn_away(self, moves: Iterable[OpenMove], *, release_due: Callable[[], bool] = lambda: False) -> float | None:
        """End orphaned moves, unless they have begun: a policy may come back for them. Returns when to look again."""
        for each in self._in_turn(moves, release_due):
            self._guarded(each, self._turn_away)
        return self._turns.again_at(self._clock())

    def _turn_away(self, each: OpenMove) -> None:
        if each.state.phase.ended:
            self._expire(each, _NO_POLICY)
        elif (step := turned_away(each.state, self._clock())) is not None:
            self._write(each, step, "")

    def _expire(self, each: OpenMove, settings: MovesPolicy) -> None:
        if "deletionTimestamp" in each.raw["metadata"]:
            # A finalizer may keep it for good: it must not use up other moves' turns.
            return
        outlived = record.outlived(each.state, ttl_seconds=settings.ttl_seconds, now=self._clock())
        if outlived and self._turns.may_delete():
            delete_object(self._client, kinds.EXECUTOR_MOVE, each.raw)

    def _carry(self, each: OpenMove, context: Context, known: dict[str, OpenMove]) -> float | None:
        """Steps on while only states are written; `known` always holds what was written last. Returns when to look.

        A step that writes or does anything is decided again from pods that were read after the move's state.
        """
        reread = self._reread
        for _ in range(_MOST_STEPS):
            now = self._clock()
            seen = self._answers.told(each.key, facts(each, context, known, now))
            step = advance(each.state, seen, context.policy.moves, now)
            if reread is not None and (step.changed or step.effect is not None):
                fresh, reread = self._read_again(each, context, reread), None
                if fresh is None:
                    return self._clock() + 1.0
                context = fresh
                continue
            if not step.changed:
                return self._effect(step, each, context)
            written = self._write(each, step, context.name)
            if written is None:
                return self._clock() + 1.0
            each = known[each.key] = written
            if each.state.phase.ended:
                return None
            if step.look_again:
                return self._clock()
        return self._clock()

    def _write(self, each: OpenMove, step: Step, policy: str) -> OpenMove | None:
        """The state first, then its Events; None when another client wrote the object meanwhile."""
        status = record.status(step.move, each.raw, self._clock())
        try:
            fresh = write_status(self._client, kinds.EXECUTOR_MOVE, each.raw, status)
        except (Conflict, NotFound):
            return None
        for action in step.actions:
            if isinstance(action, Emit):
                self._announce(action, each)
        if step.entered:
            self._count(step.move, policy)
            logs.note_phase(policy, step.move)
        return OpenMove(fresh or each.raw, step.move)

    def _count(self, move: MoveState, policy: str) -> None:
        """A move that has just entered its phase."""
        self._telemetry.transitions.labels(policy, move.phase.value).inc()
        if not move.phase.ended:
            return
        self._telemetry.moves.labels(policy, move.phase.value).inc()
        if move.gain is not None:
            self._telemetry.measured_gain.labels(policy).set(move.gain)

    def _announce(self, event: Emit, each: OpenMove) -> None:
        metadata = each.raw["metadata"]
        namespace = metadata["namespace"]
        move = Regarding(kinds.EXECUTOR_MOVE, metadata["name"], metadata["uid"], namespace)
        pod = Regarding(kinds.POD, event.pod, event.pod_uid, namespace)
        for regarding, related in ((move, pod), (pod, move)):
            self._events.post(
                Notice(regarding, event.reason, "Move", event.message, warning=event.warning, related=related)
            )

    def _read_again(self, each: OpenMove, context: Context, reread: Reread) -> Context | None:
        """With the pods that the move is about, as they are now. None: there is no answer yet.

        They may be hundreds of a megabyte, and executors of others are gated. Nothing is decided about the move before
        the answer is there, so that the next reconcile may use one that came late.
        """
        orders, subject = each.state.orders, each.state.subject
        known = context.pods.get(orders.executor_uid)
        application = subject.application or (known.executor.application if known and known.executor else "")

        def read(move: OpenMove) -> None:
            found = reread(orders.namespace, application, orders.executor_name)
            self._answers.pods[move.key] = self._clock(), found

        at, pods = self._answers.pods.pop(each.key, _NOT_READ)
        if pods is None or self._clock() - at > _FRESH_SECONDS:
            self._reading.map(read, [each], key=lambda move: move.key, namespace=lambda _: orders.namespace)
            _, pods = self._answers.pods.pop(each.key, _NOT_READ)
        return None if pods is None else context.with_pods(orders.namespace, application, pods)

    def _effect(self, step: Step, each: OpenMove, context: Context) -> float | None:
        """Do what the step asks for; returns when to look again.

        It does not wait long for the answer: a webhook may take as long as it likes, and others' executors are gated.
        As long as there is none, nothing more is decided about the move.
        """
        if (effect := step.effect) is None:
            return step.wake_at
        self._bulkhead.map(
            lambda move: self._do(effect, move, context),
            [each],
            key=lambda move: move.key,
            namespace=lambda move: move.state.orders.namespace,
        )
        return self._clock() + 1.0

    def _do(self, effect: Effect, each: OpenMove, context: Context) -> None:
        namespace, key = each.state.orders.namespace, each.key
        match effect:
            case Evict():
                outcome = actions.evict(self._client, namespace=namespace, name=effect.pod, uid=effect.uid)
                self._note_eviction(each, context.name, outcome)
                _keep(self._answers.eviction, key, outcome.detail if isinstance(outcome, actions.Blocked) else "")
                _keep(self._answers.failure, key, outcome.detail if isinstance(outcome, actions.Refused) else "")
                self._telemetry.count_write("eviction", outcome)
            case DeleteUnscheduled():
                deleted = actions.delete_unscheduled(self._client, namespace=namespace, name=effect.pod, uid=effect.uid)
                self._telemetry.count_write("delete", deleted)
                executor = f"{namespace}/{effect.pod}"
                logs.note_done(logs.Line.DELETED, context.name, move=key, executor=executor, outcome=deleted)
            case PinReplacement():
                self._pin(effect, key, context)
            case ReleaseUnpinned():
                if (pod := context.pods.get(effect.uid)) is not None:
                    self._release(self._not_nominated(pod, key), None, Pin.NONE, key, context)
            case ClearNomination():
                if (pod := context.pods.get(effect.uid)) is not None:
                    self._clear(pod)

    def _note_eviction(self, each: OpenMove, policy: str, outcome: actions.EvictionOutcome) -> None:
        """Once: a budget that blocks it is asked again and again."""
        known = (self._answers.eviction.get(each.key), self._answers.failure.get(each.key))
        if getattr(outcome, "detail", None) not in known or isinstance(outcome, actions.Evicted):
            orders = each.state.orders
            executor = f"{orders.namespace}/{orders.executor_name}"
            logs.note_done(logs.Line.EVICTED, policy, move=each.key, executor=executor, outcome=outcome)

    def _pin(self, pin: PinReplacement, key: str, context: Context) -> None:
        """A pod that has changed since it was read is nominated in the next pass, if it is still gated then."""
        pod = context.pods.get(pin.uid)
        if pod is None or pod.held is None:
            return
        outcome = nomination.nominate(self._client, pod, pin.node)
        self._telemetry.count_write("nomination", outcome)
        if isinstance(outcome, actions.Changed | actions.Vanished):
            return
        if isinstance(outcome, nomination.Nominated):
            pod = outcome.pod
        self._release(pod, pin.node, pin.pin, key, context)

    def _not_nominated(self, pod: SeenPod, key: str) -> SeenPod:
        """Without the nomination that a crash before its release has left: its node may not be the right one any more.

        If only its affinity could not be written, the nomination is what still leads it there.
        """
        if pod.nominated is None or key in self._answers.pin:
            return pod
        outcome = self._clear(pod)
        held = outcome.held if isinstance(outcome, nomination.Cleared) else None
        return replace(pod, held=held or pod.held, nomination=None)

    def _clear(self, pod: SeenPod) -> nomination.ClearingOutcome:
        outcome = nomination.clear_nomination(self._client, pod)
        self._telemetry.count_write("nomination", outcome)
        return outcome

    def _release(self, pod: SeenPod, node: str | None, pin: Pin, key: str, context: Context) -> None:
        location = next((n.location for n in context.snapshot.nodes if n.name == node), ())
        order = actions.order(pod, Placement(pod.key, pod.uid, node, location, pin, move=key))
        if order is None:
            return
        outcome = actions.release(self._client, order, context.policy.levels)
        _keep(self._answers.pin, key, outcome.detail if isinstance(outcome, actions.Refused) else "")
        self._telemetry.count_write("release", outcome)


def _keep(answers: dict[str, str], key: str, refused: str) -> None:
    """Only refusals are kept, and only the last one."""
    if refused:
        answers[key] = refused
    else:
        answers.pop(key, None)
