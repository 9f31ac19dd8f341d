"""What runs came to, below a folder of any Hadoop file system: a file for each run, and tables of the whole study.

`DIR/cases/KEY.parquet` as each run ends, `DIR/results.parquet` and `DIR/ranking.parquet` when all have. A file is
written next to its place and takes it at once: whatever has its name is whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import fields
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from ballast.simulation.ranking import Ranking
from ballast.simulation.run_metrics import RunMetrics
from ballast.simulation.study import Study, left_out_told
from ballast.spark.backtest.cases import Run
from ballast.spark.backtest.row import checked, documents, labeled, reasons_left_out, results
from ballast.spark.errors import BacktestError
from ballast.spark.file_system import FileSystem

_RESULTS, _RANKING = "results.parquet", "ranking.parquet"

FIGURES = tuple(field.name for field in fields(RunMetrics))


class Store:
    """`path`: a local path, or a URI of any file system that Spark's Hadoop knows."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self._files = FileSystem(spark, path)

    def known(self) -> frozenset[str]:
        """Keys of the runs that are there."""
        return frozenset(path.getName().removesuffix(".parquet") for path in self._files.found("cases/*.parquet"))

    def keep(self, key: str, table: pa.Table) -> None:
        self._write(f"cases/{key}.parquet", table)

    def study(self, runs: Sequence[Run], *, left_out: Mapping[str, str] | None = None) -> Study:
        """Of runs that are all there, in their order; published as one table, too. Raises BacktestError.

        `left_out`: windows without runs, and why.
        """
        with TemporaryDirectory(prefix="ballast-backtest-") as folder:
            tables = [labeled(self._read(f"cases/{run.key}.parquet", Path(folder)), run) for run in runs]
        table = pa.concat_tables(tables)
        self._write(_RESULTS, table)
        return _study(table, left_out or {})

    def publish(self, ranking: Ranking) -> None:
        self._write(_RANKING, ranking_table(ranking))

    def alone(self) -> AbstractContextManager[None]:
        """Two programs would do the same runs twice, and each replace the other's tables. As FileSystem.alone."""
        return self._files.alone(
            field="--out", remedy="another backtest is at work there: wait until it has ended, or name another folder"
        )

    def _write(self, name: str, table: pa.Table) -> None:
        with TemporaryDirectory(prefix="ballast-backtest-") as folder:
            file = Path(folder) / "written.parquet"
            pq.write_table(table, file, compression="zstd")
            self._files.put(file, self._files.below(name))

    def _read(self, name: str, folder: Path) -> pa.Table:
        path = self._files.below(name)
        if not self._files.system.exists(path):
            raise BacktestError(f"{path.toString()} is not there: run the backtest again")
        try:
            table = pq.read_table(self._files.fetched(path, folder))
        except (pa.ArrowInvalid, OSError) as error:
            raise BacktestError(f"{path.toString()} can't be read: delete it and run the backtest again") from error
        return checked(table, where=path.toString())


def _study(table: pa.Table, without_runs: Mapping[str, str]) -> Study:
    """Raises BacktestError when no window remains."""
    unusable = {**without_runs, **reasons_left_out(table)}
    found = [result for result in results(table) if result.case.window not in unusable]
    policies = documents(table)
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
