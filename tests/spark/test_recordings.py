from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from ballast.errors import InvalidField
from ballast.simulation.policies import candidates
from ballast.simulation.recorded.reading import recording as read
from ballast.simulation.recording import Recording
from ballast.simulation.replay import RecordingTrial, Replay
from ballast.simulation.study import Study
from ballast.spark.backtest import Job, Recordings, Selection, Store, runs
from ballast.spark.backtest.recordings import rows
from ballast.spark.errors import HistoryError, in_own_words
from ballast.spark.history import Day, Part
from ballast.spark.history import Store as HistoryStore
from ballast.spark.history.schema import SORT, VERSION, Metadata, columns
from ballast.spark.storage import Storage, qualified
from tests.unit.cli.program import run as command
from tests.unit.simulation.histories import Row, history, table
from tests.unit.simulation.recordings import recorded
from tests.unit.simulation.small_world import EAGER, policy, scenario

DAY = Day.parse("2026-01-05", field="day")
SPAN_MS = 1_800_000
BOTH = Selection(start_ms=DAY.end_ms - SPAN_MS, end_ms=DAY.end_ms + SPAN_MS, window_ms=SPAN_MS)
MEASURED = ("--grid", "metrics.window=60s")
"""As the history is."""
POLICIES = candidates(["AvgShedder"], [], figures=EAGER, baseline=True)


@pytest.fixture(scope="module")
def given() -> Recording:
    """Half an hour of a pool that nobody leveled."""
    return recorded(scenario(), policy(mode="Disabled"))[1]


def write(
    spark: SparkSession,
    folder: Path,
    found: Iterable[Row],
    *,
    day: Day = DAY,
    pool: str = "streaming",
    window_ms: int = 60_000,
) -> Path:
    """As `ballast history` leaves it."""
    part = folder / str(Part(day, pool))
    frame = spark.createDataFrame(
        [tuple(row) for row in found],
        "time_ms long, signal string, node string, namespace string, pod string, detail string, value double",
    ).selectExpr("timestamp_millis(time_ms) as time", *[name for name in SORT if name != "time"])
    metadata = Metadata(day.end_ms, step_ms=60_000, window_ms=window_ms)
    staged = folder / "_staged"
    frame.coalesce(1).sortWithinPartitions(*SORT).select(*columns(metadata)).write.parquet(str(staged))
    part.mkdir(parents=True)
    (file,) = staged.glob("*.parquet")
    file.rename(part / "history.parquet")
    shutil.rmtree(staged)
    return part / "history.parquet"


@pytest.fixture(scope="module")
def half_hours(given: Recording) -> list[list[Row]]:
    """The last half hour of the day, and the first of the next: in both, the same."""
    half = [row for row in history(given) if row.time_ms < DAY.start_ms + SPAN_MS]
    return [
        [row._replace(time_ms=row.time_ms - DAY.start_ms + at) for row in half]
        for at in (DAY.end_ms - SPAN_MS, DAY.end_ms)
    ]


