"""What a command prints: a table for people, JSON or YAML for programs."""

from __future__ import annotations

import io
import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
import yaml
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.measure import Measurement
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from ballast.cli.terminal import harmless
from ballast.errors import InvalidField, nearest

_UNBOUNDED = 10_000
"""Columns of what is no terminal: nothing is cut or wrapped there."""

_NARROWEST = 12
"""Columns that a name or a sentence keeps in any case."""

if TYPE_CHECKING:
    from ballast.cli.jsonpath import JSONPath


_WRITABLE = "name a file that can be written"


class Format(StrEnum):
    """Ways to print; no command has all of them."""

    TABLE = "table"
    TEXT = "text"
    WIDE = "wide"
    NAME = "name"
    JSON = "json"
    YAML = "yaml"
    JSONPATH = "jsonpath"
    PROMETHEUS = "prometheus"


@dataclass(frozen=True, slots=True)
class Output:
    """What `-o` asks for."""

    form: Format = Format.TABLE
    template: JSONPath | None = None
    """Only of `jsonpath=TEMPLATE`."""

    @property
    def for_programs(self) -> bool:
        return self.form in (Format.NAME, Format.JSON, Format.YAML, Format.JSONPATH)


def output_option(*forms: Format, more: str = "") -> Any:
    """`-o`, of which the first form is the default. `more`: follows in its help."""
    written = [f"{form}=" if form is Format.JSONPATH else form.value for form in forms]
    listed = ", ".join(f"{each}TEMPLATE" if each.endswith("=") else each for each in written)

    def parsed(text: str | Output) -> Output:
        if isinstance(text, Output):  # the default
            return text
        name, _, template = text.partition("=")
        form = next((each for each in forms if each == name.lower()), None)
        if form is None or (template and form is not Format.JSONPATH):
            near = nearest(name.lower(), forms)
            hint = f"; did you mean {near}?" if near else ""
            raise typer.BadParameter(f"{text!r} is not one of {listed}{hint}")
        if form is not Format.JSONPATH:
            return Output(form)
        from ballast.cli.jsonpath import JSONPath, JSONPathError  # noqa: PLC0415 -- only its own format needs it

        try:
            return Output(form, JSONPath.parse(template))
        except JSONPathError as error:
            raise typer.BadParameter(f"{text!r}: {error}") from error

    def offered(incomplete: str) -> list[str]:
        return [each for each in written if each.startswith(incomplete.lower())]

    return typer.Option(
        "--output",
        "-o",
        parser=parsed,
        autocompletion=offered,
        metavar="FORMAT",
        show_default=False,
        help=f"{listed}{more}. Default: {forms[0]}.",
    )


_WIDE = "; wide has whole names and more columns"
OutputOption = Annotated[
    Output,
    output_option(Format.TABLE, Format.WIDE, Format.NAME, Format.JSON, Format.YAML, Format.JSONPATH, more=_WIDE),
]
"""Of commands that show objects of the cluster."""
MetricsOption = Annotated[
    Output, output_option(Format.TABLE, Format.WIDE, Format.JSON, Format.YAML, Format.JSONPATH, more=_WIDE)
]
"""Of commands whose rows are no objects of the cluster."""
TextOption = Annotated[Output, output_option(Format.TEXT, Format.JSON, Format.YAML, Format.JSONPATH)]

AS_TABLE, AS_TEXT = Output(), Output(Format.TEXT)


def write(document: Any, output: Output, *, names: Iterable[str] = ()) -> None:
    """For programs. `names`: of `-o name`; as with kubectl, no line end is added to a template's text."""
    if output.template is not None:
        typer.echo(output.template.text(document), nl=False)
    elif output.form is not Format.NAME:
        typer.echo(structured(document, output.form))
    else:
        for name in names:
            typer.echo(name)


class Screen(Console):
    """rich's console: its own colors and cursor movements pass, those in the text that it is given do not.

    Text is printed without rich's markup: a series may call a namespace `[/x]`, which would be an error.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"markup": False, **options})

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=harmless(segment.text))


def console(form: Format = Format.TABLE) -> Screen:
    """Colors in a terminal (unless NO_COLOR is set), plain text elsewhere; cut to a terminal's width unless wide."""
    out = Screen(highlight=False)
    if out.is_terminal and form is not Format.WIDE:
        return out
    return Screen(highlight=False, width=_UNBOUNDED, no_color=None if out.is_terminal else True)


def show(*parts: RenderableType, form: Format = Format.TABLE) -> None:
    """Print for people; where stdout is no terminal, without colors and trailing blanks. Nothing for no parts."""
    if not parts:
        return
    out = console(form)
    if out.is_terminal:
        out.print(*parts, sep="\n")
    else:
        typer.echo(plain(*parts))


def plain(*parts: RenderableType, width: int = _UNBOUNDED) -> str:
    """The same as text without any control characters."""
    sheet = io.StringIO()
    out = Screen(
        file=sheet, width=width, color_system=None, force_terminal=False, highlight=False, legacy_windows=False
    )
    out.print(*parts, sep="\n")
    return "\n".join(line.rstrip() for line in sheet.getvalue().splitlines())


