"""How much waits where routing closes a loop: the lag that it goes by is old, and comes from what it sent.

Round robin, Storm's rule (the port that is held to recorded cases of `LoadAwareShuffleGrouping`) and ours run on the
same arrivals and readers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from multiprocessing import get_context

import numpy as np

from ballast.cli.picture.exhibits import write_pngs
from benchmarks.report import FOLDER, Aim, Baseline, Result, machine, write
from benchmarks.routed.curve import picture
from benchmarks.routed.loop import OURS, ROUND_ROBIN, RULES, STORM, ZONES, Case, Outcome, View, run, split

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
NOWHERE, EACH, ONE, SKEWED = "", "abc", "a", "aaaaaaabbc"
SENDERS = {NOWHERE: "no zones", EACH: "senders in each zone", ONE: "senders in one zone", SKEWED: "senders 7:2:1"}
OF_ROUND_ROBIN, OF_THE_MOST, NEAR_UP_TO = 1.2, 0.9, 0.8
SEEDS = 2


@dataclass(frozen=True, slots=True)
class Compared:
    case: Case
    outcomes: dict[str, Outcome]

    def ratio(self, rule: str) -> float:
        return self.outcomes[rule].backlog / self.outcomes[ROUND_ROBIN].backlog

    @property
    def is_told(self) -> bool:
        return self.case.told is None

    @property
    def words(self) -> str:
        told = "" if self.is_told else ", not told of each other"
        return f"{SENDERS[self.case.senders]}{told}, {self.case.targets} targets, {SPEEDS[self.case.speeds]}"


def cases() -> Iterator[Case]:
    for view, age in VIEWS:
        for busy in BUSY:
            for speeds in SPEEDS:
                for targets in (2, 16, *([64] if busy == BUSY[-1] else [])):
                    yield Case(targets, busy, age, view, speeds=speeds)
            for senders in (EACH, ONE, SKEWED):
                for speeds in (EQUAL, APART):
                    yield Case(6, busy, age, view, speeds=speeds, senders=senders)
                yield Case(6 if senders == SKEWED else 12, busy, age, view, senders=senders, seed=1)
            for speeds in (EQUAL, APART):
                yield Case(6, busy, age, view, speeds=speeds, senders=ONE, told="")


def compared(case: Case) -> Compared:
    return Compared(case, {name: run(case, make) for name, make in RULES.items()})


def most_near(senders: str) -> float:
    """The share that can stay in the own zone if no partition gets more than with round robin."""
    return sum(min(senders.count(zone) / len(senders), 1 / len(ZONES)) for zone in ZONES)


def most_near_in_time(busy: float) -> float:
    """What senders in one zone could keep there at `OF_ROUND_ROBIN`, if they knew each reader and all to come."""
    case = Case(6, busy, 0.0, senders=ONE)
    bound = OF_ROUND_ROBIN * run(case, RULES[ROUND_ROBIN]).backlog
    shares = np.arange(0.33, 0.72, 0.01).tolist()
    return max([near for near in shares if run(case, split(near)).backlog <= bound], default=0.0)


def _at(found: Sequence[Compared], view: View, age: float, busy: float) -> list[Compared]:
    return [each for each in found if (each.case.view, each.case.age_seconds, each.case.busy) == (view, age, busy)]


def results(found: Sequence[Compared]) -> Iterator[Result]:
    """The worst of each age and of the cases that differ in it alone."""
    for view, age in VIEWS:
        for busy in BUSY:
            mine = _at(found, view, age, busy)
            worst = max(mine, key=lambda each: each.ratio(OURS))
            name = f"{busy:.0%} busy, {_age(worst.case)}; {worst.words}"
            backlogs = [worst.outcomes[rule].backlog for rule in (OURS, ROUND_ROBIN)]
            aim = Aim(OF_ROUND_ROBIN, of_ratio=True)
            yield Result(name, "backlog", backlogs[0], "records", Baseline("round robin", backlogs[1]), aim)
            if busy <= NEAR_UP_TO:
                yield from _near(mine, f"{busy:.0%} busy, {_age(worst.case)}")


def _near(mine: Sequence[Compared], when: str) -> Iterator[Result]:
    aim = Aim(OF_THE_MOST, at_least=True, of_ratio=True)
    for senders in (EACH, ONE, SKEWED):
        zoned = [each for each in mine if each.case.senders == senders and each.is_told]
        least = min(zoned, key=lambda each: each.outcomes[OURS].near)
        most = Baseline("the most at an even load", most_near(senders))
        yield Result(f"{when}; {least.words}", "share in the own zone", least.outcomes[OURS].near, "", most, aim)


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
            mine = _at(found, view, age, busy)
            cells.append(" / ".join(f"{max(each.ratio(rule) for each in mine):.2f}" for rule in (OURS, STORM)))
        rows.append(f"| {_age(replace(mine[0].case))} | " + " | ".join(cells) + " |")
    return "\n".join(rows)


def localities(found: Sequence[Compared]) -> str:
    """The table of what stays near: the least share of each rule, by where senders are and how busy readers are."""
    rows = ["| Senders | at most, evenly | 50% busy | 80% busy |", "|---|---|---|---|"]
    for senders in (EACH, SKEWED, ONE):
        cells = [f"{SENDERS[senders]}", f"{most_near(senders):.2f}"]
        for busy in BUSY[:2]:
            mine = [e for e in found if e.case.senders == senders and e.is_told and e.case.busy == busy]
            cells.append(" / ".join(f"{min(each.outcomes[rule].near for each in mine):.2f}" for rule in (OURS, STORM)))
        rows.append("| " + " | ".join(cells) + " |")
    return "\n".join(rows)


def worst_by_load(found: Sequence[Compared], rule: str) -> list[float]:
    return [max(each.ratio(rule) for each in found if each.case.busy == busy) for busy in BUSY]


if __name__ == "__main__":
    at_start = machine()
    with get_context("fork").Pool() as pool:
        found = pool.map(compared, cases(), chunksize=1)
        feasible = pool.map(most_near_in_time, BUSY)
    print("Mean backlog as a multiple of round robin's, ours / Storm's, the worst of each:\n" + curve(found))
    print("Least share in the own zone, ours / Storm's:\n" + localities(found))
    most = ", ".join(f"{share:.2f} at {busy:.0%}" for busy, share in zip(BUSY, feasible, strict=True))
    print(f"Senders in one zone could keep there, at {OF_ROUND_ROBIN} × round robin's backlog: {most}")
    lines = {"Ballast": worst_by_load(found, OURS), "Storm's rule": worst_by_load(found, STORM)}
    write("routing-loop", [*results(found)], before=at_start)
    print(*write_pngs([picture(BUSY, lines, bound=OF_ROUND_ROBIN)], FOLDER))
