r"""kubectl's JSONPath templates for `-o jsonpath=…`: text, `{.path}`, `{range .path}…{end}` and `{"\n"}`.

A path has names, `['name']`, indices, slices, unions, `*`, `..name`, and filters of one comparison. As with kubectl,
what is not there prints nothing. Libraries for JSONPath read single paths, in other dialects, and no templates.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ballast.errors import BallastError

Step = Callable[[Any], Iterable[Any]]
"""From a value to what the step selects of it."""
Union = tuple[Step, ...]
"""Each selects of every value, one after the other; usually there is one."""

_QUOTED = r""""(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'"""
_ACTION = re.compile(rf"""\{{((?:{_QUOTED}|[^{{}}"'])*)\}}""")
_CHILD = re.compile(r"(\.\.?)((?:\\.|[^\s.\[\]()=<>!,'\"\\])+)")
_FILTER = re.compile(rf"""\[\?\(((?:{_QUOTED}|[^)"'])*)\)\]""")
_SUBSCRIPT = re.compile(rf"""\[((?:{_QUOTED}|[^\]"'])*)\]""")
_COMPARISON = re.compile(rf"""((?:{_QUOTED}|[^=<>!"'])+?)\s*(?:(==|!=|<=|>=|<|>)\s*(.+))?""")
_PART = re.compile(rf"""\s*({_QUOTED}|[^,"']+?)\s*(?:,|$)""")
_SLICE = re.compile(r"(-?\d*):(-?\d*)(?::(-?\d*))?")
_COMPARED: Mapping[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class JSONPathError(BallastError):
    """A template that can't be read."""


@dataclass(frozen=True, slots=True)
class _Path:
    unions: tuple[Union, ...]

    def found(self, value: Any) -> list[Any]:
        values = [value]
        for union in self.unions:
            values = [one for step in union for each in values for one in step(each)]
        return values


@dataclass(frozen=True, slots=True)
class _Range:
    path: _Path
    pieces: tuple[str | _Path | _Range, ...]


@dataclass(frozen=True, slots=True)
class JSONPath:
    """A template that has been read."""

    pieces: tuple[str | _Path | _Range, ...]

    @classmethod
    def parse(cls, text: str) -> JSONPath:
        """A template without braces is one path. Raises JSONPathError."""
        tokens = iter(_tokens(text if "{" in text else f"{{{text}}}"))
        return cls(tuple(_pieces(tokens, inside=False)))

    def text(self, document: Any) -> str:
        return _text(self.pieces, document)


def _text(pieces: Iterable[str | _Path | _Range], value: Any) -> str:
    out = []
    for piece in pieces:
        if isinstance(piece, str):
            out.append(piece)
        elif isinstance(piece, _Path):
            out.append(" ".join(_shown(each) for each in piece.found(value)))
        else:
            out += [_text(piece.pieces, each) for each in piece.path.found(value)]
    return "".join(out)


def _shown(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _tokens(text: str) -> Iterator[tuple[bool, str]]:
    """Text as it is, and what stands in braces, with True."""
    at = 0
    for found in _ACTION.finditer(text):
        yield False, _outside(text[at : found.start()])
        yield True, found[1].strip()
        at = found.end()
    yield False, _outside(text[at:])


def _outside(text: str) -> str:
    if "{" in text or "}" in text:
        raise JSONPathError(f"{text!r}: close every {{ with }}, and every quotation mark in between")
    return text


def _pieces(tokens: Iterator[tuple[bool, str]], *, inside: bool) -> Iterator[str | _Path | _Range]:
    """Up to the end, or up to `{end}` inside a range."""
    for action, text in tokens:
        if not action:
            yield text
        elif re.fullmatch(_QUOTED, text):
            yield _unquoted(text)
        elif text == "end":
            if not inside:
                raise JSONPathError("{end} without {range}: write {range .path}…{end}")
            return
        elif text.split(maxsplit=1)[:1] == ["range"]:
            yield _Range(_path(text.removeprefix("range").strip()), tuple(_pieces(tokens, inside=True)))
        else:
            yield _path(text)
    if inside:
        raise JSONPathError("{range} without {end}: write {range .path}…{end}")


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", lambda found: {"n": "\n", "t": "\t"}.get(found[1], found[1]), text[1:-1])


def _path(text: str) -> _Path:
    rest = text[1:] if text[:1] in ("$", "@") else text if text[:1] in (".", "[") else f".{text}"
    if rest == "." and text:  # the value itself, as {.} and {@}
        return _Path(())
    at, unions = 0, list[Union]()
    while at < len(rest):
        found = _CHILD.match(rest, at) or _FILTER.match(rest, at) or _SUBSCRIPT.match(rest, at)
        if found is None:
            raise JSONPathError(f"{text!r}: {rest[at:]!r} is not understood: write a path such as .items[*].name")
        at = found.end()
        if found.re is _CHILD:
            unions += [(_descend,)] if found[1] == ".." else []
            unions.append((_every if found[2] == "*" else _named(found[2]),))
        elif found.re is _FILTER:
            unions.append((_filtered(found[1].strip()),))
        else:
            unions.append(_union(found[1]))
    return _Path(tuple(unions))


def _every(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def _descend(value: Any) -> Iterator[Any]:
    yield value
    for each in _every(value):
        yield from _descend(each)


def _named(text: str) -> Step:
    """Dots separate names, unless they are escaped, or a name with dots is there."""
    whole = re.sub(r"\\(.)", r"\1", text)
    parts = [re.sub(r"\\(.)", r"\1", part) for part in re.findall(r"(?:\\.|[^.\\])+", text)]

    def found(value: Any) -> Iterable[Any]:
        if isinstance(value, dict) and whole in value:
            return (value[whole],)
        for part in parts:
            if not isinstance(value, dict) or part not in value:
                return ()
            value = value[part]
        return (value,) if parts else ()

    return found


def _union(text: str) -> Union:
    """By what stands in brackets, separated by commas."""
    at, parts = 0, list[Step]()
    while at < len(text) or not parts:
        found = _PART.match(text, at)
        if found is None:
            raise JSONPathError(f"[{text}]: write [0], [1:3], [*], ['name'] or [?(@.name==\"x\")]")
        parts.append(_part(found[1]))
        at = found.end()
    return tuple(parts)


def _part(text: str) -> Step:
    if re.fullmatch(_QUOTED, text):
        return _named(text[1:-1])
    if text == "*":
        return _every
    if re.fullmatch(r"-?\d+", text):
        index = int(text)
        return lambda value: value[index : index + 1 or None] if isinstance(value, list) else ()
    if sliced := _SLICE.fullmatch(text):
        bounds = slice(*(int(bound) if bound else None for bound in sliced.groups()))
        if bounds.step != 0:
            return lambda value: value[bounds] if isinstance(value, list) else ()
    raise JSONPathError(f"[{text}]: write [0], [1:3], [*], ['name'] or [?(@.name==\"x\")]")


def _filtered(text: str) -> Step:
    found = _COMPARISON.fullmatch(text)
    if found is None:
        raise JSONPathError(f'[?({text})]: write one comparison, such as [?(@.phase=="Running")]')
    left, sign, right = _operand(found[1]), found[2], _operand(found[3]) if found[2] else None

    def holds(value: Any) -> bool:
        ours = left(value)
        if right is None:
            return bool(ours)
        theirs = right(value)
        return any(_compare(sign, one, other) for one in ours for other in theirs)

    return lambda value: [each for each in _every(value) if holds(each)]


def _compare(sign: str, one: Any, other: Any) -> bool:
    try:
        return _COMPARED[sign](one, other)
    except TypeError:  # such as text and a number
        return False


def _operand(text: str) -> Callable[[Any], list[Any]]:
    text = text.strip()
    if text.startswith("@"):
        return _path(text).found
    if re.fullmatch(_QUOTED, text):
        literal: Any = _unquoted(text)
    else:
        try:
            literal = json.loads(text)
        except ValueError:
            raise JSONPathError(f"{text!r}: write @.path, text in quotation marks, or a number") from None
    return lambda _: [literal]
