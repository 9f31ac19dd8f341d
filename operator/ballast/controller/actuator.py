"""Doing what a plan says: releasing pods, deleting stranded ones, creating ExecutorMoves."""

from __future__ import annotations

import math
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from ballast.controller import logs
from ballast.controller.context import Context
from ballast.controller.move_object import in_the_way, move_name, move_object
from ballast.controller.telemetry import Telemetry
from ballast.kube import actions, kinds, nomination
from ballast.kube.client import Client
from ballast.kube.document import JSON
from ballast.kube.errors import KubeError
from ballast.kube.events import EventRecorder, Notice, Regarding
from ballast.kube.objects import ensure_created
from ballast.kube.pods import Pod
from ballast.model import (
    Displaced,
    EventReason,
    Levels,
    MovesMode,
    Pin,
    Placement,
    Plan,
    PlannedMove,
    Reason,
)
from ballast.moves.eligibility import cause
from ballast.tenancy.lane import Lane, Rank

_LONGEST_REASON_CHARACTERS = 300
"""A namespace's webhook may answer anything."""

_REFUSED_SECONDS = 30.0
"""Until nominations are tried again after all of a set were refused, as they are where the right is missing. No longer:
after an API server restart it refuses them, too.
"""

_Done = tuple[actions.Release, actions.ReleaseOutcome]


