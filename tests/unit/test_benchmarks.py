"""What `python -m benchmarks` says about a run that is not as it should be."""

import contextlib
import io
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import __main__ as benchmarks
from benchmarks import report


def complaints(monkeypatch: pytest.MonkeyPatch, folder: Path, *, code: int, values: list[float] | None) -> str:
    """What is said on stderr where the benchmark writes `values`, each with the aim ≤ 1, and ends with `code`."""
    monkeypatch.setattr(report, "FOLDER", folder)

    def ended(command: list[str], **_options: object) -> subprocess.CompletedProcess[str]:
        if values is not None:
            found = [report.Result(f"cell {value:g}", "seconds", value, "s", aim=report.Aim(1.0)) for value in values]
            report.write("peers", found, before={})
        return subprocess.CompletedProcess(command, code)

    monkeypatch.setattr(subprocess, "run", ended)
    monkeypatch.setattr(sys, "argv", ["benchmarks", "peers"])
    with contextlib.redirect_stderr(io.StringIO()) as said:
        ended_with = benchmarks.main()
    assert ended_with == (1 if said.getvalue() else 0)
    return said.getvalue()


@pytest.mark.parametrize("code", [0, 1])
def test_missed_aims_are_named_whether_or_not_the_benchmark_itself_ends_with_1(
    code: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    said = complaints(monkeypatch, tmp_path, code=code, values=[0.5, 3.6])

    assert said == "missed: peers: cell 3.6: seconds, aim ≤ 1\n"


@pytest.mark.parametrize("code", [0, 1])
def test_a_benchmark_without_results_failed(code: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert complaints(monkeypatch, tmp_path, code=code, values=None) == "failed: peers\n"


def test_a_benchmark_that_ends_with_1_and_misses_no_aim_failed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert complaints(monkeypatch, tmp_path, code=1, values=[0.5]) == "failed: peers\n"


def test_nothing_is_said_where_every_aim_is_met(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert complaints(monkeypatch, tmp_path, code=0, values=[0.5]) == ""
