"""How much waits on a real Kafka where routing closes the loop by the offsets that the readers' group commits.

Three brokers in three zones, six partitions; round robin, Storm's rule and ours each have a topic and a group.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.report import Aim, Baseline, Result, machine, write
from benchmarks.routed.kafka_loop import Case, run
from benchmarks.routed.loop import OURS, ROUND_ROBIN, STORM
from benchmarks.routing_loop import (
    APART,
    EACH,
    EQUAL,
    OF_ROUND_ROBIN,
    OF_THE_MOST,
    ONE,
    SENDERS,
    SKEWED,
    SPEEDS,
    most_near,
)
from tests.testbed.kafka import kafka

SECONDS, COMMIT_SECONDS = 100.0, 5.0
CASES = [
    Case(senders, busy, COMMIT_SECONDS, SECONDS, speeds=speeds)
    for senders, busy, speeds in (
        (EACH, 0.8, EQUAL),
        (ONE, 0.5, EQUAL),
        (ONE, 0.8, EQUAL),
        (ONE, 0.95, EQUAL),
        (ONE, 0.8, APART),
        (SKEWED, 0.95, EQUAL),
    )
]


def results(bootstrap: str) -> Iterator[Result]:
    for number, case in enumerate(CASES):
        name = f"{SENDERS[case.senders]}, {case.busy:.0%} busy, {SPEEDS[case.speeds]}"
        found = {
            rule: run(bootstrap, case, rule, name=f"{rule.replace(' ', '-')}-{number}")
            for rule in (ROUND_ROBIN, STORM, OURS)
        }
        turns = Baseline("round robin", found[ROUND_ROBIN].backlog)
        yield Result(name, "backlog", found[OURS].backlog, "records", turns, Aim(OF_ROUND_ROBIN, of_ratio=True))
        yield Result(name, "backlog with Storm's rule", found[STORM].backlog, "records", turns)
        most = Baseline("the most at an even load", most_near(case.senders))
        aim = Aim(OF_THE_MOST, at_least=True, of_ratio=True) if case.speeds == EQUAL else None
        yield Result(name, "share in the own zone", found[OURS].near, "", most, aim)


if __name__ == "__main__":
    at_start = machine()
    with tempfile.TemporaryDirectory() as folder, kafka(Path(folder), racks=["a", "b", "c"]) as brokers:
        write("routing-kafka", list(results(brokers.bootstrap)), before=at_start)
