from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ballast.spark.audit.ledger import _SCHEMA, LedgerError, _file_part, read
from tests.unit.cli.program import run

ROW: dict[str, Any] = {
    "query": "q",
    "run": "r",
    "batch": 1,
    "stage": "s",
    "after": ["t"],
    "consumed_count": 1,
    "consumed_xor": 1,
    "emitted_count": 1,
    "emitted_xor": 1,
    "recomputed": False,
    "recorded_ms": 1,
}


@pytest.mark.parametrize(
    ("one", "other"),
    [("clicks a", "clicks_a"), ("größe", "grüße"), ("ü", "ö"), ("a" * 300, "a" * 299), ("a/b", "a\\b"), ("", "_")],
)
def test_the_files_of_two_queries_differ_and_are_short(one: str, other: str) -> None:
    """The second one replaced what the first had recorded."""
    assert _file_part(one) != _file_part(other)
    assert max(len(_file_part(each)) for each in (one, other)) < 100


@pytest.mark.parametrize("name", ["_clicks", ".clicks", "größe", "ältere", "日本", " a", "_", "."])
def test_no_query_has_files_that_readers_of_parquet_pass_over(name: str) -> None:
    """What such a query lost was never reported."""
    assert _file_part(name)[0] not in "_."


def test_files_with_more_rows_than_a_query_has_stages_are_refused(tmp_path: Path) -> None:
    """20 million rows that are alike take a megabyte, and more memory than there is once they are read."""
    row = pa.Table.from_pylist([ROW])
    pq.write_table(row.take(pa.array([0] * 20_000)), tmp_path / "bomb.parquet")
    with pytest.raises(LedgerError, match=r"bomb\.parquet: .* it has 20000 rows, and at most 10000 are read"):
        read(tmp_path)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([{**ROW, "query": str(number) * 2**19} for number in range(10, 80)], "more than .* 67108864 bytes"),
        ([{**ROW, "after": ["a"] * 1_100_000}], "a column has more than 1000000 values"),
        ([{**ROW, "stage": "x" * 5000}], "a name has more than 4096 bytes"),
        ([{**ROW, "after": ["x" * 5000]}], "a name has more than 4096 bytes"),
    ],
)
def test_small_files_that_stand_for_much_memory_are_refused(
    tmp_path: Path, rows: list[dict[str, Any]], words: str
) -> None:
    pq.write_table(pa.Table.from_pylist(rows, schema=_SCHEMA), tmp_path / "bomb.parquet", compression="zstd")
    with pytest.raises(LedgerError, match=words):
        read(tmp_path)


def test_a_pipe_among_the_files_is_refused_instead_of_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.parquet")
    with pytest.raises(LedgerError, match=r"pipe\.parquet: it is no file of a ledger"):
        read(tmp_path)


def test_a_name_that_is_no_text_is_refused(tmp_path: Path) -> None:
    table = pa.Table.from_pylist([ROW], schema=_SCHEMA)
    wrong = pa.array([b"\xff"], pa.binary()).view(pa.string())
    pq.write_table(table.set_column(0, "query", wrong), tmp_path / "bytes.parquet")
    with pytest.raises(LedgerError, match=r"bytes\.parquet: it is no file of a ledger"):
        read(tmp_path)


def test_a_name_that_can_be_a_files_stays_as_it_is() -> None:
    assert _file_part("clicks-v1.2") == "clicks-v1.2"


@pytest.mark.parametrize(
    ("column", "value"), [*((column, None) for column in ROW), ("after", [None]), ("batch", "one"), ("query", ["q"])]
)
def test_what_no_query_recorded_is_refused(tmp_path: Path, column: str, value: object) -> None:
    pq.write_table(pa.Table.from_pylist([ROW]), tmp_path / "1.parquet")
    assert len(read(tmp_path)) == 1
    pq.write_table(pa.Table.from_pylist([{**ROW, column: value}]), tmp_path / "2.parquet")
    with pytest.raises(LedgerError, match=r"2\.parquet: it is no file of a ledger"):
        read(tmp_path)


def test_the_audit_says_up_to_which_micro_batch_nothing_is_recorded_of_a_stage(tmp_path: Path) -> None:
    rows = [{**ROW, "batch": batch, "stage": "source", "after": []} for batch in range(4)]
    rows += [{**ROW, "batch": batch, "stage": "delivered", "after": ["source"]} for batch in (2, 3)]
    pq.write_table(pa.Table.from_pylist(rows, schema=_SCHEMA), tmp_path / "1.parquet")
    ended = run("audit", str(tmp_path))
    assert ended.code == 0
    words = "q: micro-batches up to 1 are judged without delivered, of which nothing is recorded there"
    assert ended.out.splitlines()[-1] == words
    found = json.loads(run("audit", str(tmp_path), "-o", "json").out)
    assert [each["without"] for each in found] == [["delivered"], ["delivered"], [], []]
