"""Setting one condition after the other on those that were there before."""

from __future__ import annotations

from datetime import UTC, datetime

from ballast.api.condition import Condition, ConditionStatus, drop_condition, set_condition


class Judge:
    """`conditions` after each call is the whole list; a transition time changes only with its status."""

    def __init__(self, conditions: tuple[Condition, ...], generation: int, now: float) -> None:
        self.conditions = conditions
        self._generation = generation
        self._now = datetime.fromtimestamp(now, UTC)

    def set(self, type_: str, *, holds: bool | None, reason: str, message: str = "") -> None:
        self.conditions = set_condition(
            self.conditions,
            type_=type_,
            status=ConditionStatus.of(holds),
            reason=reason,
            message=message,
            observed_generation=self._generation,
            now=self._now,
        )

    def drop(self, type_: str) -> None:
        self.conditions = drop_condition(self.conditions, type_)
