from __future__ import annotations

import contextlib
import html
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml
from pyspark.sql import SparkSession

from ballast.api import BalancingPolicy
from ballast.simulation.policies import NO_MOVES, candidates
from ballast.simulation.ranking import ranking
from ballast.simulation.replay import ScenarioTrial
from ballast.simulation.study import Study
from ballast.spark.backtest import Job, Run, Scenarios, Store, Window, runs
from ballast.spark.backtest.cases import results
from ballast.spark.backtest.job import Batches
from ballast.spark.backtest.store import ranking_table
from ballast.spark.errors import BacktestError, SparkFailedError, in_own_words
from tests.spark.session import PATHS
from tests.testbed.waiting import wait_until
from tests.unit.cli.program import run as command
from tests.unit.simulation.small_world import EAGER, scenario

NOISY = {"kind": "Noise", "deviation": 0.3}
WORLD = scenario(
    duration="10m",
    applications=[
        {
            "name": "bundle",
            "copies": 10,
            "load": {"cores": 1, "vary": [NOISY]},
            "runsOn": {"node-0": 8, "node-1": 2},
        }
    ],
)
POLICIES = candidates(["AvgShedder", "ThresholdShedder"], [], figures=EAGER, baseline=True)
SOURCE = Scenarios([WORLD])
RUNS = runs(POLICIES, SOURCE.windows, seeds=2)


def kept(folder: Path) -> set[str]:
    """Keys of runs whose rows any reader sees."""
    return {key for path in whole(folder) for key in pq.read_table(path).column("key").to_pylist()}


def whole(folder: Path) -> list[Path]:
    """Files of rows that have taken their place."""
    return list((folder / "runs").glob("version=*/job=*/part-*.parquet"))


def backtested(spark: SparkSession, folder: Path, *, size: int | None = None) -> Study:
    store = Store(spark, str(folder))
    job = Job(spark, SOURCE, store, size=size)
    job.run(job.missing(RUNS), lambda _: None)
    return store.study(RUNS)


def by_hand() -> Study:
    """The same without Spark."""
    trial = ScenarioTrial(WORLD)
    order = list(POLICIES)
    results = sorted((trial.run(run.policy, run.case) for run in RUNS), key=lambda one: order.index(one.case.policy))
    return Study(tuple(results), POLICIES)


@pytest.mark.parametrize("size", [pytest.param(1, marks=pytest.mark.soak), 4])
def test_the_table_is_the_same_whatever_the_number_of_tasks(spark: SparkSession, tmp_path: Path, size: int) -> None:
    found, wanted = backtested(spark, tmp_path, size=size), by_hand()
    assert [one.case for one in found.results] == [one.case for one in wanted.results]
    assert [one.metrics for one in found.results] == [one.metrics for one in wanted.results]
    assert [one.moves for one in found.results] == [one.moves for one in wanted.results]
    assert found.policies == wanted.policies
    assert ranking_table(ranking(found)).equals(ranking_table(ranking(wanted)))


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    path = tmp_path / "world.yaml"
    document = {"apiVersion": "ballast.dev/v1alpha1", "kind": "Scenario", "metadata": {"name": "small"}}
    path.write_text(yaml.safe_dump({**document, "spec": WORLD.to_dict()["spec"]}), encoding="utf-8")
    return ["backtest", "--scenario", str(path), "--policies", "AvgShedder", "ThresholdShedder"]


