"""What a streaming query declares to be audited, and the listener that writes what its micro-batches recorded."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.streaming.listener import StreamingQueryListener
from pyspark.sql.types import ArrayType, DataType

from ballast.errors import InvalidField
from ballast.spark.audit.ledger import Ledger
from ballast.spark.audit.verdict import Entry, Sum
from ballast.spark.errors import ConnectError

_PREFIX = "ballast.audit."
_QUERY_PROPERTY = "sql.streaming.queryId"
_ALL_ATTEMPTS = "spark.sql.legacy.observeMetricsAggregateAllAttempts"
_CONSUMED, _COUNT, _EMITTED = "__audit_consumed", "__audit_count", "__audit_emitted"
"""Columns that a stage adds for its own use."""
_OWN_NAME = "give each stage of the ledger its own name"
_NOTHING = {"consumed_count": 0, "consumed_xor": 0}
_ALL_STAGES = "stages"
"""The part of a micro-batch in which the listener records."""
_LOG = logging.getLogger(__name__)

Write = Callable[[DataFrame, int], None]
"""As `foreachBatch` takes it."""


@dataclass(frozen=True, slots=True)
class _Stage:
    name: str
    after: tuple[str, ...]
    emits_type: DataType | None = None
    """Of the ids that it emits, where it is known."""
    ends: bool = False
    """It emits no id."""
    emits_others: bool = False
    """Than it consumes: it filters or fans out."""


class Audit:
    """Records the stages of streaming queries in the ledger at `path`. Create it on the driver, once a ledger.

    The queries need names that differ: the ledger knows them by these. Raises ConnectError for a session of Spark
    Connect.
    """

    def __init__(self, spark: SparkSession, path: str, *, clock: Callable[[], float] = time.time) -> None:
        if not hasattr(spark, "_jvm"):
            raise ConnectError(
                "Audit listens in the driver's JVM, which a session of Spark Connect can't reach: run this query as "
                "its own application (spark-submit, without --remote)"
            )
        self._spark, self._clock = spark, clock
        self._ledger = Ledger(spark, path)
        self._stages: dict[str, _Stage] = {}
        self._names: dict[str, str] = {}
        self._reruns = _Reruns(spark) if _counts_all_attempts(spark) else None
        self._listener = cast("StreamingQueryListener", _Listener(spark, self))
        spark.streams.addListener(self._listener)

    def close(self) -> None:
        """Records nothing from now on."""
        self._spark.streams.removeListener(self._listener)

    def stage(
        self,
        df: DataFrame,
        name: str,
        *,
        id: Column | str,  # noqa: A002 -- what it is
        after: str | Sequence[str] | None = None,
        keeps: Column | str | None = None,
        emits: Column | str | None = None,
        ends: bool = False,
    ) -> DataFrame:
        """`df`, whose records are counted as they pass. They must be those that the stages `after` emitted.

        If unset, `after` is the stage declared last; `()` begins a new source. A stage emits what it consumes, unless
        it declares a filter, a fan-out or an end: `keeps`, the condition by which records go on; `emits`, an array of
        the ids that come of a record; `ends`, if no id goes on, such as before an aggregation.

        Raises InvalidField if a name is taken or not known, or if ids of two types can't be compared.
        """
        before = self._after(name, after)
        emitted = self._emitted(df, id, before=before, emits=emits)
        others = keeps is not None or emits is not None
        self._stages[name] = _Stage(name, before, emitted, ends=ends, emits_others=others and not ends)
        if ends:
            keeps = emits = None
        return _observed(df, _PREFIX + name, id, keeps=keeps, emits=emits, is_source=not before)

    def sink(
        self,
        write: Write,
        name: str,
        *,
        id: Column | str,  # noqa: A002 -- as above
        after: str | Sequence[str] | None = None,
    ) -> Write:
        """`write` for `foreachBatch`, with the records counted that it really reads. It must read them once."""
        _check_part(name)
        before = self._after(name, after)
        self._stages[name] = _Stage(name, before)

        def audited(batch: DataFrame, number: int) -> None:
            reading = _Reading(batch, _PREFIX + name, id)
            write(reading.records, number)
            query = str(batch.sparkSession.sparkContext.getLocalProperty(_QUERY_PROPERTY))
            entry = self._entry(self._stages[name], reading.sums(), query=self._named(query), batch=number)
            self._add([entry], part=name)

        return audited

    def delivered(
        self,
        df: DataFrame,
        name: str,
        *,
        id: Column | str,  # noqa: A002 -- as above
        batch: Column | str,
        query: str,
        after: str,
    ) -> None:
        """Records what arrived: `df`, read back from the sink, whose column `batch` has each record's micro-batch.

        Pass all records of a range of micro-batches. One inside it that was recorded before and has no records now is
        recorded as empty.

        Raises InvalidField for the name of another stage.
        """
        _check_part(name)
        if name == after or name in self._stages:
            # It would replace what that stage recorded, and be compared with itself.
            raise InvalidField("name", name, _OWN_NAME)
        column = sql.col(batch) if isinstance(batch, str) else batch
        hashes = {_CONSUMED: sql.xxhash64(id)}
        rows = df.withColumns(hashes).groupBy(column.cast("long").alias("batch")).agg(*_sums(hashes)).collect()
        stage = _Stage(name, (after,))
        if not rows:
            _LOG.warning("audit: no record of %s has arrived, so nothing is recorded of %s", query, name)
        sums = {row["batch"]: row.asDict() for row in rows}
        numbers = [number for number in sums if number is not None]
        for number in self._ledger.batches(query, name) if numbers else ():
            if min(numbers) < number < max(numbers):
                sums.setdefault(number, _NOTHING)
        for number, values in sums.items():
            self._add([self._entry(stage, values, query=query, batch=number)], part=name)

    def record(self, progress: Any) -> None:
        """What one micro-batch's progress says of the stages declared here. `progress` is the JVM's."""
        observed = progress.observedMetrics()
        rows = {stage: observed.get(_PREFIX + name) for name, stage in self._stages.items()}
        sums = {stage: json.loads(row.json()) for stage, row in rows.items() if row is not None}
        if not sums:
            return
        query, run, batch = progress.name() or progress.id().toString(), progress.runId().toString(), progress.batchId()
        recomputed = self._reruns is not None and self._reruns.since_last(run)
        entries = [
            self._entry(stage, values, query=query, batch=batch, run=run, recomputed=recomputed)
            for stage, values in sums.items()
        ]
        self._add(entries, part=_ALL_STAGES)

    def _emitted(
        self,
        df: DataFrame,
        id: Column | str,  # noqa: A002 -- as above
        *,
        before: Sequence[str],
        emits: Column | str | None,
    ) -> DataType:
        consumed = df.select(id).schema[0].dataType
        for each in before:
            sent = self._stages[each].emits_type
            if sent is not None and sent != consumed:
                remedy = f"it is {consumed.simpleString()} here and {sent.simpleString()} in {each}: cast one of them"
                raise InvalidField("id", str(id), remedy)
        if emits is None:
            return consumed
        kind = df.select(emits).schema[0].dataType
        if not isinstance(kind, ArrayType):
            raise InvalidField("emits", str(emits), "name an array of the ids that come of a record")
        return kind.elementType

    def _after(self, name: str, after: str | Sequence[str] | None) -> tuple[str, ...]:
        if not name or name in self._stages:
            raise InvalidField("name", name, _OWN_NAME)
        if after is None:
            return tuple(self._stages)[-1:]
        before = (after,) if isinstance(after, str) else tuple(after)
        for each in before:
            if each not in self._stages:
                raise InvalidField("after", each, f"declared are {', '.join(self._stages) or 'no stages yet'}")
        return before

    def _entry(
        self,
        stage: _Stage,
        values: dict[str, Any],
        *,
        query: str,
        batch: int,
        run: str = "",
        recomputed: bool = False,
    ) -> Entry:
        consumed = Sum(values["consumed_count"], values.get("consumed_xor") or 0)
        emitted = Sum() if stage.ends else consumed
        if stage.emits_others:
            emitted = Sum(values["emitted_count"] or 0, values["emitted_xor"] or 0)
        return Entry(
            query=query,
            run=run,
            batch=batch,
            stage=stage.name,
            after=stage.after,
            consumed=consumed,
            emitted=emitted,
            recorded_ms=round(self._clock() * 1000),
            recomputed=recomputed,
        )

    def _named(self, query: str) -> str:
        if query not in self._names:
            found = [each for each in self._spark.streams.active if str(each.id) == query]
            self._names[query] = (found[0].name if found else None) or query
        return self._names[query]

    def _add(self, entries: list[Entry], *, part: str) -> None:
        try:
            self._ledger.add(entries, part=part)
        except Exception:  # noqa: BLE001 -- of any file system
            # The query goes on without its proof: the audit shows the micro-batch as unrecorded.
            _LOG.exception("audit: micro-batch %s of %s is not recorded", entries[0].batch, entries[0].query)


def _check_part(name: str) -> None:
    """Raises InvalidField for a name under which the listener's record would replace this one, unnoticed."""
    if name == _ALL_STAGES:
        raise InvalidField("name", name, "the ledger keeps its own records under this name: give another")