@pytest.fixture(scope="module")
def kept(spark: SparkSession, half_hours: list[list[Row]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("history")
    for day, found in enumerate(half_hours):
        write(spark, folder, found, day=DAY.plus(day))
    return folder


def test_what_spark_has_written_is_read_as_it_was(half_hours: list[list[Row]], kept: Path) -> None:
    file = kept / str(Part(DAY, "streaming")) / "history.parquet"
    found = rows([qualified(str(file))], Storage({}), start_ms=DAY.start_ms, end_ms=DAY.end_ms)
    wanted = half_hours[0]
    assert len(found) == len(wanted)
    assert sorted(found.time_ms.tolist()) == sorted(row.time_ms for row in wanted)
    assert set(found.signal.words) == {row.signal for row in wanted}
    np.testing.assert_allclose(found.of("nodeCpu").value.sum(), sum(r.value for r in wanted if r.signal == "nodeCpu"))


@pytest.mark.parametrize("size", [pytest.param(1, marks=pytest.mark.soak), 4])
def test_a_history_is_backtested_window_by_window_as_without_spark_whatever_the_number_of_tasks(
    spark: SparkSession, half_hours: list[list[Row]], kept: Path, tmp_path: Path, size: int
) -> None:
    source = Recordings(spark, str(kept), BOTH, Replay())
    assert [window.name for window in source.windows] == ["streaming 2026-01-05T23:30Z", "streaming 2026-01-06"]
    wanted = runs(POLICIES, source.windows, seeds=1)
    store = Store(spark, str(tmp_path))
    job = Job(spark, source, store, size=size)
    job.run(job.missing(wanted), lambda _: None)
    study = store.study(wanted)
    trials = {
        window.name: RecordingTrial(
            read(table(found), pool="streaming", start_ms=start_ms, end_ms=start_ms + SPAN_MS), Replay()
        )
        for window, found, start_ms in zip(source.windows, half_hours, (DAY.end_ms - SPAN_MS, DAY.end_ms), strict=True)
    }
    for result in study.results:
        policy_of_it = next(run.policy for run in wanted if run.case == result.case)
        by_hand = trials[result.case.window].run(policy_of_it, result.case)
        assert (result.metrics, result.moves, result.unknown) == (by_hand.metrics, by_hand.moves, by_hand.unknown)
        np.testing.assert_array_equal(result.series.scores, by_hand.series.scores.astype(np.float32))
    moved = {result.case: result.metrics.moves for result in study.results}
    assert len(moved) == 4
    assert {case.policy for case, moves in moved.items() if moves} == {"AvgShedder"}
    assert any("what 10 of 10 applications are is not known" in line for line in study.unknown)
    assert job.missing(runs(POLICIES, Recordings(spark, str(kept), BOTH, Replay()).windows, seeds=1)) == []


@pytest.mark.soak
def test_a_day_of_several_files_is_backtested_as_one_of_one_file(
    spark: SparkSession, kept: Path, tmp_path: Path
) -> None:
    folder, part = tmp_path / "history", Part(DAY, "streaming")
    found = spark.read.parquet(str(kept / str(part)))
    metadata = Metadata(DAY.end_ms, step_ms=60_000, window_ms=60_000)
    HistoryStore(spark, str(folder), most_rows=1).write(found, part, metadata, count=found.count())
    assert len(list(folder.rglob("*.parquet"))) == 24
    last_hour = Selection(start_ms=DAY.end_ms - 2 * SPAN_MS, window_ms=SPAN_MS)

    def backtested(history: Path) -> Study:
        source, store = Recordings(spark, str(history), last_hour, Replay()), Store(spark, f"{history}-out")
        wanted = runs(POLICIES, source.windows, seeds=1)
        Job(spark, source, store).run(wanted, lambda _: None)
        return store.study(wanted)

    one = tmp_path / "one"
    shutil.copytree(kept / str(part), one / str(part))
    split, whole = backtested(folder), backtested(one)
    assert [(each.case, each.metrics, each.moves) for each in split.results] == [
        (each.case, each.metrics, each.moves) for each in whole.results
    ]
    assert split.left_out == whole.left_out
    assert len(split.results) == 2


@pytest.mark.soak
@pytest.mark.parametrize("hour", [0, 22], ids=["the first", "one in the middle"])
def test_windows_of_which_a_file_of_the_day_is_missing_are_left_out_and_those_after_them_are_not(
    spark: SparkSession, kept: Path, tmp_path: Path, hour: int
) -> None:
    part = Part(DAY, "streaming")
    found = spark.read.parquet(str(kept / str(part)))
    metadata = Metadata(DAY.end_ms, step_ms=60_000, window_ms=60_000)
    HistoryStore(spark, str(tmp_path), most_rows=1).write(found, part, metadata, count=found.count())
    (tmp_path / str(part) / f"history-{hour:02}-{hour + 1:02}.parquet").unlink()
    hours = [f"streaming 2026-01-05T{each:02}:00Z" if each else "streaming 2026-01-05" for each in range(24)]
    source = Recordings(spark, str(tmp_path), Selection(window_ms=2 * SPAN_MS), Replay())
    assert source.left_out == {hours[hour]: "a file of the day is missing: run `ballast history` again"}
    assert [window.name for window in source.windows] == [name for name in hours if name != hours[hour]]
    start_ms = DAY.start_ms + hour * 2 * SPAN_MS
    with pytest.raises(HistoryError, match=f"holds no history of any pool from .*{hours[hour]}: a file of the day is"):
        Recordings(spark, str(tmp_path), Selection(start_ms=start_ms, end_ms=start_ms + 2 * SPAN_MS), Replay())


@pytest.mark.parametrize("starts_ms", [(60_000, 90_000), (90_000, 90_500)], ids=["half a minute", "less than a second"])
def test_what_ran_in_a_window_is_not_reused_for_one_that_begins_a_little_later(
    spark: SparkSession, kept: Path, starts_ms: tuple[int, int]
) -> None:
    chosen = [Selection(start_ms=DAY.end_ms + at, end_ms=DAY.end_ms + SPAN_MS) for at in starts_ms]
    (first,), (second,) = (Recordings(spark, str(kept), each, Replay()).windows for each in chosen)
    assert first.digest != second.digest


def test_a_history_without_such_a_pool_or_time_is_told_of(spark: SparkSession, kept: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidField, match=r"--pool: 'batch': there is no such pool in .*, but streaming"):
        Recordings(spark, str(kept), Selection(pools=("streaming", "batch")), Replay())
    with pytest.raises(HistoryError, match="holds no history of streaming from 2026-01-08T00:00Z"):
        Recordings(spark, str(kept), Selection(pools=("streaming",), start_ms=DAY.plus(3).start_ms), Replay())
    with pytest.raises(HistoryError, match="holds no history: name the folder that"):
        Recordings(spark, str(tmp_path), Selection(), Replay())


def test_days_between_that_are_not_there_are_left_out(spark: SparkSession, kept: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(kept, tmp_path / "history"))
    write(spark, folder, [], day=DAY.plus(4))
    found = Recordings(spark, str(folder), Selection(), Replay())
    assert list(found.left_out) == ["streaming 2026-01-07", "streaming 2026-01-08"]
    assert [window.name for window in found.windows] == [f"streaming 2026-01-0{day}" for day in (5, 6, 9)]


def run_one(spark: SparkSession, history: Path, out: Path, selection: Selection) -> None:
    with in_own_words():
        source = Recordings(spark, str(history), selection, Replay())
        Job(spark, source, Store(spark, str(out))).run(runs(POLICIES, source.windows, seeds=1)[:1], lambda _: None)


def truncated(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-100])


def of_another_version(file: Path) -> None:
    table = pq.read_table(file)
    key = b"org.apache.spark.sql.parquet.row.metadata"
    described = json.loads(table.schema.metadata[key])
    described["fields"][0]["metadata"]["ballast.dev/schema"] = VERSION + 1
    pq.write_table(table.replace_schema_metadata({key: json.dumps(described).encode()}), file)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (truncated, r"date=2026-01-06/pool=streaming/history\.parquet can't be read .*delete it"),
        (
            of_another_version,
            rf"date=2026-01-06/pool=streaming/history\.parquet has version {VERSION + 1} of .* not {VERSION}: collect",
        ),
    ],
)
def test_a_file_that_cannot_be_used_is_named(
    spark: SparkSession, kept: Path, tmp_path: Path, spoil: Callable[[Path], None], words: str
) -> None:
    folder = Path(shutil.copytree(kept, tmp_path / "history"))
    spoil(folder / str(Part(DAY.plus(1), "streaming")) / "history.parquet")
    with pytest.raises(HistoryError, match=words):
        run_one(spark, folder, tmp_path / "out", Selection(start_ms=DAY.end_ms, end_ms=BOTH.end_ms))


