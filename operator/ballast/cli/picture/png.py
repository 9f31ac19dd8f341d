"""Plots as PNG, in light colors."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from pathlib import Path

from ballast.cli.picture.frame import Plot
from ballast.cli.picture.style import LIGHT, plain
from ballast.errors import BallastError, InvalidField

_MARGIN, _TITLE = 14.0, 30.0
_TITLE_STYLE = "svg .title { font-size: 15px; font-weight: bold; }"
_ZOOM = 2.0
"""Pixels of the picture to one of the plot."""
_PROBE = '<svg xmlns="http://www.w3.org/2000/svg" width="20" height="20"><style>{style}</style>{inside}</svg>'


class NoRendererError(BallastError):
    """What draws PNG is not installed, or has no font to write with."""


def write_pngs(plots: Iterable[Plot], folder: Path) -> list[Path]:
    """One file each, `NAME.png`; equal plots give equal bytes on one machine. Raises NoRendererError, InvalidField."""
    look_for_renderer()
    written = []
    for plot in plots:
        path = folder / f"{plot.name}.png"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            path.write_bytes(_rendered(alone(plot), zoom=_ZOOM))
        except OSError as error:
            raise InvalidField("--png", str(folder), f"{error.strerror}; name a folder that can be written") from error
        written.append(path)
    return written


def alone(plot: Plot) -> str:
    """The wide drawing under its title, as an SVG file that needs no page."""
    drawing = plot.drawings[0]
    left, top = -_MARGIN, -_MARGIN - _TITLE
    width, height = drawing.size.width + 2 * _MARGIN, drawing.height + _TITLE + 2 * _MARGIN
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" '
        f'viewBox="{left:g} {top:g} {width:g} {height:g}"><style>{plain()}{_TITLE_STYLE}</style>'
        f'<rect x="{left:g}" y="{top:g}" width="{width:g}" height="{height:g}" fill="{LIGHT["paper"]}"/>'
        f'<text class="title" x="0" y="{-_TITLE / 2:g}">{escape(plot.title)}</text>{drawing.marks}</svg>\n'
    )


def _rendered(svg: str, *, zoom: float = 1.0) -> bytes:
    """Raises NoRendererError."""
    try:
        from resvg_py import svg_to_bytes  # noqa: PLC0415 -- part of an extra
    except ImportError as error:
        raise NoRendererError("--png needs resvg: pip install '.[spark]' from a checkout") from error
    return bytes(svg_to_bytes(svg_string=svg, zoom=zoom))


def look_for_renderer() -> None:
    """And for a font: a picture without its words would be worse than none. Raises NoRendererError."""
    blank, written = (_PROBE.format(style=plain(), inside=inside) for inside in ("", '<text x="2" y="15">x</text>'))
    if _rendered(blank) == _rendered(written):
        raise NoRendererError("--png finds no font to write with: install DejaVu Sans (Debian: fonts-dejavu-core)")
