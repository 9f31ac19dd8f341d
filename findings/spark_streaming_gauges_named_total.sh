#!/bin/sh
# Spark 4.3.0's Prometheus servlet (/metrics/prometheus) with spark.sql.streaming.metricsEnabled.
#
# Guess: what ends in _total is a counter, two queries have series of their own, and a gauge is one series.
# Seen:  inputRate_total and processingRate_total are gauges (rows a second of the last trigger): rate() of them is
#        meaningless, and no Prometheus warns, since by its name it is a counter. Each gauge is there twice, as
#        ..._Number and ..._Value, so a sum over a pattern of names doubles. A query's name is part of the series' name
#        with each character outside [a-zA-Z0-9_] replaced: the queries "orders.eu" and "orders-eu" share their
#        series, which occur twice in one answer with two values and no label that tells them apart.
# Output on 2026-11-29: 24 series of two queries, 12 distinct.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q pyspark==4.3.0
"$folder/env/bin/python" - <<'PYTHON'
import urllib.request

from pyspark import SparkContext
from pyspark.sql import SparkSession

spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.ui.port", "0")
    .config("spark.sql.streaming.metricsEnabled", "true")
    .config("spark.metrics.conf.*.sink.prometheusServlet.class", "org.apache.spark.metrics.sink.PrometheusServlet")
    .config("spark.metrics.conf.*.sink.prometheusServlet.path", "/metrics/prometheus")
    .getOrCreate()
)


def started(name, rows):
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", rows).load()
    query = source.writeStream.format("noop").queryName(name).start()
    while query.lastProgress is None or query.lastProgress["batchId"] < 2:
        query.awaitTermination(1)
    return query


queries = [started("orders.eu", 10), started("orders-eu", 1000)]
text = urllib.request.urlopen(spark.sparkContext.uiWebUrl + "/metrics/prometheus/").read().decode()
for query in queries:
    query.stop()
spark.stop()
SparkContext._gateway.proc.stdin.close()
SparkContext._gateway.proc.wait()

series = [line.rsplit(" ", 1)[0] for line in text.splitlines() if "spark_streaming_" in line]
distinct = sorted(set(series))
print(f"{len(series)} series of two queries, {len(distinct)} distinct")
print(*(line for line in text.splitlines() if "inputRate" in line), sep="\n")
assert len(series) == 2 * len(distinct), "the queries' series differ now"
assert all("orders_eu" in name for name in distinct)
totals = [name for name in distinct if "_total_" in name]
assert totals and all('type="gauges"' in name for name in totals), "rates are no gauges now"
assert sorted(n.replace("_Number", "_Value") for n in distinct if "_Number" in n) == [n for n in distinct if "_Value" in n]
PYTHON
echo "as stated"
