from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from ballast.cli.main import app
from ballast.prometheus import Preset
from ballast.spark.errors import HistoryError, SparkFailedError, in_own_words
from ballast.spark.file_system import FileSystem
from ballast.spark.history import Day, Done, Origin, Part, Range, Store, Written, collected, newcomers, planned
from ballast.spark.history.collect import first_known_ms
from ballast.spark.history.schema import Metadata, stretches
from ballast.spark.history.signal import Signal, signals
from ballast.spark.history.store import MOST_ROWS
from tests.spark import known_cluster
from tests.spark.filled_prometheus import FilledPrometheus, holding
from tests.testbed.waiting import wait_until
from tests.unit.cli.program import run as command

FIRST = Day.parse("2026-01-01", field="from")
SECOND = FIRST.plus(1)
HOUR_MS = 3_600_000
LONGEST_LABEL = 303
Files = dict[str, tuple[bytes, int]]


@pytest.fixture(scope="session")
def cluster(prometheus: FilledPrometheus) -> FilledPrometheus:
    return prometheus


@pytest.fixture(scope="module")
def exporting_long_labels(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FilledPrometheus]:
    with holding(long_labels(), tmp_path_factory.mktemp("labels")) as filled:
        yield filled


def origin(
    prometheus: FilledPrometheus,
    *,
    step_ms: int = 1_800_000,
    window_ms: int = 1_800_000,
    pools: Mapping[str, str] | None = None,
) -> Origin:
    expressions = {name: re.compile(expression) for name, expression in (pools or {}).items()}
    stack = Preset.KUBE_PROMETHEUS_STACK
    system = known_cluster.SYSTEM
    return Origin(
        {"url": prometheus.url}, stack, step_ms=step_ms, window_ms=window_ms, operator=system, pools=expressions
    )


def run(
    spark: SparkSession,
    path: Path | str,
    asked: FilledPrometheus | Origin,
    wanted: Range,
    *,
    most_rows: int = MOST_ROWS,
) -> list[Done]:
    store = Store(spark, str(path), most_rows=most_rows)
    source = asked if isinstance(asked, Origin) else origin(asked)
    return [
        done
        for stretch in planned(store, source, wanted)
        for done in collected(spark, store, source, stretch)
    ]  # fmt: skip


def days(first: Day | None, last: Day | None, *, ripe_ms: int = SECOND.end_ms) -> Range:
    return Range(first, last, otherwise=FIRST, ripe_ms=ripe_ms)


def files(path: Path) -> Files:
    """Content and time of last change of every file, hidden ones too."""
    found = sorted(file for file in path.rglob("*") if file.is_file())
    return {str(file.relative_to(path)): (file.read_bytes(), file.stat().st_mtime_ns) for file in found}


def written(done: Iterable[Done]) -> dict[str, Written]:
    return {f"date={one.day}/pool={one.pool}": one.written for one in done}


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
    assert list(files(folder)) == [f"{part}/history.parquet" for part in written(done)]
    rows = spark.read.parquet(str(folder)).where("date = '2026-01-02' and pool = 'streaming'").collect()
    assert {row.node for row in rows if row.signal == "nodeCores"} == {"n1", "n2"}
    assert {row.detail for row in rows if row.signal == "refusals"} == set(known_cluster.REFUSALS)
    assert Counter(row.signal for row in rows)["poolGap"] == 48


@pytest.mark.soak
def test_what_pods_export_of_nodes_and_of_themselves_does_not_count_where_nodes_export_it(
    spark: SparkSession, collected_once: tuple[Path, list[Done]], tmp_path: Path
) -> None:
    """A pod's series of a node contradicted the node's own, and a backtest left the node out with all its executors."""
    with holding(known_cluster.hostile(), tmp_path) as filled:
        run(spark, tmp_path / "history", filled, days(None, None))
    columns = ["signal", "node", "namespace", "pod", "detail", "time", "value", "pool"]
    found, expected = (
        spark.read.parquet(str(folder)).select(*columns) for folder in (tmp_path / "history", collected_once[0])
    )
    assert found.exceptAll(expected).collect() == []
    assert expected.exceptAll(found).collect() == []


