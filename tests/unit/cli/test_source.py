"""What the reading commands see of the cluster next to its pools."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ballast.cli.output import plain
from ballast.cli.situation import Situation
from ballast.cli.source import Seen, _switched_off, _switches, problem_lines
from ballast.model import ConditionReason, MetricsHealth, PlacementMode
from tests.apiserver import Answer, scripted
from tests.unit.cli.pools import a_situation


def enforcing(mode: PlacementMode = PlacementMode.ENFORCE) -> Situation:
    situation = a_situation()
    placement = replace(situation.policy.placement, mode=mode)
    return replace(situation, policy=replace(situation.policy, placement=placement))


def switches(*reasons: str) -> Answer:
    """Of releases that are called ballast, and ballast-2."""
    names = ("ballast", "ballast-2")
    items = [{"metadata": {"name": n}, "status": {"reason": reason}} for n, reason in zip(names, reasons, strict=False)]
    return Answer(body={"metadata": {}, "items": items})


FORBIDDEN = Answer(403, {"message": "no"})


@pytest.mark.parametrize(
    ("mode", "answer", "told"),
    [
        (PlacementMode.ENFORCE, switches("Uninstalled"), True),
        (PlacementMode.ENFORCE, switches("Uninstalled", "Stopped"), True),
        (PlacementMode.ENFORCE, switches("Leading"), False),
        pytest.param(
            PlacementMode.ENFORCE, switches("Uninstalled", "Leading"), False, id="another release acts since then"
        ),
        (PlacementMode.RECOMMEND, switches("Uninstalled"), False),
        (PlacementMode.ENFORCE, FORBIDDEN, False),
    ],
)
def test_a_switch_that_was_turned_off_under_a_policy_that_enforces_is_a_problem(
    tmp_path: Path, mode: PlacementMode, answer: Answer, *, told: bool
) -> None:
    with scripted(answer) as script:
        problems = _switched_off(_switches(script.client(tmp_path)), [enforcing(mode)])
    assert [
        problem.startswith("GateSwitch ballast: `ballast release --all` turned it off") for problem in problems
    ] == ([True] if told else [])


def without_metrics(reason: str) -> Situation:
    found = a_situation()
    return replace(
        found, snapshot=replace(found.snapshot, metrics=MetricsHealth(available=False, reason=ConditionReason(reason)))
    )


def test_a_problem_is_told() -> None:
    assert plain(*problem_lines(Seen((a_situation(),), ("team/clicks: no such namespace",)))).split("\n") == [
        "Problem team/clicks: no such namespace"
    ]


def test_who_cannot_reach_prometheus_learns_how_to() -> None:
    assert "--prometheus URL" in plain(*problem_lines(Seen((without_metrics("Unreachable"),))))


@pytest.mark.parametrize(
    "seen",
    [
        Seen((a_situation(),)),
        Seen((without_metrics("NoNodeMetrics"),)),
        Seen((without_metrics("Unreachable"),), from_file=True),
    ],
)
def test_nobody_else_is_told_to(seen: Seen) -> None:
    assert problem_lines(seen) == []
