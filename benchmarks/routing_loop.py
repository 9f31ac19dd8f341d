"""How much waits where routing closes a loop: the lag that it goes by is old, and comes from what it sent.

Round robin, Storm's rule (the port that is held to recorded cases of `LoadAwareShuffleGrouping`) and ours run on the
same arrivals and readers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from multiprocessing import get_context

from benchmarks.report import Aim, Baseline, Result, machine, write
from benchmarks.routed.loop import OURS, ROUND_ROBIN, RULES, STORM, Case, Outcome, View, run

BUSY = (0.5, 0.8, 0.9, 0.95, 0.98)
EQUAL, UNLIKE, APART = (1.0,), (1.0, 0.95, 1.05), (1.0, 0.6, 1.4)
SPEEDS = {EQUAL: "equal speeds", UNLIKE: "speeds ±5 %", APART: "speeds ±40 %"}
VIEWS: tuple[tuple[View, float], ...] = (
    ("commits", 0.0),
    ("commits", 5.0),
    ("commits", 30.0),
    ("late", 30.0),
    ("batches", 30.0),
)
OF_ROUND_ROBIN, OF_STORMS_SHARE, NEAR_UP_TO = 1.2, 0.9, 0.8


@dataclass(frozen=True, slots=True)
class Compared:
    case: Case
    outcomes: dict[str, Outcome]

    def ratio(self, rule: str) -> float:
        return self.outcomes[rule].backlog / self.outcomes[ROUND_ROBIN].backlog


def cases() -> Iterator[Case]:
    for speeds in SPEEDS:
        for view, age in VIEWS:
            for busy in BUSY:
                for targets in (2, 16, *([64] if busy == BUSY[-1] else [])):
                    yield Case(targets, busy, age, view, speeds=speeds)
                yield Case(12, busy, age, view, speeds=speeds, senders="abc")


def lopsided() -> Iterator[Case]:
    """All senders in one of three zones: some records must go farther from half of the capacity on."""
    for view, age in VIEWS:
        for busy in BUSY:
            yield Case(6, busy, age, view, senders="a")


def compared(case: Case) -> Compared:
    return Compared(case, {name: run(case, make) for name, make in RULES.items()})


def results(found: Sequence[Compared]) -> list[Result]:
    """The worst of each age and of the cases that differ in it alone."""
    table = []
    for view, age in VIEWS:
        for busy in BUSY:
            mine = [
                each for each in found if (each.case.view, each.case.age_seconds, each.case.busy) == (view, age, busy)
            ]
            worst = max(mine, key=lambda each: each.ratio(OURS))
            name = f"{busy:.0%} busy, {_age(worst.case)}; {worst.case.targets} targets, {SPEEDS[worst.case.speeds]}"
            table.append(_backlog(name, worst, Aim(OF_ROUND_ROBIN, of_ratio=True)))
            zoned = [each for each in mine if each.case.senders and busy <= NEAR_UP_TO]
            for each in zoned:
                near, storms = each.outcomes[OURS].near, Baseline("Storm", each.outcomes[STORM].near)
                case = f"{busy:.0%} busy, {_age(each.case)}, {SPEEDS[each.case.speeds]}"
                aim = Aim(OF_STORMS_SHARE, at_least=True, of_ratio=True)
                table.append(Result(case, "share in the own zone", near, "", storms, aim))
    return table


def _backlog(name: str, each: Compared, aim: Aim | None) -> Result:
    outcome, baseline = each.outcomes[OURS], each.outcomes[ROUND_ROBIN]
    return Result(name, "backlog", outcome.backlog, "records", Baseline("round robin", baseline.backlog), aim)


def _age(case: Case) -> str:
    if not case.age_seconds:
        return "fresh lag"
    words = {"commits": "commits every", "late": "commits seen after", "batches": "a look every"}
    return f"{words[case.view]} {case.age_seconds:.0f} s"


def curve(found: Sequence[Compared]) -> str:
    """The table of docs/routing.md: the worst ratio of each rule by load and age."""
    rows = ["| Lag | " + " | ".join(f"{busy:.0%} busy" for busy in BUSY) + " |", "|---" * (len(BUSY) + 1) + "|"]
    for view, age in VIEWS:
        cells = []
        for busy in BUSY:
            mine = [
                each for each in found if (each.case.view, each.case.age_seconds, each.case.busy) == (view, age, busy)
            ]
            cells.append(" / ".join(f"{max(each.ratio(rule) for each in mine):.2f}" for rule in (OURS, STORM)))
        rows.append(f"| {_age(replace(mine[0].case))} | " + " | ".join(cells) + " |")
    return "\n".join(rows)


if __name__ == "__main__":
    at_start = machine()
    with get_context("fork").Pool() as pool:
        even, uneven = pool.map(compared, cases(), chunksize=1), pool.map(compared, lopsided(), chunksize=1)
    print("Mean backlog as a multiple of round robin's, ours / Storm's, the worst of each:\n" + curve(even))
    print("All senders in one of three zones:\n" + curve(uneven))
    beyond = [
        _backlog(f"all senders in one zone, {each.case.busy:.0%} busy, {_age(each.case)}", each, None)
        for each in uneven
    ]
    write("routing-loop", [*results(even), *beyond], before=at_start)
