"""Whether the audit's ledger and an independent count agree while executors are killed and decommissioned.

A real Kafka, a stream with state in PySpark, and Kafka again: ten minutes, in which an executor ends as soon as the job
has come through the end of the last one. Once on Spark's own small cluster, where a second stream has a sink that drops
one record, which both have to find; and once on a real control plane, where Ballast places what replaces them.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from ballast.spark.audit.verdict import Status, Verdict
from benchmarks.audited import on_kubernetes
from benchmarks.report import Aim, Baseline, Result, machine, write
from tests.spark import executor_chaos
from tests.spark.audited_job import DROPPED, LEAKY, SOUND
from tests.spark.executor_chaos import Counted, Outcome

SECONDS = 600
SEED = 1


def of_processes(outcome: Outcome, seconds: float) -> list[Result]:
    case = f"processes, {seconds:g} s, {outcome.produced:,} records"
    return [
        *(Result(case, f"executors {kind}", count, "1") for kind, count in sorted(outcome.troubles.items())),
        *_sound("processes, sound sink", outcome, outcome.verdicts[SOUND], outcome.counted[SOUND]),
        *_leaky(outcome),
    ]


def of_pods(outcome: on_kubernetes.Outcome, seconds: float) -> list[Result]:
    case, moved = f"pods, {seconds:g} s, {outcome.produced:,} records", outcome.troubles["moved"]
    return [
        *(Result(case, f"executors {kind}", count, "1") for kind, count in sorted(outcome.troubles.items())),
        Result(case, "replaced on another node", outcome.elsewhere, "1", Baseline("moved", moved), _all()),
        *_sound("pods", outcome, outcome.verdicts, outcome.counted),
    ]


def _sound(
    case: str, outcome: Outcome | on_kubernetes.Outcome, found: Sequence[Verdict], counted: Counted
) -> list[Result]:
    balanced = Counter(verdict.status for verdict in found)[Status.BALANCED]
    lost = set(range(outcome.produced)) - counted.batches_of.keys()
    doubled = sum(len(batches) > 1 for batches in counted.batches_of.values())
    users = sum(counted.clicks_of.get(user) != clicks for user, clicks in outcome.clicks_of_users().items())
    again = counted.records - sum(len(batches) for batches in counted.batches_of.values())
    audited = sum(verdict.records for verdict in found)
    return [
        Result(case, "micro-batches balanced", balanced, "1", Baseline("all", len(found)), _all()),
        Result(case, "records in the ledger", audited, "1", Baseline("produced", outcome.produced), _all()),
        Result(case, "counted: records lost", len(lost), "1", aim=Aim(0)),
        Result(case, "counted: records of two micro-batches", doubled, "1", aim=Aim(0)),
        Result(case, "counted: users whose state is wrong", users, "1", aim=Aim(0)),
        Result(case, "counted: written again by a task run again", again, "1"),
    ]


def _leaky(outcome: Outcome) -> list[Result]:
    found = outcome.verdicts[LEAKY]
    statuses = Counter(verdict.status for verdict in found)
    one = Counter({Status.UNBALANCED: 1, Status.BALANCED: len(found) - 1})
    missing = set(range(outcome.produced)) - outcome.counted[LEAKY].batches_of.keys()
    return [
        Result(
            "processes, leaky sink",
            "micro-batches unbalanced",
            statuses[Status.UNBALANCED],
            "1",
            Baseline("dropped", 1),
        ),
        Result("processes, leaky sink", "micro-batches judged wrong", (statuses - one).total(), "1", aim=Aim(0)),
        Result("processes, leaky sink", "counted: records lost", len(missing), "1", Baseline("dropped", 1), _all()),
        Result("processes, leaky sink", "… that are not the dropped one", len(missing - {DROPPED}), "1", aim=Aim(0)),
    ]


def _all() -> Aim:
    return Aim(1.0, at_least=True, of_ratio=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.audit_chaos")
    parser.add_argument("--seconds", type=float, default=SECONDS, help=f"default {SECONDS}")
    parser.add_argument("--only", choices=list(_RUNS), nargs="+", default=list(_RUNS), help="what executors are")
    asked = parser.parse_args()
    before = machine()
    write("audit-chaos", [result for each in asked.only for result in _RUNS[each](asked.seconds)], before=before)


def _processes(seconds: float) -> list[Result]:
    with tempfile.TemporaryDirectory() as folder:
        return of_processes(executor_chaos.run(Path(folder), seconds=seconds, least=2, seed=SEED), seconds)


def _pods(seconds: float) -> list[Result]:
    return of_pods(on_kubernetes.run(seconds=seconds, seed=SEED), seconds)


_RUNS = {"processes": _processes, "pods": _pods}


if __name__ == "__main__":
    main()