@pytest.mark.soak
@pytest.mark.usefixtures("spark")
def test_a_killed_backtest_goes_on_where_it_was(files: list[str], tmp_path: Path) -> None:
    out = tmp_path / "out"
    asked = [*files, "--seeds", "12", "--out", str(out), "-o", "json"]
    process = subprocess.Popen(
        [sys.executable, "-m", "ballast", *asked, "--master", "local[2]"],
        env={**os.environ, "PYTHONPATH": PATHS},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        wait_until(lambda: len(kept(out)) >= 3, what="some runs are kept", timeout_seconds=120)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    before, files_before = kept(out), {path: path.stat().st_mtime_ns for path in whole(out)}
    assert 3 <= len(before) < 36
    assert not (out / "results.parquet").exists()

    told = command(*asked)
    assert told.code == 0
    assert f"36 runs, {len(before)} of them reused from {out}, {36 - len(before)} to do" in told.err
    assert {path: path.stat().st_mtime_ns for path in files_before} == files_before
    assert len(kept(out)) == 36
    assert len(json.loads(told.out)["runs"]) == 36


def test_progress_is_told_of_each_run_once_it_is_kept(spark: SparkSession, tmp_path: Path) -> None:
    told, kept_then = [0], [0]

    def progress(ended: int) -> None:
        told.append(told[-1] + ended)
        kept_then.append(len(kept(tmp_path)))

    Job(spark, SOURCE, Store(spark, str(tmp_path)), size=2).run(RUNS, progress)
    assert told[-1] == len(RUNS)
    assert all(there >= ended for ended, there in zip(told, kept_then, strict=True))


@pytest.mark.soak
def test_ctrl_c_ends_a_backtest_whose_bar_advances_and_keeps_what_has_ended(files: list[str], tmp_path: Path) -> None:
    out = tmp_path / "out"
    screen, terminal = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "ballast", *files, "--seeds", "8", "--out", str(out), "--master", "local[2]"],
        env={**os.environ, "PYTHONPATH": PATHS, "TERM": "xterm", "COLUMNS": "200"},
        stdout=subprocess.DEVNULL,
        stderr=terminal,
        start_new_session=True,
    )
    os.close(terminal)
    try:
        shown = Shown(screen)
        wait_until(lambda: len(shown.counts(of=24)) >= 3, what="the bar has advanced twice", timeout_seconds=120)
        # As a terminal does: to the program and to all that it has started.
        os.killpg(process.pid, signal.SIGINT)
        wait_until(lambda: shown.text() and process.poll() is not None, what="it has ended", timeout_seconds=60)
        assert process.returncode == 130
        assert "Interrupted. What has ended is kept in" in shown.text()
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        os.close(screen)
    ended = kept(out)
    assert 2 <= len(ended) < 24
    again = command(*files, "--seeds", "8", "--out", str(out))
    assert again.code == 0
    assert f"24 runs, {len(ended)} of them reused" in again.err


class Shown:
    """What a program has written to its terminal."""

    def __init__(self, screen: int) -> None:
        self._screen, self._bytes = screen, bytearray()

    def text(self) -> str:
        while select.select([self._screen], [], [], 0)[0]:
            try:
                self._bytes += os.read(self._screen, 65_536)
            except OSError:  # The program has closed it.
                break
        return self._bytes.decode(errors="replace")

    def counts(self, *, of: int) -> set[int]:
        """Runs that the bar has told of."""
        return {int(found) for found in re.findall(rf"(\d+)/{of}\b", self.text())}


