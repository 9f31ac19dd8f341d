"""The report's pictures, as SVG whose colors come from the page's style sheet."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby

from ballast.cli.picture.frame import Scale
from examples.demo.pool import Spread
from tests.testbed.nodes import NodeSpec

Point = tuple[float, float]
Mark = tuple[float, str]

_HEIGHT, _LEFT, _BOTTOM = 296.0, 44.0, 30.0
_HEAD, _LINE, _LETTER = 28.0, 11.0, 5.2
"""Above the labels of the marks, from one row of them to the next, and the width of a letter in them."""
_MOST_STEPS = 6


@dataclass(frozen=True, slots=True)
class Size:
    """Of a plot. A narrow screen gets its own drawing, so that its text stays readable."""

    width: float
    right: float
    """Room next to the plot, for the names of lines; too little of it, and they stand above their lines."""
    ticks: int
    """Along the time, at most."""


WIDE, NARROW = Size(760.0, 120.0, ticks=12), Size(380.0, 12.0, ticks=5)


@dataclass(frozen=True, slots=True)
class Label:
    """Of the mark at `x`: from `left` to `right`, in a row counted from the top."""

    x: float
    left: float
    right: float
    row: int
    text: str


@dataclass(frozen=True, slots=True)
class Frame:
    """The area that a plot draws in: seconds from `start` to `end`, values from 0 to `top` or somewhat more."""

    start: float
    end: float
    top: float
    marks: Sequence[Mark]
    size: Size

    @property
    def scale(self) -> Scale:
        return Scale.up_to(self.top, start=_HEIGHT - _BOTTOM, end=self._above, most=_MOST_STEPS)

    @property
    def labels(self) -> list[Label]:
        """Of the marks within the time shown; none covers another."""
        found: list[Label] = []
        for at, text in sorted((at, text) for at, text in self.marks if self.start < at < self.end):
            x, wide = self.x(at), len(text) * _LETTER
            left = x + 3 if x + 3 + wide < self.size.width else x - 3 - wide
            taken = {each.row for each in found if each.left < left + wide and left < each.right}
            row = next(row for row in range(len(found) + 1) if row not in taken)
            found.append(Label(x, left, left + wide, row, text))
        return found

    @property
    def _above(self) -> float:
        return _HEAD + _LINE * (1 + max((label.row for label in self.labels), default=0))

    def x(self, at: float) -> float:
        return _LEFT + (at - self.start) / (self.end - self.start) * (self.size.width - _LEFT - self.size.right)

    def y(self, value: float) -> float:
        return max(self.scale.at(value), self._above)

    def axes(self, unit: str) -> Iterable[str]:
        right = self.size.width - self.size.right
        for value, y in self.scale.ticks():
            yield f'<line class="grid" x1="{_LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>'
            yield f'<text class="tick" x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value:g}</text>'
        yield f'<text class="tick" x="{_LEFT}" y="12">{escape(unit)}</text>'
        every = _step(self.end - self.start, most=self.size.ticks, steps=(15, 30, 60, 120, 300, 600))
        for index in range(int((self.end - self.start) // every) + 1):
            x = self.x(self.start + index * every)
            label = f"{index * every:.0f} s"
            yield f'<text class="tick" x="{x:.1f}" y="{_HEIGHT - 10}" text-anchor="middle">{label}</text>'

    def flags(self) -> Iterable[str]:
        """A line for each mark, and on top of all lines the labels."""
        rows = [(label, _HEAD + _LINE * label.row) for label in self.labels]
        for label, y in rows:
            x = f"{label.x:.1f}"
            yield f'<line class="mark" x1="{x}" x2="{x}" y1="{y + 3}" y2="{_HEIGHT - _BOTTOM}"/>'
        for label, y in rows:
            yield f'<text class="mark" x="{label.left:.1f}" y="{y}">{escape(label.text)}</text>'

    def svg(self, drawn: Iterable[str], label: str) -> str:
        box = f"0 0 {self.size.width:.0f} {_HEIGHT:.0f}"
        return f'<svg viewBox="{box}" role="img" aria-label="{escape(label)}">{"".join(drawn)}</svg>'


def _step(span: float, *, most: int, steps: Sequence[float]) -> float:
    """The smallest round step that divides the span into no more than so many parts."""
    return next((step for step in steps if span / step <= most), steps[-1])


def scores(
    history: Mapping[str, Sequence[Point]],
    marks: Sequence[Mark],
    *,
    hot: str,
    cold: str,
    threshold: float,
    size: Size = WIDE,
) -> str:
    """Node scores over time; the two nodes of the move stand out."""
    points = [point for series in history.values() for point in series]
    frame = Frame(min(at for at, _ in points), max(at for at, _ in points), 120.0, marks, size)
    limit = frame.y(threshold)
    drawn = [
        *frame.axes("score, percent of the node's own CPU"),
        f'<line class="limit" x1="{_LEFT}" x2="{size.width - size.right}" y1="{limit:.1f}" y2="{limit:.1f}"/>',
        *frame.flags(),
    ]
    for name in sorted(history, key=lambda name: name in (hot, cold)):
        if history[name]:
            drawn += _line(frame, history[name], name=name, style={hot: "hot", cold: "cold"}.get(name, "other"))
    return frame.svg(drawn, f"Scores of the nodes over time; {hot} was hot, {cold} the destination")


def _line(frame: Frame, series: Sequence[Point], *, name: str, style: str) -> Iterable[str]:
    path = " ".join(f"{frame.x(at):.1f},{frame.y(value):.1f}" for at, value in series if math.isfinite(value))
    yield f'<polyline class="series {style}" points="{path}"><title>{escape(name)}</title></polyline>'
    if style != "other":
        x, y = frame.x(series[-1][0]), frame.y(series[-1][1])
        beside = frame.size.right > len(name) * _LETTER
        where = f'x="{x + 6:.1f}" y="{y + 4:.1f}"' if beside else f'x="{x:.1f}" y="{y - 7:.1f}" text-anchor="end"'
        yield f'<text class="{style}" {where}>{escape(name)}</text>'


def durations(batches: Sequence[Point], marks: Sequence[Mark], *, start: float, end: float, size: Size = WIDE) -> str:
    """How long each batch took, by when it began."""
    shown = [(at, seconds) for at, seconds in batches if start <= at <= end]
    frame = Frame(start, end, max([1.0, *(seconds for _, seconds in shown)]), marks, size)
    drawn = [*frame.axes("batch duration, seconds"), *frame.flags()]
    for at, seconds in shown:
        x, y = frame.x(at), frame.y(seconds)
        drawn.append(
            f'<line class="stem" x1="{x:.1f}" x2="{x:.1f}" y1="{frame.y(0):.1f}" y2="{y:.1f}"/>'
            f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="3"><title>{seconds:.2f} s</title></circle>'
        )
    return frame.svg(drawn, "Duration of each batch over time")


_NODE_WIDTH, _NODE_HEIGHT, _GAP = 78.0, 58.0, 8.0


def placement(specs: Sequence[NodeSpec], spread: Spread, *, noisy: str = "") -> str:
    """Zones, side by side where there is room, with their racks, their nodes, and a dot for every executor."""
    zones = groupby(specs, key=lambda spec: spec.zone)
    return "".join(_zone(name, list(members), spread, noisy=noisy) for name, members in zones)


def _zone(zone: str, specs: Sequence[NodeSpec], spread: Spread, *, noisy: str) -> str:
    drawn: list[str] = []
    x = _GAP
    for rack, in_rack in groupby(specs, key=lambda spec: spec.rack):
        members = list(in_rack)
        width = len(members) * (_NODE_WIDTH + _GAP) + _GAP
        drawn.append(_box("rack", rack, x=x, y=27.0, width=width, height=_NODE_HEIGHT + 34.0))
        for index, spec in enumerate(members):
            left = x + _GAP + index * (_NODE_WIDTH + _GAP)
            drawn += _node(spec, left, executors=spread.per_node.get(spec.name, 0), noisy=spec.name == noisy)
        x += width + _GAP
    drawn.insert(0, _box("zone", zone, x=1.0, y=1.0, width=x - 2.0, height=_NODE_HEIGHT + 68.0))
    label = f"Executors on the nodes of {zone}"
    return f'<svg viewBox="0 0 {x:.0f} 128" role="img" aria-label="{escape(label)}">{"".join(drawn)}</svg>'


def _box(kind: str, name: str, *, x: float, y: float, width: float, height: float) -> str:
    return (
        f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="6"/>'
        f'<text class="tick" x="{x + 7:.1f}" y="{y + 16:.1f}">{escape(name)}</text>'
    )


def _node(spec: NodeSpec, x: float, *, executors: int, noisy: bool) -> Iterable[str]:
    y = 53.0
    style = "node noisy" if noisy else "node"
    yield f'<rect class="{style}" x="{x:.1f}" y="{y}" width="{_NODE_WIDTH}" height="{_NODE_HEIGHT}" rx="4"/>'
    middle = x + _NODE_WIDTH / 2
    yield f'<text class="name" x="{middle:.1f}" y="{y + 15}" text-anchor="middle">{escape(spec.name)}</text>'
    cores = f"{spec.cpu_quota_cores:g} core"
    yield f'<text class="small" x="{middle:.1f}" y="{y + 28}" text-anchor="middle">{cores}</text>'
    first = middle - 8.0 * (executors - 1)
    for index in range(executors):
        yield f'<circle class="executor" cx="{first + 16.0 * index:.1f}" cy="{y + 44}" r="6"/>'
