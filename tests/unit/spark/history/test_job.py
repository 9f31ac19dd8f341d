from __future__ import annotations

import pytest

from ballast.spark.history import Day, Done, Written

DAY = Day.parse("2026-01-05", field="day")
EARLY, LATE = "history-00-12.parquet", "history-12-24.parquet"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, Written.NOTHING),
        ({EARLY: Written.NEW, LATE: Written.NEW}, Written.NEW),
        ({EARLY: Written.UNCHANGED, LATE: Written.UNCHANGED}, Written.UNCHANGED),
        ({EARLY: Written.UNCHANGED, LATE: Written.NEW}, Written.CHANGED),
        ({EARLY: Written.CHANGED, LATE: Written.UNCHANGED}, Written.CHANGED),
        ({EARLY: Written.KEPT, LATE: Written.CHANGED}, Written.KEPT),
    ],
)
def test_what_became_of_a_day_is_told_by_its_files(files: dict[str, Written], expected: Written) -> None:
    assert Done(DAY, "streaming", files).written is expected


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({EARLY: Written.KEPT, LATE: Written.UNCHANGED}, f"{EARLY} has more"),
        ({EARLY: Written.KEPT, LATE: Written.KEPT}, f"{EARLY} has more, {LATE} has more"),
    ],
)
def test_only_files_that_hold_more_than_prometheus_are_named_for_deletion(
    files: dict[str, Written], words: str
) -> None:
    assert str(Done(DAY, "streaming", files, rows=7)) == (
        f"date=2026-01-05/pool=streaming: 7 rows, kept: {words}, Prometheus forgets: delete such a file to have it"
        " collected again"
    )
