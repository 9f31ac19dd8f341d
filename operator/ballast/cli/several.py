"""A command whose options may be followed by several values: `--policies a.yaml b.yaml`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from typer.core import TyperCommand


class SeveralValues(TyperCommand):
    """Of a command without arguments: what follows the value of an option that may be repeated is one more of it."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        repeated = {
            name for option in self.params if getattr(option, "multiple", False) for name in getattr(option, "opts", ())
        }
        return super().parse_args(ctx, list(spelled_out(args, repeated)))


def spelled_out(arguments: Iterable[str], repeated: Iterable[str]) -> Iterator[str]:
    """With the option's name before each of its values."""
    names, option, due = frozenset(repeated), "", False
    for text in arguments:
        if text.startswith("-"):
            name, equals, _ = text.partition("=")
            option = name if name in names else ""
            due = bool(option) and not equals
        elif option and not due:
            yield option
        else:
            due = False
        yield text
