"""The audit of real streaming queries, and what `ballast audit` says of them."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from ballast.errors import InvalidField
from ballast.spark.audit import Audit
from ballast.spark.audit.ledger import _SCHEMA, Ledger, LedgerError, read, read_anywhere
from ballast.spark.audit.verdict import Entry, Sum
from tests.testbed.waiting import wait_until
from tests.unit.cli.program import Ended, run

if TYPE_CHECKING:
    import pandas as pd

BATCHES = 3
RECORDS = 100
"""In a micro-batch."""


@pytest.fixture
def audit(spark: SparkSession, tmp_path: Path) -> Iterator[Audit]:
    audit = Audit(spark, str(tmp_path / "ledger"))
    yield audit
    audit.close()


@pytest.fixture
def records(spark: SparkSession, tmp_path: Path) -> DataFrame:
    """A file for each micro-batch."""
    for number in range(BATCHES):
        spark.range(number * RECORDS, (number + 1) * RECORDS, numPartitions=1).coalesce(1).write.mode("append").parquet(
            str(tmp_path / "in")
        )
    return spark.readStream.schema("id bigint").option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in"))


def ran(result: DataFrame, tmp_path: Path, write: Callable[[DataFrame, int], None] | None = None) -> None:
    """All of it, and all of it in the ledger, which a listener writes."""
    writer = result.writeStream.queryName("clicks").option("checkpointLocation", str(tmp_path / "checkpoint"))
    writer = writer.format("noop") if write is None else writer.foreachBatch(write)
    writer.trigger(availableNow=True).start().awaitTermination(120)
    wait_until(
        lambda: len(list((tmp_path / "ledger").glob("*stages.parquet"))) == BATCHES,
        what="all micro-batches in the ledger",
        timeout_seconds=60,
    )


def audited(tmp_path: Path, *arguments: str) -> Ended:
    return run("audit", str(tmp_path / "ledger"), "--timeout", "1ms", *arguments)


def test_a_filter_a_fan_out_and_a_shuffle_balance(audit: Audit, records: DataFrame, tmp_path: Path) -> None:
    number = f.struct("id")
    even = audit.stage(records, "source", id=number, keeps="id % 2 = 0").where("id % 2 = 0")
    parts = f.transform(f.sequence(f.lit(0), f.lit(2)), lambda part: f.col("id") * 3 + part)
    whole = audit.stage(even.withColumn("parts", parts), "whole", id=number, emits="parts")
    lines = audit.stage(whole.select(f.explode("parts").alias("part")), "lines", id="part")
    moved = audit.stage(lines.repartition(2), "moved", id="part", ends=True)
    ran(moved, tmp_path)
    first = {entry.stage: entry for entry in read(tmp_path / "ledger") if entry.batch == 0}
    counts = {name: (entry.consumed.count, entry.emitted.count) for name, entry in first.items()}
    assert counts == {"source": (100, 50), "whole": (50, 150), "lines": (150, 150), "moved": (150, 0)}
    ended = audited(tmp_path)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.split()[0] == "QUERY"
    assert ended.out.split()[8] == "clicks"


def test_a_record_that_a_sink_drops_and_one_that_it_doubles_are_found_and_the_lost_one_is_named(
    audit: Audit, records: DataFrame, tmp_path: Path, spark: SparkSession
) -> None:
    lost, doubled = RECORDS + 17, 2 * RECORDS + 17
    out = str(tmp_path / "out")

    def careless(batch: DataFrame, number: int) -> None:
        copies = f.when(f.col("id") == lost, 0).when(f.col("id") == doubled, 2).otherwise(1)
        written = batch.select(f.explode(f.array_repeat("id", copies)).alias("id"), f.lit(number).alias("batch"))
        written.write.mode("append").parquet(out)

    source = audit.stage(records, "source", id="id")
    ran(source, tmp_path, audit.sink(careless, "written", id="id"))
    # The sink has read all; only what can be read back from it tells.
    assert audited(tmp_path).code == 0
    written = spark.read.parquet(out)
    audit.delivered(written, "delivered", id="id", batch="batch", query="clicks", after="written")
    ended = audited(tmp_path, "-o", "json")
    assert ended.code == 1
    bad, worse = [verdict for verdict in json.loads(ended.out) if verdict["status"] == "unbalanced"]
    hashed = spark.range(lost, lost + 1).select(f.xxhash64("id")).first()
    assert hashed is not None
    assert bad == {
        "query": "clicks",
        "batch": 1,
        "status": "unbalanced",
        "records": RECORDS,
        "without": [],
        "gaps": [
            {"stage": "delivered", "after": ["written"], "expected": 100, "consumed": 99, "difference": hashed[0]}
        ],
    }
    (more,) = worse["gaps"]
    assert (worse["batch"], more["stage"], more["expected"], more["consumed"]) == (2, "delivered", 100, 101)
    assert 'ballast_audit_batches{query="clicks",status="unbalanced"} 2' in audited(tmp_path, "-o", "prometheus").out
    assert f"written emitted 100, delivered consumed 99: one missing, whose id has xxhash64 {hashed[0]}" in (
        audited(tmp_path).out
    )


def test_a_micro_batch_that_a_sink_loses_after_it_was_checked_is_found_when_it_is_checked_again(
    audit: Audit, records: DataFrame, tmp_path: Path, spark: SparkSession
) -> None:
    out = tmp_path / "out"

    def write(batch: DataFrame, number: int) -> None:
        batch.withColumn("batch", f.lit(number)).write.mode("append").partitionBy("batch").parquet(str(out))

    def check() -> None:
        audit.delivered(
            spark.read.parquet(str(out)), "delivered", id="id", batch="batch", query="clicks", after="written"
        )

    source = audit.stage(records, "source", id="id")
    ran(source, tmp_path, audit.sink(write, "written", id="id"))
    check()
    assert audited(tmp_path).code == 0
    shutil.rmtree(out / "batch=1")
    check()
    ended = audited(tmp_path)
    assert ended.code == 1
    assert "written emitted 100, delivered consumed 0: 100 missing" in ended.out


def test_declarations_that_can_t_be_audited_are_refused(audit: Audit, records: DataFrame) -> None:
    source = audit.stage(records, "source", id="id")
    for name, wrong, words in (
        ("source", {"id": "id"}, "give each stage of the ledger its own name"),
        ("next", {"id": f.col("id").cast("int")}, "it is int here and bigint in source: cast one of them"),
        ("next", {"id": "id", "emits": "id"}, "name an array of the ids"),
        ("next", {"id": "id", "after": "sink"}, "declared are source"),
    ):
        with pytest.raises(InvalidField, match=words):
            audit.stage(source, name, **wrong)


def test_no_record_replaces_that_of_another_stage(audit: Audit, records: DataFrame) -> None:
    """A sink called `stages` lost its records unnoticed: the listener's had the same place in the ledger."""
    source = audit.stage(records, "source", id="id")
    with pytest.raises(InvalidField, match="the ledger keeps its own records under this name"):
        audit.sink(lambda *_: None, "stages", id="id")
    for name, words in (
        ("stages", "the ledger keeps its own records"),
        ("source", "give each stage of the ledger its own name"),
        ("written", "give each stage of the ledger its own name"),
    ):
        with pytest.raises(InvalidField, match=words):
            audit.delivered(source, name, id="id", batch="id", query="clicks", after="written")


