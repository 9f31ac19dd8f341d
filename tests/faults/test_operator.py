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


def test_with_a_clock_that_is_an_hour_behind_sets_are_placed_and_executors_move(
    installed: Installation, tmp_path: Path
) -> None:
    with wrong_clock(installed, tmp_path, "behind", seconds=-HOUR_SECONDS) as scene:
        with scene.watched() as witness, scene.stage.play() as play:
            play.begin()
            assert play.ends() == play.aim()
        assert len(witness.evicted()) == 1


def test_with_a_clock_that_is_an_hour_ahead_each_set_is_released_into_one_zone(
    installed: Installation, tmp_path: Path
) -> None:
    """Every pod seems to have waited for an hour: none waits, and a move does not take one for its replacement."""
    with wrong_clock(installed, tmp_path, "ahead", seconds=HOUR_SECONDS) as scene:
        with scene.watched() as witness, scene.stage.play() as play:
            play.begin(moving=False)
            assert play.ends(moving=False) == play.aim(moving=False)
        assert witness.evicted() == []
