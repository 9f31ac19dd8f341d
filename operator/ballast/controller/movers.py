"""Carrying the open ExecutorMoves of a pool forward: gathering facts, writing states, doing what they ask for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ballast.controller.context import Context
from ballast.controller.moves import (
    Clearance,
    DeleteUnscheduled,
    Effect,
    Emit,
    Evict,
    Facts,
    MoveState,
    PinReplacement,
    Pod,
    ReleaseUnpinned,
    Rival,
    Step,
    advance,
    record,
)
from ballast.controller.telemetry import Telemetry
from ballast.errors import BallastError
from ballast.kube import actions, kinds
from ballast.kube.client import Client
from ballast.kube.errors import Conflict, NotFound
from ballast.kube.events import EventRecorder, Notice, Regarding
from ballast.kube.objects import delete_object, write_status
from ballast.kube.pods import Pod as SeenPod
from ballast.model import Executor, Move, MovePhase, Phase, Pin, Placement
from ballast.planner.clearance import clearance
from ballast.planner.slowness import evidence

JSON = dict[str, Any]

_MOST_STEPS = 6


@dataclass(frozen=True, slots=True)
class OpenMove:
    raw: JSON
    state: MoveState

    @property
    def key(self) -> str:
        return self.state.orders.key


@dataclass(slots=True)
class _Answers:
    """What the API server said to this process; lost with it, and asked for again."""

    eviction: dict[str, str] = field(default_factory=dict)
    pin: dict[str, str] = field(default_factory=dict)


def read_moves(raw: tuple[JSON, ...]) -> tuple[list[OpenMove], list[BallastError]]:
    """The moves that this version can read, and what is wrong with the others."""
    found: list[OpenMove] = []
    broken: list[BallastError] = []
    for item in raw:
        whole = {"apiVersion": kinds.EXECUTOR_MOVE.api_version, "kind": kinds.EXECUTOR_MOVE.kind, **item}
        try:
            found.append(OpenMove(whole, record.read(whole)))
        except BallastError as error:
            broken.append(error)
    return found, broken


def planner_moves(moves: list[OpenMove], cores: Mapping[str, float]) -> list[Move]:
    """As the planner reads them. `cores`: allocatable CPU by node."""
    return [record.to_move(each.state, source_cpu_cores=cores.get(each.state.orders.source, 0.0)) for each in moves]


class Movers:
    """Advances moves. `clock`: seconds since the epoch."""

    def __init__(
        self, client: Client, *, events: EventRecorder, telemetry: Telemetry, clock: Callable[[], float]
    ) -> None:
        self._client, self._events, self._telemetry, self._clock = client, events, telemetry, clock
        self._answers = _Answers()

    def run(self, context: Context, moves: list[OpenMove]) -> tuple[list[OpenMove], float | None]:
        """Advance each of the pool's open moves as far as it goes now.

        Returns all of them in their new state, and when to look again although nothing happens.
        """
        known = {each.key: each for each in moves}
        wake: list[float] = []
        for each in sorted(moves, key=lambda m: (m.state.orders.created_at, m.key)):
            if each.state.phase.ended:
                self._expire(each, context)
                continue
            wake_at = self._carry(each, context, known)
            if wake_at is not None:
                wake.append(wake_at)
        return list(known.values()), min(wake, default=None)

    def _expire(self, each: OpenMove, context: Context) -> None:
        if record.outlived(each.state, ttl_seconds=context.policy.moves.ttl_seconds, now=self._clock()):
            delete_object(self._client, kinds.EXECUTOR_MOVE, each.raw)
            self._answers.eviction.pop(each.key, None)
            self._answers.pin.pop(each.key, None)

    def _carry(self, each: OpenMove, context: Context, known: dict[str, OpenMove]) -> float | None:
        """Steps on while only states are written; `known` always holds what was written last. Returns when to look."""
        for _ in range(_MOST_STEPS):
            facts = self._facts(each, context, known)
            step = advance(each.state, facts, context.policy.moves, self._clock())
            if not step.changed:
                if step.effect is None:
                    return step.wake_at
                self._do(step.effect, each, context)
                return self._clock() + 1.0
            written = self._write(each, step, context)
            if written is None:
                return self._clock() + 1.0
            each = known[each.key] = written
            if each.state.phase.ended:
                return None
            if step.look_anew:
                return self._clock()
        return self._clock()

    def _write(self, each: OpenMove, step: Step, context: Context) -> OpenMove | None:
        """The state first, then its Events; None when somebody else wrote the object meanwhile."""
        status = record.status(step.move, each.raw, self._clock())
        try:
            fresh = write_status(self._client, kinds.EXECUTOR_MOVE, each.raw, status)
        except (Conflict, NotFound):
            return None
        for action in step.actions:
            if isinstance(action, Emit):
                self._announce(action, each)
        if step.move.phase.ended and step.transition is not None:
            self._count(step.move, context)
        return OpenMove(fresh or each.raw, step.move)

    def _count(self, move: MoveState, context: Context) -> None:
        self._telemetry.moves.labels(context.name, move.phase.value).inc()
        if move.gain is not None:
            self._telemetry.measured_gain.labels(context.name).set(move.gain)

    def _announce(self, event: Emit, each: OpenMove) -> None:
        metadata = each.raw["metadata"]
        namespace = metadata["namespace"]
        move = Regarding(kinds.EXECUTOR_MOVE, metadata["name"], metadata["uid"], namespace)
        pod = Regarding(kinds.POD, event.pod, event.pod_uid, namespace)
        for regarding, related in ((move, pod), (pod, move)):
            self._events.post(
                Notice(regarding, event.reason, "Move", event.message, warning=event.warning, related=related)
            )

    def _facts(self, each: OpenMove, context: Context, known: Mapping[str, OpenMove]) -> Facts:
        state = each.state
        executor = context.pods.get(state.orders.executor_uid)
        profile = _profile(executor) or (state.subject.application, state.subject.resource_profile)
        alike = [
            pod
            for pod in context.pods.values()
            if pod.namespace == state.orders.namespace and _profile(pod) == profile and pod is not executor
        ]
        views = {e.uid: e for e in context.snapshot.executors}
        proofs = evidence(context.snapshot.executors)
        return Facts(
            executor=_pod(executor, views) if executor else None,
            newcomers=tuple(_pod(pod, views) for pod in sorted(alike, key=lambda p: p.uid)),
            rivals=_rivals(each, known, profile),
            clearance=self._clearance(each, context, known),
            expected_executors=_expected(state, context),
            application_ended=_application_ended(context, state.orders.namespace, profile[0]),
            scores=context.measured(),
            slowness={uid: proof.slowness for uid, proof in proofs.items() if proof.slowness is not None},
            batch_p95_seconds=context.reading.batch_p95_seconds.get(profile[0]),
            eviction_refused=self._answers.eviction.get(each.key, ""),
            pin_refused=self._answers.pin.get(each.key, ""),
        )

    def _clearance(self, each: OpenMove, context: Context, known: Mapping[str, OpenMove]) -> Clearance:
        """The arbiter's second look, with every move as it was last written, in this pass too."""
        cores = {node.name: node.allocatable.cpu_cores for node in context.snapshot.nodes}
        move = record.to_move(each.state, source_cpu_cores=cores.get(each.state.orders.source, 0.0))
        if move.phase not in (MovePhase.APPROVED, MovePhase.LEAVING, MovePhase.ARRIVING):
            return Clearance()
        refusal, destination = clearance(
            replace(context.snapshot, moves=tuple(planner_moves(list(known.values()), cores))),
            context.policy,
            move,
            scores=context.projected(),
            loads=context.loads(),
            now=self._clock(),
        )
        return Clearance(refusal, destination)

    def _do(self, effect: Effect, each: OpenMove, context: Context) -> None:
        namespace, key = each.state.orders.namespace, each.key
        match effect:
            case Evict():
                outcome = actions.evict(self._client, namespace=namespace, name=effect.pod, uid=effect.uid)
                refused = outcome.detail if isinstance(outcome, actions.Blocked | actions.Refused) else ""
                _keep(self._answers.eviction, key, refused)
                self._telemetry.writes.labels("eviction", type(outcome).__name__).inc()
            case DeleteUnscheduled():
                deleted = actions.delete_unscheduled(self._client, namespace=namespace, name=effect.pod, uid=effect.uid)
                self._telemetry.writes.labels("delete", type(deleted).__name__).inc()
            case PinReplacement():
                self._pin(effect.uid, effect.node, effect.pin, key, context)
            case ReleaseUnpinned():
                self._pin(effect.uid, None, Pin.NONE, key, context)

    def _pin(self, uid: str, node: str | None, pin: Pin, key: str, context: Context) -> None:
        pod = context.pods.get(uid)
        if pod is None:
            return
        location = next((n.location for n in context.snapshot.nodes if n.name == node), ())
        order = actions.order(pod, Placement(pod.key, uid, node, location, pin, move=key))
        if order is None:
            return
        outcome = actions.release(self._client, order, context.policy.levels)
        _keep(self._answers.pin, key, outcome.detail if isinstance(outcome, actions.Refused) else "")
        self._telemetry.writes.labels("release", type(outcome).__name__).inc()


