"""What is to be run, the key by which it is known again, and its result as a row of a table."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from importlib.metadata import version
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_type_hints

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import ballast
from ballast.api import BalancingPolicy
from ballast.errors import BallastError, InvalidField
from ballast.model.arrays import FloatArray
from ballast.runtime import planning_runtime
from ballast.simulation.recording import UnusableRecordingError
from ballast.simulation.replay import Trial
from ballast.simulation.run_metrics import RunMetrics
from ballast.simulation.study import Case, Document, Result, Series
from ballast.simulation.trace import MoveRecord, Outcome
from ballast.spark.errors import BacktestError

DECIDES = (
    "api",
    "enums",
    "files",
    "grouping",
    "model",
    "moves",
    "placement",
    "planner",
    "shedding",
    "simulation",
    "spark/backtest",
)
"""Packages and modules that a run's outcome depends on, and what is kept of it."""


@dataclass(frozen=True, slots=True)
class Window:
    """What all policies run in."""

    name: str
    digest: str
    """Of everything in it that a run depends on; names, sizes and times of files stand for what they hold."""
    seed: int = 1
    """The first; further ones count on from it."""
    metric_window_seconds: float | None = None
    """What its figures are means over; None where they are made as the policy says."""


@dataclass(frozen=True, slots=True)
class Run:
    case: Case
    document: Document
    key: str
    """Equal for runs that come to the same: same window, same spec, same seed, same program."""

    @property
    def policy(self) -> BalancingPolicy:
        return BalancingPolicy.parse(self.document)


def runs(policies: Mapping[str, Document], windows: Sequence[Window], *, seeds: int) -> list[Run]:
    """Every policy in every window with every seed, window by window.

    Raises InvalidField for a policy that goes by figures of another metric window than a window has.
    """
    edition = program(Path(ballast.__file__).parent)
    for window in windows:
        for name, document in policies.items():
            _check_metric_window(name, document, window)
    return [
        Run(Case(name, window.name, seed), document, _key(edition, window.digest, document, seed))
        for window in windows
        for seed in range(window.seed, window.seed + seeds)
        for name, document in policies.items()
    ]


def _check_metric_window(name: str, document: Document, window: Window) -> None:
    asked = BalancingPolicy.parse(document).spec.metrics.window.seconds
    if window.metric_window_seconds not in (None, asked):
        there = f"{window.metric_window_seconds:g}s"
        raise InvalidField(
            "metrics.window",
            f"{asked:g}s",
            f"of policy {name}: the figures of {window.name} are means over {there}, and scores over another time can't"
            f" be told from them. Say {there} in the policy (--grid metrics.window={there}), or collect a history with"
            f" --window {asked:g}s into another folder",
        )


def digest(*parts: object) -> str:
    """Of JSON-able values."""
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _key(edition: str, window: str, document: Document, seed: int) -> str:
    return digest(edition, window, document["spec"], seed)


def program(root: Path) -> str:
    """The program in that folder: its version, and the text of what decides, so that a changed checkout runs again."""
    files = (path for name in DECIDES for path in sorted([*root.glob(f"{name}.py"), *(root / name).rglob("*.py")]))
    code = hashlib.sha256(b"\0".join(path.read_bytes() for path in files)).hexdigest()
    return digest(version("ballast-operator"), code)


# A result as a row, and back. docs/backtest.md tells the columns.

VERSION = 3
"""Of the columns. Results of another version lie in another folder."""
_KINDS: Mapping[Any, pa.DataType] = {str: pa.string(), int: pa.int64(), float: pa.float64(), Outcome: pa.string()}
_COURSE = ("times", "imbalance", "gap", "locality")
"""Of a series: a figure for each instant."""
_HELD = ("duration_seconds", "window_seconds", "level_points")
"""Of a series: one figure for the whole."""


def _typed(record: type) -> list[pa.Field]:
    """A dataclass's fields as Arrow's."""
    return [pa.field(name, _kind(hint)) for name, hint in get_type_hints(record).items()]


