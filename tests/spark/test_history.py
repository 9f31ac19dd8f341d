from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from ballast.cli.main import app
from ballast.prometheus import Preset
from ballast.spark.errors import HistoryError
from ballast.spark.failure import in_own_words
from ballast.spark.file_system import FileSystem
from ballast.spark.history import Day, Done, Origin, Range, Store, Written, collected, planned
from tests.spark import known_cluster
from tests.spark.filled_prometheus import FilledPrometheus, holding

FIRST = Day.parse("2026-01-01", field="from")
SECOND = FIRST.plus(1)
HOUR_MS = 3_600_000
Files = dict[str, tuple[bytes, int]]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FilledPrometheus]:
    with holding(known_cluster.openmetrics(), tmp_path_factory.mktemp("cluster")) as filled:
        yield filled


def origin(prometheus: FilledPrometheus) -> Origin:
    return Origin({"url": prometheus.url}, Preset.KUBE_PROMETHEUS_STACK, step_seconds=1800, window_seconds=1800)


def run(spark: SparkSession, path: Path, prometheus: FilledPrometheus, wanted: Range) -> list[Done]:
    store = Store(spark, str(path))
    return [
        done
        for stretch in planned(store, wanted)
        for done in collected(spark, store, origin(prometheus), stretch)
    ]  # fmt: skip


def days(first: Day | None, last: Day | None, *, ripe_ms: int = SECOND.end_ms) -> Range:
    return Range(first, last, otherwise=FIRST, ripe_ms=ripe_ms)


def files(path: Path) -> Files:
    """Content and time of last change of every file, hidden ones too."""
    found = sorted(file for file in path.rglob("*") if file.is_file())
    return {str(file.relative_to(path)): (file.read_bytes(), file.stat().st_mtime_ns) for file in found}


def written(done: Iterable[Done]) -> dict[str, Written]:
    return {str(one.part): one.written for one in done}


@pytest.fixture(scope="module")
def collected_once(
    spark: SparkSession, cluster: FilledPrometheus, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, list[Done]]:
    """Both days, for tests to copy."""
    folder = tmp_path_factory.mktemp("history")
    return folder, run(spark, folder, cluster, days(None, None))


@pytest.fixture
def history(collected_once: tuple[Path, list[Done]], tmp_path: Path) -> Path:
    return Path(shutil.copytree(collected_once[0], tmp_path / "history"))


def test_a_cluster_is_kept_by_day_and_pool(
    spark: SparkSession, cluster: FilledPrometheus, collected_once: tuple[Path, list[Done]]
) -> None:
    folder, done = collected_once
    assert written(done) == {
        f"date={day}/pool={pool}": Written.NEW for day in (FIRST, SECOND) for pool in ("batch", "streaming")
    }
    assert list(files(folder)) == [f"{one.part}/history.parquet" for one in done]
    rows = spark.read.parquet(str(folder)).where("date = '2026-01-02' and pool = 'streaming'").collect()
    assert {row.node for row in rows if row.signal == "nodeCores"} == {"n1", "n2"}
    assert {(row.pod, row.node) for row in rows if row.signal == "placement"} == set(known_cluster.PLACED)
    assert {row.detail for row in rows if row.signal == "refusals"} == set(known_cluster.REFUSALS)
    assert Counter(row.signal for row in rows)["poolGap"] == 48
    start, end = SECOND.start_ms // 1000, SECOND.end_ms // 1000 - 1800
    own = cluster.matrix(known_cluster.NODE_CPU, start=str(start), end=str(end), step="1800")
    wanted = {
        (known_cluster.NODES[series["metric"]["instance"]], at, float(text))
        for series in own
        for at, text in series["values"]
    }
    found = {(row.node, row.time.timestamp(), row.value) for row in rows if row.signal == "nodeCpu"}
    assert found == {one for one in wanted if one[0] != "n3"}


def test_collected_again_no_byte_changes_and_then_nothing_is_left_to_do(
    spark: SparkSession, cluster: FilledPrometheus, history: Path
) -> None:
    before = files(history)
    assert set(written(run(spark, history, cluster, days(FIRST, SECOND))).values()) == {Written.UNCHANGED}
    assert files(history) == before
    assert planned(Store(spark, str(history)), days(None, None)) == []


def test_a_day_that_was_not_over_is_collected_again_and_others_are_left(
    spark: SparkSession, cluster: FilledPrometheus, history: Path
) -> None:
    for part in history.glob(f"date={SECOND}"):
        shutil.rmtree(part)
    run(spark, history, cluster, days(None, None, ripe_ms=SECOND.start_ms + 12 * HOUR_MS))
    before = files(history)
    done = run(spark, history, cluster, days(None, None))
    assert written(done) == {f"date={SECOND}/pool={pool}": Written.CHANGED for pool in ("batch", "streaming")}
    after = files(history)
    assert {name for name in after if after[name] != before[name]} == {f"{one.part}/history.parquet" for one in done}


