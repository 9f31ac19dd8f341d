"""Days of a cluster's figures out of Prometheus as rows of the history, and the jobs that collect them."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql

from ballast.errors import InvalidField
from ballast.prometheus import Preset
from ballast.prometheus.session import PATIENT
from ballast.spark.errors import HistoryError, SourceError
from ballast.spark.history.schema import SORT, Day, Metadata, Stretch, missing, stretches
from ballast.spark.history.signal import USAGE, Subject, addresses, combined, foreign, signals
from ballast.spark.history.store import Part, Store, Written
from ballast.spark.source.asking import asking
from ballast.spark.source.moment import as_rfc3339
from ballast.spark.source.options import server

_PARTITION_STEPS = 120
"""Of all signals of a kind at once, which is as much as Prometheus likes to look at for a large pool."""

_HOUR_MS = 3_600_000
_POLICY = r"\A[a-z0-9]([-a-z0-9.]*[a-z0-9])?\z"
"""A policy's name. Whatever is scraped can export another label, and the name becomes that of a folder: `../..`."""
_LONGEST_POLICY = 253
_ANY = '{__name__!=""}'


@dataclass(frozen=True, slots=True)
class Origin:
    """The Prometheus to ask, and how."""

    source: Mapping[str, str]
    """Options of the data source: url, headers.*, bearerTokenFile, caFile, timeout."""
    preset: Preset
    step_ms: int
    window_ms: int
    operator: str
    """The namespace that the operator runs in."""
    pools: Mapping[str, re.Pattern[str]] = field(default_factory=dict)
    """What nodes' whole names match, by pool. None: the pools are the operator's policies."""
    matchers: Mapping[str, str] = field(default_factory=dict)
    """Labels of all series that are read."""


@dataclass(frozen=True, slots=True)
class _Reader:
    spark: SparkSession
    origin: Origin
    stretch: Stretch
    start_ms: int

    def subject(self, subject: Subject, labels: Sequence[str]) -> DataFrame:
        origin = self.origin
        asked = signals(
            origin.preset, window_seconds=origin.window_ms / 1000, operator=origin.operator, matchers=origin.matchers
        )
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
        return bool(prometheus.label_values("__name__", _ANY, start_ms=stretch.day.start_ms, end_ms=end_ms))

    # Files with certificates or a token may be where the tasks run, and nowhere else.
    with suppress(SourceError, InvalidField), asking(server(source)) as prometheus:
        first = bisect_left(hours, 1, key=known_by_end_of)
        return hours[min(first, len(hours) - 1)]
    return stretch.day.start_ms


def _rows(reader: _Reader, keep: Callable[[DataFrame], DataFrame]) -> DataFrame:
    known = _known_nodes(reader)
    nodes = _own_first(keep(_with_node(reader.subject(Subject.NODE, ("node", "instance", "policy")), known)), "node")
    executors = _own_first(
        keep(_with_node(reader.subject(Subject.EXECUTOR, ("namespace", "pod", "node", "instance")), known)),
        "namespace",
        "pod",
    )
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
    """Rows with the node's name in `node`: its own label, the node known by its address, or what `instance` says.

    `own`: whether the node that they are about exported them at its own address; null for rows without an address.
    """
    addressed = rows.withColumn("address", _host(sql.col("instance"))).join(sql.broadcast(known), "address", "left")
    by_itself = sql.coalesce(sql.col("known") == sql.coalesce("node", "known"), sql.lit(False))
    told = addressed.withColumn("own", sql.when(sql.col("instance").isNotNull(), by_itself))
    named = told.withColumn("node", sql.coalesce("node", "known", "address"))
    return named.drop("address", "known", "instance")


def _own_first(rows: DataFrame, *subject: str) -> DataFrame:
    """Where a node exports a signal of a subject at its own address, only these rows of those with an address.

    Any pod may export such series, too, and its scrape may label them with a node.
    """
    keys = ("signal", *subject)
    exported = rows.where("own").select(*keys).distinct().withColumn("exported", sql.lit(True))
    joined = rows.join(sql.broadcast(exported), [*keys], "left")
    return joined.where("own is null or own or exported is null").drop("exported")


def _host(instance: Column) -> Column:
    return sql.regexp_replace(instance, r":[0-9]+$", "")


