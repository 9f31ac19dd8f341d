"""What the reading commands see of the cluster next to its pools."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ballast.cli.situation import Situation
from ballast.cli.source import _switched_off
from ballast.model import PlacementMode
from tests.unit.cli.pools import a_situation
from tests.unit.kube.scripted import Answer, scripted


def enforcing(mode: PlacementMode = PlacementMode.ENFORCE) -> Situation:
    situation = a_situation()
    placement = replace(situation.policy.placement, mode=mode)
    return replace(situation, policy=replace(situation.policy, placement=placement))


def switches(reason: str) -> Answer:
    off: dict[str, Any] = {"metadata": {"name": "ballast"}, "spec": {"gating": False}, "status": {"reason": reason}}
    return Answer(body={"metadata": {}, "items": [off]})


FORBIDDEN = Answer(403, {"message": "no"})


@pytest.mark.parametrize(
    ("mode", "answer", "told"),
    [
        (PlacementMode.ENFORCE, switches("Uninstalled"), True),
        (PlacementMode.ENFORCE, switches("Leading"), False),
        (PlacementMode.RECOMMEND, switches("Uninstalled"), False),
        (PlacementMode.ENFORCE, FORBIDDEN, False),
    ],
)
def test_a_switch_that_was_turned_off_under_a_policy_that_enforces_is_a_problem(
    tmp_path: Path, mode: PlacementMode, answer: Answer, *, told: bool
) -> None:
    with scripted(answer) as script:
        problems = _switched_off(script.client(tmp_path), [enforcing(mode)])
    assert [
        problem.startswith("GateSwitch ballast: `ballast release --all` turned it off") for problem in problems
    ] == ([True] if told else [])
