"""`ballast backtest`: what it prints, and how it refuses before Spark is started."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from ballast.cli.backtest import spelled_out
from ballast.cli.output import Format, plain, structured
from ballast.cli.report.runs import backtested_document, backtested_report
from ballast.simulation.policies import NO_MOVES, candidates
from ballast.simulation.ranking import ranking
from ballast.simulation.run_metrics import run_metrics
from ballast.simulation.study import Case, Result, Series, Study
from tests.unit.cli.program import exit_code, run
from tests.unit.simulation import studies
from tests.unit.simulation.small_world import scenario
from tests.unit.simulation.traces import trace

EVEN = trace([[50.0, 50.0]])
POLICIES = candidates(["AvgShedder"], [], figures={}, baseline=True)


def result(policy: str, seed: int, **known: Any) -> Result:
    return Result(
        Case(policy, "day", seed), replace(run_metrics(EVEN), **known), Series.of(EVEN), (), ("zones are unknown",)
    )


def study(seeds: int) -> Study:
    moved = [
        result("AvgShedder", seed, moves=3 + seed, imbalance_point_hours=5.0, seconds_to_balance=60.0)
        for seed in range(seeds)
    ]
    still = [result(NO_MOVES, seed, imbalance_point_hours=20.0, seconds_to_balance=None) for seed in range(seeds)]
    return Study((*moved, *still), POLICIES)


def shown(found: Study, form: Format = Format.TABLE) -> list[str]:
    return plain(*backtested_report(found, ranking(found), form)).splitlines()


def table_of(lines: list[str]) -> list[str]:
    start = next(at for at, line in enumerate(lines) if line.startswith("RANK  POLICY"))
    return lines[start : start + 3]


def test_each_column_is_explained_above_the_table() -> None:
    lines = shown(study(3))
    above = lines[: lines.index(table_of(lines)[0])]
    for column in (
        "RANK",
        "IMBALANCE(point-hours)",
        "MOVES",
        "LOCALITY",
        "LEVEL AFTER",
        "WRONG",
        "OVER",
        "PEAK%",
        "OPEN",
    ):
        assert any(line.startswith(f"{column}  ") for line in above), column
    assert not any(line.startswith("ROUNDS  ") for line in above)


def test_the_table_has_means_with_half_their_intervals_and_marks_the_front() -> None:
    lines = shown(study(3))
    assert lines[0] == "windows day   seeds 3   runs 6"
    header, ours, still = table_of(lines)
    assert header.split()[:4] == ["RANK", "POLICY", "IMBALANCE(point-hours)", "MOVES"]
    assert ours.split()[:7] == ["1", "AvgShedder", "*", "5", "±0", "4", "±2.5"]
    assert still.split()[:5] == ["2", "no", "moves", "*", "20"]
    assert (header.split()[-1], still.endswith("3 of 3")) == ("OPEN", True)


def test_the_recommendation_is_told_in_plain_words_with_its_rule() -> None:
    lines = shown(study(3))
    assert lines[-1] == "Recommended: AvgShedder, 75% less imbalance than without moves, for 4 moves in each window."
    assert "- zones are unknown" in lines
    assert lines[2].startswith("3 cases for each policy. 95 % intervals of means by Student's t")


def test_windows_with_seeds_of_their_own_are_counted_by_what_ran() -> None:
    lines = shown(studies.study([studies.CAREFUL], windows=["a", "b"], seeds={"a": (1, 2), "b": (7, 8)}))
    assert lines[0] == "windows a, b   seeds 2   runs 4"
    assert lines[2].startswith("4 cases for each policy. ")


def test_a_single_case_has_no_intervals_and_says_so() -> None:
    lines = shown(study(1))
    assert table_of(lines)[1].split()[:5] == ["1", "AvgShedder", "*", "5", "3"]
    assert lines[2].startswith("One case only, so that no interval can be given.")


def test_windows_that_were_left_out_are_told_with_the_reason() -> None:
    found = replace(study(2), left_out={"other day": "there are figures of 3 of 24 hours, less than 75%"})
    lines = shown(found)
    assert lines[lines.index("Left out") + 1] == "- other day: there are figures of 3 of 24 hours, less than 75%"
    document = json.loads(structured(backtested_document(found, ranking(found)), Format.JSON))
    assert document["leftOut"] == found.left_out
    assert "Left out" not in shown(study(2))


def test_what_was_done_otherwise_than_asked_is_told() -> None:
    found = replace(study(1), remarks=("each case was run once",))
    lines = shown(found)
    assert lines[lines.index("Done otherwise") + 1] == "- each case was run once"
    document = json.loads(structured(backtested_document(found, ranking(found)), Format.JSON))
    assert document["doneOtherwise"] == ["each case was run once"]
    assert "Done otherwise" not in shown(study(2))


def test_wide_has_all_figures() -> None:
    assert {"ROUNDS", "BEYOND", "LIMITED"} <= set(table_of(shown(study(2), Format.WIDE))[0].split())


def test_programs_get_every_estimate_run_and_document() -> None:
    found = study(1)
    document = json.loads(structured(backtested_document(found, ranking(found)), Format.JSON))
    assert document["recommended"] == "AvgShedder"
    first, second = document["policies"]
    assert first["metrics"]["moves"] == {"mean": 3.0, "low": None, "high": None, "cases": 1}
    assert first["document"]["kind"] == "BalancingPolicy"
    assert (second["policy"], second["neverLevel"]) == (NO_MOVES, 1)
    assert [each["metrics"]["secondsToBalance"] for each in document["runs"]] == [60.0, None]


def test_where_moves_do_not_help_leaving_all_as_it_is_is_recommended() -> None:
    alike = Study(
        tuple(result(policy, 1, moves=moves) for policy, moves in (("AvgShedder", 3), (NO_MOVES, 0))), POLICIES
    )
    lines = shown(alike)
    assert lines[-1].startswith("Recommended: no moves, which moves nothing: no policy here is measurably more level")
    assert "OPEN" not in table_of(lines)[0]


@pytest.fixture
def world(tmp_path: Path) -> str:
    path = tmp_path / "world.yaml"
    document = {"apiVersion": "ballast.dev/v1alpha1", "kind": "Scenario", "metadata": {"name": "small"}}
    path.write_text(yaml.safe_dump({**document, "spec": scenario().to_dict()["spec"]}), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--policies", "Foo"], "--policies: 'Foo': shedding.strategy: choose one of AvgShedder"),
        (["--policies", "None", "absent.yaml"], "--policies: 'absent.yaml': No such file or directory"),
        (["--policies", "None", "None"], "--policies: 'None': there is a policy of that name already: rename one"),
        (["--grid", "moves.zzz=1"], "--grid: 'moves.zzz': no such field; there are"),
        (["--grid", "interval=2h"], "--grid: policy AvgShedder interval=2h is not valid: spec.interval: '2h'"),
        (["--scenario", "absent.yaml"], "--scenario: 'absent.yaml': No such file or directory"),
    ],
)
def test_what_cannot_be_run_is_named_before_spark_is_started(world: str, options: list[str], words: str) -> None:
    told = run("backtest", "--scenario", world, *options)
    assert told.code == exit_code(told.err)
    assert words in told.err


def test_a_place_for_pictures_that_is_no_folder_is_told_before_anything_is_run(world: str) -> None:
    told = run("backtest", "--scenario", world, "--png", world)
    assert told.code == 2
    assert f"--png: '{world}': {world} is no folder; name a folder that can be written" in told.err


def test_a_folder_for_pictures_that_cannot_be_written_is_told_before_anything_is_run(
    world: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root may write anywhere: it is the system's answer that is another here."""
    monkeypatch.setattr(os, "access", lambda asked, _: asked != tmp_path)
    told = run("backtest", "--scenario", world, "--png", str(tmp_path / "new" / "plots"))
    assert told.code == 2
    assert f"--png: '{tmp_path}/new/plots': {tmp_path} can't be written; name a folder" in told.err


