"""The area that a plot draws in: time from left to right, in two sizes."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440, 2880, 10080)
"""Minutes between labels of the time."""
BOTTOM = 24.0


@dataclass(frozen=True, slots=True)
class Size:
    """Of a plot, in pixels. A narrow screen gets a drawing of its own, so that its text stays readable."""

    name: str
    width: float
    left: float
    labels: int
    """Along the time, at most."""


WIDE, NARROW = Size("wide", 760.0, 96.0, 12), Size("narrow", 380.0, 64.0, 5)


@dataclass(frozen=True, slots=True)
class Frame:
    size: Size
    seconds: float
    """What the whole width stands for."""
    height: float

    def x(self, at: float) -> float:
        return self.size.left + at / max(self.seconds, 1.0) * (self.size.width - self.size.left - 8.0)

    def time_axis(self) -> Iterable[str]:
        """Labels below, and a faint line above each."""
        minutes = self.seconds / 60.0
        step = next((step for step in _STEPS if minutes / step <= self.size.labels), _STEPS[-1])
        for index in range(math.floor(minutes / step) + 1):
            at, x = index * step, self.x(index * step * 60.0)
            yield f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="4" y2="{self.height - BOTTOM:.1f}"/>'
            y = self.height - 8
            yield f'<text class="tick" x="{x:.1f}" y="{y:.1f}" text-anchor="middle">{_time(at)}</text>'

    def svg(self, parts: Iterable[str], *, title: str) -> str:
        return (
            f'<svg class="{self.size.name}" viewBox="0 0 {self.size.width:g} {self.height:g}" role="img" '
            f'aria-label="{title}">{"".join(parts)}</svg>'
        )


def _time(minutes: int) -> str:
    if minutes == 0:
        return "0"
    if minutes % 1440 == 0:
        return f"{minutes // 1440}d"
    hours, rest = divmod(minutes, 60)
    return f"{hours or ''}{'h' if hours else ''}{rest or ''}{'' if hours else 'm'}"
