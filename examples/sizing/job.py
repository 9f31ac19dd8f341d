"""`python -m examples.sizing.job [FOLDER]`: a small streaming job that writes what `ballast size` reads.

It reads one file a batch, of 500 to 20 000 lines, hashes each line (a known cost per record), and hands each batch to a
stand-in for a remote store, which is overwhelmed above 9 000 records. FOLDER (default: build/sizing) then holds
`progress.jsonl`, `event-log` and `gc.log`. Takes two to three minutes on two cores.
"""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.listener import StreamingQueryListener

BATCHES = 64
SMALLEST, LARGEST = 500, 20_000
LINE_BYTES = 100
HASHES_PER_RECORD = 40
OVERWHELMED_FROM = 9_000
"""Records of one request."""
REQUEST_SECONDS, RECORD_SECONDS, OVERWHELMED_RECORD_SECONDS = 0.2, 1e-4, 6e-4


def store_seconds(records: int) -> float:
    """How long the stand-in for a remote store takes for one request."""
    beyond = max(records - OVERWHELMED_FROM, 0)
    return REQUEST_SECONDS + RECORD_SECONDS * records + OVERWHELMED_RECORD_SECONDS * beyond


def main(folder: Path) -> None:
    source = _written(folder / "source")
    (folder / "event-log").mkdir(parents=True, exist_ok=True)
    spark = _session(folder)
    spark.streams.addListener(ProgressFile(folder / "progress.jsonl"))
    lines = spark.readStream.option("maxFilesPerTrigger", 1).text(str(source))
    hashed = lines.select(f.expr(f"aggregate(sequence(1, {HASHES_PER_RECORD}), value, (a, i) -> sha2(a, 256)) AS hash"))
    query = hashed.writeStream.foreachBatch(_stored).trigger(availableNow=True).start()
    query.awaitTermination()
    spark.stop()


def _written(source: Path) -> Path:
    """One file a batch, the sizes spread evenly over their logarithm, in their own order."""
    source.mkdir(parents=True, exist_ok=True)
    chance = random.Random(7)  # noqa: S311 -- sizes of batches are no secret
    ratio = (LARGEST / SMALLEST) ** (1.0 / (BATCHES - 1))
    sizes = [round(SMALLEST * ratio**step) for step in range(BATCHES)]
    chance.shuffle(sizes)
    for batch, size in enumerate(sizes):
        made = "\n".join(f"{batch:04d}-{line:08d}".ljust(LINE_BYTES - 1, "x") for line in range(size))
        (source / f"{batch:04d}.txt").write_text(made + "\n", encoding="utf-8")
        time.sleep(0.002)  # the source takes files in the order of their times, which have milliseconds
    return source


def _session(folder: Path) -> SparkSession:
    settings = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": (folder / "event-log").resolve().as_uri(),
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
        "spark.driver.extraJavaOptions": f"-Xlog:gc*:file={folder.resolve()}/gc.log:uptime,level,tags",
        "spark.sql.files.minPartitionNum": "2",
        "spark.sql.files.openCostInBytes": "0",
        "spark.ui.enabled": "false",
    }
    builder = SparkSession.builder.master("local[2]").appName("sizing-example")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _stored(batch: DataFrame, number: int) -> None:
    """One request to the store per batch. max() makes Spark compute every hash."""
    del number
    (records, _), *_ = batch.agg(f.count("*"), f.max("hash")).collect()
    time.sleep(store_seconds(records))


class ProgressFile(StreamingQueryListener):
    """One line of JSON per batch: what `ballast size --progress` reads."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.write_text("", encoding="utf-8")

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802 -- Spark's name
        pass

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802 -- Spark's name
        with self._path.open("a", encoding="utf-8") as file:
            file.write(event.progress.json + "\n")

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802 -- Spark's name
        pass

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802 -- Spark's name
        pass


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "build/sizing"))
