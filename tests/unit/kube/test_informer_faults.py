"""An informer knows everything again after each fault of its watch, also on a busy machine."""

from __future__ import annotations

import os
import random
from pathlib import Path

from tests.unit.kube.trials import TIMING, burners, recoveries

SLACK_SECONDS = 10.0
"""A busy machine may be slow to run the informer's thread, and the server's."""


def test_after_each_fault_the_watch_is_opened_again_and_the_store_is_complete(tmp_path: Path) -> None:
    """`make bench BENCH=watching` does this twenty times, and measures."""
    with burners(os.cpu_count() or 1):
        found = recoveries(tmp_path, random.Random(1))
    for each in found:
        assert each.asked_after_seconds <= TIMING.silent_seconds + SLACK_SECONDS, each