def test_what_other_pods_export_by_the_operators_names_is_left_out(
    spark: SparkSession, collected_once: tuple[Path, list[Done]]
) -> None:
    rows = spark.read.parquet(str(collected_once[0])).collect()
    values = {name: {row.value for row in rows if row.signal == name} for name in ("nodeScore", "poolGap", "refusals")}
    assert values == {"nodeScore": {20.0, 40.0, 60.0}, "poolGap": {20.0}, "refusals": {0.0, 1.0}}
    assert "clicks-exec-5" not in {row.pod for row in rows}


def test_what_other_pods_export_by_the_names_of_kube_state_metrics_is_left_out(
    spark: SparkSession, history: Path
) -> None:
    """Any scraped pod made nodes larger, cordoned them and was on all of them."""
    rows = spark.read.parquet(str(history))
    found = {
        signal: {(row["node"], row["value"]) for row in rows.where(f"signal = '{signal}'").collect()}
        for signal in ("nodeAllocatableCores", "nodeUnschedulable")
    }
    assert found["nodeAllocatableCores"] == {("n1", 4.0), ("n2", 8.0), ("n3", 12.0)}
    assert found["nodeUnschedulable"] == {("n1", 1.0), ("n2", 0.0), ("n3", 0.0)}
    assert rows.where("namespace = 'tenant'").isEmpty()


def test_the_documentation_has_every_column_with_its_type(
    spark: SparkSession, collected_once: tuple[Path, list[Done]]
) -> None:
    text = (Path(__file__).parents[2] / "docs" / "history.md").read_text(encoding="utf-8")
    table = text.partition("## Columns")[2].partition("##")[0]
    told = [tuple(cell.strip() for cell in line.split("|")[1:3]) for line in table.splitlines() if line.startswith("|")]
    assert told[2:] == spark.read.parquet(str(collected_once[0])).dtypes


