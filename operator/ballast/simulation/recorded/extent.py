"""How much of a window a recording tells of: too little is no window, and what is missing is said."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ballast.simulation.recording import Recording, UnusableRecordingError

LEAST_SHARE = 0.75
"""Of a window. What adds up over time could not be set beside whole windows else."""
_WHOLE_SHARE = 0.99
"""From here on a window counts as whole: collecting begins and ends within a few steps of it."""


def extended(recording: Recording, *, window_seconds: float) -> Recording:
    """The recording, which says what of its window is missing. Raises UnusableRecordingError where that is too much."""
    known = int(np.isfinite(recording.node_cpu).any(axis=1).sum()) * recording.step_seconds
    share = known / window_seconds
    if share >= _WHOLE_SHARE:
        return recording
    told = f"figures of {known / 3600:.3g} of {window_seconds / 3600:.3g} hours"
    if share < LEAST_SHARE:
        raise UnusableRecordingError(f"there are {told}, less than {LEAST_SHARE:.0%}")
    sentence = (
        f"of {recording.name} there are {told}: what adds up over time, such as imbalance and moves, is that of these"
    )
    return replace(recording, unknown=(*recording.unknown, sentence))
