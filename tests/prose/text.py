"""The prose of a file: what people read of it, with the line that each piece begins at."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_COMMENT = re.compile(r"(?:^|\s)#+ (.*)$")
_CODE_BLOCK = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
_CODE = re.compile(r"`[^`]*`|\]\([^)]*\)")


@dataclass(frozen=True, slots=True)
class Piece:
    """Prose without code. Line breaks inside are those of the file, so that a match can be located."""

    line: int
    text: str

    def line_at(self, offset: int) -> int:
        return self.line + self.text.count("\n", 0, offset)


def pieces(path: Path) -> Iterator[Piece]:
    """Raises SyntaxError for Python that can't be parsed."""
    text = path.read_text()
    if path.suffix == ".md":
        yield Piece(1, _without_code(text))
    else:
        yield from _comments(text)
    if path.suffix == ".py":
        yield from _strings_and_tests(ast.parse(text))


def _without_code(text: str) -> str:
    blanked = _CODE_BLOCK.sub(lambda block: "\n" * block[0].count("\n"), text)
    return _CODE.sub(lambda code: "CODE" + "\n" * code[0].count("\n"), blanked)


def _comments(text: str) -> Iterator[Piece]:
    """Comments on consecutive lines are one piece."""
    begun, block = 0, list[str]()
    for number, line in enumerate(text.splitlines(), 1):
        found = _COMMENT.search(line)
        if found and block and begun + len(block) == number:
            block.append(found[1])
            continue
        if block:
            yield Piece(begun, _without_code("\n".join(block)))
        begun, block = number, [found[1]] if found else []
    if block:
        yield Piece(begun, _without_code("\n".join(block)))


def _strings_and_tests(tree: ast.Module) -> Iterator[Piece]:
    """Strings of several words (docstrings, messages, descriptions, ids of cases), and the names of tests."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield Piece(node.lineno, _without_code(node.value))
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield Piece(node.lineno, node.name.replace("_", " "))