@pytest.mark.parametrize(
    ("hours", "placed", "application"),
    [
        (range(12), known_cluster.PLACED, set()),
        (range(12, 24), known_cluster.PLACED_BY_OPERATOR, {"spark-0"}),
        (range(24, 48), known_cluster.PLACED_BY_API, {"spark-1"}),
    ],
    ids=["containers", "the operator", "kube-state-metrics"],
)
def test_executors_are_where_the_best_that_is_known_says(
    spark: SparkSession,
    collected_once: tuple[Path, list[Done]],
    hours: range,
    placed: list[tuple[str, str]],
    application: set[str],
) -> None:
    rows = spark.read.parquet(str(collected_once[0])).where("signal in ('placement', 'executorApplication')").collect()
    start = FIRST.start_ms / 1000
    inside = [row for row in rows if int((row.time.timestamp() - start) // 3600) in hours]
    assert {(row.pod, row.node) for row in inside if row.signal == "placement"} == set(placed)
    assert {row.detail for row in inside if row.detail} == application


@pytest.mark.soak
def test_a_name_that_is_used_again_has_its_figures_where_it_was_then(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "history"
    with holding(known_cluster.openmetrics(again=True), tmp_path) as filled:
        run(spark, folder, filled, days(FIRST, FIRST, ripe_ms=FIRST.start_ms + 2 * HOUR_MS))
    rows = spark.read.parquet(str(folder)).where("pod = 'clicks-exec-7'").collect()
    found = Counter((row.signal, row.time.timestamp() - known_cluster.START, row.node) for row in rows)
    assert found == Counter(
        (name, second, "n1" if second < known_cluster.AGAIN_AT - known_cluster.START else "n2")
        for name in ("placement", "executorCpu", "executorMemory")
        for second in range(0, 7_200, 1_800)
    )


def test_every_figure_is_what_prometheus_answers_itself(
    spark: SparkSession, cluster: FilledPrometheus, collected_once: tuple[Path, list[Done]]
) -> None:
    rows = spark.read.parquet(str(collected_once[0])).where("date = '2026-01-02' and pool = 'streaming'").collect()
    start, end = str(SECOND.start_ms // 1000), str(SECOND.end_ms // 1000 - 1800)
    asked = signals(Preset.KUBE_PROMETHEUS_STACK, window_seconds=1800, operator=known_cluster.SYSTEM)
    silent = {"nodeNetworkReceive", "nodeNetworkTransmit", "nodePressure", "executorNetwork"}
    for each in asked:
        own = cluster.matrix(each.query, start=start, end=end, step="1800")
        wanted = {
            (*whose(each, series["metric"]), at, float(text))
            for series in own
            if in_pool(series["metric"])
            for at, text in series["values"]
        }
        found = [
            (row.node if row.pod is None else row.pod, row.detail, row.time.timestamp(), row.value)
            for row in rows
            if row.signal == each.name
        ]
        assert sorted(found, key=str) == sorted(wanted, key=str), each.name
        assert bool(found) is (each.name not in silent), each.name


@pytest.mark.parametrize("preset", list(Preset))
def test_no_label_is_read_that_is_longer_than_names_may_be(
    exporting_long_labels: FilledPrometheus, preset: Preset
) -> None:
    """Each point is a row with its labels: 300 series of 60 kB for an hour ended the history of all namespaces."""
    at = str(known_cluster.START)
    for each in signals(preset, window_seconds=1800, operator=known_cluster.SYSTEM):
        answer = exporting_long_labels.matrix(each.query, start=at, end=at, step="60")
        longest = max((len(value) for series in answer for value in series["metric"].values()), default=0)
        assert longest <= LONGEST_LABEL, each.name


def long_labels() -> Iterator[str]:
    """As pods may export them, whose scrapes set the job, or leave the pod out. Of the operator's, all are its own."""
    long, at = "x" * 1_000, known_cluster.START
    measured = ("container_memory_working_set_bytes", "machine_cpu_cores", "machine_memory_bytes")
    exported = ("node_cpu_seconds_total", "node_memory_MemTotal_bytes", "node_memory_MemAvailable_bytes")
    reported = ("kube_pod_info", "kube_pod_labels", "kube_pod_container_resource_requests")
    more = (
        'container="c",mode="idle",id="/",resource="cpu",label_spark_role="executor",metrics_path="/metrics/cadvisor"'
    )
    for metric in (*measured, *exported, *reported, "ballast_executor_info"):
        yield f"# TYPE {metric} gauge\n"
        for job in ("kubelet", "node-exporter", "kube-state-metrics"):
            of_job = f'job="{job}",namespace="mallory",{more}'
            for labels in (
                f'pod="x-exec-1",node="{long}",application="{long}",label_spark_app_selector="{long}"',
                f'pod="{long}-exec-1",node="n1",application="spark-1",label_spark_app_selector="spark-1"',
                f'node="{long}",instance="10.0.0.9:9100"',
                f'node="n1",instance="{long}"',
                f'pod="x-exec-1",node="n1",instance="{long}"',
            ):
                yield f"{metric}{{{of_job},{labels}}} 1 {at}\n"
    yield "# EOF\n"


def node_of(labels: dict[str, str]) -> str | None:
    addresses = {address.split(":")[0]: node for address, node in known_cluster.NODES.items()}
    return labels.get("node") or addresses.get(labels.get("instance", "").split(":")[0])


def in_pool(labels: dict[str, str]) -> bool:
    """Of a pod whose place is not believed, nothing is kept."""
    node, pod = node_of(labels), labels.get("pod")
    return (
        labels.get("policy", "streaming") == "streaming"
        and (node is None or known_cluster.POLICIES[node] == "streaming")
        and (pod is None or pod in dict(known_cluster.PLACED_BY_API))
    )


def whose(kept: Signal, labels: dict[str, str]) -> tuple[str | None, str | None]:
    return labels.get("pod") or node_of(labels), labels[kept.detail] if kept.detail else None


def test_collected_again_no_byte_changes_and_then_nothing_is_left_to_do(
    spark: SparkSession, cluster: FilledPrometheus, history: Path
) -> None:
    before = files(history)
    assert set(written(run(spark, history, cluster, days(FIRST, FIRST))).values()) == {Written.UNCHANGED}
    assert files(history) == before
    assert planned(Store(spark, str(history)), origin(cluster), days(None, None)) == []


@pytest.mark.soak
@pytest.mark.usefixtures("spark")
def test_collected_again_by_another_program_no_byte_changes(cluster: FilledPrometheus, history: Path) -> None:
    """Another JVM lists in another order what Parquet used for a column."""
    before = files(history)
    asked = ["--prometheus", cluster.url, "--path", str(history), "--from", str(FIRST), "--to", str(FIRST)]
    command = [sys.executable, "-m", "ballast", "history", *asked, "--step", "30m", "--window", "30m"]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert re.findall(r"pool=(\w+): \d+ rows, (\w+)$", told, re.MULTILINE) == [
        ("batch", "unchanged"), ("streaming", "unchanged")
    ]  # fmt: skip
    assert files(history) == before


@pytest.mark.soak
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
    assert {name for name in after if after[name] != before[name]} == {
        f"{part}/history.parquet" for part in written(done)
    }


@pytest.mark.soak
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
    assert any("rows, kept: history.parquet has more, Prometheus forgets: delete" in str(done) for done in forgotten)
    assert files(history) == after


@pytest.mark.soak
def test_a_day_of_many_rows_is_several_files_of_which_only_those_that_change_are_replaced(
    spark: SparkSession, cluster: FilledPrometheus, collected_once: tuple[Path, list[Done]], tmp_path: Path
) -> None:
    def until(hour: int) -> list[Done]:
        return run(spark, tmp_path, cluster, days(FIRST, FIRST, ripe_ms=FIRST.start_ms + hour * HOUR_MS), most_rows=650)

    assert set(written(until(12)).values()) == {Written.NEW}
    before = files(tmp_path)
    assert {Path(name).name for name in before if "streaming" in name} == {
        "history-00-08.parquet", "history-08-16.parquet"
    }  # fmt: skip
    assert set(written(until(24)).values()) == {Written.CHANGED}
    after = files(tmp_path)
    early = f"date={FIRST}/pool=streaming/history-00-08.parquet"
    assert after[early] == before[early]
    assert len([name for name in after if "streaming" in name]) == 3
    once = spark.read.parquet(str(collected_once[0])).where(f"date = '{FIRST}'")
    split = spark.read.parquet(str(tmp_path))
    assert split.exceptAll(once).count() == once.exceptAll(split).count() == 0

    assert set(written(until(24)).values()) == {Written.UNCHANGED}
    assert files(tmp_path) == after
    assert planned(Store(spark, str(tmp_path)), origin(cluster), days(None, FIRST)) == []


@pytest.mark.soak
def test_a_day_of_which_a_file_is_missing_is_collected_again(
    spark: SparkSession, cluster: FilledPrometheus, tmp_path: Path
) -> None:
    run(spark, tmp_path, cluster, days(FIRST, FIRST), most_rows=900)
    whole = files(tmp_path)
    (tmp_path / f"date={FIRST}" / "pool=streaming" / "history-08-16.parquet").unlink()
    part = next(part for part in Store(spark, str(tmp_path)).parts() if part.pool == "streaming")
    assert Store(spark, str(tmp_path)).parts()[part].through_ms == FIRST.start_ms + 8 * HOUR_MS
    assert Store(spark, str(tmp_path)).parts(gaps=True)[part].through_ms == FIRST.end_ms
    done = run(spark, tmp_path, cluster, days(None, FIRST))
    assert written(done) == {f"{part}": Written.CHANGED, f"date={FIRST}/pool=batch": Written.UNCHANGED}
    assert {name: content for name, (content, _) in files(tmp_path).items()} == {
        name: content for name, (content, _) in whole.items()
    }


def hourly(spark: SparkSession, hours: Iterable[int], *, nodes: int = 1) -> DataFrame:
    """Of the first day, a figure of each node at each of these hours."""
    return spark.createDataFrame(
        [(at * HOUR_MS, "nodeCpu", f"n{node}", None, None, None, 1.0) for node in range(nodes) for at in hours],
        "at long, signal string, node string, namespace string, pod string, detail string, value double",
    ).selectExpr(f"timestamp_millis({FIRST.start_ms} + at) as time", "signal", "node", "namespace", "pod", "detail",
                 "value")  # fmt: skip


@pytest.mark.parametrize(
    ("left", "nodes"),
    [
        pytest.param(range(4, 24), 1, marks=pytest.mark.soak),
        (range(4, 24), 9),
        pytest.param([0, *range(4, 24)], 1, marks=pytest.mark.soak),
        pytest.param(range(20, 24), 1, marks=pytest.mark.soak),
    ],
    ids=["the oldest are gone", "the pool has grown", "some between are gone", "all that was there are gone"],
)
def test_a_day_that_was_not_over_is_completed_and_keeps_hours_that_prometheus_has_forgotten(
    spark: SparkSession, tmp_path: Path, left: Iterable[int], nodes: int
) -> None:
    store, part = Store(spark, str(tmp_path)), Part(FIRST, "streaming")
    begun = Metadata(FIRST.start_ms + 6 * HOUR_MS, HOUR_MS, HOUR_MS)
    whole = Metadata(FIRST.end_ms, HOUR_MS, HOUR_MS)
    store.write(hourly(spark, range(6)), part, begun, count=6)
    later = hourly(spark, left, nodes=nodes)
    assert store.write(later, part, whole, count=later.count()) == {"history.parquet": Written.CHANGED}
    hours = [row.time.hour for row in spark.read.parquet(str(tmp_path)).collect() if row.node == "n0"]
    assert sorted(hours) == sorted({*range(6), *left})
    assert store.parts() == {part: whole}

    before = files(tmp_path)
    assert store.write(later, part, whole, count=later.count()) == {"history.parquet": Written.KEPT}
    assert files(tmp_path) == before


@pytest.mark.soak
def test_hours_without_figures_are_a_file_without_rows(spark: SparkSession, tmp_path: Path) -> None:
    store = Store(spark, str(tmp_path), most_rows=1)
    rows = hourly(spark, (0, 2))
    part, metadata = Part(FIRST, "streaming"), Metadata(FIRST.start_ms + 3 * HOUR_MS, HOUR_MS, HOUR_MS)
    assert set(store.write(rows, part, metadata, count=3).values()) == {Written.NEW}
    assert [file.rpartition("/")[2] for file in part.files(store.pieces(part), start_ms=0, end_ms=FIRST.end_ms)] == [
        "history-00-01.parquet", "history-01-02.parquet", "history-02-03.parquet"
    ]  # fmt: skip
    assert store.parts() == {part: metadata}
    assert set(store.write(rows, part, metadata, count=3).values()) == {Written.UNCHANGED}
    assert store.write(rows.orderBy("time").limit(1), part, metadata, count=1) == {
        "history-00-01.parquet": Written.UNCHANGED,
        "history-01-02.parquet": Written.UNCHANGED,
        "history-02-03.parquet": Written.KEPT,
    }
    assert part.files(store.pieces(part), start_ms=FIRST.start_ms + HOUR_MS, end_ms=FIRST.start_ms + 2 * HOUR_MS) == [
        f"{part}/history-01-02.parquet"
    ]


def test_files_that_overlap_are_told_of(spark: SparkSession, history: Path) -> None:
    folder = history / f"date={FIRST}" / "pool=batch"
    shutil.copy(folder / "history.parquet", folder / "history-00-12.parquet")
    with pytest.raises(HistoryError, match=r"pool=batch has files of different hours that overlap .*: delete it and"):
        Store(spark, str(history)).pieces(Part(FIRST, "batch"))


def test_the_hours_before_the_first_series_are_not_asked_for(cluster: FilledPrometheus) -> None:
    (before,) = stretches(FIRST.plus(-1), FIRST.plus(-1), ripe_ms=SECOND.end_ms)
    (first,) = stretches(FIRST, FIRST, ripe_ms=SECOND.end_ms)
    (dead,) = stretches(FIRST.plus(-9), FIRST.plus(-9), ripe_ms=SECOND.end_ms)
    source = {"url": cluster.url}
    assert first_known_ms(source, before) == FIRST.start_ms - 2 * HOUR_MS, "where the block with the series begins"
    assert first_known_ms(source, first) == FIRST.start_ms
    assert first_known_ms(source, dead) == dead.day.end_ms - HOUR_MS
    elsewhere = {**source, "caFile": "/only/where/tasks/run.pem"}
    assert first_known_ms(elsewhere, before) == before.day.start_ms, "it can't be asked from here"


@pytest.mark.soak
def test_a_day_without_figures_is_told_and_those_after_it_are_left_as_they_are(
    spark: SparkSession, cluster: FilledPrometheus, history: Path
) -> None:
    before = FIRST.plus(-2)
    assert [str(done) for done in run(spark, history, cluster, days(before, before))] == [
        f"date={before}: no metrics of any pool"
    ]
    shutil.rmtree(history / f"date={FIRST}")
    shutil.copytree(history / f"date={SECOND}", history / f"date={before}")  # a day that is not known to its end
    left = planned(Store(spark, str(history)), origin(cluster), days(None, None))
    assert [str(stretch.day) for stretch in left] == [str(before.plus(number)) for number in range(3)]
    done = run(spark, history, cluster, days(None, before))
    assert [str(one) for one in done] == [
        f"date={before}/pool={pool}: no metrics; a file that is there is kept" for pool in ("batch", "streaming")
    ]


@pytest.mark.soak
def test_each_pool_that_is_asked_for_is_told_of(spark: SparkSession, cluster: FilledPrometheus, tmp_path: Path) -> None:
    asked = origin(cluster, pools={"mine": "n[12]", "both": "n.", "part": "[12]"})
    done = run(spark, tmp_path, asked, days(FIRST, FIRST, ripe_ms=FIRST.start_ms + 2 * HOUR_MS))
    assert {one.pool: one.written for one in done} == {
        "mine": Written.NEW, "both": Written.NEW, "part": Written.NOTHING
    }  # fmt: skip
    nodes = spark.read.parquet(str(tmp_path)).where("signal = 'nodeCores'").select("pool", "node").distinct().collect()
    assert {(row.pool, row.node) for row in nodes} == {
        ("mine", "n1"), ("mine", "n2"), ("both", "n1"), ("both", "n2"), ("both", "n3")
    }  # fmt: skip


def test_days_are_missing_that_the_pools_asked_for_lack(
    spark: SparkSession, cluster: FilledPrometheus, history: Path
) -> None:
    shutil.rmtree(history / f"date={SECOND}" / "pool=batch")
    store = Store(spark, str(history))

    def asked(*names: str) -> Origin:
        return origin(cluster, pools=dict.fromkeys(names, "n."))

    def lacking(*names: str) -> list[Day]:
        return [stretch.day for stretch in planned(store, asked(*names), days(None, None))]

    assert lacking() == lacking("streaming") == []
    assert lacking("batch") == [SECOND]
    assert lacking("mine") == [FIRST, SECOND]
    assert newcomers(store, asked("batch", "mine")) == ["mine"]
    assert newcomers(store, asked("mine")) == newcomers(store, asked()) == []


@pytest.mark.parametrize(
    ("spans", "words"),
    [
        ({"step_ms": 3_600_000}, "--step 1800s --window 1800s, not with --step 3600s --window 1800s"),
        ({"step_ms": 600_000}, "--step 1800s --window 1800s, not with --step 600s --window 1800s"),
        ({"window_ms": 120_000}, "--step 1800s --window 1800s, not with --step 1800s --window 120s"),
    ],
)
def test_a_history_goes_on_with_the_spans_it_was_begun_with(
    spark: SparkSession, cluster: FilledPrometheus, history: Path, spans: dict[str, Any], words: str
) -> None:
    before = files(history)
    with pytest.raises(HistoryError, match=rf"^date={FIRST}/pool=batch was collected with {words}: .*--path$"):
        run(spark, history, origin(cluster, **spans), days(FIRST, SECOND))
    assert files(history) == before


@pytest.mark.soak
def test_what_else_the_session_caches_stays(spark: SparkSession, cluster: FilledPrometheus, tmp_path: Path) -> None:
    other = spark.range(7).persist()
    try:
        other.count()
        cached = set(spark.sparkContext._jsc.getPersistentRDDs().keySet())
        run(spark, tmp_path, cluster, days(FIRST, FIRST, ripe_ms=FIRST.start_ms + HOUR_MS))
        assert other.storageLevel.useMemory
        assert set(spark.sparkContext._jsc.getPersistentRDDs().keySet()) == cached
    finally:
        other.unpersist()


@pytest.mark.soak
def test_a_run_that_is_killed_leaves_whole_files_and_the_next_one_ends_it(
    spark: SparkSession, history: Path, tmp_path: Path
) -> None:
    count = spark.read.parquet(str(history)).count()
    told = tmp_path / "told"
    with holding(known_cluster.openmetrics(late=True), tmp_path) as later:
        asked = ["--prometheus", later.url, "--path", str(history), "--from", str(FIRST), "--to", str(FIRST)]
        command = [sys.executable, "-m", "ballast", "history", *asked, "--step", "30m", "--window", "30m"]
        with told.open("wb") as log:
            process = subprocess.Popen([*command, "--master", "local[2]"], stdout=log, stderr=log, process_group=0)
        try:
            wait_until(
                lambda: process.poll() is not None or any(history.glob("_staging-*")),
                what="a part is being written",
                timeout_seconds=240,
                explain=told.read_text,
            )
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(timeout=30)
        assert process.returncode == -signal.SIGKILL, told.read_text()
        assert spark.read.parquet(str(history)).count() >= count
        with Store(spark, str(history)).alone():
            pass
        done = run(spark, history, later, days(FIRST, FIRST))
    assert {str(one.day) for one in done} == {str(FIRST)}
    assert not list(history.glob("_*"))
    rows = spark.read.parquet(str(history)).where("pod = 'clicks-exec-9'")
    assert {str(row.date) for row in rows.select("date").distinct().collect()} == {str(FIRST)}


@pytest.mark.soak
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
    with Store(spark, str(history)).alone():
        assert files(history) == before


@pytest.mark.soak
@pytest.mark.parametrize(
    ("scheme", "authority"),
    [("viewfs", "history"), ("s3a", "bucket")],
    ids=["renamed into place", "an object store, where a rename would delete what is there first"],
)
def test_a_history_may_lie_on_any_file_system_that_hadoop_knows(
    spark: SparkSession, cluster: FilledPrometheus, tmp_path: Path, scheme: str, authority: str
) -> None:
    conf = spark._jsc.hadoopConfiguration()
    conf.set(f"fs.viewfs.mounttable.{authority}.link./kept", tmp_path.as_uri())
    # Under the name of an object store, folders of this machine. Hadoop has no other file system of that name here
    # that could rename: what is asked to would fail.
    conf.set("fs.s3a.impl", "org.apache.hadoop.fs.viewfs.ViewFileSystemOverloadScheme")
    path = f"{scheme}://{authority}/kept/here"

    def hours(count: int) -> Range:
        return days(FIRST, FIRST, ripe_ms=FIRST.start_ms + count * HOUR_MS)

    assert set(written(run(spark, path, cluster, hours(2))).values()) == {Written.NEW}
    assert set(written(run(spark, path, cluster, hours(2))).values()) == {Written.UNCHANGED}
    assert set(written(run(spark, path, cluster, hours(4))).values()) == {Written.CHANGED}
    assert len(list((tmp_path / "here").rglob("history.parquet"))) == 2
    assert not list((tmp_path / "here").glob("_*"))
    rows = spark.read.parquet(str(tmp_path / "here")).where("pool = 'streaming'")
    assert {row.time.hour for row in rows.select("time").distinct().collect()} == {0, 1, 2, 3}


def truncated(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-100])


def foreign(file: Path) -> None:
    file.write_bytes(b"no Parquet at all")


@pytest.mark.parametrize(("spoil", "words"), [(truncated, "can't be read .*delete it"), (foreign, "can't be read")])
def test_a_part_that_cannot_be_read_is_named(
    spark: SparkSession, cluster: FilledPrometheus, history: Path, spoil: Callable[[Path], None], words: str
) -> None:
    file = history / f"date={SECOND}" / "pool=batch" / "history.parquet"
    spoil(file)
    with pytest.raises(HistoryError, match=rf"date={SECOND}/pool=batch/history\.parquet {words}"):
        planned(Store(spark, str(history)), origin(cluster), days(None, None))


def test_a_file_system_that_hadoop_does_not_know_is_told_in_one_sentence(spark: SparkSession) -> None:
    with pytest.raises(SparkFailedError, match=r"No FileSystem for scheme \"nosuch\"$"), in_own_words():
        Store(spark, "nosuch://data/history")


def test_a_part_of_another_version_is_not_added_to(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(1).coalesce(1).write.parquet(str(tmp_path / "staged"))
    (file,) = (tmp_path / "staged").glob("*.parquet")
    place = tmp_path / f"date={FIRST}" / "pool=streaming"
    place.mkdir(parents=True)
    file.rename(place / "history.parquet")
    with pytest.raises(HistoryError, match="has version None of the history's schema, not 2"):
        Store(spark, str(tmp_path)).parts()


def test_the_command_collects_and_says_what_it_wrote(
    spark: SparkSession, cluster: FilledPrometheus, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["--prometheus", cluster.url, "--path", str(tmp_path), "--from", str(FIRST), "--to", str(FIRST)]
    sized = ["--step", "30m", "--window", "30m", "--pool", "mine=n[12]"]
    app("ballast")(args=["history", *asked, *sized], standalone_mode=False)
    told = capsys.readouterr().out
    assert f"date={FIRST}/pool=mine: " in told
    assert "left out: metrics of the operator's that pods in tenant export, and it runs in" in told
    assert {row.pool for row in spark.read.parquet(str(tmp_path)).select("pool").distinct().collect()} == {"mine"}


@pytest.mark.soak
@pytest.mark.usefixtures("spark")
def test_a_pool_that_is_new_next_to_others_is_told_where_it_begins(
    cluster: FilledPrometheus, history: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.rmtree(history / f"date={SECOND}")
    asked = ["--prometheus", cluster.url, "--path", str(history), "--to", str(SECOND), "--step", "30m"]
    pools = ["--pool", "streaming=n[12]", "--pool", "mine=n3"]
    app("ballast")(args=["history", *asked, "--window", "30m", *pools], standalone_mode=False)
    assert f"pool mine: no day before {SECOND} is there, collect them with --from" in capsys.readouterr().out
    assert [path.parent.name for path in history.glob("date=*/pool=mine")] == [f"date={SECOND}"]


def test_a_second_run_in_the_folder_is_told_to_wait(
    spark: SparkSession, cluster: FilledPrometheus, history: Path
) -> None:
    before = files(history)
    with Store(spark, str(history)).alone():
        told = command("history", "--prometheus", cluster.url, "--path", str(history), "--from", str(FIRST))
    assert told.code == 2
    assert f"--path: '{history}': another run adds to this history: wait until it has ended" in told.err
    assert files(history) == before


@pytest.mark.soak
@pytest.mark.usefixtures("spark")
def test_a_prometheus_without_such_a_pool_is_told_with_what_to_say(cluster: FilledPrometheus, tmp_path: Path) -> None:
    asked = ["--prometheus", cluster.url, "--path", str(tmp_path), "--from", str(FIRST), "--to", str(FIRST)]
    with pytest.raises(HistoryError, match=r"no metrics of any pool were found: .*--pool NAME=REGEX"):
        app("ballast")(args=["history", *asked, "--step", "30m", "--pool", "mine=nowhere"], standalone_mode=False)
