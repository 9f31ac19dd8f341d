"""Whether what `ballast size` recommends and predicts comes true, for a stream and for a batch job.

The stream waits 5 ms for each record. It is measured once on two cores, and sized for a rate that they can't pass. Then
it runs with the recommended configuration at that rate, and at 1.3 times the rate. The batch job is measured on two
executors, and its run time is predicted for one and for four. Executors are processes of their own. Tasks wait instead
of computing, so that eight of them find their time on a machine with two cores.

What has been measured is kept in build/bench/sizing and put together by each call.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import Any

from ballast.sizing import event_log
from benchmarks.report import FOLDER, Aim, Baseline, Result, machine, write
from benchmarks.sized.batch import CORES
from benchmarks.sized.stream import RECORD_SECONDS, Plan

RATE = 800
"""Records per second. Two cores pass 400 at most."""
TOO_MUCH = 1.3
MEASURED = {"spark.executor.instances": "1", "spark.executor.cores": "2", "spark.executor.memory": "1024m"}
SMALLEST, LARGEST = 100, 1600
"""Records of the measured run's batches."""
MEASURED_SECONDS, SIZED_SECONDS = 75, 60
WARM_BATCHES = 5
"""After these, every executor has loaded and compiled its code, and records begin to arrive."""
BACKLOG = 3
"""Batches that wait when records begin to arrive: full batches can be measured, and a backlog can shrink."""
PATIENCE_SECONDS = 600.0
STREAMS = {"at-the-rate": 1.0, "beyond-the-rate": TOO_MUCH}
EXECUTORS = {"half": 1, "measured": 2, "double": 4}


def run_streams(folder: Path) -> None:
    """One measured run, what it is sized to, and the runs with that configuration."""
    source = _source(rate=1e6, backlog=0, most=LARGEST, partitions=2) | {"smallest": str(SMALLEST), "warmBatches": "0"}
    _stream(Plan(MEASURED, source, MEASURED_SECONDS), folder / "measured")
    sized = _size("--progress", folder / "measured/progress.jsonl", "--event-log", folder / "measured/event-log")
    (folder / "sized.json").write_text(json.dumps(sized), encoding="utf-8")
    options = sized["sourceOptions"]
    most = int(options["maxOffsetsPerTrigger"])
    for name, times in STREAMS.items():
        partitions = int(options["minPartitions"])
        wanted = _source(rate=times * RATE, backlog=BACKLOG * most, most=most, partitions=partitions)
        plan = Plan(sized["sparkConf"], wanted, SIZED_SECONDS, options["trigger(processingTime)"])
        _stream(plan, folder / name)


def run_batches(folder: Path) -> None:
    for name, executors in EXECUTORS.items():
        _call("benchmarks.sized.batch", str(executors), str(folder / name))
    (folder / "sized.json").write_text(
        json.dumps(_size("--event-log", folder / "measured/event-log")), encoding="utf-8"
    )


def _source(*, rate: float, backlog: int, most: int, partitions: int) -> dict[str, str]:
    return {
        "rate": str(rate),
        "backlog": str(backlog),
        "maxOffsetsPerTrigger": str(most),
        "minPartitions": str(partitions),
        "warmBatches": str(WARM_BATCHES),
    }


def _stream(plan: Plan, folder: Path) -> None:
    _call("benchmarks.sized.stream", plan.text(), str(folder))


def _size(*files: str | Path) -> dict[str, Any]:
    """By the command, as a user would. Two partitions: the source's, which more cores have to split."""
    what_if = ("--set", f"rate={RATE}", "--set", "partitions=2") if "--progress" in files else ()
    command = ["ballast", "size", *(str(each) for each in files), *what_if, "-o", "json"]
    done = subprocess.run([sys.executable, "-m", *command], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"ballast size failed:\n{done.stderr[-3000:]}")
    found: dict[str, Any] = json.loads(done.stdout)
    print(found["headline"], flush=True)
    return found


def _call(module: str, *arguments: str) -> None:
    Path(arguments[-1]).mkdir(parents=True)
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
    )
    if done.returncode:
        raise SystemExit(f"{module} {' '.join(arguments)} failed:\n{done.stderr[-3000:]}")
    print(f"{arguments[-1]}: done", flush=True)


def stream_results(folder: Path) -> Iterator[Result]:
    sized = _document(folder / "sized.json")
    promised = {each["name"]: each["value"] for each in sized["variables"]}
    case = f"measured on 2 cores, sized for {RATE} records/s"
    known = Baseline("known", RECORD_SECONDS * 1000.0)
    yield Result(case, "cost of a record", promised["recordSeconds"] * 1000.0, "ms", known)
    yield Result(case, "cores recommended", promised["parallelism"], "cores")
    for name, times in STREAMS.items():
        case = f"{times:g} × the rate, with what is recommended"
        batches = _batches(folder / name / "progress.jsonl")[WARM_BATCHES:]
        full = [each.seconds for each in batches if each.rows >= promised["batchRecords"]]
        expected = promised["expectedBatchSeconds"]
        yield Result(case, "time of a full batch", median(full), "s", Baseline("promised", expected))
        yield Result(case, "of the promised time, off by", abs(median(full) / expected - 1.0), "ratio", None, Aim(0.15))
        waiting = _waiting(batches, rate=times * RATE, batch=promised["batchRecords"])
        aim = Aim(1.0) if times <= 1.0 else Aim(float(BACKLOG), at_least=True)
        yield Result(case, "waiting at the end", waiting, "batches", Baseline("at the start", float(BACKLOG)), aim)


def batch_results(folder: Path) -> Iterator[Result]:
    found = _document(folder / "sized.json")["runTimes"]
    predicted = {each["cores"]: each["seconds"] for each in found}
    for name, executors in EXECUTORS.items():
        (log,) = (folder / name / "event-log").iterdir()
        with log.open(encoding="utf-8") as lines:
            seconds = event_log.read(lines, str(log)).seconds
        case = f"batch job, {name} executors: {executors}"
        expected = predicted[executors * CORES]
        yield Result(case, "run time", seconds, "s", Baseline("predicted", expected))
        if name != "measured":
            yield Result(case, "of the predicted time, off by", abs(expected / seconds - 1.0), "ratio", None, Aim(0.2))


@dataclass(frozen=True, slots=True)
class _Batch:
    began: float
    rows: int
    seconds: float


def _batches(path: Path) -> list[_Batch]:
    found = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
    return [
        _Batch(
            datetime.fromisoformat(each["timestamp"]).timestamp(),
            each["numInputRows"],
            each["durationMs"]["triggerExecution"] / 1000.0,
        )
        for each in found
        if each["numInputRows"]
    ]


def _waiting(batches: Sequence[_Batch], *, rate: float, batch: float) -> float:
    """How many full batches have arrived and not been taken when the last one begins."""
    *taken, last = batches
    arrived = rate * (last.began - batches[0].began)
    return BACKLOG + (arrived - sum(each.rows for each in taken)) / batch


def _document(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


_RUN = {"stream": run_streams, "batch": run_batches}
_RESULTS = {"stream": stream_results, "batch": batch_results}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sizing")
    parser.add_argument("--only", nargs="+", choices=list(_RUN), default=list(_RUN), help="what to measure now")
    asked = parser.parse_args().only
    before = machine()
    folder = FOLDER / "sizing"
    for part in asked:
        shutil.rmtree(folder / part, ignore_errors=True)
        _RUN[part](folder / part)
    known = [part for part in _RUN if (folder / part / "sized.json").exists()]
    write("sizing", [each for part in known for each in _RESULTS[part](folder / part)], before=before)


if __name__ == "__main__":
    main()