def _kind(hint: Any) -> pa.DataType:
    kinds = [each for each in get_args(hint) if each is not NoneType] or [hint]
    return _KINDS[kinds[0]]


SCHEMA = pa.schema(
    [
        pa.field("key", pa.string()),
        pa.field("policy", pa.string()),
        pa.field("window", pa.string()),
        pa.field("seed", pa.int64()),
        *_typed(RunMetrics),
        pa.field("moved", pa.list_(pa.struct(_typed(MoveRecord)))),
        pa.field("unknown", pa.list_(pa.string())),
        *(pa.field(name, pa.float64()) for name in _HELD),
        *(pa.field(name, pa.list_(pa.float64())) for name in _COURSE),
        pa.field("nodes", pa.list_(pa.string())),
        pa.field("scores", pa.list_(pa.float32())),
        pa.field("document", pa.string()),
        pa.field("left_out", pa.string()),
    ],
)
"""What tasks hand back. `scores` is node by node within each instant; `document` is the BalancingPolicy as JSON.

`left_out`: why the window can't be run in; then the key, the case and the document are all else that there is.
"""


def row(result: Result, run: Run) -> pa.RecordBatch:
    """One row of `SCHEMA`."""
    series = result.series
    values = {
        "key": run.key,
        **asdict(result.case),
        **asdict(result.metrics),
        "moved": [asdict(move) for move in result.moves],
        "unknown": list(result.unknown),
        **{name: getattr(series, name) for name in (*_HELD, *_COURSE)},
        "nodes": list(series.nodes),
        "scores": series.scores.astype(np.float32).ravel(),
        "document": as_json(run.document),
    }
    return _batch(values)


def left_out_row(run: Run, why: str) -> pa.RecordBatch:
    """One row of `SCHEMA`, of a run in a window that can't be run in."""
    document = as_json(run.document)
    return _batch({"key": run.key, **asdict(run.case), "document": document, "left_out": why})


def _batch(values: Mapping[str, Any]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({name: [values.get(name)] for name in SCHEMA.names}, schema=SCHEMA)


def as_json(document: Document) -> str:
    """Of a policy, as the column `document` has it."""
    return json.dumps(document, default=str)


def results(table: pa.Table) -> list[Result]:
    """In the table's order; of windows that are left out there are none."""
    told = table.filter(pc.is_null(table.column("left_out")))
    return [_result({name: told.column(name)[index] for name in told.schema.names}) for index in range(len(told))]


def reasons_left_out(table: pa.Table) -> dict[str, str]:
    """Windows that can't be run in, and why."""
    names = ("window", "left_out")
    windows, reasons = (table.column(name).to_pylist() for name in names)
    return {window: why for window, why in zip(windows, reasons, strict=True) if why is not None}


def _result(cells: Mapping[str, pa.Scalar]) -> Result:
    nodes = tuple(cells["nodes"].as_py())
    course: dict[str, Any] = {name: _array(cells[name]) for name in _COURSE}
    course["scores"] = _array(cells["scores"]).reshape(len(course["times"]), len(nodes))
    held = {name: cells[name].as_py() for name in _HELD}
    return Result(
        case=Case(**{field.name: cells[field.name].as_py() for field in fields(Case)}),
        metrics=RunMetrics(**{field.name: cells[field.name].as_py() for field in fields(RunMetrics)}),
        series=Series(**held, **course, nodes=nodes),
        moves=tuple(MoveRecord(**{**move, "outcome": Outcome(move["outcome"])}) for move in cells["moved"].as_py()),
        unknown=tuple(cells["unknown"].as_py()),
    )


def _array(cell: pa.Scalar) -> FloatArray:
    return np.asarray(cell.values.to_numpy(zero_copy_only=False), dtype=np.float64)


def told(run: Run, trial: Trial) -> pa.RecordBatch:
    """The row of a run. Raises BacktestError, which names the run."""
    try:
        with planning_runtime():
            result = trial.run(run.policy, run.case)
    except UnusableRecordingError as error:
        return left_out_row(run, str(error))
    except BallastError as error:
        raise BacktestError(f"{run.case}: {error}") from error
    return row(result, run)
