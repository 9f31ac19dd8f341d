"""What is wrong with a policy that admission could not see."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from ballast.api import BalancingPolicy
from ballast.api.policy_moves import Budget

_A_DAY = datetime(2026, 1, 1, tzinfo=UTC)


def defect(policy: BalancingPolicy) -> str | None:
    """The first thing that makes the policy impossible to follow: its field, its value and the remedy."""
    for position, budget in enumerate(policy.spec.moves.budgets):
        if budget.schedule and (wrong := _schedule_defect(budget)) is not None:
            return f"spec.moves.budgets[{position}].{wrong}"
    return None


def _schedule_defect(budget: Budget) -> str | None:
    zone = budget.time_zone or "UTC"
    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return f"timeZone: {zone!r}: no such time zone; write one such as Europe/Berlin"
    try:
        next(CronSim(budget.schedule or "", _A_DAY, reverse=True))
    except CronSimError as error:
        return f"schedule: {budget.schedule!r}: {error}; write five fields such as 0 8 * * 1-5"
    except StopIteration:
        return f"schedule: {budget.schedule!r}: there is no such day; write five fields such as 0 8 * * 1-5"
    return None