class Actuator:
    """The one place that acts on pods and creates moves for a plan.

    It waits for releases, nominations and new moves as long as they are quick, and for nothing else.

    `clock`: seconds since the epoch; `monotonic`: seconds that are never set back.
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
    ) -> None:
        self._client, self._lane, self._events, self._telemetry = client, lane, events, telemetry
        self._clock, self._monotonic = clock, monotonic
        self._nominates_from = -math.inf
        """Not before (monotonic seconds): the API server has refused it."""
        self._as_is: dict[str, Reason] = {}
        """Why executors did not get the place decided for them, by uid, that `take_as_is` has not returned yet."""
        self._created: deque[JSON] = deque()
        """Moves that `take_created` has not returned yet."""
        self._closed: dict[str, tuple[float, str]] = {}
        """Namespaces in which no move could be created: until when none is tried again (monotonic), and why."""

    def release(self, context: Context, plan: Plan) -> int:
        """Release placed executors at once; then those without a place, so that they don't take the others' room.

        Returns how many of them our gate still holds.
        """
        orders_of = (order for placement in plan.placements if (order := _order(placement, context)) is not None)
        found = actions.due(self._lane, orders_of)
        placed, surplus = (
            [order for order in found if (order.placement.node is not None) is with_place]
            for with_place in (True, False)
        )
        placed, surplus = self._nominated(context, placed), self._not_nominated(context, surplus)
        orders = [*placed, *surplus]
        levels = context.policy.levels
        outcomes = [
            outcome
            for part in (placed, surplus)
            for outcome in actions.release_many(self._client, self._lane, part, levels)
        ]
        self._measure(context, orders, outcomes)
        topology_of = {e.uid: e.topology for e in context.snapshot.executors}
        noted = [
            logs.Outcome(topology_of.get(order.uid, ""), order, outcome)
            for order, outcome in zip(orders, outcomes, strict=True)
        ]
        self._telemetry.count_unplaced(context.name, logs.note_releases(context.name, noted))
        self._report(context, orders, outcomes)
        self._as_is |= {
            order.uid: outcome.reason
            for order, outcome in zip(placed, outcomes, strict=False)
            if isinstance(outcome, actions.Released)
            and outcome.pin is Pin.NONE
            and outcome.reason is not None
            and outcome.reason is not order.placement.reason
        }
        return len(plan.placements) - sum(isinstance(each, actions.Released | actions.Vanished) for each in outcomes)

    def take_as_is(self) -> dict[str, Reason]:
        """Executors that were released without the place decided for them, by uid: their affinity was refused."""
        found, self._as_is = self._as_is, {}
        return found

    def _nominated(self, context: Context, orders: list[actions.Release]) -> list[actions.Release]:
        """Nominate those of them that are to be, all before any is released; the orders as they are to be done then."""
        wanted = [
            (pod, each.placement.node)
            for each in orders
            if each.placement.nominated and each.placement.node and (pod := context.pods.get(each.uid)) is not None
        ]
        if not wanted or self._monotonic() < self._nominates_from:
            return orders
        outcomes = nomination.nominate_many(self._client, self._lane, wanted)
        for outcome in outcomes:
            self._telemetry.count_write("nomination", outcome)
        if outcomes and all(isinstance(outcome, actions.Refused) and outcome.forbidden for outcome in outcomes):
            self._nominates_from = self._monotonic() + _REFUSED_SECONDS
        fresh = {each.pod.uid: each.pod.held for each in outcomes if isinstance(each, nomination.Nominated)}
        return [replace(each, held=fresh.get(each.uid) or each.held) for each in orders]

    def _not_nominated(self, context: Context, orders: list[actions.Release]) -> list[actions.Release]:
        """Without the nominations that a crash before the release has left: this plan gives that room to others."""
        found, outcomes = nomination.clear_left_over(self._client, self._lane, orders, context.pods)
        for outcome in outcomes:
            self._telemetry.count_write("nomination", outcome)
        return found

    def clear_nominations(self, context: Context, plan: Plan) -> None:
        """Of executors that found no room, so that an autoscaler sees them."""
        self.clear_nominations_of(pod for uid in plan.overdue_nominations if (pod := context.pods.get(uid)) is not None)

    def clear_nominations_of(self, pods: Iterable[Pod]) -> None:
        """The same for these pods. Nothing waits for it: they have found no room already."""
        for pod in pods:
            self._lane.submit(pod.namespace, nomination.clearing_key(pod), Rank.MOVE, partial(self._clear, pod))

    def _clear(self, pod: Pod) -> None:
        self._telemetry.count_write("nomination", nomination.clear_nomination(self._client, pod))

    def report_displaced(self, context: Context, plan: Plan) -> None:
        """Report which executors are not on the nodes chosen for them: one line and Event for each topology."""
        found: dict[str, list[Displaced]] = defaultdict(list)
        for each in plan.displaced:
            found[each.topology].append(each)
        for topology, displaced in sorted(found.items()):
            logs.note_displaced(context.name, topology, displaced)
            shown = [f"{each.executor.split('/')[1]} on {each.node} instead of {each.chosen}" for each in displaced]
            subject = context.topology(topology) or context.driver(topology)
            if subject is not None:
                words = f"{len(displaced)} executors found no room on their nodes: {', '.join(shown[:12])}"
                self._post(subject, EventReason.DISPLACED, "Place", words)

    def release_strays(self, pods: Sequence[Pod], failed: Mapping[str, str]) -> None:
        """Let those of `pods` go, as they are, that our gate holds although no policy places them.

        `failed`: by namespace, a policy that would have placed executors there, had its pass not failed.
        """
        held = [pod for pod in pods if pod.held is not None and not pod.leaving]
        found = (order for pod in held if (order := actions.order(pod, _stray(pod, failed))) is not None)
        orders = actions.due(self._lane, found)
        outcomes = actions.release_many(self._client, self._lane, orders, Levels(()))
        for outcome in outcomes:
            self._telemetry.count_write("release", outcome)
        done = list(zip(orders, outcomes, strict=True))
        logs.note_releases("", [logs.Outcome("", order, outcome) for order, outcome in done])
        self._report_unpinned(done)

    def _measure(self, context: Context, orders: list[actions.Release], outcomes: list[actions.ReleaseOutcome]) -> None:
        now = self._clock()
        since = {e.uid: e.last_gate_since for e in context.snapshot.executors}
        for order, outcome in zip(orders, outcomes, strict=True):
            self._telemetry.count_write("release", outcome)
            if isinstance(outcome, actions.Released) and not outcome.already:
                kind = "placement" if outcome.pin is not Pin.NONE else "release"
                self._telemetry.decisions.labels(context.name, kind).inc()
                held_since = since.get(order.uid)
                if held_since is not None:
                    self._telemetry.count_hold(context.name, max(0.0, now - held_since), now=now)

    def delete_stranded(self, context: Context, plan: Plan) -> None:
        """Delete pods whose place can't run them, so that Spark creates others. Nothing waits for that."""
        for each in plan.replacements:
            work = partial(self._delete, context.name, each)
            self._lane.submit(each.namespace, f"delete {each.uid}", Rank.MOVE, work)

    def _delete(self, policy: str, placement: Placement) -> None:
        outcome = actions.delete_unscheduled(
            self._client, namespace=placement.namespace, name=placement.pod, uid=placement.uid
        )
        self._telemetry.count_write("delete", outcome)
        if isinstance(outcome, actions.Deleted):
            about = {"move": placement.move or "", "executor": placement.executor}
            logs.note_done(logs.Line.DELETED, policy, **about, outcome=outcome)
            self._post(_pod(placement), EventReason.PLACED_AGAIN, "Place", placement.detail, warning=True)

    def closed_namespaces(self) -> dict[str, str]:
        """Namespaces in which moves could lately not be created, and why."""
        now = self._monotonic()
        self._closed = {namespace: each for namespace, each in self._closed.items() if now < each[0]}
        return {namespace: why for namespace, (_, why) in self._closed.items()}

    def take_created(self) -> list[JSON]:
        """The moves created since this was last asked."""
        return [self._created.popleft() for _ in range(len(self._created))]

    def create_moves(self, context: Context, plan: Plan) -> None:
        """Create an ExecutorMove for each approved suggestion, if the policy's mode says so."""
        mode = context.policy.moves.mode
        if not mode.acts:
            for move in plan.moves:
                self._count(context, move, "recommendation")
            return
        approved = mode is MovesMode.ENFORCE
        sources = {node.name: node for node in plan.pool.nodes}
        wanted = [
            move_object(
                context,
                move,
                name=move_name(move, context.snapshot.moves),
                source=sources.get(move.source),
                approved=approved,
            )
            for move in plan.moves
        ]
        jobs = [
            self._lane.submit(
                move.namespace,
                f"create {move.namespace}/{each['metadata']['name']}",
                Rank.CREATE,
                partial(self._create, each),
            )
            for move, each in zip(plan.moves, wanted, strict=True)
        ]
        # So that the next pass knows of them, unless a webhook is slow.
        self._lane.wait(jobs)
        for move, each, job in zip(plan.moves, wanted, jobs, strict=True):
            self._conclude(context, move, wanted=each, answer=job.answer())

    def _count(self, context: Context, move: PlannedMove, kind: str) -> None:
        self._telemetry.decisions.labels(context.name, kind).inc()
        if not move.taint:
            self._telemetry.predicted_gain.labels(context.name).set(move.gain)

    def _create(self, wanted: JSON) -> tuple[JSON, bool] | KubeError:
        """The move, and whether it was created now; or why not. Raises a KubeError that is the API server's own."""
        try:
            found, created = ensure_created(self._client, kinds.EXECUTOR_MOVE, wanted)
        except KubeError as error:
            # A quota or the deletion of one namespace must not stop work on the others.
            if error.of_server:
                raise
            return error
        if created:
            self._created.append(found)
        return found, created

    def _conclude(
        self, context: Context, move: PlannedMove, *, wanted: JSON, answer: tuple[JSON, bool] | KubeError | None
    ) -> None:
        """`answer`: as `_create` returns it; None where it is late."""
        name, approved = wanted["metadata"]["name"], wanted["spec"]["approved"]
        if answer is None:
            words = f"{name} was not created in time: a webhook of {move.namespace} may be slow"
            self._close(context, move, words, note=words)
        elif isinstance(answer, KubeError):
            self._telemetry.count_write("create", answer)
            words = f"{name} could not be created: {answer}"[:_LONGEST_REASON_CHARACTERS]
            self._close(context, move, words, note=str(answer))
        elif answer[1]:
            self._count(context, move, "move")
            logs.note_decided(context.name, move, f"{move.namespace}/{name}")
            words = f"{_sentence(move)}; {'leaves now' if approved else 'waits for approval'}"
            self._post(_mover(move), EventReason.MOVE_DECIDED, "Move", words)
        elif in_the_way(answer[0], wanted):
            words = f"ExecutorMove {name} is in its place, and has ended or is another one; delete it"
            self._close(context, move, words, note=words)

    def _close(self, context: Context, move: PlannedMove, why: str, *, note: str) -> None:
        """Choose no move of its namespace for a cooldown: each pass would choose the same executors, and no others."""
        until = self._monotonic() + context.policy.moves.cooldown_seconds
        self._closed[move.namespace] = (until, why)
        self._post(_mover(move), EventReason.MOVE_NOT_CREATED, "Move", note, warning=True)

    def _report(self, context: Context, orders: list[actions.Release], outcomes: list[actions.ReleaseOutcome]) -> None:
        """One Event a topology about those that were placed; one a pod about those that were not."""
        placed: dict[str, list[str]] = defaultdict(list)
        unpinned: list[_Done] = []
        topology_of = {e.uid: e.topology for e in context.snapshot.executors}
        for order, outcome in zip(orders, outcomes, strict=True):
            if isinstance(outcome, actions.Released) and outcome.pin is not Pin.NONE and order.placement.node:
                placed[topology_of.get(order.uid, "")].append(order.placement.node)
            else:
                unpinned.append((order, outcome))
        self._report_unpinned(unpinned)
        for key, nodes in sorted(placed.items()):
            self._report_topology(context, key, nodes)

    def _report_unpinned(self, pods: Iterable[_Done]) -> None:
        for order, outcome in pods:
            if _is_news(outcome):
                self._post(_pod(order.placement), *_unpinned_words(order.placement, outcome))

    def _report_topology(self, context: Context, key: str, nodes: list[str]) -> None:
        where = ", ".join(f"{count} on {node}" for node, count in sorted(Counter(nodes).items())[:12])
        words = f"{len(nodes)} executors: {where}"
        subject = context.topology(key) or context.driver(key)
        if subject is not None:
            self._post(subject, EventReason.PLACED, "Place", words)

    def _post(
        self, regarding: Regarding, reason: EventReason | Reason, action: str, note: str, *, warning: bool = False
    ) -> None:
        self._events.post(Notice(regarding, reason, action, note, warning=warning))


