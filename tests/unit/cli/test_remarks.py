"""What `status` and `plan` end with."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ballast.cli.output import plain
from ballast.cli.report.remarks import remarks
from ballast.cli.situation import Situation
from ballast.cli.source import Seen
from ballast.model import MetricsHealth
from tests.unit.cli.pools import a_situation


def without_metrics(reason: str) -> Situation:
    found = a_situation()
    return replace(found, snapshot=replace(found.snapshot, metrics=MetricsHealth(available=False, reason=reason)))


def test_a_problem_is_told() -> None:
    assert plain(*remarks(Seen((a_situation(),), ("team/clicks: no such namespace",)))).split("\n") == [
        "Problem team/clicks: no such namespace"
    ]


def test_who_cannot_reach_prometheus_learns_how_to() -> None:
    assert "--prometheus URL" in plain(*remarks(Seen((without_metrics("Unreachable"),))))


@pytest.mark.parametrize(
    "seen",
    [
        Seen((a_situation(),)),
        Seen((without_metrics("NoNodeFigures"),)),
        Seen((without_metrics("Unreachable"),), from_file=True),
    ],
)
def test_nobody_else_is_told_to(seen: Seen) -> None:
    assert remarks(seen) == []
