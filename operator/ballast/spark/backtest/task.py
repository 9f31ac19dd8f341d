"""One run inside a Spark task: a policy's document and a window go in, a row of results comes out."""

from __future__ import annotations

import pyarrow as pa

from ballast.errors import BallastError
from ballast.garbage import seldom_sought
from ballast.simulation.recording import UnusableRecordingError
from ballast.simulation.trial import Trial
from ballast.spark.backtest.cases import Run
from ballast.spark.backtest.row import SCHEMA, left_out_row, row
from ballast.spark.errors import BacktestError

TOLD = "key string, told binary"
"""Spark's schema of what tasks hand back: the run's key, and its row as an Arrow stream."""


def told(run: Run, trial: Trial) -> pa.RecordBatch:
    """The one row of `TOLD`. Raises BacktestError, which names the run."""
    try:
        with seldom_sought():
            result = trial.run(run.policy, run.case)
    except UnusableRecordingError as error:
        return left_out(run, str(error))
    except BallastError as error:
        raise BacktestError(f"{run.case}: {error}") from error
    return _sent(run, row(result, run))


def left_out(run: Run, why: str) -> pa.RecordBatch:
    """The one row of `TOLD` of a run in a window that can't be run in."""
    return _sent(run, left_out_row(run, why))


def _sent(run: Run, table: pa.Table) -> pa.RecordBatch:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, SCHEMA) as stream:
        stream.write_table(table)
    return pa.RecordBatch.from_pydict({"key": [run.key], "told": [sink.getvalue().to_pybytes()]})
