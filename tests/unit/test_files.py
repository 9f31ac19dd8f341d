"""Files that users name are read up to a bound."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from ballast.errors import InvalidField
from ballast.files import STANDARD_INPUT, text_of
from tests.unit.cli.program import run

MIB = 1 << 20


def read(path: Path) -> str:
    return text_of(path, option="--filename", remedy="name another", most_mib=1)


def of_size(folder: Path, size: int) -> Path:
    path = folder / "file"
    with path.open("wb") as file:
        file.truncate(size)
    return path


def test_a_file_is_read_up_to_the_bound(tmp_path: Path) -> None:
    assert len(read(of_size(tmp_path, MIB))) == MIB


def test_a_longer_file_is_named_with_its_size_and_the_remedy(tmp_path: Path) -> None:
    path = of_size(tmp_path, MIB + MIB // 2)
    with pytest.raises(InvalidField) as refused:
        read(path)
    assert str(refused.value) == f"--filename: '{path}': it has 1.5 MiB, and at most 1 MiB are read; name another"


def test_standard_input_is_read_up_to_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("x" * MIB))
    assert len(read(STANDARD_INPUT)) == MIB
    monkeypatch.setattr("sys.stdin", io.StringIO("x" * (MIB + 1)))
    with pytest.raises(InvalidField, match="it has more than 1 MiB"):
        read(STANDARD_INPUT)


def test_a_file_without_an_end_is_refused() -> None:
    ended = run("plan", "-f", "/dev/zero")
    assert ended.code == 2
    assert ended.err.startswith("Error: --filename: '/dev/zero': it has more than 64 MiB, and at most 64 MiB are read;")
