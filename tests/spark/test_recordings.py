from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from ballast.cli.main import app
from ballast.simulation.candidates import candidates
from ballast.simulation.recording import Recording
from ballast.simulation.replay import Replay
from ballast.simulation.trial import RecordingTrial
from ballast.spark.backtest import Job, Recordings, Selection, Store, runs
from ballast.spark.backtest.parquet_rows import rows
from ballast.spark.errors import HistoryError
from ballast.spark.failure import in_own_words
from ballast.spark.history import Day, Part
from ballast.spark.history.schema import SORT, columns
from tests.unit.simulation.histories import Row, history
from tests.unit.simulation.recordings import recorded
from tests.unit.simulation.small_world import EAGER, policy, scenario

DAY = Day.parse("2026-01-05", field="day")
POLICIES = candidates(["AvgShedder"], [], figures=EAGER, baseline=True)


@pytest.fixture(scope="module")
def given() -> Recording:
    """Half an hour of a pool that nobody levelled."""
    return recorded(scenario(), policy(mode="Off"))[1]


def write(spark: SparkSession, folder: Path, found: Iterable[Row], *, day: Day = DAY, pool: str = "streaming") -> Path:
    """As `ballast history` leaves it."""
    part = folder / str(Part(day, pool))
    frame = spark.createDataFrame(
        [tuple(row) for row in found],
        "time_ms long, signal string, node string, namespace string, pod string, detail string, value double",
    ).selectExpr("timestamp_millis(time_ms) as time", *[name for name in SORT if name != "time"])
    staged = folder / "_staged"
    frame.coalesce(1).sortWithinPartitions(*SORT).select(*columns(day.end_ms)).write.parquet(str(staged))
    part.mkdir(parents=True)
    (file,) = staged.glob("*.parquet")
    file.rename(part / "history.parquet")
    shutil.rmtree(staged)
    return part / "history.parquet"


@pytest.fixture(scope="module")
def kept(spark: SparkSession, given: Recording, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("history")
    write(spark, folder, history(given))
    write(spark, folder, (row._replace(time_ms=row.time_ms + 86_400_000) for row in history(given)), day=DAY.plus(1))
    return folder


def test_what_spark_has_written_is_read_as_it_was(given: Recording, kept: Path) -> None:
    file = kept / str(Part(DAY, "streaming")) / "history.parquet"
    found = rows([(file.name, file.read_bytes())])
    wanted = history(given)
    assert len(found) == len(wanted)
    assert sorted(found.time_ms.tolist()) == sorted(row.time_ms for row in wanted)
    assert set(found.signal.words) == {row.signal for row in wanted}
    np.testing.assert_allclose(found.of("nodeCpu").value.sum(), given.node_cpu.sum())


def test_a_history_is_backtested_day_by_day_as_without_spark(
    spark: SparkSession, given: Recording, kept: Path, tmp_path: Path
) -> None:
    source = Recordings(spark, str(kept), Selection(), Replay())
    assert [window.name for window in source.windows] == ["streaming 2026-01-05", "streaming 2026-01-06"]
    wanted = runs(POLICIES, source.windows, seeds=1)
    store = Store(spark, str(tmp_path))
    job = Job(spark, source, store)
    job.run(job.missing(wanted), lambda: None)
    study = store.study(wanted)
    trial = RecordingTrial(given, Replay())
    for result in study.results[:1]:
        by_hand = trial.run(next(run.policy for run in wanted if run.case == result.case), result.case)
        assert (result.figures, result.moves) == (by_hand.figures, by_hand.moves)
    moved = {result.case: result.figures.moves for result in study.results}
    assert len(moved) == 4
    assert {case.policy for case, moves in moved.items() if moves} == {"AvgShedder"}
    assert any("what 10 of 10 applications are is not known" in line for line in study.unknown)
    assert job.missing(runs(POLICIES, Recordings(spark, str(kept), Selection(), Replay()).windows, seeds=1)) == []


def test_a_history_without_such_a_pool_is_told_of(spark: SparkSession, kept: Path) -> None:
    with pytest.raises(HistoryError, match="holds no history of batch from 2026-01-05T00:00Z"):
        Recordings(spark, str(kept), Selection(pools=("batch",), start_ms=DAY.start_ms), Replay())


def run_one(spark: SparkSession, history: Path, out: Path, selection: Selection) -> None:
    with in_own_words():
        source = Recordings(spark, str(history), selection, Replay())
        Job(spark, source, Store(spark, str(out))).run(runs(POLICIES, source.windows, seeds=1)[:1], lambda: None)


def truncated(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-100])


def of_version_2(file: Path) -> None:
    table = pq.read_table(file)
    key = b"org.apache.spark.sql.parquet.row.metadata"
    described = json.loads(table.schema.metadata[key])
    described["fields"][0]["metadata"]["ballast.dev/schema"] = 2
    pq.write_table(table.replace_schema_metadata({key: json.dumps(described).encode()}), file)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (truncated, r"date=2026-01-06/pool=streaming/history\.parquet can't be read .*delete it"),
        (of_version_2, r"date=2026-01-06/pool=streaming/history\.parquet has version 2 of the history's schema, not 1"),
    ],
)
def test_a_file_that_cannot_be_used_is_named(
    spark: SparkSession, kept: Path, tmp_path: Path, spoil: Callable[[Path], None], words: str
) -> None:
    folder = Path(shutil.copytree(kept, tmp_path / "history"))
    spoil(folder / str(Part(DAY.plus(1), "streaming")) / "history.parquet")
    with pytest.raises(HistoryError, match=words):
        run_one(spark, folder, tmp_path / "out", Selection(start_ms=DAY.end_ms))


def test_the_command_takes_a_history(
    spark: SparkSession, kept: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    del spark
    asked = ["--history", str(kept), "--to", str(DAY), "--out", str(tmp_path), "-o", "json"]
    app("ballast")(args=["backtest", *asked], standalone_mode=False)
    assert "streaming 2026-01-05" in capsys.readouterr().out
