"""What a filter on a label's column asks of a series: tested on the series itself, and told to Prometheus."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Asks(StrEnum):
    EQUAL = "equal"
    STARTS = "starts"
    ENDS = "ends"
    CONTAINS = "contains"
    ABSENT = "absent"


@dataclass(frozen=True, slots=True)
class LabelTest:
    """`label` must (or, where `negated`, must not) be one of the texts, start with one, and so on.

    As in SQL, a series without the label (null in its column) fails every test but that of absence.
    """

    label: str
    asks: Asks
    texts: tuple[str, ...] = ()
    negated: bool = False

    def holds(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.label) or None
        if self.asks is Asks.ABSENT:
            return (value is None) != self.negated
        return value is not None and any(self._hits(value, text) for text in self.texts) != self.negated

    def _hits(self, value: str, text: str) -> bool:
        match self.asks:
            case Asks.STARTS:
                return value.startswith(text)
            case Asks.ENDS:
                return value.endswith(text)
            case Asks.CONTAINS:
                return text in value
            case _:
                return value == text

    def matcher(self) -> str:
        """A PromQL matcher that every series passes for which the test holds, and perhaps others."""
        operator = "!" if self.negated else "="
        if self.asks is Asks.ABSENT:
            return f'{self.label}{"!=" if self.negated else "="}""'
        if self.asks is Asks.EQUAL and len(self.texts) == 1:
            return f"{self.label}{operator.rstrip('=')}={quoted(self.texts[0])}"
        return f"{self.label}{operator}~{quoted('|'.join(self._expression(text) for text in self.texts))}"

    def _expression(self, text: str) -> str:
        literal = re.sub(r"([\\.+*?()|\[\]{}^$])", r"\\\1", text)
        before = "(?s:.*)" if self.asks in (Asks.ENDS, Asks.CONTAINS) else ""
        after = "(?s:.*)" if self.asks in (Asks.STARTS, Asks.CONTAINS) else ""
        return before + literal + after


def quoted(text: str) -> str:
    """A string literal of PromQL, whose escapes are those of JSON and more."""
    return json.dumps(text, ensure_ascii=False)
