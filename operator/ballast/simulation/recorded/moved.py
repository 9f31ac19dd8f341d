"""Which executors of a recording are there because the operator moved them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ballast.model.arrays import IntArray
from ballast.simulation.recorded.slots import slots
from ballast.simulation.recording import Recording

MOVE_SECONDS = 360.0
"""From the decision until the replacement is on its way: leaving and arriving, as a policy limits them by default."""


def with_moved(recording: Recording, decided: IntArray) -> Recording:
    """`decided`: by step, the moves that the operator decided on since the step before.

    Which executors they were about is not recorded: they are the first ones of which a replacement began on another
    node that was there all along, soon after. Others that come elsewhere were lost or restarted.
    """
    if not decided.any():
        return recording
    members = list(recording.executors)
    longest = max(1, int(np.ceil(MOVE_SECONDS / recording.step_seconds)))
    successor = slots(recording).successor
    waiting = sorted(
        (members[after].first, before, int(after)) for before, after in enumerate(successor.tolist()) if after >= 0
    )
    missing = 0
    for step in np.flatnonzero(decided).tolist():
        soon = [
            (first, before, after)
            for first, before, after in waiting
            if step - 1 <= first <= step + longest
            and members[before].node != members[after].node
            and recording.present[first, members[before].node]
        ]
        for found in soon[: int(decided[step])]:
            members[found[2]] = replace(members[found[2]], moved=True)
            waiting.remove(found)
        missing += max(0, int(decided[step]) - len(soon))
    told = (f"{missing} of {int(decided.sum())} moves that the operator decided on left no trace",) if missing else ()
    return replace(recording, executors=tuple(members), unknown=(*recording.unknown, *told))
