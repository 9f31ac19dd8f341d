"""A thousand policy-days on one core and on two, and what a task takes as a history grows from a day to a month.

Efficiency is the time on one core over twice the time on two. Next to it stands that of the same runs in plain
processes, which is what the machine's cores allow: they share caches, memory and clock. Each measurement can be made
for itself (`--only`); what has been measured is kept in build/bench/backtest and put together by each call.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from benchmarks.report import FOLDER, Aim, Baseline, Result, machine, write
from benchmarks.study.days import EXECUTORS, NODES, Outcome

RUNS = 1000
PLAIN_RUNS = 60
"""Enough to tell what the cores allow."""
DAYS = (1, 30)
MEASUREMENTS: Mapping[str, tuple[str, ...]] = {
    "one-core": ("on_spark", "1"),
    "two-cores": ("on_spark", "2"),
    "one-process": ("without_spark", "1"),
    "two-processes": ("without_spark", "2"),
    **{f"history-{days}": ("on_history", str(days)) for days in DAYS},
}


def measured(name: str, count: int) -> Outcome:
    module, size = MEASUREMENTS[name]
    wanted = (
        [str(min(count, PLAIN_RUNS))] if module == "without_spark" else [str(count)] if module == "on_spark" else []
    )
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.study.{module}", size, *wanted], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{name} failed:\n{done.stderr[-3000:]}")
    return Outcome(**json.loads(done.stdout))


def results(found: Mapping[str, Outcome], count: int) -> list[Result]:
    """Of what has been measured so far."""
    told = []
    case = f"{count} policy-days of {NODES} nodes, {EXECUTORS} executors"
    for cores, name in ((1, "one-core"), (2, "two-cores")):
        if name in found:
            told.append(Result(f"{case}, local[{cores}]", "run", count / found[name].seconds, "policy-days/s"))
    if {"one-core", "two-cores"} <= set(found):
        plain = None
        if {"one-process", "two-processes"} <= set(found):
            plain = Baseline("plain processes", _efficiency(found["one-process"], found["two-processes"]))
        efficiency = _efficiency(found["one-core"], found["two-cores"])
        told.append(Result(case, "parallel efficiency", efficiency, "ratio", plain, Aim(0.85, at_least=True)))
    short, long = (found.get(f"history-{days}") for days in DAYS)
    if short is not None and long is not None:
        base = Baseline(f"{DAYS[0]} day", short.worker_bytes / 2**20)
        peak = long.worker_bytes / 2**20
        told.append(Result(f"history of {DAYS[1]} days", "memory per task", peak, "MiB", base, Aim(1.1, of_ratio=True)))
    return told


def _efficiency(one: Outcome, two: Outcome) -> float:
    return one.seconds / (2.0 * two.seconds)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.backtest")
    parser.add_argument("--runs", type=int, default=RUNS, help=f"policy-days (default {RUNS})")
    parser.add_argument("--only", nargs="+", choices=MEASUREMENTS, default=list(MEASUREMENTS))
    asked = parser.parse_args()
    before = machine()
    folder: Path = FOLDER / "backtest"
    folder.mkdir(parents=True, exist_ok=True)
    for name in asked.only:
        outcome = measured(name, asked.runs)
        kept = {"runs": asked.runs, "seconds": outcome.seconds, "worker_bytes": outcome.worker_bytes}
        (folder / f"{name}.json").write_text(json.dumps(kept), encoding="utf-8")
        print(f"{name}: {outcome.seconds:.1f} s", flush=True)
    found = {}
    for name in MEASUREMENTS:
        path = folder / f"{name}.json"
        if path.exists():
            kept = json.loads(path.read_text(encoding="utf-8"))
            if kept.pop("runs") == asked.runs:
                found[name] = Outcome(**kept)
    write("backtest", results(found, asked.runs), before=before)


if __name__ == "__main__":
    main()
