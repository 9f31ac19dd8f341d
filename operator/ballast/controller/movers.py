"""Carrying the open ExecutorMoves of a pool forward: writing states, doing what they ask for."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from ballast.controller import logs
from ballast.controller.cluster_objects import OpenMove
from ballast.controller.context import Context
from ballast.controller.deleted_moves import given_up
from ballast.controller.loop import earliest
from ballast.controller.move_facts import facts
from ballast.controller.telemetry import Telemetry
from ballast.controller.turns import MoveTurns
from ballast.kube import actions, kinds, nomination
from ballast.kube.bulkhead import WAIT_SECONDS, Bulkhead
from ballast.kube.client import Client
from ballast.kube.document import JSON
from ballast.kube.errors import Conflict, KubeError, NotFound, TooLarge
from ballast.kube.events import EventRecorder, Notice, Regarding
from ballast.kube.objects import delete_object, write_status
from ballast.kube.pods import Pod as SeenPod
from ballast.model import MovesPolicy, Pin, Placement
from ballast.moves import (
    ClearNomination,
    DeleteUnscheduled,
    Effect,
    Emit,
    Evict,
    Facts,
    MoveState,
    PinReplacement,
    ReleaseUnpinned,
    Step,
    advance,
    record,
    turned_away,
)

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
    """What the API server answered this process, by uid of the move: a user may make another of the same name.

    A new process asks again.
    """

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
    """Advances moves. `clock`: seconds since the epoch. `patience_seconds`: as of Bulkhead.

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
        patience_seconds: float = WAIT_SECONDS,
    ) -> None:
        self._client, self._events, self._telemetry, self._clock = client, events, telemetry, clock
        self._reread = reread
        self._answers, self._turns = _Answers(), MoveTurns()
        self._bulkhead = Bulkhead(client.connections, seconds=patience_seconds)
        self._writing = Bulkhead(client.connections, seconds=patience_seconds)
        # A page of pods may be 16 MiB long, and takes more while it is read.
        self._reading = Bulkhead(client.connections, seconds=patience_seconds, most_while_slow=1, most_slow=3)
        self._unwritable: dict[str, OpenMove] = {}
        """Moves whose status can't be written, by uid, as they count."""

    def as_they_count(self, moves: Sequence[OpenMove]) -> list[OpenMove]:
        """Those as ended whose status can't be written: a user may make a move as long as etcd takes once it has begun,
        and it would stay open for good.
        """
        known = {_version(each): each for each in self._unwritable.values()}
        found = [known.get(_version(each), each) for each in moves]
        self._unwritable = {uid: each for each in found if (uid := each.uid) in self._unwritable}
        return found

    def keep(self, moves: Sequence[OpenMove], *, gated: bool = False) -> None:
        """A reconcile begins with these moves, which are all that there are: what is known of others is forgotten.

        `gated`: whether executors wait for Ballast alone.
        """
        self._answers.keep({each.uid for each in moves})
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
        if any(bulkhead.under_way(each.key) for bulkhead in (self._bulkhead, self._writing, self._reading)):
            return self._clock() + 1.0
        return self._carry(each, context, known)

    def turn_away(self, moves: Iterable[OpenMove], *, release_due: Callable[[], bool] = lambda: False) -> float | None:
        """End orphaned moves for which no policy has come back in time. Returns when to look again."""
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
            self._writing.one(
                lambda: delete_object(self._client, kinds.EXECUTOR_MOVE, each.raw),
                key=each.key,
                namespace=each.namespace,
            )

    def _carry(self, each: OpenMove, context: Context, known: dict[str, OpenMove]) -> float | None:
        """Steps on while only states are written; `known` always holds what was written last. Returns when to look.

        A step that writes or does anything is decided again from pods that were read after the move's state.
        """
        reread = self._reread
        for _ in range(_MOST_STEPS):
            now = self._clock()
            seen = self._answers.told(each.uid, facts(each, context, known, now))
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
        """The move as written; None when another client wrote the object meanwhile, or the answer is late.

        A webhook may take as long as it likes, while executors of others are gated: so a late answer is not awaited.
        """
        written = self._writing.one(lambda: self._written(each, step, policy), key=each.key, namespace=each.namespace)
        if isinstance(written, TooLarge):
            _LOG.warning("move %s counts as ended: %s", each.key, written)
            ended = self._unwritable[each.uid] = given_up(each, self._clock())
            return ended
        return None if written is None or isinstance(written, KubeError) else OpenMove(written, step.move)

    def _written(self, each: OpenMove, step: Step, policy: str) -> JSON | KubeError:
        """The object with its new state, whose Events follow; or why it could not be written."""
        status = record.status(step.move, each.raw, self._clock())
        try:
            fresh = write_status(self._client, kinds.EXECUTOR_MOVE, each.raw, status)
        except (Conflict, NotFound, TooLarge) as error:
            return error
        for action in step.actions:
            if isinstance(action, Emit):
                self._announce(action, each)
        if step.entered:
            self._count(step.move, policy)
            logs.note_phase(policy, step.move)
        return fresh or each.raw

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

        def read() -> None:
            found = reread(orders.namespace, application, orders.executor_name)
            self._answers.pods[each.uid] = self._clock(), found

        at, pods = self._answers.pods.pop(each.uid, _NOT_READ)
        if pods is None or self._clock() - at > _FRESH_SECONDS:
            self._reading.one(read, key=each.key, namespace=orders.namespace)
            _, pods = self._answers.pods.pop(each.uid, _NOT_READ)
        return None if pods is None else context.with_pods(orders.namespace, application, pods)

    def _effect(self, step: Step, each: OpenMove, context: Context) -> float | None:
        """Do what the step asks for; returns when to look again.

        It does not wait long for the answer: a webhook may take as long as it likes, and others' executors are gated.
        As long as there is none, nothing more is decided about the move.
        """
        if (effect := step.effect) is None:
            return step.wake_at
        self._bulkhead.one(lambda: self._do(effect, each, context), key=each.key, namespace=each.namespace)
        return self._clock() + 1.0

    def _do(self, effect: Effect, each: OpenMove, context: Context) -> None:
        namespace, key = each.namespace, each.key
        match effect:
            case Evict():
                outcome = actions.evict(self._client, namespace=namespace, name=effect.pod, uid=effect.uid)
                self._note_eviction(each, context.name, outcome)
                _keep(self._answers.eviction, each.uid, outcome.detail if isinstance(outcome, actions.Blocked) else "")
                _keep(self._answers.failure, each.uid, outcome.detail if isinstance(outcome, actions.Refused) else "")
                self._telemetry.count_write("eviction", outcome)
            case DeleteUnscheduled():
                deleted = actions.delete_unscheduled(self._client, namespace=namespace, name=effect.pod, uid=effect.uid)
                self._telemetry.count_write("delete", deleted)
                executor = f"{namespace}/{effect.pod}"
                logs.note_done(logs.Line.DELETED, context.name, move=key, executor=executor, outcome=deleted)
            case PinReplacement():
                self._pin(effect, each, context)
            case ReleaseUnpinned():
                if (pod := context.pods.get(effect.uid)) is not None:
                    self._release(self._not_nominated(pod, each), None, Pin.NONE, each, context)
            case ClearNomination():
                if (pod := context.pods.get(effect.uid)) is not None:
                    self._clear(pod)

    def _note_eviction(self, each: OpenMove, policy: str, outcome: actions.EvictionOutcome) -> None:
        """Once: a budget that blocks it is asked again and again."""
        known = (self._answers.eviction.get(each.uid), self._answers.failure.get(each.uid))
        if getattr(outcome, "detail", None) not in known or isinstance(outcome, actions.Evicted):
            orders = each.state.orders
            executor = f"{orders.namespace}/{orders.executor_name}"
            logs.note_done(logs.Line.EVICTED, policy, move=each.key, executor=executor, outcome=outcome)

    def _pin(self, pin: PinReplacement, each: OpenMove, context: Context) -> None:
        """A pod that has changed since it was read is nominated in the next pass, if it is still gated then."""
        pod = context.pods.get(pin.uid)
        if pod is None or pod.held is None:
            return
        if not pod.never_unschedulable:
            outcome = nomination.nominate(self._client, pod, pin.node)
            self._telemetry.count_write("nomination", outcome)
            if isinstance(outcome, actions.Changed | actions.Vanished):
                return
            if isinstance(outcome, nomination.Nominated):
                pod = outcome.pod
        by_other_pods = pod.executor is not None and pod.executor.by_other_pods
        # A volume that is still to be made may be possible in other zones only.
        loose = by_other_pods or not context.objects.lists.volumes.all_bound(pod.namespace, pod.claims)
        self._release(pod, pin.node, Pin.NONE if loose else pin.pin, each, context)

    def _not_nominated(self, pod: SeenPod, each: OpenMove) -> SeenPod:
        """Without the nomination that a crash before its release has left: its node may not be the right one any more.

        If only its affinity could not be written, the nomination is what still leads it there.
        """
        if pod.nominated is None or each.uid in self._answers.pin:
            return pod
        outcome = self._clear(pod)
        held = outcome.held if isinstance(outcome, nomination.Cleared) else None
        return replace(pod, held=held or pod.held, nomination=None)

    def _clear(self, pod: SeenPod) -> nomination.ClearingOutcome:
        outcome = nomination.clear_nomination(self._client, pod)
        self._telemetry.count_write("nomination", outcome)
        return outcome

    def _release(self, pod: SeenPod, node: str | None, pin: Pin, each: OpenMove, context: Context) -> None:
        location = next((n.location for n in context.snapshot.nodes if n.name == node), ())
        order = actions.order(pod, Placement(pod.key, pod.uid, node, location, pin, move=each.key))
        if order is None:
            return
        outcome = actions.release(self._client, order, context.policy.levels)
        _keep(self._answers.pin, each.uid, outcome.detail if isinstance(outcome, actions.Refused) else "")
        self._telemetry.count_write("release", outcome)


def _version(each: OpenMove) -> tuple[str, str]:
    metadata = each.raw["metadata"]
    return metadata["uid"], metadata.get("resourceVersion") or ""


def _keep(answers: dict[str, str], key: str, refused: str) -> None:
    """Only refusals are kept, and only the last one."""
    if refused:
        answers[key] = refused
    else:
        answers.pop(key, None)