def test_a_ledger_is_read_by_its_address_as_it_is_locally(spark: SparkSession, tmp_path: Path) -> None:
    """Whatever its folder and its queries are called, and whatever else is in there."""
    folder, names = tmp_path / "of{a,b}*", ("_clicks", ".clicks", "clicks", "größe")
    ledger = Ledger(spark, str(folder))
    for name in names:
        entry = Entry(query=name, batch=0, stage="s", consumed=Sum(1, 1), emitted=Sum(1, 1), recorded_ms=1)
        ledger.add([entry], part="stages")
    (folder / "query=other").mkdir()
    shutil.copy(next(folder.glob("clicks-*")), folder / "query=other")
    (tmp_path / "ofa").mkdir()
    assert {entry.query for entry in read(folder)} == set(names)
    assert sorted(read_anywhere(spark, f"file://{folder}"), key=str) == sorted(read(folder), key=str)
    with pytest.raises(LedgerError, match="no micro-batch is recorded here yet"):
        read_anywhere(spark, f"file://{tmp_path}/ofa")


def long_names(file: Path) -> None:
    row = {**dict.fromkeys(_SCHEMA.names, 1), "stage": "s", "run": "r", "after": [], "recomputed": False}
    rows = pa.Table.from_pylist([{**row, "query": "q" * (1 << 20)}] * 2000, schema=_SCHEMA)
    pq.write_table(rows, file, compression="zstd")


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        pytest.param(long_names, "a column has more than 1000000 values or 67108864 bytes", marks=pytest.mark.soak),
        (lambda file: file.write_bytes(b"junk" * 1000), "can't be read as Parquet"),
        (lambda file: file.mkdir(), "it is no file of a ledger: move it elsewhere"),
        (os.mkfifo, "it is no file of a ledger: move it elsewhere"),
    ],
    ids=["a gigabyte in few bytes", "junk", "a folder", "a pipe"],
)
def test_by_its_address_a_ledger_has_the_same_bounds(
    spark: SparkSession, tmp_path: Path, spoil: Callable[[Path], None], why: str
) -> None:
    """Others may write into its folder, and Spark would read any amount of it."""
    file = tmp_path / "spoiled.parquet"
    spoil(file)
    reads: tuple[Callable[[], object], ...] = (
        lambda: read(tmp_path),
        lambda: read_anywhere(spark, f"file://{tmp_path}"),
    )
    for read_all in reads:
        with pytest.raises(LedgerError, match=f"spoiled.parquet: .*{why}"):
            read_all()


