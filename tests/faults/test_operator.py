"""The operator's own machine is at fault."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cluster.chart.installation import Installation
from tests.faults import shifted_clock
from tests.faults.behind import Scene, behind_a_gateway

pytestmark = pytest.mark.cluster

HOUR_SECONDS = 3600


@contextmanager
def wrong_clock(installed: Installation, folder: Path, name: str, *, seconds: int) -> Iterator[Scene]:
    program = [sys.executable, str(shifted_clock.__file__), str(seconds)]
    with behind_a_gateway(installed, folder, name, program=program) as scene:
        yield scene


@pytest.mark.parametrize(
    ("name", "seconds"), [("behind", -HOUR_SECONDS), ("ahead", HOUR_SECONDS)], ids=["behind", "ahead"]
)
def test_with_a_clock_that_is_wrong_by_an_hour_sets_are_placed_and_executors_move(
    installed: Installation, tmp_path: Path, name: str, seconds: int
) -> None:
    with wrong_clock(installed, tmp_path, name, seconds=seconds) as scene:
        with scene.watched() as witness, scene.stage.play() as play:
            play.begin()
            assert play.ends() == play.aim()
        assert len(witness.evicted()) == 1
        behind_seconds = scene.operator.metric("ballast_clock_behind_seconds")
        assert behind_seconds == pytest.approx(-seconds, abs=3.0)
