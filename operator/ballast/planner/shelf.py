"""A strategy's own memory as text, so that status can keep it whatever the strategy."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any, TypeVar, cast

from pydantic import TypeAdapter, ValidationError

from ballast.model import Memory

T = TypeVar("T")

USAGE = "AvgShedderUsage"
"""The key of AvgShedder with unit Usage, whose state differs from that with unit Traffic."""


def shelved(memory: Memory, name: str, state: object) -> Memory:
    """`memory` with the state of strategy `name`."""
    text = dumped(state)
    others = {key: value for key, value in memory.shedding if key != name}
    return replace(memory, shedding=tuple(sorted({**others, name: text}.items())))


def restored(memory: Memory, name: str, kind: type[T]) -> T | None:
    """The state of strategy `name`; None when there is none, or one that this version can't read."""
    text = dict(memory.shedding).get(name)
    return None if text is None else loaded(text, kind)


def dumped(state: object) -> str:
    return _adapter(cast("Any", type(state))).dump_json(state).decode()


def loaded(text: str, kind: type[T]) -> T | None:
    """None for a text that this version can't read."""
    try:
        found: T = _adapter(cast("Any", kind)).validate_json(text)
    except ValidationError:
        return None
    return found


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    """Building one takes longer than a pass."""
    return TypeAdapter(kind)
