"""`python -m benchmarks.audited.runs BOOTSTRAP JARS JOB PAIRS CLICKS`: a stream with its audit and without, by turns.

Prints, as JSON, pairs of what the run without and the run with audit took.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil
from pyspark.sql import SparkSession

from ballast.spark.audit import Audit
from ballast.spark.audit.ledger import read as ledger
from ballast.spark.audit.verdict import Status, verdicts
from benchmarks.audited import clicks
from tests.spark.session import local_session
from tests.testbed.waiting import wait_until

BATCHES = 4
WARM_RUNS = 2
"""Of each kind, until the JVM has compiled what they share."""


@dataclass(frozen=True, slots=True)
class Run:
    seconds: float
    cpu_seconds: float
    """Of the JVM."""


def main(bootstrap: str, jars: Path, name: str, *, pairs: int, records: int) -> None:
    os.environ["PYSPARK_SUBMIT_ARGS"] = f"--jars {','.join(map(str, jars.glob('*.jar')))} pyspark-shell"
    spark = local_session("audited", memory="2g")
    clicks.fill(spark, bootstrap, "in", clicks=records)
    done: list[tuple[Run, Run]] = []
    for number in range(WARM_RUNS + pairs):
        # The order changes, so that neither kind is always the second.
        kinds = (False, True) if number % 2 else (True, False)
        found = {audited: _run(spark, bootstrap, name, records=records, audited=audited) for audited in kinds}
        done.append((found[False], found[True]))
    print(json.dumps([[asdict(plain), asdict(audited)] for plain, audited in done[WARM_RUNS:]]))
    spark.stop()


def _run(spark: SparkSession, bootstrap: str, name: str, *, records: int, audited: bool) -> Run:
    with tempfile.TemporaryDirectory() as folder:
        audit = Audit(spark, f"{folder}/ledger") if audited else None
        source = clicks.read(spark, bootstrap, "in", per_batch=-(-records // BATCHES))
        writer = clicks.JOBS[name](source, audit, bootstrap, "out").queryName("clicks")
        writer = writer.option("checkpointLocation", f"{folder}/state").trigger(availableNow=True)
        java = psutil.Process(spark.sparkContext._gateway.proc.pid)  # type: ignore[union-attr]  # noqa: SLF001
        used, started = java.cpu_times(), time.perf_counter()
        writer.start().awaitTermination()
        seconds, after = time.perf_counter() - started, java.cpu_times()
        if audit is not None:
            _check(Path(folder, "ledger"), records)
            audit.close()
        return Run(seconds, after.user + after.system - used.user - used.system)


def _check(folder: Path, records: int) -> None:
    """The audit has done its work."""
    valid = records - records // clicks.WITHOUT_USER

    def recorded() -> bool:
        return folder.exists() and sum(entry.emitted.count for entry in ledger(folder) if not entry.after) == valid

    wait_until(recorded, what="all clicks in the ledger")
    found = verdicts(ledger(folder), now_ms=time.time_ns() // 1_000_000, timeout_ms=0)
    assert {verdict.status for verdict in found} == {Status.BALANCED}, found


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3], pairs=int(sys.argv[4]), records=int(sys.argv[5]))