def _keep(answers: dict[str, str], key: str, refused: str) -> None:
    """Only refusals are kept, and only the last one."""
    if refused:
        answers[key] = refused
    else:
        answers.pop(key, None)


def _profile(pod: SeenPod | None) -> tuple[str, str] | None:
    return (pod.executor.application, pod.executor.resource_profile) if pod and pod.executor else None


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
        gate_since=view.last_gate_since if view and pod.phase is Phase.GATED else None,
        unschedulable_since=facts.unschedulable_since if facts else None,
        running_since=facts.running_since if facts else None,
        pinned=facts is not None and facts.pinned_at is not None,
        deadline=pod.deadline,
        exit_code=facts.exit_code if facts else None,
    )


def _rivals(each: OpenMove, known: Mapping[str, OpenMove], profile: tuple[str, str]) -> tuple[Rival, ...]:
    found = []
    for other in known.values():
        subject = other.state.subject
        alike = (subject.application, subject.resource_profile) == profile
        if other.key != each.key and alike and other.state.orders.namespace == each.state.orders.namespace:
            rival = Rival.of(other.state)
            if rival is not None:
                found.append(rival)
    return tuple(sorted(found, key=lambda rival: rival.key))


def _expected(state: MoveState, context: Context) -> int | None:
    topology = next((t for t in context.snapshot.topologies if t.key == state.orders.topology), None)
    component = topology.component(state.orders.component) if topology else None
    return component.expected if component else None


def _application_ended(context: Context, namespace: str, application: str) -> bool:
    """Its driver is a pod that has ended; a driver outside the cluster tells nothing."""
    drivers = context.drivers(namespace, application)
    return bool(drivers) and all(pod.ended for pod in drivers)
