"""What runs came to, below a folder of any file system that Spark knows: rows for each run, and tables of the study.

`DIR/runs/version=3/job=ID` has the rows of one Spark job, which its tasks write; `DIR/results.parquet` and
`DIR/ranking.parquet` are written when all runs have ended. Two jobs that write into one folder at once would lose each
other's rows without an error, so each has its own. A row is whole or not there, and a job that was killed leaves rows
of runs that have ended: they count.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import fields

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StringType, StructField, StructType

from ballast.simulation.ranking import Ranking
from ballast.simulation.run_metrics import RunMetrics
from ballast.simulation.study import Document, Study, left_out_told
from ballast.spark.backtest.cases import SCHEMA, VERSION, Run, as_json, reasons_left_out, results
from ballast.spark.errors import SPARK_ERRORS, BacktestError, words
from ballast.spark.storage import alone, parquet, qualified

ROWS: StructType = from_arrow_schema(SCHEMA)
"""`SCHEMA` as Spark has it."""

FIGURES = tuple(field.name for field in fields(RunMetrics))

_LABELS = "position long, key string, policy string, window string, seed long"


class Store:
    """`path`: a local path, or a URI of any file system that Spark's workers reach, too."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self._spark, self._given, self._root = spark, path, qualified(path)
        self._runs = f"{self._root}/runs/version={VERSION}"

    def known(self) -> frozenset[str]:
        """Keys of the runs that are there. Raises BacktestError."""
        try:
            return frozenset(row["key"] for row in self._kept().select("key").distinct().collect())
        except SPARK_ERRORS as error:
            raise self._unreadable(error) from error

    def keep(self, rows: DataFrame) -> None:
        """`rows`: of `ROWS`. The tasks that compute them write them, as one job."""
        rows.write.option("compression", "zstd").parquet(f"{self._runs}/job={uuid.uuid4().hex}")

    def study(self, runs: Sequence[Run], *, left_out: Mapping[str, str] | None = None) -> Study:
        """Of runs that are all there, in their order; published as one table, too. Raises BacktestError.

        `left_out`: windows without runs, and why.
        """
        published = f"{self._root}/results.parquet"
        policies = {run.case.policy: run.document for run in runs}
        try:
            ordered = self._labeled(runs).repartition(1).sortWithinPartitions("position").select(*SCHEMA.names)
            ordered.write.mode("overwrite").option("compression", "zstd").parquet(published)
            table = parquet(self._spark, published, ROWS).toArrow().cast(SCHEMA)
        except SPARK_ERRORS as error:
            raise self._unreadable(error) from error
        if len(table) < len(runs):
            raise BacktestError(
                f"{len(runs) - len(table)} results are missing in {self._given}: run the backtest again"
            )
        return _study(table, policies, left_out or {})

    def publish(self, ranking: Ranking) -> None:
        table = self._spark.createDataFrame(ranking_table(ranking))
        table.coalesce(1).write.mode("overwrite").parquet(f"{self._root}/ranking.parquet")

    def alone(self) -> AbstractContextManager[None]:
        """Two programs would do the same runs twice, and each replace the other's tables. As storage.alone."""
        return alone(
            self._given,
            field="--out",
            remedy="another backtest is at work there: wait until it has ended, or name another folder",
        )

    def _kept(self) -> DataFrame:
        return parquet(self._spark, self._runs, StructType([*ROWS.fields, StructField("job", StringType())]))

    def _labeled(self, runs: Iterable[Run]) -> DataFrame:
        """A row for each run, by its place: what was kept under other names has those of this run."""
        cases = [(at, run.key, run.case.policy, run.case.window, run.case.seed) for at, run in enumerate(runs)]
        documents = {run.case.policy: as_json(run.document) for run in runs}
        labels = self._spark.createDataFrame(cases, _LABELS)
        policies = self._spark.createDataFrame(sorted(documents.items()), "policy string, document string")
        kept = self._kept()
        # A run may have been done in several jobs: by two programs, or again after a job that was killed.
        once = kept.groupBy("key").agg(sql.min("job").alias("job"))
        own = kept.drop("policy", "window", "seed", "document").join(once, ["key", "job"])
        return own.join(sql.broadcast(labels), "key").join(sql.broadcast(policies), "policy")

    def _unreadable(self, error: PySparkException | Py4JJavaError) -> BacktestError:
        return BacktestError(f"{self._given} can't be read ({words(error)}): delete what is broken and run it again")


def _study(table: pa.Table, policies: Mapping[str, Document], without_runs: Mapping[str, str]) -> Study:
    """Raises BacktestError when no window remains."""
    unusable = {**without_runs, **reasons_left_out(table)}
    found = [result for result in results(table) if result.case.window not in unusable]
    if not found:
        reasons = "; ".join(left_out_told(unusable))
        raise BacktestError(
            f"no window can be used: {reasons}. Name a shorter --window, or with --from and --to the time that there is"
        )
    order = list(policies)
    ordered = sorted(found, key=lambda result: order.index(result.case.policy))
    return Study(tuple(ordered), policies, dict(sorted(unusable.items())))


def ranking_table(ranking: Ranking) -> pa.Table:
    """Of each figure the mean, and `_low` and `_high` of its 95 % interval, null where there is none."""
    columns: dict[str, list[object]] = {
        "policy": [one.policy for one in ranking.standings],
        "recommended": [one.policy == ranking.recommended for one in ranking.standings],
        "on_front": [one.on_front for one in ranking.standings],
        "as_good_as_lowest_imbalance": [one.policy in ranking.as_good for one in ranking.standings],
        "cases": [one.cases for one in ranking.standings],
        "never_level": [one.never_level for one in ranking.standings],
    }
    table = pa.table(columns)
    for name in FIGURES:
        found = [one.estimates[name] for one in ranking.standings]
        for suffix, values in (
            ("", [each.mean for each in found]),
            ("_low", [each.low for each in found]),
            ("_high", [each.high for each in found]),
        ):
            table = table.append_column(f"{name}{suffix}", pa.array(values, pa.float64(), from_pandas=True))
    return table
