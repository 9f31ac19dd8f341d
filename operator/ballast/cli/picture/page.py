"""One page with its style sheet: it needs nothing else, in light and dark, on narrow and wide screens."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType
from typing import Annotated

import typer

from ballast.cli.output import writable

SHADES = 10
"""Of a heat map."""
SERIES = 6
"""Colors of lines; the seventh looks like the first again."""

_LIGHT_HEAT = ("#f6f5e2", "#ece0b7", "#e8c88c", "#e8ad62", "#e88f3a", "#db7125", "#c05625", "#a53c24", "#882321", "#6b071d")  # fmt: skip  # noqa: E501
_DARK_HEAT = ("#26223d", "#432952", "#662e5c", "#8c3159", "#b13743", "#cc512c", "#df772e", "#ee9d40", "#f8c360", "#ffe787")  # fmt: skip  # noqa: E501
_LIGHT_LINES = ("#1f6fb5", "#c8372d", "#2f8a5b", "#8a5bb5", "#b5791f", "#4a5563")
_DARK_LINES = ("#62b0f4", "#ff7b6e", "#57c48b", "#c39bf0", "#f0b95b", "#a8b3c1")


def _colors(basic: Mapping[str, str], heat: Sequence[str], lines: Sequence[str]) -> Mapping[str, str]:
    shades = {f"h{i}": color for i, color in enumerate(heat)}
    return MappingProxyType({**basic, **shades, **{f"s{i}": color for i, color in enumerate(lines)}})


LIGHT = _colors({"paper": "#fff", "ink": "#1c2430", "soft": "#5d6774", "line": "#d8dde4"}, _LIGHT_HEAT, _LIGHT_LINES)
DARK = _colors({"paper": "#14181d", "ink": "#e4e8ed", "soft": "#98a2ae", "line": "#333b45"}, _DARK_HEAT, _DARK_LINES)
"""Shades differ in lightness above all, always in one direction: also visible in print and to the color-blind."""

_PLOT = f"""
svg text {{ fill: var(--ink); font-size: 11px; font-family: system-ui, "DejaVu Sans", "Liberation Sans", "Noto Sans",
  Arial, Helvetica, sans-serif; }}
svg .tick {{ fill: var(--soft); }} svg .strong {{ font-weight: bold; }}
svg .grid {{ stroke: var(--line); opacity: .55; }} svg .axis {{ stroke: var(--soft); }}
svg .line {{ fill: none; stroke-width: 2; }}
svg .move {{ fill: none; stroke: var(--ink); stroke-width: 1.1; opacity: .75; }} svg .start {{ fill: var(--ink); }}
svg .halo {{ fill: none; stroke: var(--paper); stroke-width: 3.4; opacity: .8; }}
svg .other {{ fill: none; stroke: var(--soft); stroke-width: 1; opacity: .45; }}
svg polyline.own {{ fill: none; stroke: var(--s0); stroke-width: 2.2; }} svg .band {{ fill: var(--s0); opacity: .2; }}
svg .filled {{ fill: var(--s0); stroke: var(--s0); stroke-width: 1.4; }}
svg .hollow {{ fill: var(--paper); stroke: var(--s0); stroke-width: 1.6; }}
svg .ring {{ fill: none; stroke: var(--ink); stroke-width: 1.6; }} svg .error {{ stroke: var(--soft); opacity: .7; }}
{"".join(f"svg .h{i} {{ fill: var(--h{i}); }}" for i in range(SHADES))}
{"".join(f"svg .series{i} {{ stroke: var(--s{i}); }}" for i in range(SERIES))}
"""


def _declared(colors: Mapping[str, str]) -> str:
    return " ".join(f"--{name}: {color};" for name, color in colors.items())


PAGE = f"""
:root {{ color-scheme: light dark; {_declared(LIGHT)} }}
@media (prefers-color-scheme: dark) {{ :root {{ {_declared(DARK)} }} }}
* {{ box-sizing: border-box; }}
body {{ margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }}
main {{ max-width: 76rem; margin: 0 auto; padding: 1.5rem 1rem 3rem; overflow-wrap: anywhere; }}
h1 {{ font-size: 1.6rem; line-height: 1.2; margin: 0 0 .5rem; }} h2 {{ font-size: 1.15rem; margin: 2rem 0 .4rem; }}
h3 {{ font-size: 1rem; font-weight: 500; margin: 1.2rem 0 .2rem; }}
p, li {{ margin: .3rem 0; max-width: 46rem; }} .soft {{ color: var(--soft); }}
svg {{ display: block; width: 100%; max-width: 64rem; height: auto; margin: .4rem 0; }}
.narrow {{ display: none; }}
@media (max-width: 40rem) {{ .wide {{ display: none; }} .narrow {{ display: block; }} }}
.legend {{ display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; max-width: none; }}
.legend i {{ display: inline-block; width: .9em; height: .9em; margin-right: .4em; border-radius: 2px; }}
.scroll {{ overflow-x: auto; }}
a {{ color: var(--s0); }}
pre {{ overflow-x: auto; border: 1px solid var(--line); border-radius: .3rem; padding: .7rem .9rem; line-height: 1.35;
  font-size: .85rem; user-select: all; }}
summary {{ cursor: pointer; margin: .3rem 0; }}
table {{ border-collapse: collapse; margin: .6rem 0; line-height: 1.3; }}
th, td {{ text-align: right; padding: .25rem 0 .25rem .75rem; white-space: nowrap;
  font-variant-numeric: tabular-nums; }}
th:first-child, td:first-child {{ text-align: left; padding-left: 0; }}
th {{ color: var(--soft); font-weight: 500; white-space: normal; vertical-align: bottom; max-width: 11rem;
  overflow-wrap: normal; }}
td.text, th.text {{ text-align: left; }}
{"".join(f"i.series{i} {{ background: var(--s{i}); }}" for i in range(SERIES))}
{_PLOT}
"""


def plain() -> str:
    """The plots' part in light, for renderers that know neither variables nor the viewer's wish."""
    return re.sub(r"var\(--(\w+)\)", lambda found: LIGHT[found[1]], _PLOT)


ReportOption = Annotated[
    Path | None,
    typer.Option(
        "--report",
        metavar="FILE",
        help="Write a page with plots, too: one HTML file, complete in itself.",
        callback=writable,
    ),
]


class Strong(str):
    """A cell that stands out."""

    __slots__ = ()


def origin() -> str:
    """When a page is made, and by which version."""
    return f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC by ballast {version('ballast-operator')}"


def page(title: str, body: Iterable[str], *, style: str = PAGE) -> str:
    """The whole document."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{style}</style></head><body><main>{''.join(body)}</main></body></html>\n"
    )


def grid(head: Sequence[str], rows: Iterable[Sequence[str]], *, text: Collection[str] = ()) -> str:
    """A table that scrolls by itself where the screen is too narrow for it; columns in `text` are no metrics."""
    styles = [' class="text"' if column in text else "" for column in head]
    heads = "".join(f"<th{style}>{escape(cell)}</th>" for style, cell in zip(styles, head, strict=True))
    body = "".join(
        f"<tr>{''.join(f'<td{style}>{_cell(cell)}</td>' for style, cell in zip(styles, row, strict=True))}</tr>"
        for row in rows
    )
    return f'<div class="scroll"><table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>'


def _cell(cell: str) -> str:
    return f"<b>{escape(cell)}</b>" if isinstance(cell, Strong) else escape(cell)
