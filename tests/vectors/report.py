"""The table at the end of a run: class, cases, passed, left open by flag."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from _pytest.reports import TestReport

COMPARED = "vectors.compared"
LEFT_OPEN = "vectors.left_open"


@dataclass(slots=True)
class Tally:
    cases: int = 0
    passed: int = 0
    left_open: Counter[str] = field(default_factory=Counter)

    def add(self, report: TestReport, flags: Iterable[str]) -> None:
        self.cases += 1
        self.passed += report.passed
        self.left_open.update(set(flags))


def tallies(reports: Iterable[TestReport]) -> dict[str, Tally]:
    """Per class, from the reports of single cases (of whichever process ran them)."""
    found: dict[str, Tally] = {}
    for report in reports:
        noted = report.user_properties
        for class_name in (value for key, value in noted if key == COMPARED):
            flags = (str(value) for key, value in noted if key == LEFT_OPEN)
            found.setdefault(str(class_name), Tally()).add(report, flags)
    return found


def lines(found: dict[str, Tally]) -> list[str]:
    width = max(len(name) for name in found)
    rows = [f"{'class':<{width}}  cases  passed  left open in part, by flag"]
    for name, tally in sorted(found.items()):
        flags = ", ".join(f"{flag} {count}" for flag, count in sorted(tally.left_open.items())) or "-"
        rows.append(f"{name:<{width}}  {tally.cases:>5}  {tally.passed:>6}  {flags}")
    return rows
