"""`python -m benchmarks.sized.stream PLAN FOLDER`: run a stream for some time; FOLDER gets progress and event log."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.sized.arriving import Arriving
from benchmarks.sized.cluster import Settings, session, waiting
from examples.sizing.job import ProgressFile

RECORD_SECONDS = 0.005


@dataclass(frozen=True, slots=True)
class Plan:
    """`source`: options of the source. `trigger`: how often a batch starts; without one, as soon as it can."""

    settings: Settings
    source: Settings
    seconds: int
    trigger: str | None = None

    def text(self) -> str:
        return json.dumps(asdict(self))


def main(plan: Plan, folder: Path) -> None:
    spark = session("sizing-stream", plan.settings, folder)
    spark.dataSource.register(Arriving)
    spark.streams.addListener(ProgressFile(folder / "progress.jsonl"))
    records = spark.readStream.format("arriving").options(**plan.source).load()
    writer = records.selectExpr(f"{waiting(RECORD_SECONDS)} AS waited").writeStream.format("noop")
    if plan.trigger is not None:
        writer = writer.trigger(processingTime=plan.trigger)
    query = writer.start()
    query.awaitTermination(plan.seconds)
    query.stop()
    spark.stop()


if __name__ == "__main__":
    main(Plan(**json.loads(sys.argv[1])), Path(sys.argv[2]))
