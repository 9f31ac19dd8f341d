"""Budgets of moves: how many there may be, in what span or window, counted for what."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import Field

from ballast.api.duration import Between, Duration
from ballast.api.meta import Model
from ballast.api.rule import Rule, matching


class BudgetScope(StrEnum):
    """What a budget is counted for."""

    POOL = "Pool"
    TOPOLOGY = "Topology"
    NODE = "Node"


_CRON_FIELD = "[-A-Za-z0-9*,/]+"


class Budget(Model):
    """At most so many moves: per span of time, or during a recurring window."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="has(self.per) != has(self.schedule)",
            message="set exactly one of per (a sliding span such as 1h) and schedule (when a window begins)",
            holds=lambda budget: (budget.per is None) != (budget.schedule is None),
        ),
        Rule(
            cel="has(self.schedule) == has(self.duration)",
            message="schedule and duration go together: set both (when a window begins, how long it lasts) or none",
            holds=lambda budget: (budget.schedule is None) == (budget.duration is None),
            path=".duration",
        ),
        Rule(
            cel="!has(self.timeZone) || has(self.schedule)",
            message="timeZone goes with schedule: remove it or set schedule",
            holds=lambda budget: budget.time_zone is None or budget.schedule is not None,
            path=".timeZone",
        ),
    )

    moves: Annotated[int, Field(ge=0, le=10_000)]
    """The most moves; 0 forbids them."""
    per: Annotated[Duration, Between("1s", "168h")] | None = None
    """In any span of this length, up to 168h."""
    scope: BudgetScope = BudgetScope.POOL
    """Counted for the whole pool, for each topology or for each node: Pool, Topology or Node."""
    schedule: (
        Annotated[
            str,
            Field(min_length=9, max_length=100),
            matching(
                f"{_CRON_FIELD}( {_CRON_FIELD}){{4}}",
                "write five fields of cron (minute hour day month weekday), such as 0 8 * * 1-5",
            ),
        ]
        | None
    ) = None
    """When a window begins, in the five fields of cron, such as 0 8 * * 1-5."""
    time_zone: (
        Annotated[
            str,
            Field(min_length=1, max_length=64),
            matching("[A-Za-z][-+A-Za-z0-9_/]*", "write an IANA time zone such as Europe/Berlin"),
        ]
        | None
    ) = None
    """The IANA time zone of the schedule. Default: UTC."""
    duration: Annotated[Duration, Between("1m", "168h")] | None = None
    """How long the window lasts, up to 168h."""
