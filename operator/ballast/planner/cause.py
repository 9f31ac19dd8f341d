"""What, beside the scores, says that the node is what slows an executor: its tasks' time, and pressure on the node.

Pressure (PSI) is the share of time in which something waited for CPU. It confirms that the node is the cause; the lack
of it forbids nothing, for a score may come from memory or the network, and a busy node need not keep anybody waiting
yet.
"""

from __future__ import annotations

CONFIRMING_RATIO = 0.1
"""Waiting a tenth of the time is no accident."""


def cause(*, slowness: float | None, pressure_ratio: float | None) -> str:
    """In words, with the figures. `slowness`: seconds per task ÷ the application's median."""
    told = []
    if slowness is not None:
        told.append(f"its tasks take {slowness:.2f} times the median")
    if pressure_ratio is not None:
        told.append(pressure_words(pressure_ratio))
    return ", ".join(told) or "by the scores alone: there are no task figures and no pressure figures"


def pressure_words(pressure_ratio: float) -> str:
    waits = f"something waits for CPU on its node {pressure_ratio:.0%} of the time"
    return (
        f"{waits}, which {'confirms' if pressure_ratio >= CONFIRMING_RATIO else 'does not confirm'} the node as cause"
    )
