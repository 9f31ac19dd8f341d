"""Fairness between namespaces: what one user creates by the thousand must not keep others from their turn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar
from zlib import crc32

T = TypeVar("T")


def in_turn(ranked: Iterable[T], *, namespace: Callable[[T], str], served: Mapping[str, int] | None = None) -> list[T]:
    """The first one of each namespace, then the second ones, and so on: no namespace crowds others out.

    `ranked`: in each namespace, the first comes first. `served`: by namespace, when it last had a turn; of equal ones,
    that of the namespace which had it earliest comes first.
    """
    numbers = Counter[str]()
    turns: list[tuple[int, int, T]] = []
    for each in ranked:
        space = namespace(each)
        turns.append((numbers[space], (served or {}).get(space, 0), each))
        numbers[space] += 1
    return [each for _, _, each in sorted(turns, key=lambda turn: turn[:2])]


def lots(namespaces: Iterable[str], *, draw: int) -> dict[str, int]:
    """For `served`, where it is not remembered which had a turn: another order of the namespaces for each `draw`.

    One user may have many namespaces, whose names come first.
    """
    return {name: crc32(f"{draw}/{name}".encode()) for name in set(namespaces)}


def named(keys: Iterable[str], *, most: int) -> str:
    """For people: so many of these (each begins with `namespace/`), namespaces in turn, and how many there are more."""
    ranked = in_turn(keys, namespace=lambda key: key.partition("/")[0])
    more = f" and {len(ranked) - most} more" if len(ranked) > most else ""
    return ", ".join(ranked[:most]) + more
