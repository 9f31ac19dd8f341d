"""`python -m tests.spark.measured_stream PORT`: a stream of a known rate and cost, whose metrics Prometheus can scrape.

Runs until it is terminated.
"""

from __future__ import annotations

import os
import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

CORES = 2
RECORDS_PER_SECOND = 400
RECORD_SECONDS = 0.002
"""A wait, so that the machine's other work does not lengthen it."""


def main(port: int) -> None:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "500m",
        "spark.ui.port": str(port),
        "spark.ui.prometheus.enabled": "true",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.streaming.metricsEnabled": "true",
        "spark.metrics.conf.*.sink.prometheusServlet.class": "org.apache.spark.metrics.sink.PrometheusServlet",
        "spark.metrics.conf.*.sink.prometheusServlet.path": "/metrics/prometheus",
    }
    builder = SparkSession.builder.master(f"local[{CORES}]").appName("measured")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    rate = {"rowsPerSecond": str(RECORDS_PER_SECOND), "numPartitions": str(CORES)}
    records = spark.readStream.format("rate").options(**rate).load()
    waiting = f.expr(f"java_method('java.lang.Thread', 'sleep', {round(RECORD_SECONDS * 1000)}L + value % 1)")
    writer = records.select(waiting.alias("waited")).writeStream.format("noop").queryName("clicks")
    writer.trigger(processingTime="1 second").start().awaitTermination()


if __name__ == "__main__":
    main(int(sys.argv[1]))
