"""Values over time as lines."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from ballast.cli.picture.frame import BOTTOM, Drawing, Frame, Plot, Scale, Size
from ballast.cli.picture.style import SERIES
from ballast.model.arrays import FloatArray

_HEIGHT, _HEAD = 230.0, 10.0


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    name: str
    times: FloatArray
    """Seconds."""
    values: FloatArray
    """NaN: a gap in the line."""

    @property
    def highest(self) -> float:
        return float(np.nanmax(self.values, initial=0.0))


def lines(series: Sequence[Line], *, seconds: float, title: str) -> str:
    """Lines over time in both sizes, with a legend."""
    names = (f'<span><i class="series{i % SERIES}"></i>{escape(each.name)}</span>' for i, each in enumerate(series))
    plot = Plot.drawn("lines", title, lambda size: _lines(series, size, seconds))
    return f'<p class="legend">{"".join(names)}</p>{plot.markup}'


def _lines(series: Sequence[Line], size: Size, seconds: float) -> Drawing:
    frame = Frame(size, seconds, _HEIGHT)
    highest = max((each.highest for each in series), default=0.0)
    scale = Scale.up_to(highest, start=_HEIGHT - BOTTOM, end=_HEAD)
    marks = [*frame.time_axis(), *scale.axis(size)]
    for index, each in enumerate(series):
        marks += polylines(each, frame, scale, style=f"line series{index % SERIES}")
    return frame.drawing(marks)


def polylines(line: Line, frame: Frame, scale: Scale, *, style: str = "") -> Iterable[str]:
    attribute = f' class="{style}"' if style else ""
    for run in _unbroken(line, int(frame.size.width)):
        points = " ".join(f"{frame.x(at):.1f},{scale.at(value):.1f}" for at, value in run)
        yield f'<polyline{attribute} points="{points}"/>'


def _unbroken(line: Line, most: int) -> Iterable[list[tuple[float, float]]]:
    """Its stretches without gaps, as points no closer than a pixel; where it stays level, ends are enough."""
    every = max(1, len(line.times) // most)
    times, values = line.times[::every].tolist(), line.values[::every].tolist()
    run: list[tuple[float, float]] = []
    for index, (at, value) in enumerate(zip(times, values, strict=True)):
        if not math.isfinite(value):
            if run:
                yield run
            run = []
        elif not (0 < index < len(values) - 1 and values[index - 1] == value == values[index + 1]):
            run.append((at, value))
    if run:
        yield run
