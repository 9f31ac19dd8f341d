"""`python -m benchmarks.source.reader URL CORES columns|map`: Ballast's data source on Spark in local mode."""

from __future__ import annotations

import sys
from time import perf_counter

from pyspark.sql import functions as sql

from benchmarks.source.span import QUERY, START, STEP_SECONDS, STEPS, Outcome
from tests.spark.session import local_session


def main() -> None:
    url, cores, shape = sys.argv[1:]
    spark = local_session("prometheus-source", cores=int(cores), memory="512m")
    labels = {"labels": "cluster,container,instance,job,namespace,node,pod"} if shape == "columns" else {}
    began = perf_counter()
    frame = (
        spark.read.format("prometheus")
        .options(url=url, query=QUERY, step=f"{STEP_SECONDS}s", start=str(START), partitionSpan="24h", **labels)
        .option("end", str(START + (STEPS - 1) * STEP_SECONDS))
        .load()
    )
    pod = sql.col("pod") if labels else sql.col("labels")["pod"]
    by_pod = frame.groupBy(pod.alias("pod")).agg(sql.count("*").alias("rows"), sql.avg("value").alias("mean")).collect()
    seconds = perf_counter() - began
    Outcome(sum(row["rows"] for row in by_pod), seconds, {row["pod"]: row["mean"] for row in by_pod}).tell()
    spark.stop()


if __name__ == "__main__":
    main()
