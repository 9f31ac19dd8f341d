"""What becomes of a history's files in a task, without Spark."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ballast.errors import InvalidField
from ballast.simulation.policies import candidates
from ballast.simulation.recording import Recording, Rows
from ballast.simulation.replay import RecordingTrial, Replay
from ballast.spark.backtest import Run, Selection, Window, runs
from ballast.spark.backtest.cases import reasons_left_out, results
from ballast.spark.backtest.recordings import Stored, excerpts, moment_ms, recorded_task, rows
from ballast.spark.errors import BacktestError, HistoryError
from ballast.spark.history import Day, Part
from ballast.spark.storage import Storage, qualified
from tests.unit.simulation.histories import Row, history
from tests.unit.simulation.recordings import recorded
from tests.unit.simulation.small_world import EAGER, policy, scenario

DAY = Day.parse("2026-01-05", field="day")
LATER = DAY.plus(3)
HOUR_MS = 3_600_000
HALF_PAST = DAY.start_ms + 31 * 60_000
"""When the recording has ended."""
POLICIES = candidates(["AvgShedder"], [], figures=EAGER, baseline=True)
TEXTS = ("signal", "node", "namespace", "pod", "detail")


@pytest.fixture(scope="module")
def given() -> Recording:
    """Half an hour of a pool that an operator looked at and nobody leveled."""
    found = recorded(scenario(), policy(mode="Disabled"))[1]
    return replace(found, passes=tuple(60.0 * step for step in range(found.steps)))


def parquet(found: list[Row]) -> bytes:
    columns = {
        "time": pa.array([row.time_ms * 1000 for row in found], pa.timestamp("us", "UTC")),
        **{name: pa.array([getattr(row, name) for row in found], pa.string()) for name in TEXTS},
        "value": pa.array([row.value for row in found], pa.float64()),
    }
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()


def part(day: Day = DAY, pool: str = "streaming") -> Part:
    return Part(day, pool)


def names(parts: dict[Part, int], **selection: Any) -> list[str]:
    return [excerpt.name for excerpt in excerpts(parts, Selection(**selection))]


WHOLE = {part(): DAY.end_ms, part(DAY.plus(1)): DAY.plus(1).end_ms}


@pytest.mark.parametrize(
    ("parts", "selection", "expected"),
    [
        (WHOLE, {}, ["streaming 2026-01-05", "streaming 2026-01-06"]),
        ({part(): DAY.end_ms, part(pool="b"): DAY.end_ms}, {}, ["b 2026-01-05", "streaming 2026-01-05"]),
        (WHOLE, {"window_ms": 48 * HOUR_MS}, ["streaming 2026-01-05"]),
        ({part(): DAY.start_ms + HOUR_MS}, {"window_ms": 12 * HOUR_MS}, ["streaming 2026-01-05"]),
        ({part(): DAY.end_ms}, {"window_ms": 12 * HOUR_MS}, ["streaming 2026-01-05", "streaming 2026-01-05T12:00Z"]),
        ({part(): DAY.end_ms}, {"start_ms": DAY.start_ms + HOUR_MS}, ["streaming 2026-01-05T01:00Z"]),
        ({part(): DAY.end_ms}, {"start_ms": DAY.start_ms + 30_000}, ["streaming 2026-01-05T00:00:30Z"]),
        ({part(): DAY.end_ms, part(LATER): LATER.end_ms}, {}, [f"streaming 2026-01-0{day}" for day in range(5, 9)]),
    ],
    ids=["days", "pools", "two days", "a day that is not over", "half days", "from a time on",
         "from a second on", "days that are missing"],
)  # fmt: skip
def test_a_history_is_cut_into_windows(parts: dict[Part, int], selection: dict[str, int], expected: list[str]) -> None:
    assert names(parts, **selection) == expected


def test_days_that_are_missing_are_windows_without_parts() -> None:
    found = excerpts({part(): DAY.end_ms, part(LATER): LATER.end_ms}, Selection())
    assert [excerpt.parts for excerpt in found] == [(part(),), (), (), (part(LATER),)]


def test_a_window_goes_on_to_its_own_end_where_no_more_is_known() -> None:
    (only,) = excerpts({part(): DAY.start_ms + HOUR_MS}, Selection())
    assert only.seconds == 86_400


def test_the_last_window_ends_where_it_is_told_to() -> None:
    (only,) = excerpts(WHOLE, Selection(start_ms=DAY.end_ms - HOUR_MS, end_ms=DAY.end_ms + HOUR_MS))
    assert (only.start_ms, only.end_ms) == (DAY.end_ms - HOUR_MS, DAY.end_ms + HOUR_MS)
    assert only.parts == tuple(WHOLE)


def test_windows_last_a_minute_at_least() -> None:
    found = names(WHOLE, window_ms=60_000, start_ms=DAY.start_ms + 30_000)
    assert len(set(found)) == len(found) == 2 * 24 * 60
    with pytest.raises(InvalidField, match="--window: '30s': name a minute at least"):
        names(WHOLE, window_ms=30_000)


def test_windows_must_fit_into_days_or_days_into_them() -> None:
    with pytest.raises(InvalidField, match="--window: '25200s': name a part of a day"):
        names(WHOLE, window_ms=7 * HOUR_MS)


@pytest.mark.parametrize(
    ("text", "end", "expected"),
    [
        ("2026-01-05", False, DAY.start_ms),
        ("2026-01-05", True, DAY.end_ms),
        ("2026-01-05T02:00:00Z", True, DAY.start_ms + 2 * HOUR_MS),
    ],
)
def test_times_are_days_or_moments(text: str, end: bool, expected: int) -> None:
    assert moment_ms(text, field="--from", end=end) == expected


@pytest.mark.parametrize(
    "text",
    [
        "2026-13-05",
        "yesterday",
        "now - 1000h",
        "1767225600.0",
        "2026-01-05T25:00:00Z",
        "2026-01-05T02:00:00",
        "20260105",
    ],
)
def test_what_is_no_time_is_named_with_what_to_write(text: str) -> None:
    with pytest.raises(InvalidField, match=f"^--from: '{text}': write a day such as 2026-11-21"):
        moment_ms(text, field="--from")


def texts(found: Rows, name: str) -> list[str | None]:
    column = getattr(found, name)
    return [column.words[code] if code >= 0 else None for code in column.codes]


def test_a_file_is_read_as_what_was_written(given: Recording, tmp_path: Path) -> None:
    wanted = history(given)
    found = read(file(tmp_path, parquet(wanted)))
    assert found.time_ms.tolist() == [row.time_ms for row in wanted]
    for name in TEXTS:
        assert texts(found, name) == [getattr(row, name) for row in wanted]
    np.testing.assert_array_equal(found.value, [row.value for row in wanted])


def file(folder: Path, content: bytes, *, name: str = "a") -> str:
    path = folder / name
    path.write_bytes(content)
    return qualified(str(path))


def read(*files: str, end_ms: int = DAY.end_ms) -> Rows:
    return rows(files, Storage({}), start_ms=DAY.start_ms, end_ms=end_ms)


def told(
    *files: str,
    chosen: Callable[[Run], bool] = lambda _: True,
    end_ms: int = HALF_PAST,
    after_each: Callable[[], None] = lambda: None,
) -> list[pa.RecordBatch]:
    (excerpt,) = excerpts({part(): DAY.end_ms}, Selection(end_ms=end_ms))
    wanted = [run for run in runs(POLICIES, [Window(excerpt.name, "d")], seeds=1) if chosen(run)]
    task = recorded_task(wanted, {excerpt.name: Stored(excerpt, files)}, Storage({}), Replay())
    found = []
    for batch in task(iter([pa.RecordBatch.from_pydict({"id": list(range(len(wanted)))})])):
        found.append(batch)
        after_each()
    return found


def test_a_task_replays_the_files_that_it_reads(given: Recording, tmp_path: Path) -> None:
    (batch,) = told(file(tmp_path, parquet(history(given))), chosen=lambda run: run.case.policy == "AvgShedder")
    (result,) = results(pa.table(batch))
    (run,) = [each for each in runs(POLICIES, [Window(result.case.window, "d")], seeds=1) if each.case == result.case]
    by_hand = RecordingTrial(given, Replay()).run(run.policy, run.case)
    assert (result.metrics, result.moves, result.unknown) == (by_hand.metrics, by_hand.moves, by_hand.unknown)
    assert result.metrics.moves > 0


def truncated(content: bytes) -> bytes:
    return content[:-100]


def hollow(content: bytes) -> bytes:
    """Its end is whole, what comes before is not."""
    return content[:4] + bytes(1996) + content[2000:]


@pytest.mark.parametrize("spoil", [truncated, hollow, lambda _: b"no Parquet at all"])
def test_a_file_that_cannot_be_read_is_named_with_its_window(
    given: Recording, tmp_path: Path, spoil: Callable[[bytes], bytes]
) -> None:
    broken = file(tmp_path, spoil(parquet(history(given))))
    remedy = "if the file itself is broken, delete it and collect its day again"
    with pytest.raises(HistoryError, match=rf"^{broken} can't be read \([^\n]+\): {remedy}$"):
        read(broken)
    with pytest.raises(BacktestError, match=rf"^streaming 2026-01-05: {broken} can't be read"):
        told(broken)


def test_of_several_files_the_rows_of_the_time_asked_for_are_read(given: Recording, tmp_path: Path) -> None:
    wanted = history(given)
    halves = [wanted[::2], wanted[1::2]]
    until = HALF_PAST - 10 * 60_000
    found = read(*(file(tmp_path, parquet(half), name=str(n)) for n, half in enumerate(halves)), end_ms=until)
    assert Counter(zip(found.time_ms.tolist(), texts(found, "node"), texts(found, "signal"), strict=True)) == Counter(
        (row.time_ms, row.node, row.signal) for row in wanted if row.time_ms < until
    )


def test_a_file_of_other_columns_is_named(tmp_path: Path) -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table({"signal": ["nodeCpu"]}), sink)
    with pytest.raises(HistoryError, match="a can't be read"):
        read(file(tmp_path, sink.getvalue()))


def test_a_window_is_read_once_for_all_policies_that_a_task_runs_in_it(given: Recording, tmp_path: Path) -> None:
    path = tmp_path / "a"
    found = told(file(tmp_path, parquet(history(given))), after_each=lambda: path.unlink(missing_ok=True))
    assert len(found) == len(POLICIES) == 2
    assert not path.exists()


def test_a_window_that_cannot_be_replayed_is_left_out_with_the_reason_for_every_policy(
    given: Recording, tmp_path: Path
) -> None:
    bare = [row for row in history(given) if row.signal != "nodeCpu"]
    found = [reasons_left_out(pa.table(batch)) for batch in told(file(tmp_path, parquet(bare)))]
    why = "no node has figures of its CPU at two times, which are the fewest"
    assert found == [{"streaming 2026-01-05": why}] * len(POLICIES)


def test_a_day_of_which_little_is_known_is_left_out(given: Recording, tmp_path: Path) -> None:
    day = file(tmp_path, parquet(history(given)))
    found = [reasons_left_out(pa.table(batch)) for batch in told(day, end_ms=DAY.end_ms)]
    why = "there are figures of 0.517 of 24 hours, less than 75%"
    assert found == [{"streaming 2026-01-05": why}] * len(POLICIES)
