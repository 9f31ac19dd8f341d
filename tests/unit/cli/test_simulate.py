"""`ballast simulate`: what it prints, and how it refuses."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from ballast.cli.simulate import simulated_page
from ballast.simulation.engine import simulate
from ballast.simulation.policies import from_name
from ballast.simulation.scenario import Scenario
from tests.unit.cli.picture.outline import Outline
from tests.unit.cli.program import run

FIVE_BROKERS = Scenario.read(Path(__file__).parents[3] / "examples" / "scenarios" / "pip364-five-brokers.yaml")
SCENARIO = """
apiVersion: ballast.dev/v1alpha1
kind: Scenario
metadata: {name: small}
spec:
  duration: 10m
  nodes: [{name: node, count: 2, cores: 10}]
  applications: [{name: bundle, copies: 10, load: {cores: 1}, runsOn: {node-0: 8, node-1: 2}}]
  policy:
    metrics: {window: 60s}
    moves: {settle: 2m, cooldown: 0s, maxConcurrentPerNode: 5, maxConcurrent: 5}
"""


@pytest.fixture
def scenario(tmp_path: Path) -> str:
    path = tmp_path / "small.yaml"
    path.write_text(SCENARIO, encoding="utf-8")
    return str(path)


def test_the_table_has_a_line_for_each_policy(scenario: str) -> None:
    told = run("simulate", scenario)
    assert told.code == 0
    header, ours, none = told.out.splitlines()[-5:-2]
    assert header.split()[:3] == ["POLICY", "LEVEL", "AFTER"]
    assert ours.split()[:4] == ["AvgShedder", "2m", "3", "1"]
    assert none.split()[:3] == ["None", "open", "0"]


def test_the_last_line_answers_whether_moves_are_better_and_at_what_cost(scenario: str) -> None:
    last = run("simulate", scenario).out.splitlines()[-1]
    assert last.startswith("AvgShedder is better than no moves: ")
    assert last.endswith(" for 3 moves; the pool was level after 2m, without moves it was not level at the end.")


def test_a_pool_that_no_run_leaves_level_is_said_once(tmp_path: Path) -> None:
    slow = tmp_path / "slow.yaml"
    limits = "maxConcurrentPerNode: 1, maxConcurrent: 1, budgets: [{moves: 1, per: 1h}]"
    slow.write_text(SCENARIO.replace("maxConcurrentPerNode: 5, maxConcurrent: 5", limits), encoding="utf-8")
    last = run("simulate", str(slow)).out.splitlines()[-1]
    assert last.endswith(" for 1 move; the pool was not level at the end, with or without moves.")


def test_where_a_policy_changes_nothing_the_last_line_says_so(tmp_path: Path) -> None:
    level = tmp_path / "level.yaml"
    level.write_text(SCENARIO.replace("node-0: 8, node-1: 2", "node-0: 5, node-1: 5"), encoding="utf-8")
    told = run("simulate", str(level)).out
    assert told.splitlines()[-1] == (
        "No moves are needed: AvgShedder made 0 moves, and the imbalance is the same without any."
    )


def test_a_gap_that_no_move_can_close_is_held_against_no_policy(tmp_path: Path) -> None:
    stuck = tmp_path / "stuck.yaml"
    stuck.write_text(
        SCENARIO.replace("copies: 10, load: {cores: 1}, runsOn: {node-0: 8, node-1: 2}", "load: {cores: 8}"),
        encoding="utf-8",
    )
    *_, ours, none, _, last = run("simulate", str(stuck), "-p", "AvgShedder", "-p", "None").out.splitlines()
    assert last.startswith("No moves are needed: ")
    assert [line.split()[1] for line in (ours, none)] == ["-", "-"]


def test_each_column_is_explained_with_its_unit_above_the_table(scenario: str) -> None:
    lines = run("simulate", scenario).out.splitlines()
    above = lines[: next(at for at, line in enumerate(lines) if line.startswith("POLICY "))]
    assert "IMBALANCE(point-hours)  standard deviation of the nodes' usage in points, summed over time" in above
    assert any(line.startswith("PEAK%   ") for line in above)


def test_without_a_run_that_moves_nothing_the_last_line_says_how_to_add_one(scenario: str) -> None:
    last = run("simulate", scenario, "-p", "AvgShedder").out.splitlines()[-1]
    assert last == (
        "AvgShedder made 3 moves, and the pool was level after 2m; add --policy None to compare it with no moves."
    )


def test_programs_get_every_figure_and_move(scenario: str) -> None:
    told = run("simulate", scenario, "-p", "AvgShedder", "--seed", "5", "-o", "json")
    (found,) = json.loads(told.out)["runs"]
    assert found["seed"] == 5
    assert found["metrics"]["moves"] == len(found["moves"]) == 3
    assert found["moves"][0]["outcome"] == "Helped"
    assert yaml.safe_load(run("simulate", scenario, "-p", "AvgShedder", "-o", "yaml").out)["scenario"] == "small"


def test_wide_shows_the_moves_as_well(scenario: str) -> None:
    assert "Moves under AvgShedder" in run("simulate", scenario, "-o", "wide").out


def test_a_policy_that_only_recommends_is_run_as_if_it_enforced(scenario: str, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    spec = yaml.safe_load(SCENARIO)["spec"]["policy"]
    document = {
        "apiVersion": "ballast.dev/v1alpha1",
        "kind": "BalancingPolicy",
        "metadata": {"name": "mine"},
        "spec": {"nodeSelector": {}, **spec},
    }
    policy.write_text(yaml.safe_dump(document), encoding="utf-8")
    told = run("simulate", scenario, "-p", str(policy))
    assert told.out.splitlines()[-3].split()[:3] == ["mine", "2m", "3"]


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ("Foo", "--policy: 'Foo': shedding.strategy: choose one of AvgShedder"),
        ("AvgShedder/Foo", "--policy: 'AvgShedder/Foo': shedding.avgShedder.unit: choose one of Usage, Traffic"),
        ("None/Usage", "only AvgShedder has units"),
        ("AvgShedder+Foo", "--policy: 'AvgShedder+Foo': placement.strategy: choose one of Proximity"),
        ("absent.yaml", "--policy: 'absent.yaml': No such file or directory"),
    ],
)
def test_a_policy_that_is_none_is_refused_with_what_to_write(scenario: str, policy: str, words: str) -> None:
    told = run("simulate", scenario, "-p", policy)
    assert told.code == 2
    assert words in told.err


def test_a_policy_that_stands_there_twice_is_refused(scenario: str) -> None:
    told = run("simulate", scenario, "-p", "None", "-p", "None")
    assert told.code == 2
    assert "there is a policy None already" in told.err


def test_a_scenario_that_is_not_there_is_refused() -> None:
    told = run("simulate", "absent.yaml")
    assert told.code == 2
    assert "write a scenario as in examples/scenarios" in told.err


def test_a_page_with_plots_is_written_on_request(scenario: str, tmp_path: Path) -> None:
    page = tmp_path / "runs.html"
    told = run("simulate", scenario, "--report", str(page))
    assert (told.code, told.err) == (0, f"wrote {page}\n")
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")


@pytest.mark.parametrize("name", ["missing/runs.html", "."])
def test_a_page_that_cannot_be_written_is_told_before_anything_is_run(tmp_path: Path, name: str) -> None:
    told = run("simulate", "absent.yaml", "--report", str(tmp_path / name))
    assert told.code == 2
    assert told.err.startswith(f"Error: --report: '{tmp_path / name}': ")
    assert "name a file that can be written" in told.err


def page_of(*policies: str) -> str:
    runs = [simulate(FIVE_BROKERS, from_name(name, FIVE_BROKERS), label=name) for name in policies]
    return simulated_page(FIVE_BROKERS, runs, made="2026-11-22 21:00 UTC by ballast 0.1.0")


def test_the_page_is_well_formed_and_needs_nothing_else() -> None:
    text = page_of("AvgShedder", "None")
    outline = Outline(text)
    assert (outline.open, outline.outside) == ([], [])
    assert not re.search(r"https?://|@import|url\(|<script", text)


def test_the_page_begins_with_the_answer_and_when_it_was_made() -> None:
    head = page_of("AvgShedder", "None").split("<h2>")[0]
    assert "AvgShedder is better than no moves: " in head
    assert "Made 2026-11-22 21:00 UTC by ballast 0.1.0." in head


def test_every_policy_has_its_figures_its_line_and_its_nodes() -> None:
    text = page_of("AvgShedder", "ThresholdShedder")
    for policy in ("AvgShedder", "ThresholdShedder"):
        assert f"<td>{policy}</td>" in text
        assert re.search(rf"<h3>{policy}: \d+ moves</h3>", text)
    assert "nothing was moved" in page_of("None")
