"""A move as an ExecutorMove object, and as the planner's Move.

The status keeps every part of the state, so that another process continues where the last one stopped.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from math import ceil
from typing import Any

from ballast.api.condition import Condition, ConditionStatus, find_condition, set_condition
from ballast.api.move import MOST_REQUESTS, ExecutorMove, MoveSpec, MoveStatus
from ballast.api.quantity import Quantity, plain_quantity
from ballast.model import CORDON, Move, MovePhase, Reason, Resources
from ballast.moves.state import MoveMetrics, MoveReason, MoveState, Orders, Replacement, Subject, Timings

_MAX_MESSAGE = 1024
JSON = Mapping[str, Any]

WITHDRAWN = "Withdrawn"
"""No eviction is sent any more. Part of the durable state, not only for people."""


@dataclass(frozen=True, slots=True)
class Aspect:
    """A condition without its times."""

    type: str
    holds: bool | None
    reason: str
    message: str


def read(raw: JSON) -> MoveState:
    """The state of an ExecutorMove object as the API server gives it. Raises InvalidResource."""
    move = ExecutorMove.parse(raw)
    orders = _orders(move)
    status: JSON = move.status.to_dict()
    measured: JSON = status.get("measured") or {}
    return MoveState(
        orders=orders,
        phase=MovePhase(status.get("phase") or MovePhase.PROPOSED),
        reason=status.get("reason") or "",
        message=status.get("message") or "",
        target=status.get("targetNodeName") or "",
        withdrawn=find_condition(move.status.conditions, WITHDRAWN) is not None,
        subject=_subject(status.get("subject") or {}),
        replacement=_replacement(status.get("replacement")),
        attempts=status.get("attempts") or 0,
        timings=_timings(status.get("timings") or {}),
        before=_before(measured, orders),
        after=_metrics(measured, "After"),
    )


def status(move: MoveState, raw: JSON, now: float) -> dict[str, Any]:
    """The whole status to write in place of that of `raw`, the object that `move` was read from."""
    known = ExecutorMove.parse(raw)
    generation = known.metadata.generation
    written = _filled(
        {
            "observedGeneration": generation,
            "phase": str(move.phase),
            "reason": str(move.reason),
            "message": _cut(move.message),
            "conditions": _conditions(move, known.status.conditions, generation=generation, now=now),
            "targetNodeName": move.target,
            "subject": _written_subject(move.subject),
            "replacement": _written_replacement(move.replacement),
            "measured": _measured(move),
            "timings": _written_timings(move),
            "attempts": move.attempts,
        }
    )
    return MoveStatus.model_validate_json(json.dumps(written), strict=True).to_dict()


def to_move(move: MoveState, *, source_points_per_core: float) -> Move:
    """The move as the planner's ledger, budgets and cooldowns read it.

    `source_points_per_core`: points of score that a core of load makes on the node it leaves; 0 when that is gone.
    """
    orders, timings = move.orders, move.timings
    return Move(
        name=orders.name,
        namespace=orders.namespace,
        topology=orders.topology,
        component=orders.component,
        executor_uid=orders.executor_uid,
        executor_name=orders.executor_name,
        source=orders.source,
        target=move.destination,
        phase=move.phase,
        started_at=orders.created_at if timings.approved_at is None else timings.approved_at,
        ended_at=timings.ended_at if move.phase.ended else None,
        helped=move.helped,
        load_cores=_load_cores(orders, source_points_per_core),
        application=move.subject.application,
        resource_profile=move.subject.resource_profile,
        replacement_uid=move.replacement.uid if move.replacement else None,
        arrived_at=timings.settling_at,
        left_at=timings.arriving_at,
        by_hand=orders.by_hand,
        unapproved=move.phase is MovePhase.PROPOSED and not orders.approved,
        unreplaced=move.phase.ended and move.reason in (MoveReason.NO_REPLACEMENT, MoveReason.TARGET_SHRANK),
        blocked=move.reason in (Reason.DISRUPTION_BUDGET, MoveReason.NOT_EVICTED),
        requests=move.subject.requests,
        taint=orders.taint,
    )


def outlived(move: MoveState, *, ttl_seconds: float, now: float) -> bool:
    """Whether an ended move has been kept long enough and its object may be deleted."""
    ended = move.timings.ended_at
    return move.phase.ended and ended is not None and now - ended >= ttl_seconds


def conditions(move: MoveState) -> tuple[Aspect, ...]:
    """Ready always (unknown until the move has ended); Reconciling, Stalled and Withdrawn only while they hold."""
    reason, message = move.reason or MovePhase.PROPOSED, f"{move.phase}: {move.message}"
    ready = Aspect("Ready", _ready(move), reason, message)
    others = {
        "Reconciling": not move.phase.ended,
        "Stalled": move.phase is MovePhase.FAILED or move.phase is MovePhase.REFUSED,
        WITHDRAWN: move.withdrawn,
    }
    return (ready, *(Aspect(name, holds, reason, message) for name, holds in others.items() if holds))


def _ready(move: MoveState) -> bool | None:
    return move.phase is MovePhase.SUCCEEDED if move.phase.ended else None


def _load_cores(orders: Orders, points_per_core: float) -> float:
    """Nothing by hand: a prediction that a user wrote would heat or cool nodes in all tenants' decisions."""
    return 0.0 if orders.by_hand or points_per_core <= 0 else _shed_points(orders) / points_per_core