def _stray(pod: Pod, failed: Mapping[str, str]) -> Placement:
    reason, detail = Reason.NOT_ENFORCED, "no policy places executors here"
    if pod.namespace in failed:
        detail = f"the pass of policy {failed[pod.namespace]} failed with it; conditions of the policy say why"
    if pod.beyond:
        detail = f"its namespace has {pod.beyond}"
    elif pod.executor is None:
        reason, detail = Reason.DRIVER if pod.is_driver else Reason.NOT_ENFORCED, "only executors are placed"
    return Placement(pod.key, pod.uid, None, (), Pin.NONE, reason, detail)


def _order(placement: Placement, context: Context) -> actions.Release | None:
    pod = context.pods.get(placement.uid)
    return actions.order(pod, placement) if pod is not None else None


def _pod(placement: Placement) -> Regarding:
    return Regarding(kinds.POD, placement.pod, placement.uid, placement.namespace)


def _mover(move: PlannedMove) -> Regarding:
    return Regarding(kinds.POD, move.pod, move.uid, move.namespace)


def _is_news(outcome: actions.ReleaseOutcome) -> bool:
    """Whether to report it: pods that are gone, changed or released by another replica are reported elsewhere."""
    if isinstance(outcome, actions.Released):
        return not outcome.already
    return isinstance(outcome, actions.Refused)


def _unpinned_words(placement: Placement, outcome: actions.ReleaseOutcome) -> tuple[EventReason | Reason, str, str]:
    if isinstance(outcome, actions.Refused):
        return EventReason.RELEASE_REFUSED, "Release", outcome.detail
    reason = getattr(outcome, "reason", None) or placement.reason
    return reason or EventReason.RELEASED, "Release", placement.detail or "released as it is"


def _sentence(move: PlannedMove) -> str:
    if move.taint:
        return f"{move.source} is about to go ({move.taint}), {move.target} takes it"
    return (
        f"{move.source} at {move.hot_score:.0f} and {move.target} at {move.cold_score:.0f} become "
        f"{move.hot_after:.0f} and {move.cold_after:.0f}; "
        f"{cause(slowness=move.slowness, pressure_ratio=move.pressure_ratio)}"
    )
