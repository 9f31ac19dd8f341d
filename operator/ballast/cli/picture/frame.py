"""What every plot is made of: its two sizes, the axis of time, a scale of values and a legend."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape

_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440, 2880, 10080)
"""Minutes between labels of the time."""
BOTTOM = 24.0
RIGHT = 14.0
LETTER, STRONG_LETTER = 6.3, 7.6
"""Width of one in the mean, in pixels; with the latter, bold words and short ones of wide letters have room, too."""


@dataclass(frozen=True, slots=True)
class Size:
    """Of a plot, in pixels. A narrow screen gets its own drawing, so that its text stays readable."""

    name: str
    width: float
    left: float
    labels: int
    """Along the time, at most."""


WIDE, NARROW = Size("wide", 760.0, 96.0, 12), Size("narrow", 380.0, 64.0, 5)


@dataclass(frozen=True, slots=True)
class Drawing:
    size: Size
    height: float
    marks: str
    """SVG elements."""


@dataclass(frozen=True, slots=True)
class Plot:
    name: str
    """Of the file that it is kept in, without the ending."""
    title: str
    drawings: tuple[Drawing, Drawing]
    """Wide and narrow."""

    @classmethod
    def drawn(cls, name: str, title: str, draw: Callable[[Size], Drawing]) -> Plot:
        return cls(name, title, (draw(WIDE), draw(NARROW)))

    @property
    def markup(self) -> str:
        """Both, of which the page's style sheet shows the one that fits."""
        return "".join(
            f'<svg class="{each.size.name}" viewBox="0 0 {each.size.width:g} {each.height:g}" role="img" '
            f'aria-label="{escape(self.title, quote=True)}">{each.marks}</svg>'
            for each in self.drawings
        )


@dataclass(frozen=True, slots=True)
class Frame:
    """The area that a plot draws in, with time from left to right."""

    size: Size
    seconds: float
    """What the whole width stands for."""
    height: float
    head: float = 4.0
    """Where lines begin; above it there are words."""

    def x(self, at: float) -> float:
        return self.size.left + at / max(self.seconds, 1.0) * (self.size.width - self.size.left - RIGHT)

    def time_axis(self) -> Iterable[str]:
        """Labels below, and a faint line above each."""
        minutes = self.seconds / 60.0
        step = next((step for step in _STEPS if minutes / step <= self.size.labels), _STEPS[-1])
        for index in range(math.floor(minutes / step) + 1):
            at, x = index * step, self.x(index * step * 60.0)
            yield f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{self.head:g}" y2="{self.height - BOTTOM:.1f}"/>'
            y = self.height - 8
            yield f'<text class="tick" x="{x:.1f}" y="{y:.1f}" text-anchor="middle">{_time(at)}</text>'

    def drawing(self, marks: Iterable[str]) -> Drawing:
        return Drawing(self.size, self.height, "".join(marks))


@dataclass(frozen=True, slots=True)
class Scale:
    """Values from 0 up to a round figure, from one pixel to another."""

    step: float
    """Between labels."""
    count: int
    """Of steps."""
    start: float
    end: float

    @classmethod
    def up_to(cls, highest: float, *, start: float, end: float, most: int = 5) -> Scale:
        """With no more than `most` steps, where that is possible."""
        steps = (base * 10.0**power for power in range(-2, 7) for base in (1, 2, 5))
        step = next((step for step in steps if highest / step <= most), highest)
        return cls(step, max(1, math.ceil(highest / step)), start, end)

    def at(self, value: float) -> float:
        return self.start + value / (self.step * self.count) * (self.end - self.start)

    def ticks(self) -> Iterable[tuple[float, float]]:
        """Values and where they are."""
        return ((self.step * i, self.at(self.step * i)) for i in range(self.count + 1))

    def axis(self, size: Size) -> Iterable[str]:
        """From bottom to top, with labels at the left."""
        for value, y in self.ticks():
            solid = "grid" if value else "axis"
            yield f'<line class="{solid}" x1="{size.left}" x2="{size.width - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
            yield f'<text class="tick" x="{size.left - 6}" y="{y + 4:.1f}" text-anchor="end">{value:g}</text>'


def fitting(text: str, width: float, *, letter: float = LETTER) -> str:
    """As much of its end as has room: names of nodes and settings of policies differ there."""
    room = max(2, int(width / letter))
    return text if len(text) <= room else f"…{text[1 - room :]}"


def _time(minutes: int) -> str:
    if minutes == 0:
        return "0"
    if minutes % 1440 == 0:
        return f"{minutes // 1440}d"
    hours, rest = divmod(minutes, 60)
    return f"{hours or ''}{'h' if hours else ''}{rest or ''}{'' if hours else 'm'}"


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
