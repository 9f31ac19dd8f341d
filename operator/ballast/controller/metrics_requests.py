"""Metrics that are asked for in threads: a slow Prometheus keeps no pod gated."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field

from ballast.api.policy import PolicySpec
from ballast.errors import described
from ballast.model import ConditionReason, MetricsHealth
from ballast.prometheus import Reading

_LOG = logging.getLogger(__name__)
_WORN_RATIO = 0.5
"""Of metrics.maxAge: a pass between full ones asks for metrics again that are older, before they are too old to use."""
_ASKED_AT_ONCE = 8
"""Policies whose Prometheus is asked at the same time."""
_LONGEST_REASON_CHARACTERS = 500
_NO_ANSWER_YET = MetricsHealth(
    available=False, reason=ConditionReason.NO_ANSWER_YET, message="Prometheus has not answered yet"
)


@dataclass(slots=True)
class PolicyMetrics:
    """Of one policy, between its passes."""

    reading: Reading = field(default_factory=lambda: Reading(health=_NO_ANSWER_YET))
    full_pass_at: float = -math.inf
    """Monotonic seconds."""
    asked: Future[Reading] | None = None
    """Metrics that were asked for."""

    def usable(self, spec: PolicySpec, now: float) -> Reading:
        """Metrics are checked when they arrive but may be used much later: their age is checked again."""
        return self.reading.aged(now=now, max_age_seconds=spec.metrics.max_age.seconds)

    def worn(self, spec: PolicySpec, now: float) -> bool:
        at = self.reading.at
        return at is not None and not 0 <= now - at <= _WORN_RATIO * spec.metrics.max_age.seconds


class MetricsRequests:
    """`monotonic`: seconds that are never set back; `patience_seconds`: how long a reconcile waits for all answers."""

    def __init__(self, monotonic: Callable[[], float], patience_seconds: float) -> None:
        self._monotonic, self._patience_seconds = monotonic, patience_seconds
        self._threads = ThreadPoolExecutor(_ASKED_AT_ONCE, "metrics")
        self._patient_until = 0.0

    def close(self) -> None:
        """Does not wait for metrics that were asked for."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def begin(self) -> None:
        """A reconcile begins."""
        self._patient_until = self._monotonic() + self._patience_seconds

    def renew(
        self, known: PolicyMetrics, spec: PolicySpec, ask: Callable[[], Reading], *, now: float, looked_at: float
    ) -> bool:
        """Ask for new metrics if they are due. Returns whether they make this pass a full one.

        Until Prometheus has answered, passes go on with what is known. `looked_at`: monotonic seconds.
        """
        due = looked_at - known.full_pass_at >= spec.interval.seconds
        if known.asked is None:
            if not due and not known.worn(spec, now):
                return False
            known.asked = self._threads.submit(ask)
        wait([known.asked], timeout=max(0.0, self._patient_until - self._monotonic()))
        if not known.asked.done():
            return False
        asked, known.asked = known.asked, None
        known.reading = _read(asked)
        if due:
            known.full_pass_at = looked_at
        return due

    def next_in(self, known: PolicyMetrics, spec: PolicySpec, looked_at: float) -> float:
        """Seconds until the next look at the policy's metrics."""
        return self._patience_seconds if known.asked else known.full_pass_at + spec.interval.seconds - looked_at


def _read(asked: Future[Reading]) -> Reading:
    """Without metrics executors are still placed, whatever is in an answer of Prometheus."""
    try:
        return asked.result()
    except Exception as error:  # noqa: BLE001 -- it is logged
        _LOG.exception("the metrics can't be read")
        words = f"its answers can't be read: {described(error)}"[:_LONGEST_REASON_CHARACTERS]
        return Reading(health=MetricsHealth(available=False, reason=ConditionReason.UNREACHABLE, message=words))
