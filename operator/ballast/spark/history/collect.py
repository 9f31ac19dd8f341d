"""One day of a cluster's figures out of Prometheus, as rows of the history."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql

from ballast.errors import InvalidField
from ballast.prometheus import Preset
from ballast.spark.errors import SourceError
from ballast.spark.history.day import Stretch
from ballast.spark.history.schema import SORT
from ballast.spark.history.signal import Subject, addresses, combined, signals
from ballast.spark.source.api import Api
from ballast.spark.source.moment import as_rfc3339
from ballast.spark.source.options import server

_PARTITION_STEPS = 120
"""Of all signals of a kind at once, which is as much as Prometheus likes to look at for a large pool."""

_HOUR_MS = 3_600_000
_ANY = '{__name__!=""}'


@dataclass(frozen=True, slots=True)
class Origin:
    """The Prometheus to ask, and how."""

    source: Mapping[str, str]
    """Options of the data source: url, headers.*, bearerTokenFile, caFile, timeout."""
    preset: Preset
    step_ms: int
    window_ms: int
    pools: Mapping[str, re.Pattern[str]] = field(default_factory=dict)
    """What nodes' whole names match, by pool. None: the pools are the operator's policies."""


@dataclass(frozen=True, slots=True)
class _Reader:
    spark: SparkSession
    origin: Origin
    stretch: Stretch
    start_ms: int

    def subject(self, subject: Subject, labels: Sequence[str]) -> DataFrame:
        asked = signals(self.origin.preset, window_seconds=self.origin.window_ms / 1000)
        query = combined([signal for signal in asked if signal.subject is subject])
        return self.read(query, ("signal", *labels, "detail"))

    def read(self, query: str, labels: Sequence[str]) -> DataFrame:
        options = {
            **self.origin.source,
            "query": query,
            "step": f"{self.origin.step_ms}ms",
            "start": as_rfc3339(self.start_ms),
            "end": as_rfc3339(self.stretch.through_ms - 1),
            "labels": ",".join(labels),
            "partitionSpan": f"{_PARTITION_STEPS * self.origin.step_ms}ms",
        }
        return self.spark.read.format("prometheus").options(**options).load()


@contextmanager
def collecting(spark: SparkSession, origin: Origin, stretch: Stretch) -> Iterator[DataFrame]:
    """The stretch's rows with their `pool`, unordered.

    A node is in a pool all day when it was for a moment. Figures of nodes that are in no pool, and of executors that
    were on no known node, are left out. Of what the session caches, only what was cached here is released.
    """
    with ExitStack() as cached:

        def keep(frame: DataFrame) -> DataFrame:
            frame.persist()
            cached.callback(frame.unpersist)
            return frame

        yield keep(_rows(_Reader(spark, origin, stretch, first_known_ms(origin.source, stretch)), keep))


def first_known_ms(source: Mapping[str, str], stretch: Stretch) -> int:
    """The hour of the stretch that the first series may be in, or its start where Prometheus can't tell.

    Asked of the server's index, which knows it to a block: evaluating the signals over the hours before would find
    nothing, step by step.
    """
    hours = range(stretch.day.start_ms, stretch.through_ms, _HOUR_MS)

    def known_by_end_of(hour_ms: int) -> bool:
        end_ms = min(hour_ms + _HOUR_MS, stretch.through_ms)
        return bool(api.label_values("__name__", _ANY, start_ms=stretch.day.start_ms, end_ms=end_ms))

    # Files with certificates or a token may be where the tasks run, and nowhere else.
    with suppress(SourceError, InvalidField), closing(Api(server(source))) as api:
        first = bisect_left(hours, 1, key=known_by_end_of)
        return hours[min(first, len(hours) - 1)]
    return stretch.day.start_ms


def _rows(reader: _Reader, keep: Callable[[DataFrame], DataFrame]) -> DataFrame:
    known = _known_nodes(reader)
    nodes = keep(_with_node(reader.subject(Subject.NODE, ("node", "instance", "policy")), known))
    executors = keep(_with_node(reader.subject(Subject.EXECUTOR, ("namespace", "pod", "node", "instance")), known))
    pools = _pools(reader.origin.pools, nodes)
    # What the operator says of a node belongs to the policy that it says it of.
    of_nodes = nodes.join(sql.broadcast(pools), "node").where("policy is null or policy = pool")
    of_executors = _on_their_nodes(executors).join(sql.broadcast(pools), "node")
    told = reader.subject(Subject.POOL, ("policy",)).withColumnRenamed("policy", "pool")
    of_pools = told.join(sql.broadcast(pools.select("pool").distinct()), "pool")
    return reduce(DataFrame.unionByName, (_shaped(rows) for rows in (of_nodes, of_executors, of_pools))).distinct()


def _shaped(rows: DataFrame) -> DataFrame:
    """With the columns of the history and `pool`; null where the subject has no such column."""
    renamed = rows.withColumnRenamed("timestamp", "time")
    nothing = sql.lit(None).cast("string")
    columns = [sql.col(name) if name in renamed.columns else nothing.alias(name) for name in ("pool", *SORT)]
    return renamed.select(*columns)


def _with_node(rows: DataFrame, known: DataFrame) -> DataFrame:
    """Rows with the node's name in `node`: its own label, the node known by its address, or what `instance` says."""
    addressed = rows.withColumn("address", _host(sql.col("instance"))).join(sql.broadcast(known), "address", "left")
    named = addressed.withColumn("node", sql.coalesce("node", "known", "address"))
    return named.drop("address", "known", "instance")


def _host(instance: Column) -> Column:
    return sql.regexp_replace(instance, r":[0-9]+$", "")


def _known_nodes(reader: _Reader) -> DataFrame:
    """Nodes by address, where one address was one node's all day."""
    seen = reader.read(addresses(), ("node", "instance")).select(_host(sql.col("instance")).alias("address"), "node")
    by_address = seen.groupBy("address").agg(sql.collect_set("node").alias("nodes"))
    return by_address.where(sql.size("nodes") == 1).select("address", sql.element_at("nodes", 1).alias("known"))


def _pools(asked: Mapping[str, re.Pattern[str]], nodes: DataFrame) -> DataFrame:
    """Each node of each pool, once."""
    if not asked:
        return nodes.where("policy is not null").select("node", sql.col("policy").alias("pool")).distinct()
    every = nodes.where("node is not null").select("node").distinct()
    names = sorted(row["node"] for row in every.collect())
    chosen = [
        every.where(sql.col("node").isin([name for name in names if expression.fullmatch(name)])).withColumn(
            "pool", sql.lit(pool)
        )
        for pool, expression in sorted(asked.items())
    ]
    return reduce(DataFrame.unionByName, chosen)


def _on_their_nodes(executors: DataFrame) -> DataFrame:
    """Executors' rows with the node that they were on. A pod is never on another one; its name may be, used again."""
    pod = ["namespace", "pod"]
    placements = executors.where("signal = 'placement'")
    nodes = sql.broadcast(placements.groupBy(*pod).agg(sql.collect_set("node").alias("nodes")))
    figures = executors.where("signal != 'placement'").drop("node").join(nodes, pod)
    once = figures.where(sql.size("nodes") == 1).withColumn("node", sql.element_at("nodes", 1))
    again = placements.join(nodes.where(sql.size("nodes") > 1), pod, "leftsemi")
    there = again.select(*pod, "timestamp", "node").distinct()
    apart = figures.where(sql.size("nodes") > 1).join(there, [*pod, "timestamp"])
    return reduce(DataFrame.unionByName, (placements, once.drop("nodes"), apart.drop("nodes")))
