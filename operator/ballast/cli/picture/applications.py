"""The page about running applications: the headline, cross-zone bars before and after, and the tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from html import escape

from ballast.cli.output import percent
from ballast.cli.picture.frame import RIGHT, Drawing, Plot, Size, fitting
from ballast.cli.picture.page import grid, page
from ballast.cli.report.applications import (
    APPLICATION_COLUMNS,
    MOVE_COLUMNS,
    READ_COLUMNS,
    SKEW_COLUMNS,
    SLOW_COLUMNS,
    application_row,
    basis,
    directions,
    headline,
    move_rows,
    no_moves,
    read_rows,
    skew_rows,
    slow_rows,
)
from ballast.report.findings import ApplicationReport, PoolReport, Verdict

_ROW, _BAR, _SHOWN = 30.0, 9.0, 30
_LEAST = 2.0
"""Width of the bar of 0 %: without one, its color would be in the legend only."""


def applications_page(found: PoolReport, *, made: str) -> str:
    """`made`: when the page was made, and by which version."""
    return page("Ballast: report", _body(found, made))


def _body(found: PoolReport, made: str) -> Iterator[str]:
    seen = f"{datetime.fromtimestamp(found.taken_at, UTC):%Y-%m-%d %H:%M} UTC"
    yield f"<h1>{escape(headline(found))}</h1>"
    yield f'<p class="soft">Made {escape(made)}, about {found.nodes} nodes in {found.zones} zones at {seen}.</p>'
    if line := directions(found):
        yield f"<p>{escape(line)}</p>"
    drawn = [each for each in found.applications if not each.remote_shuffle][:_SHOWN]
    if drawn:
        yield "<h2>Share of the shuffle that crosses zones</h2>"
        yield '<p class="legend"><span><i class="series1"></i>as it is</span>'
        yield '<span><i class="series0"></i>as Ballast would have placed it</span></p>'
        yield Plot.drawn(
            "cross-zone", "Share of the shuffle that crosses zones", lambda size: _bars(drawn, size)
        ).markup
    if found.applications:
        yield "<h2>Applications</h2>"
        yield "<p>As they are -> as Ballast would have placed them, all together.</p>"
        rows = [_row(each) for each in found.applications]
        yield grid(APPLICATION_COLUMNS, rows, text=("application", "zones", "why"))
    if still := [each for each in found.applications if each.verdict is not Verdict.GAIN]:
        yield "<h2>Where there is nothing to gain, or nothing to judge by</h2>"
        yield f"<ul>{''.join(f'<li>{escape(each.name)}: {escape(each.why)}</li>' for each in still)}</ul>"
    tables: tuple[tuple[str, Sequence[str], list[list[str]]], ...] = (
        ("Reads from brokers across zones", READ_COLUMNS, read_rows(found)),
        ("Nodes that make applications slow, at equal bytes per task", SLOW_COLUMNS, slow_rows(found)),
        ("Slow because of their data, not because of their node", SKEW_COLUMNS, skew_rows(found)),
    )
    for title, columns, cells in tables:
        if cells:
            yield f"<h2>{escape(title)}</h2>{grid(columns, cells, text=('node',))}"
    yield "<h2>Moves that would help now, if the gaps between nodes stay</h2>"
    moves = move_rows(found)
    yield grid(MOVE_COLUMNS, moves, text=("from", "to")) if moves else f"<p>{escape(no_moves(found))}</p>"
    yield f"<h2>What this is based on</h2><ul>{''.join(f'<li>{escape(line)}</li>' for line in basis(found))}</ul>"


def _row(each: ApplicationReport) -> list[str]:
    """As in the terminal, with a short reason: a long one would not fit the page and has a list."""
    short = {Verdict.NOTHING_TO_GAIN: "nothing to gain", Verdict.UNKNOWN: "not known"}
    row = application_row(each)
    return [*row[:-1], short.get(each.verdict, row[-1])]


def _bars(applications: Sequence[ApplicationReport], size: Size) -> Drawing:
    """Two bars for each: before and after."""
    left = 220.0 if size.name == "wide" else 120.0
    width = size.width - left - RIGHT - 44.0
    marks = []
    for position, each in enumerate(applications):
        top = position * _ROW + 4.0
        name = escape(fitting(each.name, left - 8.0))
        marks.append(f'<text x="{left - 8:.1f}" y="{top + 13:.1f}" text-anchor="end">{name}</text>')
        for row, (series, share) in enumerate(((1, each.before.shares.zone), (0, each.after.shares.zone))):
            y, told = top + row * (_BAR + 2.0), percent(share)
            end = left + max(_LEAST, width * (share or 0.0))
            marks.append(
                f'<line class="series{series}" stroke-width="{_BAR:g}" x1="{left:.1f}" '
                f'x2="{end:.1f}" y1="{y + _BAR / 2:.1f}" y2="{y + _BAR / 2:.1f}"/>'
                f'<text class="tick" x="{end + 5:.1f}" y="{y + _BAR:.1f}">{told}</text>'
            )
    return Drawing(size, len(applications) * _ROW + 8.0, "".join(marks))
