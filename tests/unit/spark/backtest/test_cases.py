from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import ballast
from ballast.errors import InvalidField
from ballast.simulation.policies import by_name
from ballast.simulation.study import Case
from ballast.spark.backtest.cases import DECIDES, Window, program, runs

WINDOW = Window("day", digest="of the day", seed=5)


def document(**spec: Any) -> dict[str, Any]:
    return by_name("AvgShedder", spec)


def key(window: Window = WINDOW, **spec: Any) -> str:
    (run,) = runs({"mine": document(**spec)}, [window], seeds=1)
    return run.key


def test_every_policy_runs_in_every_window_with_every_seed_window_by_window() -> None:
    found = runs({"a": document(), "b": document(interval="30s")}, [WINDOW, Window("other", "x")], seeds=2)
    assert [run.case for run in found] == [
        Case(policy, window, seed)
        for window, seed in (("day", 5), ("day", 6), ("other", 1), ("other", 2))
        for policy in ("a", "b")
    ]
    assert len({run.key for run in found}) == len(found)


def test_a_run_is_known_again_by_what_it_depends_on() -> None:
    renamed = {**document(), "metadata": {"name": "other"}}
    (run,) = runs({"other": renamed}, [replace(WINDOW, name="renamed")], seeds=1)
    assert run.key == key()


@pytest.mark.parametrize(
    "other", [key(interval="30s"), key(replace(WINDOW, digest="changed")), key(replace(WINDOW, seed=6))]
)
def test_a_run_is_another_when_anything_that_it_depends_on_differs(other: str) -> None:
    assert other != key()


ROOT = Path(ballast.__file__).parent


@pytest.mark.parametrize(
    ("module", "decides"),
    [
        ("planner/plan.py", True),
        ("files.py", True),
        ("simulation/recorded/reading.py", True),
        ("spark/backtest/recordings.py", True),
        ("cli/report/runs.py", False),
    ],
)
def test_a_run_is_another_when_the_code_that_it_depends_on_has_changed(
    tmp_path: Path, module: str, decides: bool
) -> None:
    other = Path(shutil.copytree(ROOT, tmp_path / "ballast", ignore=shutil.ignore_patterns("__pycache__")))
    assert program(other) == program(ROOT)
    (other / module).write_text((other / module).read_text(encoding="utf-8") + "\n# changed\n", encoding="utf-8")
    assert (program(other) != program(ROOT)) == decides


_LOADED = """
import sys
import ballast.simulation.replay
print(*sorted({name.split(".")[1] for name in sys.modules if name.startswith("ballast.")}))
"""


def test_all_that_a_trial_loads_is_code_that_a_run_depends_on() -> None:
    told = subprocess.run([sys.executable, "-c", _LOADED], capture_output=True, text=True, check=True).stdout
    assert set(told.split()) - {"errors"} <= set(DECIDES)


@pytest.mark.parametrize(("seconds", "refused"), [(None, False), (90.0, False), (120.0, True)])
def test_figures_of_another_metric_window_than_the_policys_are_refused(seconds: float | None, refused: bool) -> None:
    windows = [replace(WINDOW, metric_window_seconds=seconds)]
    asked = document(metrics={"window": "90s"})
    if not refused:
        assert len(runs({"mine": asked}, windows, seeds=1)) == 1
        return
    with pytest.raises(InvalidField) as told:
        runs({"mine": asked}, windows, seeds=1)
    assert str(told.value) == (
        "metrics.window: '90s': of policy mine: the figures of day are means over 120s, and scores over another time "
        "can't be told from them. Say 120s in the policy (--grid metrics.window=120s), or collect a history with "
        "--window 90s into another folder"
    )