def structured(document: Any, form: Format) -> str:
    """`document` as JSON or YAML text."""
    if form is Format.JSON:
        return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True).rstrip()


def writable(option: typer.CallbackParam, path: Path | None) -> Path | None:
    """Tells before the work, not after it, that what comes of it has no place. Raises InvalidField."""
    if path is not None and (path.is_dir() or not path.parent.is_dir()):
        why = "Is a directory" if path.is_dir() else f"there is no folder {path.parent}"
        raise InvalidField(option.opts[0], str(path), f"{why}; {_WRITABLE}")
    return path


def folder(option: typer.CallbackParam, path: Path | None) -> Path | None:
    """As `writable`, for a folder that its writer creates. Raises InvalidField."""
    if path is not None:
        absolute = path.absolute()
        there = next(each for each in (absolute, *absolute.parents) if os.path.lexists(each))
        if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
            why = f"{there} can't be written" if there.is_dir() else f"{there} is no folder"
            raise InvalidField(option.opts[0], str(path), f"{why}; name a folder that can be written")
    return path


def saved(path: Path, text: str, *, field: str) -> None:
    """Into a file that the user named by the option `field`, and a line on stderr. Raises InvalidField."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InvalidField(field, str(path), f"{error.strerror}; {_WRITABLE}") from error
    typer.echo(f"wrote {path}", err=True)


def table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str | Text]],
    *,
    right: Sequence[str] = (),
    cut: Sequence[str] = (),
    wrap: Sequence[str] = (),
) -> Table:
    """A table in kubectl's manner: capital headings, no lines.

    Columns in `right` are aligned to the right. Where a terminal is too narrow, names in `cut` lose their middle and
    text in `wrap` takes several lines; the others stay whole. A column in which every cell is empty is left out.
    """
    kept = [i for i in range(len(columns)) if any(str(row[i]) for row in rows)]
    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for i in kept:
        name = columns[i]
        grid.add_column(
            capitals(name),
            justify="right" if name in right else "left",
            no_wrap=name not in (*cut, *wrap),
            overflow="fold",
            min_width=max(len(name), _NARROWEST) if name in wrap else None,
        )
    for row in rows:
        grid.add_row(*(_cell(row[i], cut=columns[i] in cut) for i in kept))
    return grid


def capitals(column: str) -> str:
    """As kubectl writes headings: capitals, the unit in parentheses as it is."""
    name, bracket, unit = column.partition("(")
    return f"{name.upper()}{bracket}{unit}"


def explained(meanings: Mapping[str, str], columns: Sequence[str]) -> list[RenderableType]:
    """A line for each of the columns that has a meaning, to stand above their table."""
    width = max((len(column) for column in columns), default=0)
    return [
        Text(f"{capitals(column):<{width}}  {meanings[column]}", style="dim")
        for column in columns
        if column in meanings
    ]


def _cell(content: str | Text, *, cut: bool) -> RenderableType:
    if isinstance(content, Text):
        return content
    return Name(content) if cut else Text(content)


@dataclass(frozen=True, slots=True)
class Name:
    """A name that loses its middle where there is too little room: its ends are what tells it from others."""

    text: str

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement(min(_NARROWEST, len(self.text)), len(self.text))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text(shortened(self.text, options.max_width), no_wrap=True, overflow="crop")


def shortened(text: str, width: int) -> str:
    """At most `width` characters of it, from both ends."""
    if len(text) <= width:
        return text
    front = max(0, (width - 1) // 2)
    return f"{text[:front]}~{text[len(text) - (width - 1 - front) :]}"


def heading(text: str) -> Text:
    """What a table is about, apart from what stands above it."""
    return Text(f"\n{text}", style="bold")


def line(*pairs: tuple[str, str]) -> Text:
    """`label value` side by side."""
    out = Text(overflow="fold")
    for position, (label, value) in enumerate(pairs):
        out.append("   " if position else "").append(f"{label} ", style="dim").append(value)
    return out


def bar(score: float | None, *, cells: int = 10) -> Text:
    """A score as a bar of up to 100 percent, with the figure behind it."""
    if score is None:
        return Text("no metrics", style="dim")
    filled = round(min(max(score, 0.0), 100.0) / 100.0 * cells)
    color = "red" if score >= 85 else "yellow" if score >= 70 else "green"
    return Text.assemble(("|" * filled, color), ("." * (cells - filled), "dim"), f" {score:5.1f}")


def percent(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.0%}"


def points(score: float | None) -> str:
    return "-" if score is None else f"{score:.1f}"


def duration(seconds: float) -> str:
    """As kubectl writes ages: the two largest units at most."""
    left = max(0, math.floor(seconds))
    days, hours, minutes, rest = left // 86400, left // 3600 % 24, left // 60 % 60, left % 60
    named = [(days, "d"), (hours, "h"), (minutes, "m"), (rest, "s")]
    first = next((i for i, (count, _) in enumerate(named) if count), 3)
    return "".join(f"{count}{unit}" for count, unit in named[first : first + 2] if count) or "0s"


def rounded(value: float | None) -> float | None:
    """Thousandths: enough for programs, and free of binary noise."""
    return None if value is None else round(float(value), 3)
