"""One page that needs nothing else, in light and dark, on narrow and wide screens."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime
from html import escape
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

from ballast.cli.output import writable
from ballast.cli.picture.style import PAGE

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
