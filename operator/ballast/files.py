"""Files that users name by an option: what they hold, or an InvalidField with the option, the file and a remedy."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from ballast.errors import InvalidField

STANDARD_INPUT = Path("-")
MOST_MIB = 64
"""That are read of a file, unless its reader expects more."""

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def text_of(path: Path, *, option: str, remedy: str, most_mib: int = MOST_MIB) -> str:
    """The whole file, or standard input for `-`. Raises InvalidField, also for more than `most_mib`."""
    most = most_mib << 20
    try:
        if path == STANDARD_INPUT:
            text, size = sys.stdin.read(most + 1), 0
        else:
            with path.open(encoding="utf-8") as file:
                # Of a device, a pipe or a socket it is 0, whatever comes.
                size = os.fstat(file.fileno()).st_size
                text = file.read(most + 1) if size <= most else ""
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidField(option, str(path), f"{in_plain_words(error)}; {remedy}") from error
    if size > most or len(text) > most:
        has = f"{size / (1 << 20):.1f} MiB" if size > most else f"more than {most_mib} MiB"
        raise InvalidField(option, str(path), f"it has {has}, and at most {most_mib} MiB are read; {remedy}")
    return text


def documents(path: Path, *, option: str, remedy: str) -> list[Any]:
    """The YAML or JSON documents of a file, without empty ones. Raises InvalidField."""
    text = text_of(path, option=option, remedy=remedy)
    return documents_in(text, name=str(path), option=option, remedy=remedy)


def documents_in(text: str, *, name: str, option: str, remedy: str) -> list[Any]:
    """As above, of a text that is already read. JSON is read by its own reader, some twenty times faster."""
    try:
        if name.endswith(".json") or text.startswith("{"):
            try:
                return [json.loads(text)]
            except json.JSONDecodeError:
                if name.endswith(".json"):
                    raise
        loaded: Iterable[Any] = yaml.load_all(text, Loader=_Loader)
        return [document for document in loaded if document is not None]
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise InvalidField(option, name, f"{in_plain_words(error)}; {remedy}") from error


def in_plain_words(error: Exception) -> str:
    """What is wrong with a file, without the words of the library that read it."""
    if isinstance(error, OSError):
        return error.strerror or "it can't be read"
    if isinstance(error, UnicodeDecodeError):
        return "not text in UTF-8"
    if isinstance(error, json.JSONDecodeError):
        return f"not readable as JSON: see line {error.lineno}, column {error.colno}"
    mark = getattr(error, "problem_mark", None)
    return "not readable as YAML" + (f": see line {mark.line + 1}, column {mark.column + 1}" if mark else "")
