"""The report's pictures, as SVG whose colours come from the page's style sheet."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby

from examples.demo.pool import Spread
from tests.testbed.nodes import NodeSpec

Point = tuple[float, float]
Mark = tuple[float, str]

_WIDTH, _HEIGHT = 760.0, 296.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 44.0, 120.0, 50.0, 30.0
_TICK_SECONDS = 30.0
_MARK_LINES = 2


@dataclass(frozen=True, slots=True)
class Frame:
    """The area that a plot draws in: seconds from `start` to `end`, values from 0 to `top`."""

    start: float
    end: float
    top: float

    def x(self, at: float) -> float:
        return _LEFT + (at - self.start) / (self.end - self.start) * (_WIDTH - _LEFT - _RIGHT)

    def y(self, value: float) -> float:
        return _HEIGHT - _BOTTOM - min(value, self.top) / self.top * (_HEIGHT - _TOP - _BOTTOM)

    def axes(self, *, steps: int, unit: str) -> Iterable[str]:
        right = _WIDTH - _RIGHT
        for index in range(steps + 1):
            value = self.top * index / steps
            yield f'<line class="grid" x1="{_LEFT}" x2="{right}" y1="{self.y(value):.1f}" y2="{self.y(value):.1f}"/>'
            yield f'<text class="tick" x="{_LEFT - 6}" y="{self.y(value) + 4:.1f}" text-anchor="end">{value:g}</text>'
        yield f'<text class="tick" x="{_LEFT}" y="12">{escape(unit)}</text>'
        for index in range(int((self.end - self.start) // _TICK_SECONDS) + 1):
            at = self.start + index * _TICK_SECONDS
            label = f"{index * _TICK_SECONDS:.0f} s"
            yield f'<text class="tick" x="{self.x(at):.1f}" y="{_HEIGHT - 10}" text-anchor="middle">{label}</text>'

    def marks(self, marks: Sequence[Mark]) -> Iterable[str]:
        shown = [(at, text) for at, text in marks if self.start < at < self.end]
        for index, (at, text) in enumerate(shown):
            x, y = self.x(at), 30 + 11 * (index % _MARK_LINES)
            yield f'<line class="mark" x1="{x:.1f}" x2="{x:.1f}" y1="{y + 3}" y2="{_HEIGHT - _BOTTOM}"/>'
            yield f'<text class="mark" x="{x + 3:.1f}" y="{y}">{escape(text)}</text>'


def scores(
    history: Mapping[str, Sequence[Point]], marks: Sequence[Mark], *, hot: str, cold: str, threshold: float
) -> str:
    """Node scores over time; the two nodes of the move stand out."""
    points = [point for series in history.values() for point in series]
    frame = Frame(min(at for at, _ in points), max(at for at, _ in points), 120.0)
    limit = frame.y(threshold)
    drawn = [
        *frame.axes(steps=6, unit="score, percent of the node's own CPU"),
        f'<line class="limit" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{limit:.1f}" y2="{limit:.1f}"/>',
        *frame.marks(marks),
    ]
    for name in sorted(history, key=lambda name: name in (hot, cold)):
        if history[name]:
            drawn += _line(frame, history[name], name=name, style={hot: "hot", cold: "cold"}.get(name, "other"))
    return _svg(drawn, f"Scores of the nodes over time; {hot} was hot, {cold} the destination")


def _line(frame: Frame, series: Sequence[Point], *, name: str, style: str) -> Iterable[str]:
    path = " ".join(f"{frame.x(at):.1f},{frame.y(value):.1f}" for at, value in series if math.isfinite(value))
    yield f'<polyline class="series {style}" points="{path}"><title>{escape(name)}</title></polyline>'
    if style != "other":
        at, value = series[-1]
        yield f'<text class="{style}" x="{frame.x(at) + 6:.1f}" y="{frame.y(value) + 4:.1f}">{escape(name)}</text>'


def durations(batches: Sequence[Point], marks: Sequence[Mark], *, start: float, end: float) -> str:
    """How long each batch took, by when it began."""
    shown = [(at, seconds) for at, seconds in batches if start <= at <= end]
    longest = max((seconds for _, seconds in shown), default=1.0)
    frame = Frame(start, end, max(1.0, math.ceil(longest)))
    steps = max(1, min(6, int(frame.top)))
    drawn = [*frame.axes(steps=steps, unit="batch duration, seconds"), *frame.marks(marks)]
    for at, seconds in shown:
        x, y = frame.x(at), frame.y(seconds)
        drawn.append(
            f'<line class="stem" x1="{x:.1f}" x2="{x:.1f}" y1="{frame.y(0):.1f}" y2="{y:.1f}"/>'
            f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="3"><title>{seconds:.2f} s</title></circle>'
        )
    return _svg(drawn, "Duration of each batch over time")


_NODE_WIDTH, _NODE_HEIGHT, _GAP = 78.0, 58.0, 8.0


def placement(specs: Sequence[NodeSpec], spread: Spread, *, noisy: str = "") -> str:
    """Zones, their racks, their nodes, and a dot for every executor."""
    drawn: list[str] = []
    x = _GAP
    for zone, in_zone in groupby(specs, key=lambda spec: spec.zone):
        start, x = x, x + _GAP
        for rack, in_rack in groupby(list(in_zone), key=lambda spec: spec.rack):
            members = list(in_rack)
            width = len(members) * (_NODE_WIDTH + _GAP) + _GAP
            drawn.append(_box("rack", rack, x=x, y=34.0, width=width, height=_NODE_HEIGHT + 34.0))
            for index, spec in enumerate(members):
                left = x + _GAP + index * (_NODE_WIDTH + _GAP)
                drawn += _node(spec, left, executors=spread.per_node.get(spec.name, 0), noisy=spec.name == noisy)
            x += width + _GAP
        drawn.insert(0, _box("zone", zone, x=start, y=8.0, width=x - start, height=_NODE_HEIGHT + 68.0))
        x += _GAP
    label = "Executors on zones, racks and nodes"
    return f'<svg viewBox="0 0 {x:.0f} 142" role="img" aria-label="{label}">{"".join(drawn)}</svg>'


def _box(kind: str, name: str, *, x: float, y: float, width: float, height: float) -> str:
    return (
        f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="6"/>'
        f'<text class="tick" x="{x + 7:.1f}" y="{y + 16:.1f}">{escape(name)}</text>'
    )


def _node(spec: NodeSpec, x: float, *, executors: int, noisy: bool) -> Iterable[str]:
    y = 60.0
    style = "node noisy" if noisy else "node"
    yield f'<rect class="{style}" x="{x:.1f}" y="{y}" width="{_NODE_WIDTH}" height="{_NODE_HEIGHT}" rx="4"/>'
    middle = x + _NODE_WIDTH / 2
    yield f'<text class="name" x="{middle:.1f}" y="{y + 15}" text-anchor="middle">{escape(spec.name)}</text>'
    cores = f"{spec.cpu_quota_cores:g} core"
    yield f'<text class="small" x="{middle:.1f}" y="{y + 28}" text-anchor="middle">{cores}</text>'
    first = middle - 8.0 * (executors - 1)
    for index in range(executors):
        yield f'<circle class="executor" cx="{first + 16.0 * index:.1f}" cy="{y + 44}" r="6"/>'


def _svg(drawn: Iterable[str], label: str) -> str:
    return (
        f'<svg viewBox="0 0 {_WIDTH:.0f} {_HEIGHT:.0f}" role="img" aria-label="{escape(label)}">{"".join(drawn)}</svg>'
    )
