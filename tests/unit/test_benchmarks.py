"""What `python -m benchmarks` says about a run that is not as it should be."""

import contextlib
import io
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import __main__ as benchmarks
from benchmarks import report
from benchmarks.compared.figures import Figures
from benchmarks.compared.judging import verdicts


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


def figures_of(distance: float, most_on_a_node: float) -> Figures:
    return Figures(0.0, 0.0, 0.0, distance, most_on_a_node, nodes_used=4.0, seconds=1.0)


@pytest.mark.parametrize(
    ("distances", "better"),
    [
        pytest.param([1.6, 1.5, 4.3], False, id="farther with every background, and once by far"),
        pytest.param([1.4, 1.4, 1.4], True, id="as near"),
        pytest.param([1.3, 1.3, 1.7], True, id="farther once"),
    ],
)
def test_a_peer_is_better_in_a_figure_only_if_it_has_not_paid_for_it_in_one_that_weighs_more(
    distances: list[float], *, better: bool
) -> None:
    ours = [figures_of(1.4, 3.0) for _ in distances]
    theirs = [figures_of(distance, 2.0) for distance in distances]
    found = {each.figure: each for each in verdicts(ours, {"peer": theirs}, flows=True)}
    assert ("most_on_a_node" in found) is better
