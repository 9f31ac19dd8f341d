"""`python -m benchmarks.source.reader URL CORES columns|map|pod`: Ballast's data source on Spark in local mode.

`columns` has a column for each label, as the client's frame; `map` has all in one column; `pod` has that label alone.
"""

from __future__ import annotations

import sys
from time import perf_counter

from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as sql

from benchmarks.source.span import LABELS, PARTITION_SPAN, QUERY, START, STEP_SECONDS, STEPS, Outcome, keep_to
from tests.spark.session import local_session

SHAPES = {"columns": {"labels": ",".join(LABELS)}, "map": {}, "pod": {"labels": "pod"}}


def by_pod(spark: SparkSession, url: str, shape: str, *, steps: int = STEPS) -> list[Row]:
    asked = {"url": url, "query": QUERY, "step": f"{STEP_SECONDS}s", "partitionSpan": PARTITION_SPAN}
    ends = {"start": str(START), "end": str(START + (steps - 1) * STEP_SECONDS)}
    frame = spark.read.format("prometheus").options(**asked, **ends, **SHAPES[shape]).load()
    pod = sql.col("labels")["pod"] if shape == "map" else sql.col("pod")
    found: list[Row] = (
        frame.groupBy(pod.alias("pod")).agg(sql.count("*").alias("rows"), sql.avg("value").alias("mean")).collect()
    )
    return found


def main() -> None:
    url, cores, shape = sys.argv[1:]
    keep_to(int(cores))
    spark = local_session("prometheus-source", cores=int(cores), memory="512m")
    began = perf_counter()
    rows = by_pod(spark, url, shape)
    seconds = perf_counter() - began
    by_pod(spark, url, shape)
    again_seconds = perf_counter() - began - seconds
    Outcome(sum(row["rows"] for row in rows), seconds, {row["pod"]: row["mean"] for row in rows}, again_seconds).tell()
    spark.stop()


if __name__ == "__main__":
    main()
