from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ballast.simulation.recorded.reading import extended
from ballast.simulation.recording import Recording, UnusableRecordingError
from tests.unit.simulation.recordings import executor, recording

HOUR = recording([executor(1, 0, last=59)], steps=60)


def silent(first: int, last: int) -> Recording:
    """Nothing is known of any node in these steps."""
    cpu = HOUR.node_cpu.copy()
    cpu[first:last] = np.nan
    return replace(HOUR, node_cpu=cpu)


def test_a_recording_of_its_whole_window_has_nothing_to_tell() -> None:
    assert extended(HOUR, window_seconds=3600.0) is HOUR


@pytest.mark.parametrize(
    ("given", "window_seconds", "known"),
    [(HOUR, 4500.0, "1 of 1.25 hours"), (silent(10, 20), 3600.0, "0.833 of 1 hours")],
    ids=["it ends early", "it has a gap"],
)
def test_what_is_missing_of_a_window_is_told(given: Recording, window_seconds: float, known: str) -> None:
    (sentence,) = extended(given, window_seconds=window_seconds).unknown
    assert sentence.startswith(f"of streaming 2026-01-05 there are figures of {known}: what adds up over time")


@pytest.mark.parametrize(
    ("given", "window_seconds"), [(HOUR, 86_400.0), (silent(0, 16), 3600.0)], ids=["a stub", "an outage"]
)
def test_a_recording_of_too_little_of_its_window_is_refused(given: Recording, window_seconds: float) -> None:
    with pytest.raises(UnusableRecordingError, match=r"^there are figures of \S+ of \S+ hours, less than 75%$"):
        extended(given, window_seconds=window_seconds)
