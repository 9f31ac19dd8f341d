"""The facts of one pass about each open move, as its next step is decided from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ballast.controller.cluster_objects import OpenMove, planner_moves
from ballast.controller.context import Context, Kin
from ballast.kube import names
from ballast.kube.pods import Pod as SeenPod
from ballast.model import Executor, MovePhase, Phase, Reason, Refusal
from ballast.moves import Facts, Pod, Revalidation, Rival
from ballast.moves.revalidation import proposal, revalidate
from ballast.moves.rules import DRIFT_POINTS


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
    """A pod of another namespace counts as none: a refusal must not tell the move's author whether it exists."""
    return pod if pod is not None and pod.namespace == each.namespace else None


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
    namespace, subject = each.namespace, each.state.subject
    if executor is not None and executor.executor is not None:
        return namespace, executor.executor.application, executor.executor.resource_profile
    return namespace, subject.application, subject.resource_profile


def _revalidation(each: OpenMove, context: Context, known: Mapping[str, OpenMove], now: float) -> Revalidation:
    """Based on the last written state of every move, also if this pass wrote it.

    Moves of other policies count, and deleted moves: otherwise a user could free a budget by deleting moves.
    """
    points = context.points_per_core
    move = each.planned(points)
    if move.phase is MovePhase.PROPOSED:
        return proposal(context.snapshot, context.policy, move, now)
    if not move.phase.traveling:
        return Revalidation()
    fresh = {(m.namespace, m.name): m for m in planner_moves(known.values(), points)}
    others = (m for m in context.snapshot.moves if (m.namespace, m.name) not in fresh)
    snapshot = replace(context.snapshot, moves=(*fresh.values(), *others))
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
        requests=pod.requests,
        node=pod.node,
        gate_since=_gate_since(pod, view) if pod.phase is Phase.GATED else None,
        unschedulable_since=facts.unschedulable_since if facts and pod.room_kept_on is None else None,
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
    return pod.created_at if names.GATE in pod.gates and not pod.awaited_gates else None


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
