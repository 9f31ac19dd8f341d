"""What marks mean, in a line below a plot, or in several where the plot is narrow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ballast.cli.picture.frame import LETTER, Size

LINE = 16.0
_TEXT_GAP, _BETWEEN = 5.0, 20.0


@dataclass(frozen=True, slots=True)
class Entry:
    style: str
    path: str
    """Around the origin."""
    radius: float
    """How far the path reaches."""
    words: str

    @property
    def width(self) -> float:
        return 2 * self.radius + _TEXT_GAP + len(self.words) * LETTER

    def at(self, x: float, y: float) -> str:
        mark = f'<path class="{self.style}" transform="translate({x + self.radius:.1f} {y:.1f})" d="{self.path}"/>'
        text_x = x + 2 * self.radius + _TEXT_GAP
        return f'{mark}<text class="tick" x="{text_x:.1f}" y="{y + 4.0:.1f}">{self.words}</text>'


@dataclass(frozen=True, slots=True)
class Legend:
    marks: str
    height: float


def legend(entries: Sequence[Entry], *, size: Size, y: float) -> Legend:
    """`y`: of its upper edge."""
    x, line, marks = size.left, 0, []
    for entry in entries:
        if x + entry.width > size.width and x > size.left:
            x, line = size.left, line + 1
        marks.append(entry.at(x, y + LINE * (line + 0.5)))
        x += entry.width + _BETWEEN
    return Legend("".join(marks), LINE * (line + 1) if entries else 0.0)


def circle(radius: float) -> str:
    """A path around the origin."""
    return f"M{-radius:g} 0a{radius:g} {radius:g} 0 1 0 {2 * radius:g} 0a{radius:g} {radius:g} 0 1 0 {-2 * radius:g} 0"
