"""Files that users name by an option: what they hold, or an InvalidField with the option, the file and a remedy."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Iterator
from math import inf
from pathlib import Path
from typing import Any

import yaml

from ballast.errors import InvalidField

STANDARD_INPUT = Path("-")
MOST_MIB = 64
"""That are read of a file, unless its reader expects more."""

_MOST_BY_ALIASES = 1_000_000
"""Values that the aliases of one file may stand for."""
_MOST_MERGED = 10_000
"""Keys that one mapping may take from others by `<<`."""
_LONGEST_NUMBER = 1_000
"""Characters of an integer."""
_MERGE = "tag:yaml.org,2002:merge"
DEEPEST = 100
"""Lists and mappings in each other. Objects of Kubernetes nest some twenty levels."""
UNREADABLE = (yaml.YAMLError, ValueError, ArithmeticError, LookupError, TypeError, AttributeError)
"""What the library raises: for a text that is no YAML, or a value that its tag does not fit, such as `!!bool x`."""

_WRITTEN = re.compile(r"\S")

_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_Base):  # type: ignore[misc]  # the library's own where libyaml is missing
    def flatten_mapping(self, node: Any) -> None:
        """Merges of merges grow by powers, and come before anything is there that could be counted."""
        taken = [value for key, value in node.value if key.tag == _MERGE]
        parts = [part for each in taken for part in (each.value if isinstance(each, yaml.SequenceNode) else [each])]
        for part in dict.fromkeys(each for each in parts if isinstance(each, yaml.MappingNode)):
            self.flatten_mapping(part)
        if sum(len(part.value) for part in parts) > _MOST_MERGED:
            words = f"more than {_MOST_MERGED} keys"
            raise yaml.constructor.ConstructorError(None, None, words, node.start_mark)
        super().flatten_mapping(node)


def _number(loader: Any, node: Any) -> Any:
    """A number to base 60, such as 12:30, is a text, as kubectl reads it. To compute it could take minutes."""
    if ":" in str(node.value):
        return loader.construct_scalar(node)
    if node.tag.endswith(":float"):
        return _Loader.construct_yaml_float(loader, node)
    if len(node.value) > _LONGEST_NUMBER:
        # To base 16, 8 or 2 Python reads any number, but it writes none that is longer than it reads to base 10.
        raise ValueError("an integer of very many digits")
    return _Loader.construct_yaml_int(loader, node)


for _tag in ("int", "float"):
    _Loader.add_constructor(f"tag:yaml.org,2002:{_tag}", _number)


class TooDeepError(yaml.YAMLError):
    """It nests more deeply than DEEPEST: the library's own reader would end the process."""


def yaml_documents(text: str) -> list[Any]:
    """Without empty ones. Raises what is in UNREADABLE. What its aliases stand for is not bounded."""
    depth = 0
    for event in yaml.parse(text, Loader=_Base):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:
            raise TooDeepError(f"more than {DEEPEST} levels")
    return [document for document in yaml.load_all(text, Loader=_Loader) if document is not None]


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


def documents(path: Path, *, option: str, remedy: str, most_mib: int = MOST_MIB) -> list[Any]:
    """The YAML or JSON documents of a file, without empty ones. Raises InvalidField."""
    text = text_of(path, option=option, remedy=remedy, most_mib=most_mib)
    return documents_in(text, name=str(path), option=option, remedy=remedy)


def documents_in(text: str, *, name: str, option: str, remedy: str) -> list[Any]:
    """As above, of a text that is already read. JSON is read by its own reader, some twenty times faster."""
    try:
        if name.endswith(".json") or text.startswith("{"):
            try:
                return list(_json_documents(text))
            except json.JSONDecodeError:
                if name.endswith(".json"):
                    raise
        found = yaml_documents(text)
    except (*UNREADABLE, RecursionError) as error:
        raise InvalidField(option, name, f"{in_plain_words(error)}; {remedy}") from error
    if _by_aliases(found) > _MOST_BY_ALIASES:
        raise InvalidField(option, name, f"its aliases stand for more than {_MOST_BY_ALIASES} values; {remedy}")
    return found


def _json_documents(text: str) -> Iterator[Any]:
    """One behind the other, as several calls of kubectl write them into one file."""
    decoder, at = json.JSONDecoder(), 0
    while found := _WRITTEN.search(text, at):
        document, at = decoder.raw_decode(text, found.start())
        yield document


def objects_in(found: Iterable[Any]) -> Iterator[dict[str, Any]]:
    """Kubernetes' objects of these documents. A list holds them, as `kubectl get -o yaml` writes it."""
    for document in found:
        if not isinstance(document, dict):
            continue
        items = document.get("items")
        of_items = str(document.get("kind") or "List")
        if of_items.endswith("List") and isinstance(items, list):
            kind = of_items.removesuffix("List")
            of_list = {"kind": kind, "apiVersion": document.get("apiVersion")} if kind else {}
            yield from objects_in({**of_list, **each} for each in items if isinstance(each, dict))
        else:
            yield document


def _by_aliases(document: Any) -> float:
    """How many values the aliases in it stand for; infinite where one stands for what it is in."""
    known: dict[int, float] = {}
    written = 1

    def count(value: Any) -> float:
        nonlocal written
        if not isinstance(value, dict | list):
            return 1
        if id(value) not in known:
            inner = value.values() if isinstance(value, dict) else value
            written += len(inner)
            known[id(value)] = inf
            known[id(value)] = 1 + sum(map(count, inner))
        return known[id(value)]

    return count(document) - written


def in_plain_words(error: Exception) -> str:
    """What is wrong with a file, without the words of the library that read it."""
    if isinstance(error, OSError):
        return error.strerror or "it can't be read"
    if isinstance(error, UnicodeDecodeError):
        return "not text in UTF-8"
    if isinstance(error, TooDeepError):
        return f"it nests more than {DEEPEST} levels"
    if isinstance(error, json.JSONDecodeError):
        return f"not readable as JSON: see line {error.lineno}, column {error.colno}"
    mark = getattr(error, "problem_mark", None)
    return "not readable as YAML" + (f": see line {mark.line + 1}, column {mark.column + 1}" if mark else "")