def _known_nodes(reader: _Reader) -> DataFrame:
    """Nodes by address, where one address was one node's all day."""
    seen = reader.read(addresses(reader.origin.matchers), ("node", "instance")).select(
        _host(sql.col("instance")).alias("address"), "node"
    )
    by_address = seen.groupBy("address").agg(sql.collect_set("node").alias("nodes"))
    return by_address.where(sql.size("nodes") == 1).select("address", sql.element_at("nodes", 1).alias("known"))


def _pools(asked: Mapping[str, re.Pattern[str]], nodes: DataFrame) -> DataFrame:
    """Each node of each pool, once."""
    if not asked:
        named = sql.col("policy").rlike(_POLICY) & (sql.length("policy") <= _LONGEST_POLICY)
        return nodes.where(named).select("node", sql.col("policy").alias("pool")).distinct()
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
    measured = executors.where("signal != 'placement'").withColumn(
        "exporter", sql.when(sql.col("own"), sql.col("node"))
    )
    figures = measured.drop("node").join(nodes, pod)
    once = figures.where(sql.size("nodes") == 1).withColumn("node", sql.element_at("nodes", 1))
    again = placements.join(nodes.where(sql.size("nodes") > 1), pod, "leftsemi")
    there = again.select(*pod, "timestamp", "node").distinct()
    apart = figures.where(sql.size("nodes") > 1).join(there, [*pod, "timestamp"])
    # For a time both nodes may tell of it, the one that it has left and the one that it is on.
    there_then = apart.where("exporter is null or exporter = node")
    return reduce(DataFrame.unionByName, (placements, *(each.drop("nodes", "exporter") for each in (once, there_then))))


# Collecting a history day by day, each day of a pool for itself.

_REMEDY = (
    "the address must answer from here (`kubectl port-forward` brings one inside a cluster) and let you in"
    " (--header, --bearer-token-file, --ca-file)"
)

_PATIENCE = PATIENT.new(other=1)
"""For a server that answers, that of the tasks; one that does not is asked once more."""


@dataclass(frozen=True, slots=True)
class Range:
    """What to collect: the days named, or else those that the history lacks, as far back as `otherwise`."""

    first: Day | None
    last: Day | None
    otherwise: Day
    ripe_ms: int
    """Figures before it are all there."""


@dataclass(frozen=True, slots=True)
class Done:
    """What has become of a day of one pool; of a day without any figures where no pool is known."""

    day: Day
    pool: str | None
    files: Mapping[str, Written] = field(default_factory=dict)
    """By name; none without metrics."""
    rows: int = 0
    empty: frozenset[str] = field(default=frozenset(), compare=False)
    """Signals of usage that have no row, where others have: another preset may read them."""

    @property
    def written(self) -> Written:
        """Of all the files."""
        found = set(self.files.values())
        if not found:
            return Written.NOTHING
        if Written.KEPT in found:
            return Written.KEPT
        return found.pop() if len(found) == 1 else Written.CHANGED

    def __str__(self) -> str:
        if self.pool is None:
            return f"date={self.day}: {self.written} of any pool"
        part = Part(self.day, self.pool)
        if self.written is Written.NOTHING:
            return f"{part}: {self.written}; a file that is there is kept"
        told = f"{part}: {self.rows} rows, {self.written}"
        if self.written is Written.KEPT:
            kept = [file for file, written in self.files.items() if written is Written.KEPT]
            more = ", ".join(f"{file} has more" for file in kept)
            told += f": {more}, Prometheus forgets: delete such a file to have it collected again"
        return told


def planned(store: Store, origin: Origin, wanted: Range) -> list[Stretch]:
    """The days to collect, oldest first. Raises HistoryError for a history that can't be added to."""
    known: dict[Day, int] = {}
    for part, metadata in store.parts().items():
        _check_alike(origin, part, metadata)
        if not origin.pools or part.pool in origin.pools:
            known[part.day] = min(metadata.through_ms, known.get(part.day, metadata.through_ms))
    first = wanted.first or min(known, default=wanted.otherwise)
    days = stretches(first, wanted.last or Day.of(wanted.ripe_ms), ripe_ms=wanted.ripe_ms)
    return list(days) if wanted.first else missing(days, known)


def newcomers(store: Store, origin: Origin) -> list[str]:
    """Pools asked for that have no day yet, next to others that have: planned are the days that those lack."""
    there = store.pools()
    return sorted(origin.pools.keys() - there) if origin.pools.keys() & there else []


