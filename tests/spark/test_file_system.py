from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from ballast.errors import InvalidField
from ballast.spark.file_system import FileSystem

NOW = 1_767_225_600.0
BUSY = {"field": "--out", "remedy": "wait until it has ended"}


def file_system(spark: SparkSession, root: Path | str) -> FileSystem:
    return FileSystem(spark, str(root), now=lambda: NOW)


def left_behind(folder: Path, *, age_seconds: float) -> Path:
    """As by a program that was killed so long ago."""
    path = folder / f"_staging-{age_seconds:g}"
    path.touch()
    os.utime(path, (NOW - age_seconds, NOW - age_seconds))
    return path


def test_only_one_program_is_in_a_local_folder_and_it_removes_what_others_left(
    spark: SparkSession, tmp_path: Path
) -> None:
    left = left_behind(tmp_path, age_seconds=1)
    kept = tmp_path / "kept"
    kept.touch()
    one, other = (file_system(spark, tmp_path) for _ in range(2))
    with one.alone(**BUSY):
        assert not left.exists()
        half_written = left_behind(tmp_path, age_seconds=2)
        with pytest.raises(InvalidField, match=f"^--out: '{tmp_path}': wait until it has ended$"), other.alone(**BUSY):
            pass
        assert half_written.exists()
    with other.alone(**BUSY):
        assert not half_written.exists()
    assert kept.exists()


def test_where_nobody_can_be_kept_out_what_was_written_within_the_hour_stays(
    spark: SparkSession, tmp_path: Path
) -> None:
    spark._jsc.hadoopConfiguration().set("fs.viewfs.mounttable.shared.link./kept", tmp_path.as_uri())
    new, old = (left_behind(tmp_path, age_seconds=age) for age in (3_500, 3_700))
    one, other = (file_system(spark, "viewfs://shared/kept") for _ in range(2))
    with one.alone(**BUSY), other.alone(**BUSY):
        assert new.exists()
        assert not old.exists()


def test_the_name_of_a_folder_is_no_pattern(spark: SparkSession, tmp_path: Path) -> None:
    root = tmp_path / r"a[1] {b,c} *? \d"
    files = file_system(spark, root)
    spark.range(3).write.parquet(files.below("kept").toString())
    left = left_behind(root, age_seconds=1)
    with files.alone(**BUSY):
        assert not left.exists()
    assert [path.getName() for path in files.found("k*")] == ["kept"]
    assert spark.read.parquet(files.literal(files.below("kept")).toString()).count() == 3


@pytest.mark.parametrize("name", ["file", "file/below"])
def test_a_folder_that_cannot_be_made_is_named(spark: SparkSession, tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(InvalidField, match=rf"^--out: '{tmp_path / name}': [\w ]+: name a folder that can be written$"),
        file_system(spark, tmp_path / name).alone(**BUSY),
    ):
        pass


def test_what_is_put_takes_its_place_whole_and_leaves_nothing_beside(spark: SparkSession, tmp_path: Path) -> None:
    spark._jsc.hadoopConfiguration().set("fs.viewfs.mounttable.put.link./kept", (tmp_path / "kept").as_uri())
    given = tmp_path / "given"
    for root in (str(tmp_path / "local"), "viewfs://put/kept"):
        files = file_system(spark, root)
        for text in ("one", "two"):
            given.write_text(text, encoding="utf-8")
            files.put(given, files.below("cases/it"))
            assert files.fetched(files.below("cases/it"), tmp_path).read_text(encoding="utf-8") == text
        assert [path.getName() for path in files.found("*")] == ["cases"]