def _shed_points(orders: Orders) -> float:
    """Points of score that the source is predicted to lose."""
    decided, predicted = orders.decided.hot_score, orders.predicted.hot_score
    return max(0.0, decided - predicted) if decided is not None and predicted is not None else 0.0


DRAIN = "Drain"
"""The strategy of moves off nodes that are about to go."""
BY_HAND = "Manual"
"""The strategy of moves that users create. The chart's policy `ballast-move` lets them name no other."""


def _strategy(spec: MoveSpec) -> str:
    return (spec.reason.strategy if spec.reason else None) or BY_HAND


def _taint(spec: MoveSpec) -> str:
    """Empty for a move that drains nothing, whatever its author wrote: drains have other budgets."""
    return (spec.reason.taint if spec.reason else None) or CORDON if _strategy(spec) == DRAIN else ""


def _orders(move: ExecutorMove) -> Orders:
    spec, metadata = move.spec, move.metadata
    namespace = metadata.namespace or ""
    scores = spec.reason.scores if spec.reason else None
    created = metadata.creation_timestamp
    return Orders(
        name=metadata.name,
        namespace=namespace,
        topology=f"{namespace}/{spec.topology_name}",
        component=spec.component or "",
        executor_uid=spec.executor.uid,
        executor_name=spec.executor.pod,
        source=spec.source_node_name,
        target=spec.target_node_name,
        created_at=created.timestamp() if created else 0.0,
        approved=spec.approved,
        policy=spec.policy_name or "",
        by_hand=_strategy(spec) == BY_HAND,
        taint=_taint(spec),
        decided=MoveMetrics(
            hot_score=scores.from_ if scores else None,
            cold_score=scores.to if scores else None,
            slowness=spec.reason.slowness if spec.reason else None,
        ),
        predicted=MoveMetrics(
            hot_score=spec.predicted.hot_after if spec.predicted else None,
            cold_score=spec.predicted.cold_after if spec.predicted else None,
        ),
    )


def _subject(raw: JSON) -> Subject:
    return Subject(
        raw.get("application", ""),
        raw.get("resourceProfile", ""),
        raw.get("executorId", ""),
        _requests(raw.get("requests")),
    )


def _written_subject(subject: Subject) -> dict[str, Any] | None:
    return _filled(
        {
            "application": subject.application,
            "resourceProfile": subject.resource_profile,
            "executorId": subject.executor_id,
            "requests": None if subject.requests is None else _written_requests(subject.requests),
        }
    )


def _requests(raw: JSON | None) -> Resources | None:
    if not raw:
        return None
    amounts = {name: float(Quantity.parse(text)) for name, text in raw.items()}
    cpu_cores, memory_bytes = amounts.pop("cpu", 0.0), amounts.pop("memory", 0.0)
    return Resources(cpu_cores, memory_bytes, 1.0, tuple(sorted(amounts.items())))


