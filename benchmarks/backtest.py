"""A thousand windows of a history under four policies, and a thousand policy-days, on one core and on two.

The windows run on executors apart from the driver, whose memory is looked at: what it holds alive after 10 and 1 000
windows, and its peak after 100 next to that of an earlier commit with the same heap. Efficiency is the time on one core
over twice the time on two. Next to that of the policy-days stands that of the same runs in plain processes, which is
what the machine's cores allow: they share caches, memory and clock. A task's memory is looked at, too, as a history
grows from a day to a month. Each measurement can be made for itself (`--only`); what has been measured is kept in
build/bench/backtest and put together by each call.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.report import FOLDER, Aim, Baseline, Result, machine, write
from benchmarks.study.days import EXECUTORS, NODES, Outcome

RUNS = 1000
WINDOWS = (10, 100, 1000)
FORMER = "d87909ed"
"""The last commit that sent each window through the driver."""
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
MANY: Mapping[str, tuple[int, int, str | None]] = {
    **{f"windows-{count}": (2, count, None) for count in WINDOWS},
    "windows-1000-one-core": (1, 1000, None),
    "windows-100-former": (2, 100, FORMER),
}
"""Cores, windows, and the commit that runs them; this one if absent."""


@dataclass(frozen=True, slots=True)
class ManyWindows:
    runs: int
    seconds: float
    heap_bytes: int
    """Alive in the driver's JVM at the end, after a collection."""
    driver_bytes: int
    """The most that driver and JVM had of the machine's memory."""


def many_windows(name: str) -> ManyWindows:
    cores, count, commit = MANY[name]
    root = Path.cwd() if commit is None else checkout(commit)
    program = Path(__file__).parent / "study" / "many_windows.py"
    paths = os.pathsep.join([str(root / "operator"), str(root)])
    done = subprocess.run(
        [sys.executable, str(program), str(cores), str(count)],
        capture_output=True,
        text=True,
        check=False,
        cwd=root,
        env={**os.environ, "PYTHONPATH": paths},
    )
    if done.returncode:
        raise SystemExit(f"{name} failed:\n{done.stderr[-3000:]}")
    return ManyWindows(**json.loads(done.stdout))


def checkout(commit: str) -> Path:
    """Its files, in a folder of their own."""
    folder = (FOLDER / "backtest" / commit).absolute()
    if not folder.exists():
        folder.mkdir(parents=True)
        archive = subprocess.run(["git", "archive", commit], capture_output=True, check=True).stdout
        subprocess.run(["tar", "-x", "-C", str(folder)], input=archive, check=True)
    return folder


def of_windows(found: Mapping[str, ManyWindows]) -> Iterator[Result]:
    """Of what has been measured so far."""
    told = {name: found.get(name) for name in MANY}
    for name, each in told.items():
        if each is not None:
            yield Result(f"{each.runs} runs, {name}", "run", each.runs / each.seconds, "runs/s")
    least, most, former = told["windows-10"], told["windows-1000"], told["windows-100-former"]
    one, some = told["windows-1000-one-core"], told["windows-100"]
    if least and most:
        base = Baseline("10 windows", least.heap_bytes / 2**20)
        heap = most.heap_bytes / 2**20
        yield Result("1000 windows", "driver's live heap", heap, "MiB", base, Aim(1.1, of_ratio=True))
    if one and most:
        efficiency = one.seconds / (2.0 * most.seconds)
        yield Result("1000 windows", "parallel efficiency", efficiency, "ratio", None, Aim(0.85, at_least=True))
    if former and some:
        base = Baseline(FORMER, former.runs / former.seconds)
        speed = some.runs / some.seconds
        yield Result("100 windows", "run", speed, "runs/s", base, Aim(1.0, at_least=True, of_ratio=True))
        base, peak = Baseline(FORMER, former.driver_bytes / 2**20), some.driver_bytes / 2**20
        yield Result("100 windows", "driver's peak memory", peak, "MiB", base, Aim(0.5, of_ratio=True))


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
    parser.add_argument("--only", nargs="+", choices=[*MEASUREMENTS, *MANY], default=[*MEASUREMENTS, *MANY])
    asked = parser.parse_args()
    before = machine()
    folder: Path = FOLDER / "backtest"
    folder.mkdir(parents=True, exist_ok=True)
    for name in (each for each in asked.only if each in MANY):
        of_many = many_windows(name)
        (folder / f"{name}.json").write_text(json.dumps(asdict(of_many)), encoding="utf-8")
        print(f"{name}: {of_many.seconds:.1f} s", flush=True)
    for name in (each for each in asked.only if each in MEASUREMENTS):
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
    windows = {
        name: ManyWindows(**json.loads(path.read_text(encoding="utf-8")))
        for name in MANY
        if (path := folder / f"{name}.json").exists()
    }
    write("backtest", [*of_windows(windows), *results(found, asked.runs)], before=before)


if __name__ == "__main__":
    main()
