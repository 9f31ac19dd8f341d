"""The seam between the job and what is run in: scenarios, or recorded history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession

from ballast.spark.backtest.cases import Run, Window


class Source(Protocol):
    @property
    def windows(self) -> Sequence[Window]:
        """What there is, in the order of tables."""
        ...

    @property
    def left_out(self) -> Mapping[str, str]:
        """Windows that would be among them, were it known what happened in them; and why they are not."""
        ...

    def told(self, spark: SparkSession, runs: Sequence[Run]) -> DataFrame:
        """What the runs came to: rows of `task.TOLD`, made by `task.told`, each run in its own task.

        Runs that stand next to each other mostly share their window. Called from several threads at once.
        """
        ...
