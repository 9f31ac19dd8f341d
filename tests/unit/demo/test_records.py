import json
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from examples.demo.streaming.records import CLOSING_ID, Comparison, Source, Stream, arrived, compare

STREAM = Stream()


def write_batch(sink: Path, number: int, ids: Iterable[int], *, whole: bool = True) -> None:
    rows: dict[int, list[dict[str, int]]] = defaultdict(list)
    for each in ids:
        rows[STREAM.key(each)].append({"id": each, "value": STREAM.value(each)})
    folder = sink / f"batch={number}"
    folder.mkdir(parents=True)
    lines = [json.dumps({"key": key, "records": records}) + "\n" for key, records in rows.items()]
    (folder / "part-00000.json").write_text("".join(lines))
    if whole:
        (folder / "_SUCCESS").touch()


def test_records_that_came_out_once_agree(tmp_path: Path) -> None:
    write_batch(tmp_path, 0, range(5))
    write_batch(tmp_path, 1, range(5, 9))
    assert compare(STREAM, written=9, sink=tmp_path) == Comparison(source=9, sink=9, lost=0, duplicated=0, altered=0)


def test_lost_and_duplicated_records_are_counted_each(tmp_path: Path) -> None:
    write_batch(tmp_path, 0, [0, 1, 2])
    write_batch(tmp_path, 1, [2, 4])
    found = compare(STREAM, written=5, sink=tmp_path)
    assert (found.sink, found.lost, found.duplicated, found.agree) == (5, 1, 1, False)


def test_a_record_that_was_never_written_is_altered(tmp_path: Path) -> None:
    write_batch(tmp_path, 0, [0, 1, 7])
    assert compare(STREAM, written=2, sink=tmp_path).altered == 1


def test_a_record_with_another_value_is_altered(tmp_path: Path) -> None:
    write_batch(tmp_path, 0, [0, 1])
    part = tmp_path / "batch=0" / "part-00000.json"
    part.write_text(part.read_text().replace(f'"value": {STREAM.value(1)}', '"value": -5', 1))
    assert compare(STREAM, written=2, sink=tmp_path).altered == 1


def test_a_batch_that_was_not_written_wholly_does_not_count(tmp_path: Path) -> None:
    write_batch(tmp_path, 0, [0])
    write_batch(tmp_path, 1, [1], whole=False)
    assert arrived(tmp_path) == 1


def test_the_comparison_can_stop_short_of_what_is_still_under_way(tmp_path: Path) -> None:
    write_batch(tmp_path, 0, range(8))
    assert compare(STREAM, written=4, sink=tmp_path, below=4).agree
    assert arrived(tmp_path, below=4) == 4


def test_the_closing_record_is_nobodys(tmp_path: Path) -> None:
    write_batch(tmp_path, 0, [0, CLOSING_ID])
    assert compare(STREAM, written=1, sink=tmp_path).agree


def test_a_source_that_is_closed_has_written_what_it_says(tmp_path: Path) -> None:
    source = Source(tmp_path, Stream(records_per_second=40), period_seconds=0.05)
    source.start()
    source.close()
    rows = [json.loads(line) for file in sorted(tmp_path.glob("*.json")) for line in file.read_text().splitlines()]
    assert [row["id"] for row in rows if row["id"] != CLOSING_ID] == list(range(source.written))
    assert rows[-1]["id"] == CLOSING_ID
    assert source.written > 0


@given(st.integers(0, 10**9))
def test_a_record_follows_from_its_number(number: int) -> None:
    row = json.loads(STREAM.line(number, 0.0))
    assert (row["key"], row["value"]) == (STREAM.key(number), STREAM.value(number))
    assert len(row["padding"]) == STREAM.padding
    assert 0 <= row["key"] < STREAM.keys


def test_a_hot_key_has_its_share_of_the_records() -> None:
    stream = Stream(hot_ratio=0.6, hot_padding=600)
    keys = [stream.key(number) for number in range(10_000)]
    assert 0.55 < keys.count(0) / len(keys) < 0.65
