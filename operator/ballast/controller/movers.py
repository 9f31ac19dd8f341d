"""Carrying the open ExecutorMoves of a pool forward: writing states, doing what they ask for."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple, TypeVar

from ballast.controller import logs
from ballast.controller.cluster_objects import OpenMove
from ballast.controller.context import Context
from ballast.controller.deleted_moves import given_up
from ballast.controller.loop import earliest
from ballast.controller.move_facts import facts
from ballast.controller.telemetry import Telemetry
from ballast.kube import actions, kinds, nomination
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
from ballast.tenancy.lane import Job, Lane, Rank

T = TypeVar("T")
_LOG = logging.getLogger(__name__)
_MOST_STEPS = 6
PATIENCE_SECONDS = 0.25
"""How long a reconcile waits for answers about moves, over all of them; not at all once executors are to be released.
Without the answer, the next reconcile goes on with the move.
"""
_LOOK_SECONDS = 1.0
"""Until the next reconcile looks whether there is an answer."""
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


class _Late(NamedTuple):
    """What was asked for about a move, and is no longer waited for. Its answer counts all the same."""

    job: Job[Any]
    each: OpenMove
    """As it was before."""
    presumed: OpenMove | None
    """If its state is being written: as it counts meanwhile. Budgets are not to be exceeded because an API server is
    slow.
    """


class Movers:
    """Advances moves. `clock`: seconds since the epoch; `monotonic`: seconds that are never set back.

    `reread`: the pods that a move is about, read from the API server, where a context's pods may be older than what was
    last written about the move. None: a context's pods were always read after its moves.
    """

    def __init__(
        self,
        client: Client,
        lane: Lane,
        *,
        events: EventRecorder,
        telemetry: Telemetry,
        clock: Callable[[], float],
        monotonic: Callable[[], float] = time.monotonic,
        reread: Reread | None = None,
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        self._client, self._lane, self._events, self._telemetry = client, lane, events, telemetry
        self._clock, self._monotonic = clock, monotonic
        self._reread = reread
        self._answers = _Answers()
        self._patience_seconds = self._patience_left = patience_seconds
        self._release_due: Callable[[], bool] = lambda: False
        self._late: dict[str, _Late] = {}
        """By uid. Nothing is decided about these moves before their answers are concluded."""
        self._presumed: dict[str, OpenMove] = {}
        """Moves, by uid, whose state was not known to be written when this reconcile began, as they count in it.

        They are carried on only from what the next look reads: the write may have failed, and nothing that a state
        intends may happen before that state is on record.
        """
        self._unwritable: dict[str, OpenMove] = {}
        """Moves whose status can't be written, by uid, as they count."""

    def as_they_count(self, moves: Sequence[OpenMove]) -> list[OpenMove]:
        """Those in their new state whose write was not known to be answered, and those as ended whose status can't be
        written.

        A user may make a move as long as etcd takes once it has begun, and it would stay open for good.
        """
        self._presumed = {uid: late.presumed for uid, late in self._late.items() if late.presumed is not None}
        self._conclude_late()
        moves = [self._presumed.get(each.uid, each) for each in moves]
        known = {_version(each): each for each in self._unwritable.values()}
        found = [known.get(_version(each), each) for each in moves]
        self._unwritable = {uid: each for each in found if (uid := each.uid) in self._unwritable}
        return found

    def keep(self, moves: Sequence[OpenMove], *, release_due: Callable[[], bool] = lambda: False) -> None:
        """A reconcile begins with these moves, which are all that there are: what is known of others is forgotten.

        `release_due`: whether executors are to be released now.
        """
        self._answers.keep({each.uid for each in moves})
        self._patience_left, self._release_due = self._patience_seconds, release_due

    def run(self, context: Context, moves: list[OpenMove]) -> tuple[list[OpenMove], float | None]:
        """Advance each of the pool's open moves as far as it goes now.

        Returns all of them in their new state, and when to look again although nothing happens.
        """
        known = {each.key: each for each in moves}
        wake = [
            self._guarded(each, lambda move: self._advance(move, context, known)) for each in sorted(moves, key=_rank)
        ]
        return list(known.values()), earliest(wake)

    def _conclude_late(self) -> None:
        """Heed the answers that came since they were no longer waited for."""
        over = {uid: late for uid, late in self._late.items() if late.job.over}
        for uid, late in over.items():
            del self._late[uid]
            try:
                answer = late.job.answer()
            except Exception as error:  # noqa: BLE001 -- it is told, and is about this move alone
                _note_left(late.each, error)
                self._lane.back_off(_key(late.each), _PAUSE_SECONDS)
            else:
                if isinstance(answer, TooLarge):
                    self._give_up(late.each, answer)

    def _asked(
        self, each: OpenMove, work: Callable[[], T], *, rank: Rank = Rank.MOVE, presumed: OpenMove | None = None
    ) -> T | None:
        """Have it done by the lane, and wait for the answer as long as the reconcile has patience.

        None: it is late, or the lane has dropped it.
        """
        job = self._lane.submit(each.namespace, _key(each), rank, work)
        if self._patience_left > 0 and not self._release_due():
            began = self._monotonic()
            self._lane.wait([job], seconds=self._patience_left)
            self._patience_left -= self._monotonic() - began
        if job.over:
            return job.answer()
        self._late[each.uid] = _Late(job, each, presumed)
        return None

    def _guarded(self, each: OpenMove, work: Callable[[OpenMove], float | None]) -> float | None:
        """An error about one move must not block the other moves, or the executors that are gated.

        A server in trouble is no error of one move.
        """
        try:
            return work(each)
        except Exception as error:
            if isinstance(error, KubeError) and error.of_server:
                raise
            _note_left(each, error)
        return self._clock() + _PAUSE_SECONDS

    def _give_up(self, each: OpenMove, error: TooLarge) -> OpenMove:
        """The move as it counts from now on."""
        _LOG.warning("move %s counts as ended: %s", each.key, error)
        ended = self._unwritable[each.uid] = given_up(each, self._clock())
        return ended

    def _again_in(self, each: OpenMove) -> float | None:
        """Seconds until it is worth looking at a move about which nothing may be decided now."""
        if self._lane.rests(_key(each)):
            return _PAUSE_SECONDS
        unsure = each.uid in self._presumed or each.uid in self._late or self._lane.holds(_key(each), each.namespace)
        return _LOOK_SECONDS if unsure else None

    def _advance(self, each: OpenMove, context: Context, known: dict[str, OpenMove]) -> float | None:
        if each.state.phase.ended:
            self._expire(each, context.policy.moves)
            return None
        if (again_in := self._again_in(each)) is not None:
            return self._clock() + again_in
        return self._carry(each, context, known)

    def turn_away(self, moves: Iterable[OpenMove]) -> None:
        """End orphaned moves for which no policy has come back in time."""
        for each in moves:
            self._guarded(each, self._turn_away)

    def _turn_away(self, each: OpenMove) -> None:
        if each.state.phase.ended:
            self._expire(each, _NO_POLICY)
        elif self._again_in(each) is not None:
            return
        elif (step := turned_away(each.state, self._clock())) is not None:
            self._write(each, step, "")

    def _expire(self, each: OpenMove, settings: MovesPolicy) -> None:
        if "deletionTimestamp" in each.raw["metadata"]:
            # A finalizer may keep it for good: it must not use up other moves' turns.
            return
        outlived = record.outlived(each.state, ttl_seconds=settings.ttl_seconds, now=self._clock())
        if outlived:
            self._lane.submit(each.namespace, _key(each), Rank.MOVE, partial(self._delete, each))

    def _delete(self, each: OpenMove) -> None:
        try:
            delete_object(self._client, kinds.EXECUTOR_MOVE, each.raw)
        except KubeError as error:
            _LOG.warning("move %s was not deleted: %s", each.key, error)

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
                    return self._clock() + _LOOK_SECONDS
                context = fresh
                continue
            if not step.changed:
                return self._effect(step, each, context)
            written = self._write(each, step, context.name)
            if written is not None:
                each = known[each.key] = written
            if written is None or each.uid in self._late:
                return self._clock() + _LOOK_SECONDS
            if each.state.phase.ended:
                return None
            if step.look_again:
                return self._clock()
        return self._clock()

    def _write(self, each: OpenMove, step: Step, policy: str) -> OpenMove | None:
        """The move as written, or as it is being written; None when it is to be read again first: another client wrote
        the object meanwhile, or the lane has dropped the write.
        """
        presumed = each if step.move.phase.ended else OpenMove(each.raw, step.move)
        written = self._asked(each, partial(self._written, each, step, policy), presumed=presumed)
        if each.uid in self._late:
            return presumed
        if isinstance(written, TooLarge):
            return self._give_up(each, written)
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
            self._asked(each, read)
            if each.uid in self._late:
                return None
            _, pods = self._answers.pods.pop(each.uid, _NOT_READ)
        return None if pods is None else context.with_pods(orders.namespace, application, pods)

    def _effect(self, step: Step, each: OpenMove, context: Context) -> float | None:
        """Do what the step asks for; returns when to look again.

        As long as there is no answer, nothing more is decided about the move.
        """
        if (effect := step.effect) is None:
            return step.wake_at
        rank = Rank.RELEASE if isinstance(effect, PinReplacement | ReleaseUnpinned) else Rank.MOVE
        self._asked(each, lambda: self._do(effect, each, context), rank=rank)
        return self._clock() + _LOOK_SECONDS

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


def _key(each: OpenMove) -> str:
    """Of the lane's jobs about the move: one after the other."""
    return f"move {each.uid}"


def _note_left(each: OpenMove, error: Exception) -> None:
    known = isinstance(error, KubeError)
    _LOG.warning("move %s was left as it is: %s", each.key, error, exc_info=not known)


def _rank(each: OpenMove) -> tuple[bool, float, str]:
    """Moves under way and those that ended come first, the oldest before others: they hold budgets of others."""
    phase = each.state.phase
    return not (phase.in_flight or phase.ended), each.state.orders.created_at, each.key


def _version(each: OpenMove) -> tuple[str, str]:
    metadata = each.raw["metadata"]
    return metadata["uid"], metadata.get("resourceVersion") or ""


def _keep(answers: dict[str, str], key: str, refused: str) -> None:
    """Only refusals are kept, and only the last one."""
    if refused:
        answers[key] = refused
    else:
        answers.pop(key, None)
