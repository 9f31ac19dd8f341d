"""Whether an executor is slow because of its node or because of its data.

Slowness = seconds per task ÷ the median of its application (same resource profile), at similar bytes per task.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import median

from ballast.model import Executor, Phase, Reason
from ballast.planner.load import Profile, profile_of

_SIMILAR_BYTES_RATIO = 1.5
"""Above this ratio to the median, an executor's tasks are larger, not slower."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """`slowness`: None where there are no task metrics. `skew`: its bytes per task ÷ the median, None if unknown."""

    slowness: float | None = None
    skew: float | None = None

    def objection(self, min_slowness: float) -> tuple[Reason, str] | None:
        """Why a move would not help, or None. Without task metrics there is no objection."""
        if self.slowness is None:
            return None
        # Few tasks in a window differ in size by chance; the node is at fault where they are slower than large.
        if self.skew is not None and self.skew > _SIMILAR_BYTES_RATIO and self.slowness < min_slowness * self.skew:
            return (
                Reason.DATA_SKEW,
                f"its tasks carry {self.skew:.2f} times the median bytes; a move takes the data along",
            )
        if self.slowness < min_slowness:
            return (
                Reason.NOTHING_TO_GAIN,
                f"its tasks take {self.slowness:.2f} times the median, below minSlowness {min_slowness:g}",
            )
        return None


def evidence(executors: Iterable[Executor]) -> dict[str, Evidence]:
    """Evidence by executor uid, for every running executor of an application with at least two measured ones."""
    groups: dict[Profile, list[Executor]] = defaultdict(list)
    for executor in executors:
        usage = executor.usage
        if executor.phase is Phase.RUNNING and usage is not None and usage.task_seconds is not None:
            groups[profile_of(executor)].append(executor)
    found: dict[str, Evidence] = {}
    for members in groups.values():
        if len(members) > 1:
            found.update(_of_group(members))
    return found


def _of_group(members: list[Executor]) -> Mapping[str, Evidence]:
    seconds = {e.uid: e.usage.task_seconds for e in members if e.usage and e.usage.task_seconds is not None}
    volume = {e.uid: e.usage.task_bytes for e in members if e.usage and e.usage.task_bytes is not None}
    middle_seconds = median(seconds.values())
    middle_bytes = median(volume.values()) if volume else 0.0
    return {
        uid: Evidence(
            slowness=value / middle_seconds if middle_seconds > 0 else None,
            skew=volume[uid] / middle_bytes if uid in volume and middle_bytes > 0 else None,
        )
        for uid, value in seconds.items()
    }