@pytest.mark.usefixtures("spark")
def test_who_interrupts_a_backtest_is_told_that_it_can_go_on(
    files: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as pressing:
        pressing.setattr(Job, "run", interrupted)
        told = command(*files, "--out", str(tmp_path / "out"))
    assert told.code == 130
    assert f"Interrupted. What has ended is kept in {tmp_path / 'out'}: the same command goes on." in told.err


def test_the_command_prints_a_ranking_and_keeps_it_as_parquet(
    spark: SparkSession, files: list[str], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    asked = [*files, "--seeds", "2", "--out", str(out)]
    first, again = command(*asked), command(*asked, "-o", "wide")
    assert (first.code, again.code) == (0, 0)
    assert "6 runs, 0 of them reused" in first.err
    assert "6 runs, 6 of them reused" in again.err
    lines = first.out.splitlines()
    start = next(at for at, line in enumerate(lines) if line.startswith("RANK  POLICY"))
    header, *rows = lines[start : start + 4]
    assert header.split()[:3] == ["RANK", "POLICY", "IMBALANCE(point-hours)"]
    table = pq.read_table(out / "ranking.parquet")
    assert table.column("policy").to_pylist() == [row.split()[1] if "no moves" not in row else NO_MOVES for row in rows]
    assert table.column("recommended").to_pylist() == [True, False, False]
    assert f"Recommended: {table.column('policy')[0].as_py()}" in first.out
    read = spark.read.parquet(str(out / "results.parquet"))
    assert {row.policy for row in read.where("moves > 0").collect()} == {"AvgShedder", "ThresholdShedder"}
    assert read.count() == 6
    assert len(results(pq.read_table(out / "results.parquet"))) == 6


@pytest.mark.soak
def test_the_command_draws_what_it_found_and_hands_over_the_policy(files: list[str], tmp_path: Path) -> None:
    page, pictures, policy = tmp_path / "page.html", tmp_path / "pictures", tmp_path / "policy.yaml"
    named = ["--report", str(page), "--png", str(pictures), "--recommended", str(policy)]
    told = command(*files, "--out", str(tmp_path / "out"), *named)
    assert told.code == 0
    assert [line for line in told.err.splitlines() if line.startswith("wrote")] == [
        f"wrote {place}" for place in (page, pictures, policy)
    ]
    handed = BalancingPolicy.parse(yaml.safe_load(policy.read_text(encoding="utf-8")))
    assert f"recommended: {handed.metadata.name}" in told.out.lower()
    assert policy.read_text(encoding="utf-8") in html.unescape(page.read_text(encoding="utf-8"))
    assert {"pareto.png", "moves.png", "nodes-before.png", "nodes-after.png"} <= {
        one.name for one in pictures.iterdir()
    }


@pytest.mark.soak
def test_two_backtests_do_not_write_into_one_folder(spark: SparkSession, files: list[str], tmp_path: Path) -> None:
    with Store(spark, str(tmp_path)).alone():
        told = command(*files, "--out", str(tmp_path))
    assert told.code == 2
    assert f"--out: '{tmp_path}': another backtest is at work there: wait until it has ended, or name" in told.err
    assert command(*files, "--out", str(tmp_path)).code == 0


def test_runs_that_two_programs_have_done_count_once(spark: SparkSession, tmp_path: Path) -> None:
    """As on a file system where the second can't be kept out."""
    store = Store(spark, str(tmp_path))
    for _ in range(2):
        Job(spark, SOURCE, store).run(RUNS, lambda _: None)
    assert len(whole(tmp_path)) > len(set(kept(tmp_path)) & store.known()) / 2
    assert [result.case for result in store.study(RUNS).results] == [result.case for result in by_hand().results]


def test_runs_of_one_program_that_end_at_the_same_time_are_all_kept(spark: SparkSession, tmp_path: Path) -> None:
    """Two appends that overlap in one folder lose rows, and both report success."""
    Job(spark, SOURCE, Store(spark, str(tmp_path)), size=1).run(RUNS, lambda _: None)
    assert kept(tmp_path) == {run.key for run in RUNS}
    assert len(list((tmp_path / "runs").glob("version=*/job=*"))) == len(RUNS)


@pytest.mark.parametrize(
    "content", [pytest.param(b"", marks=pytest.mark.soak), b"no Parquet at all", b"PAR1 and cut off"]
)
def test_a_result_that_cannot_be_read_is_named(spark: SparkSession, tmp_path: Path, content: bytes) -> None:
    backtested(spark, tmp_path)
    broken = whole(tmp_path)[0]
    broken.write_bytes(content)
    with pytest.raises(BacktestError, match=rf"{tmp_path} can't be read \(.*{broken.name}.*\): delete what is broken"):
        backtested(spark, tmp_path)


class Failing:
    """Has a run that fails, after others that do not."""

    windows: Sequence[Window] = SOURCE.windows
    left_out: Mapping[str, str] = SOURCE.left_out

    def task(self, runs: Sequence[Run]) -> Callable[[Batches], Batches]:
        if RUNS[3] not in runs:
            return SOURCE.task(runs)

        def task(batches: Batches) -> Batches:
            yield from ()
            raise BacktestError(f"{RUNS[3].case}: out of luck")

        return task


def test_a_run_that_fails_is_named_and_the_others_are_kept(spark: SparkSession, tmp_path: Path) -> None:
    job = Job(spark, Failing(), Store(spark, str(tmp_path)), size=1)
    with pytest.raises(SparkFailedError, match=f"^{RUNS[3].case}: out of luck$"), in_own_words():
        job.run(RUNS[:4], lambda _: None)
    assert kept(tmp_path) <= {run.key for run in RUNS[:3]}
