"""Files that users name are read up to a bound."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from ballast.errors import InvalidField
from ballast.files import STANDARD_INPUT, documents_in, text_of
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


def documents(text: str) -> list[object]:
    return documents_in(text, name="file.yaml", option="--filename", remedy="name another")


def test_aliases_are_read() -> None:
    shared = {"x": [1, 2]}
    assert documents("a: &a {x: [1, 2]}\nb: *a\nc: {<<: *a, y: 3}") == [
        {"a": shared, "b": shared, "c": {"y": 3, **shared}}
    ]


def test_what_looks_like_a_number_to_base_60_is_a_text() -> None:
    """Such an integer of 4 MB took minutes to compute, and a fraction of 600 characters overflowed."""
    fraction = f"1{':1' * 300}.5"
    assert documents(f"a: 12:30\nb: {fraction}\nc: 12\nd: 1.5\ne: 0x1f\nf: 1_000") == [
        {"a": "12:30", "b": fraction, "c": 12, "d": 1.5, "e": 31, "f": 1000}
    ]


def powers(last: str) -> str:
    """Seven lines, of which each stands for ten times as much as the one before it."""
    lines = [f"l{n}: &l{n} {last}".replace("?", f"*l{n - 1}") for n in range(1, 8)]
    return "\n".join(["l0: &l0 {k: 1}", *lines])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param(powers(f"[{', '.join('?' * 10)}]"), "its aliases stand for more than 1000000", id="powers"),
        pytest.param(
            powers(f"{{<<: [{', '.join('?' * 10)}]}}"), "not readable as YAML: see line 6", id="merges of merges"
        ),
        pytest.param("a: &a [*a]", "its aliases stand for more than 1000000", id="itself"),
        pytest.param("a: !!bool x", "not readable as YAML", id="a tag that does not fit"),
        pytest.param("a: !!timestamp x", "not readable as YAML", id="no time"),
        pytest.param("a: !!int ''", "not readable as YAML", id="no number"),
        pytest.param("[" * 5000, "it nests more than 100 levels", id="nested too deeply"),
        pytest.param("[" * 1_500 + "]" * 1_500, "it nests more than 100 levels", id="beyond Python's stack"),
        pytest.param("[" * 50_000 + "]" * 50_000, "it nests more than 100 levels", id="beyond the process's stack"),
    ],
)
def test_a_text_that_stands_for_too_much_or_for_nothing_is_refused(text: str, words: str) -> None:
    with pytest.raises(InvalidField, match=words) as refused:
        documents(text)
    assert str(refused.value).endswith("; name another")


@pytest.mark.parametrize("number", ["0x" + "f" * 20_000, "0b" + "1" * 20_000, "0" + "7" * 20_000, "9" * 20_000])
def test_an_integer_that_cannot_be_written_again_is_refused(number: str) -> None:
    """Where a message named it, a command ended with a traceback."""
    with pytest.raises(InvalidField, match="not readable as YAML"):
        documents_in(f"version: {number}", name="file.yaml", option="--filename", remedy="name another")


@pytest.mark.parametrize("between", ["\n", "", " \t\r\n\n"])
def test_every_json_document_of_a_file_is_read(between: str) -> None:
    text = between + between.join(f'{{"number": {number}}}' for number in range(1000)) + between
    found = documents_in(text, name="pods.json", option="--filename", remedy="name another")
    assert [each["number"] for each in found] == list(range(1000))


def test_a_line_that_is_no_json_is_named() -> None:
    text = '{"number": 1}\n\n  {"number" 2}\n'
    with pytest.raises(InvalidField, match="not readable as JSON: see line 3, column 13"):
        documents_in(text, name="pods.json", option="--filename", remedy="name another")
