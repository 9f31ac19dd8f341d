"""The page about a recommendation: the fitted curve of batches with its regimes and the chosen size, and all values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

import numpy as np

from ballast.cli.picture.frame import Drawing, Entry, Legend, Plot, Scale, Size, circle, legend
from ballast.cli.picture.page import Strong, grid, page
from ballast.cli.report.sized import (
    VARIABLE_COLUMNS,
    limited_by,
    regimes_told,
    variable_rows,
    verdict,
    yes_or_no,
)
from ballast.sizing.batch_regimes import CannotTell, Choice, Regimes
from ballast.sizing.facts import Facts
from ballast.sizing.recommendation import Recommendation

_HEIGHT, _HEAD, _FOOT, _LEFT, _RIGHT = 340.0, 34.0, 42.0, 48.0, 24.0
_POINT, _CHOSEN = 2.6, 6.0


def sized_page(found: Recommendation, facts: Facts, *, made: str) -> str:
    """`made`: when the page was made, and by which version."""
    return page("Ballast: sizing", _body(found, facts, made))


def _body(found: Recommendation, facts: Facts, made: str) -> Iterator[str]:
    yield f"<h1>{escape(found.headline)}</h1>"
    yield f'<p class="soft">Made {escape(made)}. Goal: {escape(found.goal.value)}.</p>'
    yield f"<p><b>Bottleneck</b>: {escape(limited_by(found.bottleneck))}.</p>"
    yield from _curve(found, facts)
    if found.first_rule:
        yield "<h2>First rule</h2>"
        yield '<p class="soft">Is each stage always ready for records, and are they taken promptly?</p>'
        columns = ("stage", "ready upstream", "room downstream", "from", "evidence")
        rows = [
            (each.stage, yes_or_no(each.ready_upstream), yes_or_no(each.room_downstream), each.origin, each.evidence)
            for each in found.first_rule
        ]
        yield grid(columns, rows, text=columns)
    yield "<h2>Configuration</h2>"
    yield f"<pre>{escape(chr(10).join(f'{name} {value}' for name, value in found.spark_conf.items()))}</pre>"
    if found.source_options:
        yield "<p>In the application, as options of its source, and its trigger:</p>"
        yield f"<pre>{escape(chr(10).join(f'{name} {value}' for name, value in found.source_options.items()))}</pre>"
    yield "<h2>Variables</h2>"
    yield '<p class="soft">Each value is measured, declared or assumed: as weak as the weakest of its inputs.</p>'
    yield grid(VARIABLE_COLUMNS, variable_rows(found), text=("from", "interval", "source", "formula"))
    if found.gc:
        yield "<h2>Garbage collection</h2>"
        gc_columns = ("rule", "healthy", "evidence", "remedy")
        checks = [
            (each.rule, Strong("NO") if each.healthy is False else verdict(each.healthy), each.evidence, each.remedy)
            for each in found.gc
        ]
        yield grid(gc_columns, checks, text=gc_columns)
    if found.warnings:
        yield "<h2>Warnings</h2>"
        yield f"<ul>{''.join(f'<li>{escape(warning)}</li>' for warning in found.warnings)}</ul>"


def _curve(found: Recommendation, facts: Facts) -> Iterator[str]:
    regimes = found.table.regimes
    if isinstance(regimes, CannotTell):
        yield f"<h2>Batches</h2><p>They don't tell a batch size: {escape(regimes.reason)}.</p>"
    elif regimes is not None and facts.progress is not None:
        yield "<h2>Duration of a batch by its rows</h2>"
        yield "".join(f'<p class="soft">{escape(each)}</p>' for each in regimes_told(regimes))
        batches = tuple(zip(facts.progress.rows, facts.progress.seconds, strict=True))
        yield regimes_plot(regimes, found.table.choice, batches).markup


def regimes_plot(regimes: Regimes, choice: Choice | None, batches: tuple[tuple[float, float], ...]) -> Plot:
    """Measured batches as points, the fitted curve, the sharp regime shaded, and the chosen size."""
    title = "Duration of a batch by its rows: measured batches, the fitted curve and the chosen size"
    return Plot.drawn("regimes", title, lambda size: _Field.of(regimes, choice, batches, size).drawing())


@dataclass(frozen=True, slots=True)
class _Field:
    regimes: Regimes
    choice: Choice | None
    batches: tuple[tuple[float, float], ...]
    size: Size
    across: Scale
    up: Scale

    @classmethod
    def of(
        cls, regimes: Regimes, choice: Choice | None, batches: tuple[tuple[float, float], ...], size: Size
    ) -> _Field:
        widest = max(rows for rows, _ in batches)
        highest = max(*(seconds for _, seconds in batches), regimes.seconds(widest))
        return cls(
            regimes,
            choice,
            batches,
            Size(size.name, size.width, _LEFT, size.labels),
            across=Scale.up_to(widest, start=_LEFT, end=size.width - _RIGHT, most=8 if size.width > 500.0 else 4),
            up=Scale.up_to(highest, start=_HEIGHT - _FOOT, end=_HEAD),
        )

    def drawing(self) -> Drawing:
        below = self._legend()
        marks = [*self._bands(), *self._axes(), *self._points(), self._line(), *self._chosen(), below.marks]
        return Drawing(self.size, _HEIGHT + below.height + 4.0, "".join(marks))

    def _bands(self) -> Iterator[str]:
        """The names of the regimes above, and the sharp one shaded; its edge is as wide as its interval."""
        right, sharp = self.size.width - _RIGHT, self.regimes.sharp_from
        start, knee = self.across.start, self.regimes.flat_until
        bend = right if sharp is None else self.across.at(sharp.rows)
        if sharp is not None:
            edge = self.across.at(sharp.low)
            for left in (edge, bend):
                yield (
                    f'<polygon class="band" points="{left:.1f},{_HEAD} {right:.1f},{_HEAD} '
                    f'{right:.1f},{self.up.start} {left:.1f},{self.up.start}"/>'
                )
            yield _name("sharp growth", (bend + right) / 2.0)
        if knee is not None:
            at = self.across.at(knee.rows)
            yield f'<line class="axis" x1="{at:.1f}" x2="{at:.1f}" y1="{_HEAD}" y2="{self.up.start}"/>'
            yield _name("flat", (start + at) / 2.0)
            start = at
        yield _name("slow growth" if self.regimes.slow_seconds_per_row > 0.0 else "flat", (start + bend) / 2.0)

    def _axes(self) -> Iterator[str]:
        yield from self.up.axis(self.size)
        for value, x in self.across.ticks():
            yield f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{_HEAD}" y2="{self.up.start}"/>'
            yield f'<text class="tick" x="{x:.1f}" y="{self.up.start + 16:.1f}" text-anchor="middle">{value:g}</text>'
        yield '<text class="tick" x="0" y="11">seconds</text>'
        right, below = self.size.width, self.up.start + 32
        yield f'<text class="tick" x="{right:.1f}" y="{below:.1f}" text-anchor="end">rows</text>'

    def _points(self) -> Iterator[str]:
        for rows, seconds in self.batches:
            x, y = self.across.at(rows), self.up.at(seconds)
            told = f"{rows:.0f} rows: {seconds:.3g} s"
            yield f'<g><title>{told}</title><circle class="hollow" cx="{x:.1f}" cy="{y:.1f}" r="{_POINT}"/></g>'

    def _line(self) -> str:
        bends = (self.regimes.knee_rows, self.regimes.bend_rows)
        low, high = self.regimes.smallest_rows, self.regimes.largest_rows
        rows = np.unique([low, high, *(each for each in bends if low < each < high)]).tolist()
        points = " ".join(f"{self.across.at(each):.1f},{self.up.at(self.regimes.seconds(each)):.1f}" for each in rows)
        return f'<polyline class="line series1" points="{points}"/>'

    def _chosen(self) -> Iterator[str]:
        if self.choice is None:
            return
        x, y = self.across.at(self.choice.rows), self.up.at(self.choice.seconds)
        told = f"chosen: {self.choice.rows:.0f} rows, {self.choice.seconds:.3g} s"
        yield f'<g><title>{told}</title><circle class="ring" cx="{x:.1f}" cy="{y:.1f}" r="{_CHOSEN}"/></g>'
        anchor = "end" if x > self.size.width * 0.7 else "start"
        aside = -10.0 if anchor == "end" else 10.0
        yield f'<text class="strong" x="{x + aside:.1f}" y="{y - 26:.1f}" text-anchor="{anchor}">{told}</text>'

    def _legend(self) -> Legend:
        entries = [
            Entry("hollow", circle(_POINT), _POINT, "a measured batch"),
            Entry("line series1", "M-7 0h14", 7.0, "the fitted curve"),
            Entry("ring", circle(_CHOSEN), _CHOSEN, "the chosen size"),
        ]
        return legend(entries, size=self.size, y=_HEIGHT)


def _name(text: str, x: float) -> str:
    return f'<text class="tick" x="{x:.1f}" y="{_HEAD - 8:.1f}" text-anchor="middle">{text}</text>'