def test_a_backtest_that_is_refused_leaves_no_folder_behind(tmp_path: Path) -> None:
    told = run("backtest", "--png", str(tmp_path / "new" / "plots"))
    assert "name either a history or files of scenarios" in told.err
    assert not list(tmp_path.iterdir())


def test_a_backtest_of_nothing_says_what_to_name() -> None:
    told = run("backtest")
    assert told.code == 2
    assert "--scenario" in told.err


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ([], "--history: '(absent)': name either a history or files of scenarios"),
        (["--history", "h", "--scenario", "s"], "--history: 'h': name either a history or files of scenarios"),
        *(
            (["--scenario", "s", option, value], f"{option}: '{value}': leave it out: it is about a --history")
            for option, value in (
                ("--pool", "streaming"),
                ("--from", "2026-11-20"),
                ("--to", "2026-11-21"),
                ("--window", "1d"),
                ("--placements", "recorded"),
                ("--snapshot", "pool.yaml"),
            )
        ),
    ],
)
def test_it_takes_scenarios_or_a_history_and_only_options_of_that(asked: list[str], words: str) -> None:
    told = run("backtest", *asked)
    assert told.code == 2
    assert words in " ".join(told.err.split())


REPEATED = ("--policies", "--grid")


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("--policies a b c", "--policies a --policies b --policies c"),
        ("--policies=a b", "--policies=a --policies b"),
        ("--policies a b --grid x y", "--policies a --policies b --grid x --grid y"),
        ("--policies a --seeds 5", "--policies a --seeds 5"),
        ("--seeds 5 --policies a b -o json", "--seeds 5 --policies a --policies b -o json"),
        ("--seeds 5 stray", "--seeds 5 stray"),
    ],
)
def test_what_follows_a_repeated_option_is_more_of_it(given: str, meant: str) -> None:
    assert list(spelled_out(given.split(), REPEATED)) == meant.split()
