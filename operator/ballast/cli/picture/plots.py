"""Plots of simulated runs as SVG. Colours come from the page's style sheet, so that they fit light and dark."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from ballast.cli.picture.frame import BOTTOM, NARROW, WIDE, Frame, Size
from ballast.simulation.arrays import FloatArray
from ballast.simulation.trace import Trace

HEAT_STEPS = 10
"""Shades, each of them ten points of usage; all above 90 share the last."""
SERIES = 6
"""Colours of lines; the seventh looks like the first again."""
_LINE_HEIGHT, _HEAD = 230.0, 10.0
_MOST_ROWS, _MOST_COLUMNS = 60, 160
_MOST_ARROWS = 400


@dataclass(frozen=True, slots=True)
class Line:
    name: str
    times: FloatArray
    """Seconds."""
    values: FloatArray
    """NaN: a gap in the line."""


def lines(series: Sequence[Line], *, seconds: float, title: str) -> str:
    """Lines over time in both sizes, with a legend."""
    names = (f'<span><i class="series{i % SERIES}"></i>{escape(each.name)}</span>' for i, each in enumerate(series))
    drawn = "".join(_lines(series, size, seconds, title) for size in (WIDE, NARROW))
    return f'<p class="legend">{"".join(names)}</p>{drawn}'


def _lines(series: Sequence[Line], size: Size, seconds: float, title: str) -> str:
    frame = Frame(size, seconds, _LINE_HEIGHT)
    highest = max((float(np.nanmax(each.values, initial=0.0)) for each in series), default=0.0)
    step = _step(highest)
    top = step * max(1, math.ceil(highest / step))
    area = _LINE_HEIGHT - BOTTOM - _HEAD

    def y(value: float) -> float:
        return _HEAD + area * (1.0 - value / top)

    parts = [
        *frame.time_axis(),
        *_value_axis(frame, y(0.0), [(step * i, y(step * i)) for i in range(round(top / step) + 1)]),
    ]
    for index, each in enumerate(series):
        for run in _unbroken(each, int(size.width)):
            points = " ".join(f"{frame.x(at):.1f},{y(value):.1f}" for at, value in run)
            parts.append(f'<polyline class="line series{index % SERIES}" points="{points}"/>')
    return frame.svg(parts, title=escape(title, quote=True))


def _value_axis(frame: Frame, floor: float, ticks: Iterable[tuple[float, float]]) -> Iterable[str]:
    for value, y in ticks:
        solid = "axis" if y == floor else "grid"
        yield f'<line class="{solid}" x1="{frame.size.left}" x2="{frame.size.width - 8}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield f'<text class="tick" x="{frame.size.left - 6}" y="{y + 4:.1f}" text-anchor="end">{value:g}</text>'


def _step(highest: float) -> float:
    """Between labels of values: five at most."""
    steps = (base * 10.0**power for power in range(-2, 5) for base in (1, 2, 5))
    return next((step for step in steps if highest / step <= 5), highest)


def _unbroken(line: Line, most: int) -> Iterable[list[tuple[float, float]]]:
    """Its stretches without gaps, as points no closer than a pixel."""
    every = max(1, len(line.times) // most)
    run: list[tuple[float, float]] = []
    for at, value in zip(line.times[::every].tolist(), line.values[::every].tolist(), strict=True):
        if math.isfinite(value):
            run.append((at, value))
        elif run:
            yield run
            run = []
    if run:
        yield run


def heat_map(trace: Trace) -> str:
    """Usage of every node over time, the moves as arrows from node to node, in both sizes."""
    shown = _rows(trace)
    return "".join(_heat_map(trace, shown, size) for size in (WIDE, NARROW))


def _rows(trace: Trace) -> list[int]:
    """Columns of the trace to show: all, or of many those that moves concern and the ones that vary most."""
    if len(trace.nodes) <= _MOST_ROWS:
        return list(range(len(trace.nodes)))
    moved = {name for move in trace.moves for name in (move.source, move.target)}
    spread = np.nanmax(trace.usage, axis=0, initial=0.0) - np.nanmin(trace.usage, axis=0, initial=1000.0)
    order = sorted(range(len(trace.nodes)), key=lambda i: (trace.nodes[i] not in moved, -float(spread[i])))
    return sorted(order[:_MOST_ROWS])


def _heat_map(trace: Trace, shown: Sequence[int], size: Size) -> str:
    tall = 22.0 if len(shown) <= 12 else 12.0 if len(shown) <= 30 else 7.0
    frame = Frame(size, trace.duration_seconds, _HEAD + tall * len(shown) + BOTTOM)
    rows = {trace.nodes[column]: _HEAD + tall * row for row, column in enumerate(shown)}
    parts = [
        part for name, column in zip(rows, shown, strict=True) for part in _row(trace, column, rows[name], tall, frame)
    ]
    if tall >= 12.0:
        parts += [_name(name, y + tall / 2.0 + 3.5, size) for name, y in rows.items()]
    parts += [_arrow(frame.x(each.decided_at), rows[each.source], rows[each.target], tall)
              for each in trace.moves[:_MOST_ARROWS] if each.source in rows and each.target in rows]  # fmt: skip
    title = f"Usage of nodes over time under {trace.policy}, moves as arrows"
    return frame.svg([*parts, *frame.time_axis()], title=escape(title, quote=True))


def _row(trace: Trace, column: int, y: float, tall: float, frame: Frame) -> Iterable[str]:
    """One rectangle for as long as the shade stays the same."""
    columns = np.array_split(np.arange(len(trace.times)), min(_MOST_COLUMNS, len(trace.times)))
    shades = [_shade(trace.usage[part, column]) for part in columns]
    starts = [float(trace.times[part[0]]) for part in columns]
    ends = [*starts[1:], trace.duration_seconds]
    first = 0
    for index in range(1, len(shades) + 1):
        if index == len(shades) or shades[index] != shades[first]:
            if shades[first] is not None:
                left, right = frame.x(starts[first]), frame.x(ends[index - 1])
                yield (
                    f'<rect class="h{shades[first]}" x="{left:.1f}" y="{y + 0.5:.1f}" width="{right - left:.1f}" '
                    f'height="{tall - 1:.1f}"/>'
                )
            first = index


def _shade(values: FloatArray) -> int | None:
    known = values[np.isfinite(values)]
    return min(HEAT_STEPS - 1, int(known.mean() // 10.0)) if len(known) else None


def _name(name: str, y: float, size: Size) -> str:
    room = int(size.left / 6.5)
    short = name if len(name) <= room else f"…{name[1 - room :]}"
    return f'<text class="name" x="{size.left - 6}" y="{y:.1f}" text-anchor="end">{escape(short)}</text>'


def _arrow(x: float, source: float, target: float, tall: float) -> str:
    begin, end = source + tall / 2.0, target + tall / 2.0
    tip = 4.0 if end > begin else -4.0
    return (
        f'<path class="move" d="M{x:.1f} {begin:.1f}V{end:.1f}m-3 {-tip:.1f}l3 {tip:.1f}l3 {-tip:.1f}"/>'
        f'<circle class="start" cx="{x:.1f}" cy="{begin:.1f}" r="2"/>'
    )
