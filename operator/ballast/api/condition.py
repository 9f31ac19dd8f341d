"""Conditions, as metav1.Condition has them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field

from ballast.api.meta import StatusModel
from ballast.api.rule import map_by

_WORD = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"


class ConditionStatus(StrEnum):
    """Whether a condition holds."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"

    @classmethod
    def of(cls, holds: bool | None) -> Self:
        """True, False, or Unknown for None."""
        return cls("Unknown" if holds is None else str(holds))


class Condition(StatusModel):
    """One aspect of the object's state."""

    type: Annotated[str, Field(min_length=1, max_length=316, pattern=f"^{_WORD}$")]
    """Which aspect, such as Ready."""
    status: ConditionStatus
    """True, False or Unknown."""
    reason: Annotated[str, Field(min_length=1, max_length=1024, pattern=f"^{_WORD}$")]
    """Why, as one stable word for programs."""
    message: Annotated[str, Field(max_length=32768)] = ""
    """Why, in words for people."""
    last_transition_time: datetime
    """When the status last changed."""
    observed_generation: Annotated[int, Field(ge=0)] = 0
    """The generation of the spec that this condition judges."""


Conditions = Annotated[tuple[Condition, ...], Field(max_length=32), map_by("type")]


def find_condition(conditions: Iterable[Condition], type_: str) -> Condition | None:
    return next((condition for condition in conditions if condition.type == type_), None)


def set_condition(
    conditions: Iterable[Condition],
    *,
    type_: str,
    status: ConditionStatus,
    reason: str,
    message: str,
    observed_generation: int,
    now: datetime,
) -> tuple[Condition, ...]:
    """The conditions with this one added or replaced; `last_transition_time` is `now` only if the status changed.

    The order of the others stays, a new one comes last.
    """
    kept = tuple(conditions)
    before = find_condition(kept, type_)
    unchanged = before is not None and before.status == status
    condition = Condition(
        type=type_,
        status=status,
        reason=reason,
        message=message,
        last_transition_time=before.last_transition_time if before and unchanged else now.replace(microsecond=0),
        observed_generation=observed_generation,
    )
    if before is None:
        return (*kept, condition)
    return tuple(condition if other.type == type_ else other for other in kept)


def drop_condition(conditions: Iterable[Condition], type_: str) -> tuple[Condition, ...]:
    """The conditions without this one."""
    return tuple(condition for condition in conditions if condition.type != type_)
