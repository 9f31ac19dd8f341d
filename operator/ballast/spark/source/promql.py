"""The little of PromQL that the data source must read: where a matcher may be added, and what the range's ends mean."""

from __future__ import annotations

import re
from collections.abc import Iterable

_STRING = r"""(?:"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|`[^`]*`)"""
_NAME = r"(?!(?i:inf|nan)\b)[a-zA-Z_:][a-zA-Z0-9_:]*"
_MATCHERS = rf"\{{(?P<matchers>(?:{_STRING}|[^{{}}\"'`#])*)\}}"
_SPAN = r"(?:[0-9]+(?:ms|[smhdwy]))+"
_WHEN = rf"(?:\s*(?:offset\s+-?\s*{_SPAN}|@\s*[0-9.]+))*"
# Each series of these comes from one series of their selector alone and keeps its labels, the name aside.
_KEEPING = (
    "avg_over_time|changes|count_over_time|delta|deriv|idelta|increase|irate|last_over_time|max_over_time"
    "|min_over_time|present_over_time|rate|resets|stddev_over_time|stdvar_over_time|sum_over_time"
)
_SELECTOR = rf"(?:{_NAME}\s*(?:{_MATCHERS})?|{_MATCHERS.replace('matchers', 'bare')})"
_INSTANT = re.compile(rf"\s*{_SELECTOR}{_WHEN}\s*", re.DOTALL)
_RANGE = re.compile(rf"\s*(?:{_KEEPING})\s*\(\s*{_SELECTOR}\s*\[\s*{_SPAN}\s*\]{_WHEN}\s*\)\s*", re.DOTALL)
_SELECTOR_AT = re.compile(rf"(?<![\w:])(?!(?:{_KEEPING})\s*\(){_SELECTOR}", re.DOTALL)
_LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*", re.ASCII)
_END_OF_RANGE = re.compile(rf"{_STRING}|#[^\n]*|@\s*(?P<which>start|end)\s*\(\s*\)", re.DOTALL)


def takes_matchers(query: str) -> bool:
    """Whether each series of the answer comes from one selected series and has its labels.

    So it is for one selector, alone or in a function over a range that keeps labels. Then, and only then, a matcher
    more in the selector leaves out series of the answer and changes no other.
    """
    return bool(_INSTANT.fullmatch(query) or _RANGE.fullmatch(query))


def is_plain_label(name: str) -> bool:
    """Whether a matcher on it can be written as in every version, and added next to a metric's name."""
    return bool(_LABEL.fullmatch(name)) and name != "__name__"


def with_matchers(query: str, matchers: Iterable[str]) -> str:
    """The query with more matchers in its selector, where `takes_matchers`."""
    added = ",".join(matchers)
    if not added:
        return query
    found = _selector_of(query)
    inside = found["matchers"] if found["matchers"] is not None else found["bare"]
    if inside is None:
        at = found.end() - (len(found[0]) - len(found[0].rstrip()))
        return f"{query[:at]}{{{added}}}{query[at:]}"
    at = found.end() - 1
    comma = "," if inside.strip() and not inside.rstrip().endswith(",") else ""
    return f"{query[:at]}{comma}{added}{query[at:]}"


def selector(query: str) -> str:
    """The selector alone of a query that takes matchers."""
    return _selector_of(query)[0].strip()


def pinned(query: str, *, start_ms: int, end_ms: int) -> str:
    """The query with the times of the whole range for `@ start()` and `@ end()`: a part of it has others."""
    times = {"start": start_ms, "end": end_ms}

    def pin(found: re.Match[str]) -> str:
        which = found["which"]
        return f"@ {times[which] // 1000}.{times[which] % 1000:03d}" if which else found[0]

    return _END_OF_RANGE.sub(pin, query)


def _selector_of(query: str) -> re.Match[str]:
    found = _SELECTOR_AT.search(query)
    if found is None:
        raise ValueError(f"no selector in {query!r}")
    return found
