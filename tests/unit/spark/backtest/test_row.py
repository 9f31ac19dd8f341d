from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from ballast.simulation.policies import by_name
from ballast.simulation.replay import ScenarioTrial
from ballast.simulation.study import Case
from ballast.spark.backtest.cases import (
    SCHEMA,
    Run,
    checked,
    documents,
    labeled,
    left_out_row,
    reasons_left_out,
    results,
    row,
)
from ballast.spark.errors import BacktestError
from tests.unit.simulation.small_world import EAGER, scenario

RUN = Run(Case("AvgShedder", "small", 1), by_name("AvgShedder", EAGER), "some key")


def test_a_result_is_the_same_when_it_is_read_again() -> None:
    result = replace(ScenarioTrial(scenario()).run(RUN.policy, RUN.case), unknown=("zones",))
    assert result.moves
    kept = row(result, RUN)
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
    assert documents(kept) == {"AvgShedder": RUN.document}


def test_a_result_that_was_kept_under_another_name_gets_the_one_asked_for() -> None:
    kept = row(ScenarioTrial(scenario()).run(RUN.policy, RUN.case), RUN)
    (read,) = results(labeled(kept, replace(RUN, case=Case("mine", "renamed", 1))))
    assert read.case == Case("mine", "renamed", 1)


def test_a_window_that_is_left_out_has_a_reason_and_no_result() -> None:
    day = replace(RUN, case=Case("AvgShedder", "day", 1))
    table = pa.concat_tables(
        [left_out_row(RUN, "no metrics"), row(ScenarioTrial(scenario()).run(RUN.policy, RUN.case), day)]
    )
    assert reasons_left_out(table) == {"small": "no metrics"}
    assert len(results(table)) == 1
    assert reasons_left_out(labeled(table.slice(0, 1), day)) == {"day": "no metrics"}
    assert documents(table) == {"AvgShedder": RUN.document}


@pytest.mark.parametrize(
    ("schema", "version"),
    [(SCHEMA.remove_metadata(), "None"), (SCHEMA.with_metadata({"ballast.dev/backtest": "0"}), "0")],
)
def test_results_of_another_version_are_refused(schema: pa.Schema, version: str) -> None:
    with pytest.raises(BacktestError, match=f"there has version {version} of the results' schema, not 2"):
        checked(schema.empty_table(), where="there")