def _check_alike(origin: Origin, part: Part, metadata: Metadata) -> None:
    """All of a history has one step and one window, or its figures could not be compared."""
    there = {"--step": metadata.step_ms, "--window": metadata.window_ms}
    asked = {"--step": origin.step_ms, "--window": origin.window_ms}
    if there != asked:
        raise HistoryError(
            f"{part} was collected with {_options(there)}, not with {_options(asked)}: go on with what it has, or"
            " collect into another folder with --path"
        )


def _options(spans_ms: Mapping[str, int]) -> str:
    return " ".join(f"{name} {ms / 1000:g}s" for name, ms in spans_ms.items())


def collected(spark: SparkSession, store: Store, origin: Origin, stretch: Stretch) -> Iterator[Done]:
    """Collect one day, pool by pool: those asked for, or else those that are found or were found before.

    One file at a time is written: Parquet's writer sizes its row groups by what else is being written.
    """
    metadata = Metadata(stretch.through_ms, origin.step_ms, origin.window_ms)
    with collecting(spark, origin, stretch) as rows:
        found = [(row["pool"], row["signal"], row["count"]) for row in rows.groupBy("pool", "signal").count().collect()]
        counts: Counter[str] = Counter()
        for pool, _, count in found:
            counts[pool] += count
        pools = counts.keys() | (origin.pools.keys() or store.pools(stretch.day))
        for pool in sorted(pools):
            files: Mapping[str, Written] = {}
            if pool in counts:
                own = rows.where(rows["pool"] == pool)
                files = store.write(own, Part(stretch.day, pool), metadata, count=counts[pool])
            empty = (
                USAGE - {signal for own_pool, signal, _ in found if own_pool == pool} if pool in counts else frozenset()
            )
            yield Done(stretch.day, pool, files, counts[pool], empty)
        if not pools:
            yield Done(stretch.day, None)


def strangers(origin: Origin, stretches: Sequence[Stretch]) -> list[str]:
    """Namespaces whose pods export what only the operator is to export, which is left out; none where it can't be
    asked. Of a time around these stretches, at least one.
    """
    asked = {"start_ms": stretches[0].day.start_ms, "end_ms": stretches[-1].through_ms}
    # Files with certificates or a token may be where the tasks run, and nowhere else.
    with suppress(SourceError, InvalidField), asking(server(origin.source)) as prometheus:
        return sorted(
            {
                each
                for one in foreign(origin.operator, origin.matchers)
                for each in prometheus.label_values("namespace", one, **asked)
            }
        )
    return []


def unmeasured(done: Sequence[Done]) -> Iterator[str]:
    """Which signals of usage no collected day of a pool has, although it has others: one sentence a pool."""
    empty: dict[str, list[frozenset[str]]] = defaultdict(list)
    for each in done:
        if each.pool is not None and each.rows:
            empty[each.pool].append(each.empty)
    for pool, days in sorted(empty.items()):
        if signals_of_none := frozenset.intersection(*days):
            yield (
                f"pool {pool}: no values of {', '.join(sorted(signals_of_none))}: --preset names how Prometheus is set "
                "up, and with it the jobs whose series are read"
            )


def checked_once(done: list[Done]) -> None:
    """Raises HistoryError if days were collected and none had any values."""
    if done and all(one.written is Written.NOTHING for one in done):
        raise HistoryError(
            "no metrics of any pool were found: is the preset the one that Prometheus is set up like? Without the"
            " operator's own metrics, say which nodes form a pool with --pool NAME=REGEX"
        )


def ask_once(source: Mapping[str, str], *, now_ms: int) -> None:
    """Asks what costs nothing, where the tasks ask too. `source` as in Origin.

    Raises SourceError with the address, the reason and what helps, and InvalidField if there can be no such server.
    """
    asked = server(source)
    # Files with certificates or a token may be where the tasks run, and nowhere else.
    with suppress(InvalidField):
        try:
            with asking(asked, patience=_PATIENCE) as prometheus:
                prometheus.range("vector(1)", start_ms=now_ms, end_ms=now_ms, step_ms=1000)
        except SourceError as error:
            raise SourceError(f"--prometheus: {error}; {_REMEDY}") from error
