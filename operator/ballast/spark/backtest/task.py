"""One run inside a Spark task: a policy's document and a window go in, a row of results comes out."""

from __future__ import annotations

import pyarrow as pa

from ballast.errors import BallastError
from ballast.simulation.trial import Trial
from ballast.spark.backtest.cases import Run
from ballast.spark.backtest.row import SCHEMA, row
from ballast.spark.errors import BacktestError

TOLD = "key string, told binary"
"""Spark's schema of what tasks hand back: the run's key, and its row as an Arrow stream."""


def told(run: Run, trial: Trial) -> pa.RecordBatch:
    """The one row of `TOLD`. Raises BacktestError, which names the run."""
    try:
        result = trial.run(run.policy, run.case)
    except BallastError as error:
        raise BacktestError(f"{run.case}: {error}") from error
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, SCHEMA) as stream:
        stream.write_table(row(result, run))
    return pa.RecordBatch.from_pydict({"key": [run.key], "told": [sink.getvalue().to_pybytes()]})
