"""A rule for prose: a file in `rules`, with what it finds, the remedy, and examples of both."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field

from tests.prose.text import Piece

RULES = Path(__file__).parent / "rules"


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    remedy: str
    pattern: str = ""
    words: dict[str, str] = {}
    """Regular expression of a word, and what to write instead."""
    only: list[str] = []
    """Paths that the rule is limited to; each is a prefix. Default: everything."""
    bad: Annotated[list[str], Field(min_length=1)]
    good: list[str] = []


@dataclass(frozen=True)
class Rule:
    name: str
    file: _File

    @classmethod
    def read(cls, path: Path) -> Self:
        """Raises pydantic's ValidationError for a mistyped key."""
        return cls(path.stem, _File.model_validate(yaml.safe_load(path.read_text())))

    @cached_property
    def _expression(self) -> re.Pattern[str]:
        words = [self.file.pattern] if self.file.pattern else []
        words += [rf"\b(?:{word})\b" for word in self.file.words]
        # Text is wrapped anywhere, so a space also matches a line break and the indentation after it.
        return re.compile("|".join(words).replace(" ", r"\s+"), re.IGNORECASE)

    def concerns(self, path: str) -> bool:
        return not self.file.only or path.startswith(tuple(self.file.only))

    def findings(self, piece: Piece) -> list[tuple[int, str]]:
        """The line and the remedy of each match."""
        return [
            (piece.line_at(found.start()), f'"{" ".join(found[0].split())}": {self._remedy(found[0])}')
            for found in self._expression.finditer(piece.text)
        ]

    def _remedy(self, found: str) -> str:
        for word, instead in self.file.words.items():
            if re.fullmatch(word.replace(" ", r"\s+"), found, re.IGNORECASE):
                return f'write "{instead}" ({self.file.remedy})'
        return self.file.remedy


def all_rules() -> list[Rule]:
    return [Rule.read(path) for path in sorted(RULES.glob("*.yaml"))]
