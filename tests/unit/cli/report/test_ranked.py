from __future__ import annotations

from dataclasses import fields
from math import nan

from ballast.cli.report.ranked import COLUMNS, FIGURES, interval, ranked_rows
from ballast.cli.report.simulated import MEANINGS
from ballast.simulation.estimate import Estimate
from ballast.simulation.figures import Figures
from ballast.simulation.ranking import ranking
from tests.unit.simulation.studies import study


def test_columns_are_those_of_a_simulation() -> None:
    assert set(FIGURES) == set(MEANINGS)
    assert set(FIGURES.values()) <= {field.name for field in fields(Figures)}


def test_policies_stand_in_the_order_of_the_ranking_and_are_numbered() -> None:
    ranked = ranking(study())
    found = ranked_rows(ranked)
    assert [row[:2] for row in found] == [[str(i), one.policy] for i, one in enumerate(ranked.standings, start=1)]
    assert all(len(row) == len(COLUMNS) for row in found)


def test_an_interval_is_written_where_it_is_known() -> None:
    assert interval(Estimate(4.0, 1.5, 3), str) == "4.0 ± 1.5"
    assert interval(Estimate(4.0, nan, 1), str) == "4.0"
    assert interval(Estimate(nan, nan, 0), str) == "-"
