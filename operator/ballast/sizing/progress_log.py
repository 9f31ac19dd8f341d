"""Where StreamingQueryProgress is found: one object a line, objects over several lines, or the log of a driver."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

_ANNOUNCED = re.compile(r"Streaming query made progress:\s*")
_OF_KUBECTL = re.compile(r"^(?:\[pod/\S+\] )?(?:\d{4}-\d\d-\d\dT[\d:.]+Z )?", re.ASCII)
"""What `kubectl logs` writes before each line with --prefix and --timestamps."""
_DECODER = json.JSONDecoder()


def reported(lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    """The number of the line at which each object begins, and the object in one line.

    Lines are returned as they are where they neither are of a log nor begin an object over several lines.
    """
    every = list(lines)
    if any(_ANNOUNCED.search(line) for line in every):
        yield from _of_log([_OF_KUBECTL.sub("", line) for line in every])
    elif next((line.strip() for line in every if line.strip()), "") in ("{", "["):
        yield from _values("\n".join(every))
    else:
        yield from enumerate(every, start=1)


def _of_log(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Spark writes the object over several lines behind the announcement, or all in one line of structured logs."""
    for at, line in enumerate(lines):
        found = _ANNOUNCED.search(line)
        if found is None:
            continue
        structured = _message(line)
        if structured is not None:
            yield at + 1, _object(structured)
        else:
            end = next((i for i in range(at + 1, len(lines)) if lines[i].rstrip() == "}"), at)
            yield at + 1, _object("\n".join([line[found.start() :], *lines[at + 1 : end + 1]]))


def _message(line: str) -> str | None:
    """Of a line of structured logs, which are JSON."""
    if not line.startswith("{"):
        return None
    try:
        document = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return next((str(document[key]) for key in ("msg", "message") if key in document), None)


def _object(text: str) -> str:
    """Where no object follows, what does: its reader refuses it by the number of its line."""
    found = _ANNOUNCED.search(text)
    rest = text[found.end() :] if found is not None else text
    try:
        return json.dumps(_DECODER.raw_decode(rest)[0])
    except (ValueError, RecursionError):
        return rest.partition("\n")[0] or "nothing"


def _values(text: str) -> Iterator[tuple[int, str]]:
    """Objects one after the other, or in arrays."""
    at = 0
    while at < len(text):
        if text[at].isspace() or text[at] == ",":
            at += 1
            continue
        number = text.count("\n", 0, at) + 1
        try:
            value, at = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            yield number, text[at:].partition("\n")[0]
            return
        for each in _each(value):
            yield number, json.dumps(each)


def _each(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