def test_a_folder_that_is_no_ledger_is_refused(tmp_path: Path) -> None:
    assert run("audit", str(tmp_path / "none")).code == 1
    assert "no micro-batch is recorded here yet" in run("audit", str(tmp_path)).err
    (tmp_path / "x.parquet").write_bytes(b"no")
    assert "it can't be read as Parquet" in run("audit", str(tmp_path)).err


@pytest.mark.soak
@pytest.mark.parametrize(("setting", "status"), [("false", "balanced"), ("true", "recomputed")])
def test_tasks_before_a_shuffle_that_spark_runs_again_count_once_or_prove_nothing(
    setting: str, status: str, spark: SparkSession, records: DataFrame, tmp_path: Path
) -> None:
    """With the setting, Spark 4.3 counts them twice, as older releases do."""
    spark.conf.set("spark.sql.legacy.observeMetricsAggregateAllAttempts", setting)
    audit = Audit(spark, str(tmp_path / "ledger"))
    try:
        source = audit.stage(records, "source", id="id").repartition(4, "id")
        passed = source.mapInPandas(losing_what_was_shuffled(tmp_path / "lost"), "id bigint")
        ran(audit.stage(passed, "passed", id="id"), tmp_path)
    finally:
        audit.close()
        spark.conf.unset("spark.sql.legacy.observeMetricsAggregateAllAttempts")
    ended = audited(tmp_path, "-o", "json")
    assert ended.code == 0
    assert [verdict["status"] for verdict in json.loads(ended.out)] == [status, "balanced", "balanced"]


def losing_what_was_shuffled(lost: Path) -> Callable[[Iterator[pd.DataFrame]], Iterator[pd.DataFrame]]:
    """Passes records on. The first of its tasks deletes what those after it have yet to read."""

    def passing(parts: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        yield from parts
        if not lost.exists():
            lost.touch()
            for folder in os.environ["SPARK_LOCAL_DIRS"].split(","):
                for file in Path(folder).glob("*/shuffle_*"):
                    file.unlink(missing_ok=True)

    return passing
