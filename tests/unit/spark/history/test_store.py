from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ballast.spark.history.schema import DAY_MS, Day
from ballast.spark.history.store import Piece, fitting_hours, pieces

DAY = Day.parse("2026-01-05", field="day")
HOURS = (24, 12, 8, 6, 4, 3, 2, 1)


@pytest.mark.parametrize("hours", HOURS)
def test_the_pieces_of_a_day_follow_each_other_without_a_gap(hours: int) -> None:
    found = pieces(hours)
    assert found[0].start_ms(DAY) == DAY.start_ms
    assert found[-1].end_ms(DAY) == DAY.end_ms
    assert all(one.end_ms(DAY) == following.start_ms(DAY) for one, following in pairwise(found))
    assert {piece.hours for piece in found} == {hours}


@pytest.mark.parametrize("hours", HOURS)
def test_a_piece_is_known_again_by_its_files_name(hours: int) -> None:
    assert [Piece.named(piece.file) for piece in pieces(hours)] == pieces(hours)


@pytest.mark.parametrize(
    "name",
    [
        "part-0.parquet",
        "history-old.parquet",
        "history-00-24.parquet",
        "history-06-06.parquet",
        "history-12-06.parquet",
        "history-01-07.parquet",
        "history-00-05.parquet",
    ],
)
def test_no_other_file_is_a_piece(name: str) -> None:
    assert Piece.named(name) is None


@given(st.integers(1, 10**10), st.integers(1, DAY_MS), st.integers(1, 10**9))
def test_a_day_is_cut_no_finer_than_the_bound_needs(rows: int, known_ms: int, most_rows: int) -> None:
    hours = fitting_hours(rows, known_ms=known_ms, most_rows=most_rows)
    an_hour = rows * 3_600_000 / known_ms
    assert hours == 1 or an_hour * hours <= most_rows * (1 + 1e-9)
    assert all(an_hour * longer > most_rows * (1 - 1e-9) for longer in HOURS if longer > hours)
