"""Whether the audit's ledger and an independent count agree while executors are killed and decommissioned.

A real Kafka, a stream with state in PySpark, and Kafka again: ten minutes, in which an executor ends as soon as the job
has come through the end of the last one. A second stream has a sink that drops one record, which both have to find.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from pathlib import Path

from ballast.spark.audit.verdict import Status
from benchmarks.report import Aim, Baseline, Result, machine, write
from tests.spark import executor_chaos
from tests.spark.audited_job import DROPPED, LEAKY, SOUND
from tests.spark.executor_chaos import Outcome

SECONDS = 600
SEED = 1


def results(outcome: Outcome, seconds: float) -> list[Result]:
    troubles = outcome.troubles
    case = f"{seconds:g} s, {outcome.produced:,} records"
    return [
        Result(case, "executors killed", troubles.by_kind["killed"], "1"),
        Result(case, "executors decommissioned", troubles.by_kind["decommissioned"], "1"),
        Result(case, "… of both, replaced on another worker", troubles.moved, "1"),
        *_sound(outcome),
        *_leaky(outcome),
    ]


def _sound(outcome: Outcome) -> list[Result]:
    found, counted = outcome.verdicts[SOUND], outcome.counted[SOUND]
    balanced = Counter(verdict.status for verdict in found)[Status.BALANCED]
    lost = set(range(outcome.produced)) - counted.batches_of.keys()
    doubled = sum(len(batches) > 1 for batches in counted.batches_of.values())
    users = sum(counted.clicks_of.get(user) != clicks for user, clicks in outcome.clicks_of_users().items())
    audited = sum(verdict.records for verdict in found)
    return [
        Result("sound sink", "micro-batches balanced", balanced, "1", Baseline("all", len(found)), _all()),
        Result("sound sink", "records in the ledger", audited, "1", Baseline("produced", outcome.produced), _all()),
        Result("sound sink", "counted: records lost", len(lost), "1", aim=Aim(0)),
        Result("sound sink", "counted: records of two micro-batches", doubled, "1", aim=Aim(0)),
        Result("sound sink", "counted: users whose state is wrong", users, "1", aim=Aim(0)),
        Result("sound sink", "counted: written again by a task run again", _again(outcome), "1"),
    ]


def _again(outcome: Outcome) -> int:
    counted = outcome.counted[SOUND]
    return counted.records - sum(len(batches) for batches in counted.batches_of.values())


def _leaky(outcome: Outcome) -> list[Result]:
    found = outcome.verdicts[LEAKY]
    statuses = Counter(verdict.status for verdict in found)
    one = Counter({Status.UNBALANCED: 1, Status.BALANCED: len(found) - 1})
    missing = set(range(outcome.produced)) - outcome.counted[LEAKY].batches_of.keys()
    return [
        Result("leaky sink", "micro-batches unbalanced", statuses[Status.UNBALANCED], "1", Baseline("dropped", 1)),
        Result("leaky sink", "micro-batches judged wrong", (statuses - one).total(), "1", aim=Aim(0)),
        Result("leaky sink", "counted: records lost", len(missing), "1", Baseline("dropped", 1), _all()),
        Result("leaky sink", "… that are not the dropped one", len(missing - {DROPPED}), "1", aim=Aim(0)),
    ]


def _all() -> Aim:
    return Aim(1.0, at_least=True, of_ratio=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.audit_chaos")
    parser.add_argument("--seconds", type=float, default=SECONDS, help=f"default {SECONDS}")
    asked = parser.parse_args()
    before = machine()
    with tempfile.TemporaryDirectory() as folder:
        outcome = executor_chaos.run(Path(folder), seconds=asked.seconds, least=2, seed=SEED)
    write("audit-chaos", results(outcome, asked.seconds), before=before)


if __name__ == "__main__":
    main()
