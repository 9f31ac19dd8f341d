from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ballast.simulation.engine import EPOCH
from ballast.simulation.recording import UnusableRecordingError
from tests.unit.simulation.recordings import executor, node, recording


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"steps": 0}, "has no steps"),
        ({"nodes": ()}, "has no nodes"),
        ({"nodes": (node("n1", cores=0.0), node("n2"))}, "n1 has no cores"),
        ({"node_cpu": np.zeros((9, 2))}, "not of the size of its steps and nodes"),
        ({"executor_cpu": np.zeros((10, 2))}, "not of the size of its steps and executors"),
        ({"node_cpu": np.full((10, 2), -1.0)}, "negative or infinite"),
        ({"executor_cpu": np.full((10, 1), np.inf)}, "negative or infinite"),
        ({"present": np.zeros((10, 2), dtype=bool)}, "clicks-exec-1 was on a node that was not there"),
    ],
)
def test_a_recording_that_would_give_wrong_figures_is_refused(changes: dict[str, Any], words: str) -> None:
    members = [executor(1, 0, last=changes.get("steps", 10) - 1)] if changes.get("nodes") != () else []
    with pytest.raises(UnusableRecordingError, match=f"recording streaming 2026-01-05: .*{words}"):
        recording(members, **changes)


@pytest.mark.parametrize(
    ("seconds", "name"),
    [
        (0, "streaming 2026-01-05"),
        (6 * 3600, "streaming 2026-01-05T06:00Z"),
        (6 * 3600 + 30, "streaming 2026-01-05T06:00:30Z"),
        (30, "streaming 2026-01-05T00:00:30Z"),
    ],
)
def test_a_recording_is_called_after_its_pool_and_when_it_begins(seconds: float, name: str) -> None:
    assert recording(start=EPOCH + seconds).name == name
