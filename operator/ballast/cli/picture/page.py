"""One page that needs nothing else, in light and dark, on narrow and wide screens."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from ballast.cli.picture.plots import HEAT_STEPS, SERIES

_LIGHT_HEAT = (
    "#e8f1fa",
    "#d3e6f5",
    "#b8d8ef",
    "#96c6e6",
    "#8fc7a9",
    "#cfd97a",
    "#f2d35b",
    "#f2a83f",
    "#e5722f",
    "#c22f24",
)
_DARK_HEAT = (
    "#17232f",
    "#1b3145",
    "#20425e",
    "#265778",
    "#2f6f5a",
    "#6d7a2c",
    "#97822a",
    "#b3702a",
    "#c4552a",
    "#e2453a",
)
_LIGHT_LINES = ("#1f6fb5", "#c8372d", "#2f8a5b", "#8a5bb5", "#b5791f", "#4a5563")
_DARK_LINES = ("#62b0f4", "#ff7b6e", "#57c48b", "#c39bf0", "#f0b95b", "#a8b3c1")


def _variables(heat: Sequence[str], lines: Sequence[str]) -> str:
    shades = (f"--h{i}: {colour};" for i, colour in enumerate(heat))
    series = (f"--s{i}: {colour};" for i, colour in enumerate(lines))
    return " ".join([*shades, *series])


_STYLE = f"""
:root {{ color-scheme: light dark; --paper: #fff; --ink: #1c2430; --soft: #5d6774; --line: #d8dde4;
  {_variables(_LIGHT_HEAT, _LIGHT_LINES)} }}
@media (prefers-color-scheme: dark) {{ :root {{ --paper: #14181d; --ink: #e4e8ed; --soft: #98a2ae; --line: #333b45;
  {_variables(_DARK_HEAT, _DARK_LINES)} }} }}
* {{ box-sizing: border-box; }}
body {{ margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }}
main {{ max-width: 68rem; margin: 0 auto; padding: 1.5rem 1rem 3rem; }}
h1 {{ font-size: 1.6rem; line-height: 1.2; margin: 0 0 .5rem; }} h2 {{ font-size: 1.15rem; margin: 2rem 0 .4rem; }}
h3 {{ font-size: 1rem; font-weight: 500; margin: 1.2rem 0 .2rem; }}
p {{ margin: .3rem 0; max-width: 46rem; }} .soft {{ color: var(--soft); }}
svg {{ display: block; width: 100%; height: auto; }}
.narrow {{ display: none; }}
@media (max-width: 40rem) {{ .wide {{ display: none; }} .narrow {{ display: block; }} }}
svg text {{ fill: var(--ink); font: 11px system-ui, sans-serif; }} svg .tick {{ fill: var(--soft); }}
svg .grid {{ stroke: var(--line); opacity: .55; }} svg .axis {{ stroke: var(--soft); }}
svg .line {{ fill: none; stroke-width: 2; }}
svg .move {{ fill: none; stroke: var(--ink); stroke-width: 1.1; opacity: .75; }} svg .start {{ fill: var(--ink); }}
.legend {{ display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; max-width: none; }}
.legend i {{ display: inline-block; width: .9em; height: .9em; margin-right: .4em; border-radius: 2px; }}
.scroll {{ overflow-x: auto; }}
table {{ border-collapse: collapse; margin: .6rem 0; line-height: 1.3; }}
th, td {{ text-align: right; padding: .25rem 0 .25rem 1rem; white-space: nowrap; font-variant-numeric: tabular-nums; }}
th:first-child, td:first-child {{ text-align: left; padding-left: 0; }} th {{ color: var(--soft); font-weight: 500; }}
{"".join(f"svg .h{i} {{ fill: var(--h{i}); }} i.h{i} {{ background: var(--h{i}); }}" for i in range(HEAT_STEPS))}
{"".join(f"svg .series{i} {{ stroke: var(--s{i}); }}" for i in range(SERIES))}
{"".join(f"i.series{i} {{ background: var(--s{i}); }}" for i in range(SERIES))}
"""


def page(title: str, body: Iterable[str], *, style: str = _STYLE) -> str:
    """The whole document."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{style}</style></head><body><main>{''.join(body)}</main></body></html>\n"
    )


def grid(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table that scrolls by itself where the screen is too narrow for it."""
    heads = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f'<div class="scroll"><table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>'


def heat_legend() -> str:
    """What the shades of a heat map stand for."""
    steps = (
        f'<span><i class="h{i}"></i>{10 * i}{"+" if i == HEAT_STEPS - 1 else f"–{10 * i + 10}"}</span>'
        for i in range(HEAT_STEPS)
    )
    return f'<p class="legend soft">{"".join(steps)}<span>percent of the node&#8217;s capacity</span></p>'
