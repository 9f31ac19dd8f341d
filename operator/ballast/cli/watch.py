"""What a reading command answers, once or, with `--watch`, again and again until Ctrl-C."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from ballast.cli.output import Format, Output, console, show, write
from ballast.errors import BallastError

WatchOption = Annotated[bool, typer.Option("--watch", "-w", help="Repeat until Ctrl-C.")]
EveryOption = Annotated[
    float, typer.Option(help="Seconds between two answers of --watch.", min=0.5, max=3600.0, metavar="SECONDS")
]
EVERY_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command found, made in the form that is asked for."""

    report: Callable[[], Iterable[RenderableType]]
    """For people."""
    document: Callable[[], Any]
    names: Callable[[], Iterable[str]] = tuple
    """Of `-o name`: TYPE/NAME each."""


Ask = Callable[[], Answer]


def pace(every: float, *, watch: bool, file: Path | None) -> float | None:
    """Seconds between two looks; None: look once. Raises BadParameter for a file that is to be watched."""
    if watch and file is not None:
        raise typer.BadParameter("a snapshot file does not change: leave out --watch or -f", param_hint="--watch")
    return every if watch else None


def answer(ask: Ask, output: Output, *, every_seconds: float | None) -> None:
    """Where nothing can be found any more, a terminal shows why until it can; elsewhere that ends the command."""
    if every_seconds is None:
        _print(ask(), output)
        return
    with suppress(KeyboardInterrupt):
        if console(output.form).is_terminal and not output.for_programs:
            _redraw(ask, output.form, every_seconds)
        while True:
            if output.form is Format.YAML:
                typer.echo("---")
            _print(ask(), output)
            if not output.for_programs:
                typer.echo()
            time.sleep(every_seconds)


def _print(found: Answer, output: Output) -> None:
    if output.form is Format.NAME:
        write(None, output, names=found.names())
    elif output.for_programs:
        write(found.document(), output)
    else:
        show(*found.report(), form=output.form)


def _redraw(ask: Ask, form: Format, every_seconds: float) -> None:
    """In its place."""
    with Live(console=console(form), auto_refresh=False, screen=True, vertical_overflow="ellipsis") as live:
        while True:
            live.update(Group(*_picture(ask)), refresh=True)
            time.sleep(every_seconds)


def _picture(ask: Ask) -> list[RenderableType]:
    stamp = Text(time.strftime("%H:%M:%S"), style="dim")
    try:
        return [stamp, *ask().report()]
    except BallastError as error:
        return [stamp, Text(f"Error: {error}", style="red", overflow="fold")]