def _observed(
    df: DataFrame,
    observation: str,
    id: Column | str,  # noqa: A002 -- as above
    *,
    keeps: Column | str | None = None,
    emits: Column | str | None = None,
    is_source: bool = False,
) -> DataFrame:
    """No aggregate that no other one is compared with: each costs some 20 ns a record.

    What the stage emits counts only if that differs from what it consumes; the ids that a source consumes and does not
    emit, never. The hashes are columns: Spark compiles these, but interprets the arguments of an observation.
    """
    others = keeps is not None or emits is not None
    columns = {} if is_source and others else {_CONSUMED: sql.xxhash64(id)}
    condition = sql.expr(keeps) if isinstance(keeps, str) else keeps
    if emits is not None:
        count, value = sql.coalesce(sql.size(emits), sql.lit(0)).cast("long"), _xor_of_all(emits)
        columns |= {_COUNT: count if condition is None else sql.when(condition, count)}
        columns |= {_EMITTED: value if condition is None else sql.when(condition, value)}
    elif condition is not None:
        columns |= {_EMITTED: sql.when(condition, sql.xxhash64(id))}
    return df.withColumns(columns).observe(observation, *_sums(columns)).drop(*columns)


class _Reading:
    """`records` are those of a batch, and are counted as they are read, whatever reads them.

    Spark's own `Observation` never ends where they go into a sink of its first API, such as Kafka's.
    """

    def __init__(self, batch: DataFrame, name: str, id: Column | str) -> None:  # noqa: A002 -- as above
        observed = _observed(batch, name, id)._jdf  # noqa: SLF001 -- PySpark has no other way to the plan
        self._name, self._execution = name, observed.queryExecution()
        # As Spark makes the batch itself: what reads it runs this plan, with its counts.
        counting = observed.sparkSession().internalCreateDataFrame(self._execution.toRdd(), observed.schema(), False)
        self.records = DataFrame(counting, batch.sparkSession)

    def sums(self) -> dict[str, Any]:
        found = self._execution.observedMetrics().get(self._name)
        if found.isEmpty():
            return _NOTHING
        row = found.get()
        return {"consumed_count": row.get(0), "consumed_xor": row.get(1)}