def _written_requests(asked: Resources) -> dict[str, str]:
    amounts = {"cpu": asked.cpu_cores, "memory": asked.memory_bytes, **dict(asked.extended)}
    return {name: _amount(name, amount) for name, amount in list(amounts.items())[:MOST_REQUESTS]}


def _amount(name: str, amount: float) -> str:
    """In thousandths at most, as kube-scheduler counts CPU; bytes in whole ones."""
    thousandths = ceil(round(amount * 1000, 3))
    of_bytes = name in ("memory", "ephemeral-storage") or name.startswith("hugepages-")
    return plain_quantity(ceil(thousandths / 1000) * 1000 if of_bytes else thousandths, binary=of_bytes)


def _replacement(raw: JSON | None) -> Replacement | None:
    if not raw:
        return None
    return Replacement(
        uid=raw["uid"],
        pod=raw["pod"],
        claimed_at=_time(raw.get("claimed")),
        node=raw.get("node", ""),
        pinned=raw.get("pinned", False),
        displaced=raw.get("displaced", False),
    )


def _written_replacement(claim: Replacement | None) -> dict[str, Any] | None:
    if claim is None:
        return None
    return {
        "pod": claim.pod,
        "uid": claim.uid,
        "node": claim.node,
        "pinned": claim.pinned,
        **_filled({"claimed": _stamp(claim.claimed_at), "displaced": claim.displaced or None}),
    }


_PHASE_TIMES = {
    "approved": "approved_at",
    "leaving": "leaving_at",
    "arriving": "arriving_at",
    "settling": "settling_at",
    "ended": "ended_at",
}


def _timings(raw: JSON) -> Timings:
    return Timings(**{attribute: _time(raw.get(field)) for field, attribute in _PHASE_TIMES.items()})


def _written_timings(move: MoveState) -> dict[str, Any]:
    times = {field: _stamp(getattr(move.timings, attribute)) for field, attribute in _PHASE_TIMES.items()}
    return _filled({"proposed": _stamp(move.orders.created_at), **times})


_METRICS = {
    "hot": "hot_score",
    "cold": "cold_score",
    "slowness": "slowness",
    "batchP50": "batch_p50_seconds",
    "batchP95": "batch_p95_seconds",
}


def _metrics(measured: JSON, when: str) -> MoveMetrics:
    return MoveMetrics(**{attribute: measured.get(f"{field}{when}") for field, attribute in _METRICS.items()})


def _before(measured: JSON, orders: Orders) -> MoveMetrics:
    """Scores that are not on record are taken from the decision."""
    found = _metrics(measured, "Before")
    if found.gap is not None:
        return found
    return replace(found, hot_score=orders.decided.hot_score, cold_score=orders.decided.cold_score)


def _measured(move: MoveState) -> dict[str, Any]:
    fields = {
        f"{field}{when}": getattr(values, attribute)
        for when, values in (("Before", move.before), ("After", move.after))
        for field, attribute in _METRICS.items()
    }
    # For readers: it follows from the others, which are read back and so kept as they are.
    return _filled({**fields, "gain": None if move.gain is None else round(move.gain, 1)})


def _conditions(move: MoveState, before: tuple[Condition, ...], *, generation: int, now: float) -> list[dict[str, Any]]:
    aspects = conditions(move)
    held = tuple(c for c in before if c.type in {aspect.type for aspect in aspects})
    for aspect in aspects:
        held = set_condition(
            held,
            type_=aspect.type,
            status=ConditionStatus.of(aspect.holds),
            reason=aspect.reason,
            message=_cut(aspect.message),
            observed_generation=generation,
            now=datetime.fromtimestamp(now, UTC),
        )
    return [condition.to_dict() for condition in held]


def _filled(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Without what is absent or empty: a whole status is written, so what is left out is gone."""
    return {name: value for name, value in fields.items() if value not in (None, "", {})}


def _cut(message: str) -> str:
    return message if len(message) <= _MAX_MESSAGE else f"{message[: _MAX_MESSAGE - 1]}…"


def _stamp(time: float | None) -> str | None:
    return None if time is None else datetime.fromtimestamp(time, UTC).isoformat().replace("+00:00", "Z")


def _time(stamp: str | None) -> float | None:
    return None if stamp is None else datetime.fromisoformat(stamp).timestamp()
