"""What a command prints: a table for people, JSON or YAML for programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Any

import typer
import yaml
from rich.console import Console
from rich.table import Table
from rich.text import Text

_BAR_WIDTH = 20


class Format(StrEnum):
    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"


OutputOption = Annotated[Format, typer.Option("--output", "-o", help="How to print.", case_sensitive=False)]


def console() -> Console:
    """Colours and full width in a terminal, plain text of any width elsewhere."""
    out = Console(highlight=False)
    return out if out.is_terminal else Console(highlight=False, width=200, no_color=True)


def structured(document: Any, form: Format) -> str:
    """`document` as JSON or YAML text."""
    if form is Format.JSON:
        return json.dumps(document, indent=2, ensure_ascii=False)
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True).rstrip()


def table(columns: Sequence[str], rows: Sequence[Sequence[str | Text]], *, right: Sequence[str] = ()) -> Table:
    """A table in kubectl's manner: capital headings, no lines; columns in `right` are aligned to the right."""
    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in columns:
        grid.add_column(column.upper(), justify="right" if column in right else "left", no_wrap=True)
    for row in rows:
        grid.add_row(*row)
    return grid


def bar(score: float | None) -> Text:
    """A score as a bar of up to 100 percent, with the figure behind it."""
    if score is None:
        return Text("no figures", style="dim")
    filled = round(min(score, 100.0) / 100.0 * _BAR_WIDTH)
    colour = "red" if score >= 85 else "yellow" if score >= 70 else "green"
    return Text.assemble(("█" * filled, colour), ("░" * (_BAR_WIDTH - filled), "dim"), f" {score:5.1f}")


def percent(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.0%}"