def _sums(columns: Mapping[str, Column]) -> Iterator[Column]:
    yield sql.count(sql.lit(1)).alias("consumed_count")
    if _CONSUMED in columns:
        yield sql.bit_xor(_CONSUMED).alias("consumed_xor")
    if _EMITTED in columns:
        # A hash is never null.
        yield (sql.sum(_COUNT) if _COUNT in columns else sql.count(_EMITTED)).alias("emitted_count")
        yield sql.bit_xor(_EMITTED).alias("emitted_xor")


def _xor_of_all(ids: Column | str) -> Column:
    return sql.aggregate(ids, sql.lit(0).cast("long"), lambda sofar, each: sofar.bitwiseXOR(sql.xxhash64(each)))


class _Listener:
    """Reads from the JVM's progress what the audit needs: a `StreamingQueryListener` of PySpark copies all of it, which
    takes 50 ms of CPU for each micro-batch.

    The methods are those of Spark's interface for listeners in Python.
    """

    def __init__(self, spark: SparkSession, audit: Audit) -> None:
        self._spark, self._audit = spark, audit

    @cached_property
    def _jlistener(self) -> Any:
        """What PySpark gives to the JVM, once it can be called from there."""
        jvm: Any = self._spark._jvm  # noqa: SLF001 -- PySpark has no other way to the JVM's listeners
        return jvm.org.apache.spark.sql.streaming.PythonStreamingQueryListenerWrapper(self)

    def onQueryStarted(self, _: Any) -> None:  # noqa: N802 -- Spark's name
        pass

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802 -- Spark's name
        progress = event.progress()
        try:
            self._audit.record(progress)
        except Exception:  # noqa: BLE001 -- the query must not end by it
            _LOG.exception("audit: micro-batch %s is not recorded", progress.batchId())

    def onQueryIdle(self, _: Any) -> None:  # noqa: N802 -- Spark's name
        pass

    def onQueryTerminated(self, _: Any) -> None:  # noqa: N802 -- Spark's name
        pass

    class Java:
        implements = ("org.apache.spark.sql.streaming.PythonStreamingQueryListener",)


def _counts_all_attempts(spark: SparkSession) -> bool:
    """Spark 4.3 and later count each task once, however often it ran (SPARK-58183)."""
    exact = tuple(map(int, spark.version.split(".")[:2])) >= (4, 3)
    return not exact or spark.conf.get(_ALL_ATTEMPTS, "false") == "true"


class _Reruns:
    """Whether Spark ran tasks of a query again. Sums before a shuffle then count the tasks' records twice."""

    def __init__(self, spark: SparkSession) -> None:
        self._tracker = spark.sparkContext.statusTracker()
        self._seen: dict[str, int] = {}

    def since_last(self, run: str) -> bool:
        """In the jobs of the run that ended since the last call."""
        seen = self._seen.get(run, -1)
        jobs = sorted(job for job in self._tracker.getJobIdsForGroup(run) if job > seen)
        again = False
        for job in jobs:
            info = self._tracker.getJobInfo(job)
            if info is None or info.status == "RUNNING":
                continue
            self._seen[run] = max(self._seen.get(run, -1), job)
            again = again or any(map(self._is_again, info.stageIds))
        return again

    def _is_again(self, stage: int) -> bool:
        info = self._tracker.getStageInfo(stage)
        return info is not None and (info.currentAttemptId > 0 or info.numCompletedTasks > info.numTasks)
