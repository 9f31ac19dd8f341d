from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa

from ballast.simulation.policies import by_name
from ballast.simulation.replay import ScenarioTrial
from ballast.simulation.study import Case
from ballast.spark.backtest.cases import Run, left_out_row, reasons_left_out, results, row
from tests.unit.simulation.small_world import EAGER, scenario

RUN = Run(Case("AvgShedder", "small", 1), by_name("AvgShedder", EAGER), "some key")


def test_a_result_is_the_same_when_it_is_read_again() -> None:
    result = replace(ScenarioTrial(scenario()).run(RUN.policy, RUN.case), unknown=("zones",))
    assert result.moves
    kept = pa.table(row(result, RUN))
    (read,) = results(kept)
    assert (read.case, read.metrics, read.moves, read.unknown) == (
        result.case,
        result.metrics,
        result.moves,
        result.unknown,
    )
    assert read.series.nodes == result.series.nodes
    for name in ("times", "imbalance", "gap", "locality"):
        np.testing.assert_array_equal(getattr(read.series, name), getattr(result.series, name))
    np.testing.assert_allclose(read.series.scores, result.series.scores, rtol=1e-6)
    assert json.loads(kept.column("document")[0].as_py()) == RUN.document


def test_a_window_that_is_left_out_has_a_reason_and_no_result() -> None:
    day = replace(RUN, case=Case("AvgShedder", "day", 1))
    table = pa.Table.from_batches(
        [left_out_row(RUN, "no metrics"), row(ScenarioTrial(scenario()).run(RUN.policy, RUN.case), day)]
    )
    assert reasons_left_out(table) == {"small": "no metrics"}
    assert len(results(table)) == 1
