"""Moves in each phase, and the facts around them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ballast.model import MovePhase, MovesMode, MovesPolicy, Phase, Resources
from ballast.moves import Facts, MoveMetrics, MoveReason, MoveState, Orders, Pod, Replacement, Rival, Subject, Timings

NOW = 1_000_000.0
REQUESTS = Resources(0.05, 64.0 * 2**20, 1.0, (("nvidia.com/gpu", 1.0),))
SETTINGS = MovesPolicy(mode=MovesMode.ENFORCE)
"""120 s to leave, 180 s to arrive, 180 s to settle, 3600 s to be approved."""


def orders(**changes: Any) -> Orders:
    base = Orders(
        name="m1",
        namespace="team",
        topology="team/clicks",
        component="ingest",
        executor_uid="uid-3",
        executor_name="clicks-exec-3",
        source="hot",
        target="cold",
        created_at=NOW - 10,
        approved=True,
        decided=MoveMetrics(hot_score=90.0, cold_score=30.0),
        predicted=MoveMetrics(hot_score=65.0, cold_score=55.0),
    )
    return replace(base, **changes)


def proposed(**changes: Any) -> MoveState:
    return MoveState(orders(**changes))


def approved(*, since: float = 1.0) -> MoveState:
    return MoveState(orders(), MovePhase.APPROVED, MoveReason.CLEARED, timings=Timings(approved_at=NOW - since))


def leaving(*, since: float = 5.0, **changes: Any) -> MoveState:
    base = MoveState(
        orders(),
        MovePhase.LEAVING,
        MoveReason.EVICTING,
        target="cold",
        subject=Subject("spark-1", "0", "3", REQUESTS),
        before=MoveMetrics(90.0, 30.0, 1.6, 4.0),
        timings=Timings(approved_at=NOW - since - 1, leaving_at=NOW - since),
    )
    return replace(base, **changes)


def arriving(*, since: float = 5.0, **changes: Any) -> MoveState:
    left = leaving(since=since + 5)
    timings = replace(left.timings, arriving_at=NOW - since)
    base = replace(left, phase=MovePhase.ARRIVING, reason=MoveReason.AWAITING_REPLACEMENT, timings=timings)
    return replace(base, **changes)


def claiming(*, since: float = 5.0, claimed: float = 1.0, **changes: Any) -> MoveState:
    claim = Replacement("uid-7", "clicks-exec-7", NOW - claimed)
    return arriving(since=since, **{"replacement": claim, "reason": MoveReason.STARTING, **changes})


def settling(*, since: float, node: str = "cold", **changes: Any) -> MoveState:
    arrived = claiming(since=since + 5)
    claim = Replacement("uid-7", "clicks-exec-7", NOW - since - 3, node, pinned=True)
    timings = replace(arrived.timings, settling_at=NOW - since)
    base = replace(arrived, phase=MovePhase.SETTLING, reason=MoveReason.MEASURING, replacement=claim, timings=timings)
    return replace(base, **changes)


def executor(phase: Phase = Phase.RUNNING, **changes: Any) -> Pod:
    base = Pod("uid-3", "clicks-exec-3", phase, NOW - 9000, "spark-1", "0", "3", REQUESTS, node="hot")
    return replace(base, **changes)


def newcomer(phase: Phase = Phase.GATED, **changes: Any) -> Pod:
    base = Pod("uid-7", "clicks-exec-7", phase, NOW - 4, "spark-1", "0", "7")
    gate = {"gate_since": NOW - 1} if phase is Phase.GATED else {}
    return replace(base, **{**gate, **changes})


def sibling(number: int = 1, **changes: Any) -> Pod:
    base = Pod(f"uid-{number}", f"clicks-exec-{number}", Phase.RUNNING, NOW - 9000, "spark-1", "0", str(number))
    return replace(base, **{"node": "mild", **changes})


def rival(**changes: Any) -> Rival:
    return replace(Rival("team/m0", NOW - 11, waiting=True), **changes)


def before(**changes: Any) -> Facts:
    """The executor runs next to one other."""
    base = Facts(
        executor(),
        (sibling(),),
        scores={"hot": 91.0, "cold": 31.0, "mild": 50.0},
        slowness={"uid-3": 1.6},
        batch_p95_seconds=4.0,
    )
    return replace(base, **changes)


def after(*newcomers: Pod, **changes: Any) -> Facts:
    """The executor is gone."""
    return replace(before(), executor=None, newcomers=(sibling(), *newcomers), **changes)
