"""Values over time as lines: one plot for all, or one small panel for each policy, all with the same axes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from ballast.cli.picture.frame import BOTTOM, RIGHT, STRONG_LETTER, Drawing, Frame, Plot, Scale, Size, fitting
from ballast.cli.picture.page import SERIES
from ballast.model.arrays import FloatArray
from ballast.simulation.study import INSTANTS, Series

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


_PANEL_HEIGHT, _TITLE, _GAP, _LEFT = 118.0, 18.0, 10.0, 30.0


@dataclass(frozen=True, slots=True, eq=False)
class Course:
    """Of one policy over a window: the mean over seeds, and how far they are apart."""

    name: str
    mean: Line
    low: FloatArray
    high: FloatArray

    @classmethod
    def of(cls, name: str, runs: Sequence[Series]) -> Course:
        """Of imbalance; `runs`: at least one."""
        times = np.linspace(0.0, min(run.duration_seconds for run in runs), INSTANTS)
        rows = np.vstack([_held(run, times) for run in runs])
        known = np.isfinite(rows)
        counts = known.sum(axis=0)
        sums = np.where(known, rows, 0.0).sum(axis=0)
        mean = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
        low = np.where(counts > 0, np.where(known, rows, np.inf).min(axis=0), np.nan)
        high = np.where(counts > 0, np.where(known, rows, -np.inf).max(axis=0), np.nan)
        return cls(name, Line(name, times, mean), low, high)


def _held(run: Series, times: FloatArray) -> FloatArray:
    """The imbalance at other times: that of the last pass before."""
    rows = np.searchsorted(run.times, times, side="right") - 1
    held: FloatArray = np.where(rows >= 0, run.imbalance[np.maximum(rows, 0)], np.nan)
    return held


def small_multiples(courses: Sequence[Course], *, seconds: float, name: str, title: str) -> Plot:
    """`courses`: at least one."""
    return Plot.drawn(name, title, lambda size: _panels(courses, size, seconds, every=f"{name}-{size.name}"))


def _panels(courses: Sequence[Course], size: Size, seconds: float, *, every: str) -> Drawing:
    """`every`: id of the lines of all policies, which each panel shows in gray below its own."""
    across = min(len(courses), 3 if size.width > 500.0 else 2)
    panel = Size(size.name, (size.width - _GAP * (across - 1)) / across, _LEFT, 4 if size.width > 500.0 else 2)
    frame = Frame(panel, seconds, _PANEL_HEIGHT, head=_TITLE)
    highest = max(float(np.nanmax(course.high, initial=0.0)) for course in courses)
    scale = Scale.up_to(highest, start=_PANEL_HEIGHT - BOTTOM, end=_TITLE + 6.0, most=3)
    lines = (mark for course in courses for mark in polylines(course.mean, frame, scale))
    marks = [f'<defs><g id="{every}">{"".join(lines)}</g></defs>']
    for index, course in enumerate(courses):
        x, y = (index % across) * (panel.width + _GAP), (index // across) * (_PANEL_HEIGHT + _GAP)
        inside = "".join(_panel(course, frame, scale, every=every))
        marks.append(f'<g transform="translate({x:.1f} {y:.1f})">{inside}</g>')
    rows = -(-len(courses) // across)
    return Drawing(size, rows * (_PANEL_HEIGHT + _GAP) - _GAP, "".join(marks))


def _panel(course: Course, frame: Frame, scale: Scale, *, every: str) -> Iterator[str]:
    short = escape(fitting(course.name, frame.size.width - RIGHT, letter=STRONG_LETTER))
    yield f'<text class="strong" x="0" y="{_TITLE - 6.0}">{short}<title>{escape(course.name)}</title></text>'
    yield from frame.time_axis()
    yield from scale.axis(frame.size)
    yield f'<use class="other" href="#{every}"/>'
    yield from _band(course, frame, scale)
    yield from polylines(course.mean, frame, scale, style="own")


def _band(course: Course, frame: Frame, scale: Scale) -> Iterator[str]:
    """Around the mean: all seeds."""
    known = np.isfinite(course.low)
    if not (course.high[known] > course.low[known]).any():
        return
    times = course.mean.times[known]
    up = [(time, high) for time, high in zip(times.tolist(), course.high[known].tolist(), strict=True)]
    down = [(time, low) for time, low in zip(times.tolist(), course.low[known].tolist(), strict=True)]
    points = " ".join(f"{frame.x(at):.1f},{scale.at(value):.1f}" for at, value in [*up, *reversed(down)])
    yield f'<polygon class="band" points="{points}"/>'