@pytest.mark.usefixtures("spark")
def test_the_command_leaves_out_what_cannot_be_replayed_and_says_so(kept: Path, tmp_path: Path) -> None:
    until = ["--from", "2026-01-05T23:30:00Z", "--to", "2026-01-06T01:00:00Z", "--window", "30m"]
    asked = ["backtest", "--history", str(kept), *until, *MEASURED, "--out", str(tmp_path / "out")]
    page = tmp_path / "page.html"
    first, again = command(*asked, "--report", str(page)), command(*asked, "--seeds", "5", "-o", "json")
    assert (first.code, again.code) == (0, 0), first.err + again.err
    silent = "streaming 2026-01-06T00:30Z"
    why = "no node has figures of its CPU at two times, which are the fewest"
    assert "windows streaming 2026-01-05T23:30Z, streaming 2026-01-06   seeds 1   runs 4" in first.out
    assert f"- {silent}: {why}" in first.out
    assert f"{silent}: {why}" in page.read_text(encoding="utf-8")
    assert "6 runs, 6 of them reused" in again.err
    told = json.loads(again.out)
    assert told["leftOut"] == {silent: why}
    assert (told["seeds"], len(told["runs"])) == ([1], 4)
    assert told["doneOtherwise"] == [
        "what was recorded holds no chances: each case was run once, for more seeds would tell nothing new"
    ]
    assert {run["window"] for run in told["runs"]} == {"streaming 2026-01-05T23:30Z", "streaming 2026-01-06"}


@pytest.mark.soak
@pytest.mark.usefixtures("spark")
def test_a_history_of_which_no_window_can_be_used_says_why_and_what_helps(kept: Path, tmp_path: Path) -> None:
    told = command("backtest", "--history", str(kept), *MEASURED, "--out", str(tmp_path))
    assert told.code == 1
    assert "no window can be used: streaming 2026-01-05: there are figures of 0.5 of 24 hours" in told.err
    assert "(and so 1 more window). Name a shorter --window, or with --from and --to the time" in told.err


def test_a_policy_of_another_metric_window_is_refused_before_anything_is_run(spark: SparkSession, kept: Path) -> None:
    source = Recordings(spark, str(kept), Selection(), Replay())
    slow = candidates(["AvgShedder"], [], figures={**EAGER, "metrics": {"window": "30s"}}, baseline=False)
    with pytest.raises(InvalidField, match=r"metrics\.window: '30s': .*streaming 2026-01-05 are means over 60s"):
        runs(slow, source.windows, seeds=1)


@pytest.mark.soak
def test_days_of_different_metric_windows_are_not_run_as_one(
    spark: SparkSession, given: Recording, kept: Path, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(kept, tmp_path / "history"))
    later = DAY.plus(2)
    rows_later = [row._replace(time_ms=row.time_ms + 2 * 86_400_000) for row in history(given)]
    write(spark, folder, rows_later, day=later, window_ms=120_000)
    with pytest.raises(HistoryError, match=r"streaming 2026-01-05: .*different windows \(60s, 120s\): .* --window$"):
        Recordings(spark, str(folder), Selection(window_ms=7 * 86_400_000), Replay())