def test_late_data_changes_its_part_alone_and_forgotten_data_none(
    spark: SparkSession, cluster: FilledPrometheus, history: Path, tmp_path: Path
) -> None:
    before = files(history)
    with holding(known_cluster.openmetrics(late=True), tmp_path) as later:
        done = run(spark, history, later, days(FIRST, SECOND))
    changed = f"date={FIRST}/pool=streaming"
    assert {part for part, how in written(done).items() if how is not Written.UNCHANGED} == {changed}
    after = files(history)
    assert [name for name in after if after[name] != before[name]] == [f"{changed}/history.parquet"]

    forgotten = run(spark, history, cluster, days(FIRST, FIRST))
    assert written(forgotten)[changed] is Written.KEPT
    assert files(history) == after


def test_a_crash_leaves_the_old_part_and_the_next_run_clears_up(
    spark: SparkSession, cluster: FilledPrometheus, history: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = files(history)
    count = spark.read.parquet(str(history)).count()

    def die(*_: object) -> Written:
        raise KeyboardInterrupt

    with monkeypatch.context() as dying:
        dying.setattr(Store, "_take_place", die)  # the new file is whole, and about to take its place
        dying.setattr(FileSystem, "discard", lambda *_: None)  # killed outright, nothing is tidied up
        with pytest.raises(KeyboardInterrupt):
            run(spark, history, cluster, days(FIRST, FIRST))
    assert {name: content for name, content in files(history).items() if not name.startswith("_")} == before
    assert len(files(history)) > len(before)
    assert spark.read.parquet(str(history)).count() == count
    Store(spark, str(history)).clean()
    assert files(history) == before


def test_a_history_may_lie_on_any_file_system_that_hadoop_knows(
    spark: SparkSession, cluster: FilledPrometheus, tmp_path: Path
) -> None:
    mounted = "fs.viewfs.mounttable.history.link./kept"
    spark._jsc.hadoopConfiguration().set(mounted, tmp_path.as_uri())
    wanted = days(FIRST, FIRST, ripe_ms=FIRST.start_ms + 2 * HOUR_MS)
    store = Store(spark, "viewfs://history/kept/here")
    for how in (Written.NEW, Written.UNCHANGED):
        (stretch,) = planned(store, wanted)
        assert {done.written for done in collected(spark, store, origin(cluster), stretch)} == {how}
    (longer,) = planned(store, days(FIRST, FIRST, ripe_ms=FIRST.start_ms + 4 * HOUR_MS))
    assert {done.written for done in collected(spark, store, origin(cluster), longer)} == {Written.CHANGED}
    assert len(list((tmp_path / "here").rglob("history.parquet"))) == 2


def truncated(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-100])


def foreign(file: Path) -> None:
    file.write_bytes(b"no Parquet at all")


@pytest.mark.parametrize(("spoil", "words"), [(truncated, "can't be read .*delete it"), (foreign, "can't be read")])
def test_a_part_that_cannot_be_read_is_named(
    spark: SparkSession, history: Path, spoil: Callable[[Path], None], words: str
) -> None:
    file = history / f"date={SECOND}" / "pool=batch" / "history.parquet"
    spoil(file)
    with pytest.raises(HistoryError, match=rf"date={SECOND}/pool=batch/history\.parquet {words}"):
        planned(Store(spark, str(history)), days(None, None))


def test_a_file_system_that_hadoop_does_not_know_is_told_in_one_sentence(spark: SparkSession) -> None:
    with pytest.raises(HistoryError, match=r"No FileSystem for scheme \"nosuch\"$"), in_own_words():
        Store(spark, "nosuch://data/history")


def test_a_part_of_another_version_is_not_added_to(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(1).coalesce(1).write.parquet(str(tmp_path / "staged"))
    (file,) = (tmp_path / "staged").glob("*.parquet")
    place = tmp_path / f"date={FIRST}" / "pool=streaming"
    place.mkdir(parents=True)
    file.rename(place / "history.parquet")
    with pytest.raises(HistoryError, match="has version None of the history's schema, not 1"):
        Store(spark, str(tmp_path)).parts()


def test_the_command_collects_and_says_what_it_wrote(
    spark: SparkSession, cluster: FilledPrometheus, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["--prometheus", cluster.url, "--path", str(tmp_path), "--from", str(FIRST), "--to", str(FIRST)]
    sized = ["--step", "30m", "--window", "30m", "--pool", "mine=n[12]"]
    app("ballast")(args=["history", *asked, *sized], standalone_mode=False)
    assert f"date={FIRST}/pool=mine: " in capsys.readouterr().out
    assert {row.pool for row in spark.read.parquet(str(tmp_path)).select("pool").distinct().collect()} == {"mine"}


def test_a_prometheus_without_such_a_pool_is_told_with_what_to_say(
    spark: SparkSession, cluster: FilledPrometheus, tmp_path: Path
) -> None:
    del spark
    asked = ["--prometheus", cluster.url, "--path", str(tmp_path), "--from", str(FIRST), "--to", str(FIRST)]
    with pytest.raises(HistoryError, match=r"no figures of any pool were found: .*--pool NAME=REGEX"):
        app("ballast")(args=["history", *asked, "--step", "30m", "--pool", "mine=nowhere"], standalone_mode=False)
