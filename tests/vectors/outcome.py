"""The result of comparing one case, in addition to pass or fail."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.vectors.case import Case

MAY_BE_LEFT_OPEN: dict[str, tuple[str, ...]] = {
    "tie": (
        "AvgShedder",
        "ThresholdShedder",
        "OverloadShedder",
        "UniformLoadShedder",
        "TransferShedder",
        "TopKBundles",
    ),
    "orderTie": (
        "AvgShedder",
        "ThresholdShedder",
        "OverloadShedder",
        "UniformLoadShedder",
        "TransferShedder",
        "TopKBundles",
    ),
    "equalBundleData": ("AvgShedder",),
    "several-non-shuffle-children": ("ExecSorterByProximity",),
    "running-partial": (
        "DefaultResourceAwareStrategy",
        "GenericResourceAwareStrategy",
        "RoundRobinResourceAwareStrategy",
    ),
}
"""Flags that the cases themselves carry, and the classes in which they leave something open."""

MAY_BE_COMPARED_AS_SETS: dict[str, tuple[str, ...]] = {
    "equal-figures": ("NodeSorterHostProximity",),
    "one-favored-host": ("NodeSorterHostProximity",),
    "at-the-threshold": ("LeastResourceUsageWithWeight",),
    "list-changed": ("RoundRobinBrokerSelector",),
}
"""Reasons that the comparison finds in the figures of an answer."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Part of a case was not compared exactly, and why: a flag of the case, or a reason found in its figures."""

    case: Case
    flag: str

    def __post_init__(self) -> None:
        flagged = self.flag in self.case.flags and self.case.class_name in MAY_BE_LEFT_OPEN.get(self.flag, ())
        if not flagged and self.case.class_name not in MAY_BE_COMPARED_AS_SETS.get(self.flag, ()):
            message = f"{self.case.class_name} {self.case.id}: nothing may be left open by {self.flag!r}"
            raise AssertionError(message)


Record = Callable[[Outcome], None]
"""Note that part of a case was left open; a case that notes nothing was compared in full."""
