"""What is wrong with a policy that admission could not see."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from ballast.api import BalancingPolicy
from ballast.errors import InvalidField

_A_DAY = datetime(2026, 1, 1, tzinfo=UTC)
_FIVE_FIELDS = "write five fields such as 0 8 * * 1-5"


def defect(policy: BalancingPolicy) -> InvalidField | None:
    """The first thing that makes the policy impossible to follow: its field, its value and the remedy."""
    for position, budget in enumerate(policy.spec.moves.budgets):
        at = f"spec.moves.budgets[{position}]"
        wrong = schedule_defect(budget.schedule or "", budget.time_zone or "UTC", at=at, time_zone_field="timeZone")
        if wrong is not None:
            return wrong
    return None


def schedule_defect(schedule: str, time_zone: str, *, at: str, time_zone_field: str) -> InvalidField | None:
    """What keeps the schedule of a budget from ever coming; none is always. `at`: where the budget stands."""
    if not schedule:
        return None
    try:
        ZoneInfo(time_zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        remedy = "no such time zone; write one such as Europe/Berlin"
        return InvalidField(f"{at}.{time_zone_field}", time_zone, remedy)
    try:
        next(CronSim(schedule, _A_DAY, reverse=True))
    except CronSimError as error:
        return InvalidField(f"{at}.schedule", schedule, f"{error}; {_FIVE_FIELDS}")
    except StopIteration:
        return InvalidField(f"{at}.schedule", schedule, f"there is no such day; {_FIVE_FIELDS}")
    return None
