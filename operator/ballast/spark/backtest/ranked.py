"""The ranking as a table of Parquet: a row for each policy, the recommended one first."""

from __future__ import annotations

from dataclasses import fields

import pyarrow as pa

from ballast.simulation.ranking import Ranking
from ballast.simulation.run_metrics import RunMetrics

FIGURES = tuple(field.name for field in fields(RunMetrics))


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
