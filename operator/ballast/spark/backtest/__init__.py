"""Many runs of policies on Spark, and what each came to as Parquet. docs/backtest.md says more."""

from ballast.spark.backtest.cases import Run, Window, runs
from ballast.spark.backtest.job import Job, Progress, Scenarios, Source
from ballast.spark.backtest.recordings import Recordings, Selection
from ballast.spark.backtest.store import Store

__all__ = ["Job", "Progress", "Recordings", "Run", "Scenarios", "Selection", "Source", "Store", "Window", "runs"]
