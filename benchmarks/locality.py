"""What placement does to a real job: a shuffle-bound and a CPU-bound one in PySpark, on links that are limited.

The same application is placed by kube-scheduler, by podAffinity, by a selector for one zone and by Ballast, in turns.
The intervals are of the median of all rounds.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median, quantiles

from benchmarks.audit import interval
from benchmarks.located.cluster import BALLAST, DEFAULT, ONE_ZONE, WAYS, Ran, located
from benchmarks.located.job import HASHED_RECORDS, SHUFFLED_RECORDS
from benchmarks.report import Aim, Baseline, Result, machine, write

TURNS, ROUNDS = 3, 15
RECORDS = {"shuffle": SHUFFLED_RECORDS, "cpu": HASHED_RECORDS}
_LEAST_GAIN, _MOST_LOSS, _MOST_CROSSED = 1.67, 0.98, 0.1


def measured(folder: Path, *, turns: int, rounds: int) -> list[Ran]:
    with located(folder) as at:
        return [ran for turn in range(turns) for way in WAYS for ran in at.run(way, turn=turn, rounds=rounds)]


def results(runs: Sequence[Ran]) -> list[Result]:
    return [result for way in WAYS for job in RECORDS for result in _of(way.name, job, runs)]


def _of(way: str, job: str, runs: Sequence[Ran]) -> list[Result]:
    case = f"{job}-bound, {way}"
    ours = [run for run in runs if (run.way, run.job) == (way, job)]
    seconds = sorted(second for run in ours for second in run.round_seconds)
    low, high = interval(seconds)
    rate, plain = _rate(way, job, runs), _rate(DEFAULT, job, runs)
    found = [
        Result(case, "records a second", rate, "1/s", Baseline(DEFAULT, plain), _rate_aim(way, job)),
        Result(case, "… 95 % interval from", RECORDS[job] / high, "1/s"),
        Result(case, "… 95 % interval to", RECORDS[job] / low, "1/s"),
        Result(case, "seconds of a round, p50", median(seconds), "s"),
        Result(case, "seconds of a round, p95", quantiles(seconds, n=20)[-1], "s"),
        Result(case, "most racks of an application", max(len(set(run.racks)) for run in ours), "1"),
    ]
    for level in ("zones", "racks"):
        mebibytes, before = _crossed(way, job, level, runs), _crossed(DEFAULT, job, level, runs)
        aim = Aim(_MOST_CROSSED, of_ratio=True) if (way, job, level) == (BALLAST, "shuffle", "zones") else None
        found.append(Result(case, f"across {level} in a round", mebibytes, "MiB", Baseline(DEFAULT, before), aim))
    if (way, job) == (BALLAST, "shuffle"):
        nearest = Baseline(ONE_ZONE, _rate(ONE_ZONE, job, runs))
        aim = Aim(_MOST_LOSS, at_least=True, of_ratio=True)
        found.append(Result(case, "records a second", rate, "1/s", nearest, aim))
    return found


def _rate_aim(way: str, job: str) -> Aim | None:
    bound = _LEAST_GAIN if job == "shuffle" else _MOST_LOSS
    return Aim(bound, at_least=True, of_ratio=True) if way == BALLAST else None


def _rate(way: str, job: str, runs: Sequence[Ran]) -> float:
    return RECORDS[job] / median(s for run in runs if (run.way, run.job) == (way, job) for s in run.round_seconds)


def _crossed(way: str, job: str, level: str, runs: Sequence[Ran]) -> float:
    ours = [run for run in runs if (run.way, run.job) == (way, job)]
    bytes_of_rounds = [float(getattr(run.crossed, f"{level}_bytes")) / len(run.round_seconds) for run in ours]
    return median(bytes_of_rounds) / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.locality")
    parser.add_argument("--turns", type=int, default=TURNS, help=f"applications of each way (default {TURNS})")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"of each job (default {ROUNDS})")
    asked = parser.parse_args()
    before = machine()
    with tempfile.TemporaryDirectory(prefix="ballast-located-") as folder:
        runs = measured(Path(folder), turns=asked.turns, rounds=asked.rounds)
    write("locality", results(runs), before=before)


if __name__ == "__main__":
    main()
