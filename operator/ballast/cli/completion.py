"""`kubectl_complete-ballast`: kubectl runs it to complete `kubectl ballast …`, and reads cobra's answer from it."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from ballast.cli.main import COMMANDS, command
from ballast.errors import BallastError

_HELP = "Show this message and exit."
_FILES = ("FILE", "DIR", "FOLDER", "PATH", "POLICY", "SCENARIO")
"""Words for values that are, or may be, files."""


class Directive(IntEnum):
    """What the shell does in addition, as cobra counts it."""

    FILES = 0
    NO_FILES = 4


@dataclass(frozen=True, slots=True)
class Completions:
    words: tuple[tuple[str, str], ...] = ()
    """Each with its explanation."""
    directive: Directive = Directive.NO_FILES

    def __str__(self) -> str:
        lines = (f"{word}\t{text}" if text else word for word, text in self.words)
        return "\n".join((*lines, f":{self.directive.value}"))


def kubectl_complete() -> None:
    """Of the arguments, the last is the word that is being completed; it may be empty."""
    *before, word = sys.argv[1:] or [""]
    print(completions(before, word))


def completions(before: Sequence[str], word: str) -> Completions:
    """What may take the place of `word` after the words `before`. An unknown command has none."""
    name = next((each for each in before if not each.startswith("-")), None)
    if name is None:
        offered = {"--version": "Print the version and exit."} if word.startswith("-") else COMMANDS
        return _beginning(word, offered.items())
    if name not in COMMANDS:
        return Completions()
    try:
        return _within(command(name), before[before.index(name) + 1 :], word)
    except BallastError:  # a part that is not installed
        return Completions()


def _within(found: Any, before: Sequence[str], word: str) -> Completions:
    option, equals, value = word.partition("=")
    if equals and option.startswith("-") and (named := _with_value(found, option)) is not None:
        return _values(found, named, value)
    if before and (named := _with_value(found, before[-1])) is not None:
        return _values(found, named, word)
    if word.startswith("-"):
        return _beginning(word, (*_options(found, before), ("--help", _HELP)))
    following = _argument(found) or _repeated(found, before)
    return Completions() if following is None else _values(found, following, word)


def _with_value(found: Any, text: str) -> Any:
    """The option of that name, unless it takes no value."""
    return next((each for each in found.params if text in each.opts and not getattr(each, "is_flag", True)), None)


def _argument(found: Any) -> Any:
    return next((each for each in found.params if each.param_type_name == "argument"), None)


def _repeated(found: Any, before: Sequence[str]) -> Any:
    """The option of which one more value may follow: the last one, if it may be repeated."""
    last = next((text.partition("=")[0] for text in reversed(before) if text.startswith("-")), "")
    named = _with_value(found, last)
    return named if named is not None and named.multiple else None


def _values(found: Any, parameter: Any, word: str) -> Completions:
    context = found.make_context(found.name, [], resilient_parsing=True)
    offered = [(each.value, each.help or "") for each in parameter.shell_complete(context, word)]
    files = any(text in (parameter.metavar or "") for text in _FILES)
    return Completions(tuple(offered), Directive.FILES if files else Directive.NO_FILES)


def _options(found: Any, before: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Long names of the options that may still be given."""
    given = {text.partition("=")[0] for text in before}
    for each in found.params:
        if each.param_type_name == "option" and not each.hidden and (each.multiple or not given & set(each.opts)):
            yield from ((name, each.help or "") for name in (*each.opts, *each.secondary_opts) if name.startswith("--"))


def _beginning(word: str, offered: Iterable[tuple[str, str]]) -> Completions:
    return Completions(tuple(each for each in offered if each[0].startswith(word)))
