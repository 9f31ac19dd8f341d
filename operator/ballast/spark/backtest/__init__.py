"""Many runs of policies on Spark: one task a run, what each came to kept as Parquet. docs/backtest.md says more."""

from ballast.spark.backtest.cases import Run, Window, runs
from ballast.spark.backtest.job import Job, Progress, Scenarios, Source, Store
from ballast.spark.backtest.recordings import Recordings, Selection

__all__ = ["Job", "Progress", "Recordings", "Run", "Scenarios", "Selection", "Source", "Store", "Window", "runs"]
