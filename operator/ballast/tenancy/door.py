"""The door: what the objects of one namespace, and of all, may bring into memory and into a pass.

Owners of a namespace make mistakes: a loop that creates topologies, a template with a random label. What is beyond a
limit is turned away, the youngest objects first, so that nothing behind the door needs a bound for each namespace.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Limit:
    """Of one namespace, and of all together. Beyond the latter, each namespace may use half of its equal part."""

    what: str
    each: int
    all: int

    def __str__(self) -> str:
        return f"{self.each >> 20} MiB {self.what}" if self.each >= 1 << 20 else f"{self.each} {self.what}"


TOPOLOGIES = Limit("SparkTopologies", 100, 5_000)
COMPONENTS = Limit("components of SparkTopologies", 2_000, 20_000)
MOVES_BY_HAND = Limit("open ExecutorMoves by hand", 50, 500)
EXECUTORS = Limit("executors and drivers", 5_000, 200_000)
ENDED = Limit("executors and drivers that have ended", 500, 20_000)
SHAPES = Limit("executors' shapes (requests, node selector, required node affinity, tolerations)", 64, 2_000)
KEPT_BYTES = Limit("of what is kept of their specs", 2 << 20, 16 << 20)
"""Of one kind. Parsed, it takes five to seven times as much."""


class Usage:
    """What is used of one limit, by namespace."""

    def __init__(self, limit: Limit) -> None:
        self._limit, self._total = limit, 0
        self._used: Counter[str] = Counter()

    def fits(self, namespace: str, amount: int) -> bool:
        namespaces = len(self._used) + (namespace not in self._used)
        left, part = self._limit.all - self._total, self._limit.all // (2 * namespaces)
        used = self._used.get(namespace, 0)
        return used + amount <= self._limit.each and amount <= max(left, part - used)

    def add(self, namespace: str, amount: int) -> None:
        self._used[namespace] += amount
        self._total += amount
        if not self._used[namespace]:
            del self._used[namespace]

    def crowded(self) -> Collection[str]:
        """The namespaces in which not everything fits; all of them where they use too much together."""
        if self._total > self._limit.all:
            return self._used.keys()
        return [namespace for namespace, used in self._used.items() if used > self._limit.each]


class ByValue:
    """A key that is hashed once: each object is looked up several times, and its template may be long."""

    __slots__ = ("_hash", "_value")

    def __init__(self, value: Hashable) -> None:
        # In a tuple, what is the same object is not compared part by part.
        self._value = (value,)
        self._hash = hash(value)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ByValue) and self._hash == other._hash and self._value == other._value


class Takes(NamedTuple):
    """What one object takes. Objects of equal shape take one of SHAPES together."""

    amounts: tuple[tuple[Limit, int], ...] = ()
    shape: Hashable = None


class Tally:
    """What all objects take, as they come and go."""

    def __init__(self) -> None:
        self._usages: dict[Limit, Usage] = {}
        self._shapes: Counter[tuple[str, Hashable]] = Counter()

    def add(self, namespace: str, takes: Takes, sign: int = 1) -> None:
        for limit, amount in takes.amounts:
            self._usage(limit).add(namespace, sign * amount)
        if takes.shape is None:
            return
        key = namespace, takes.shape
        before, self._shapes[key] = self._shapes[key], self._shapes[key] + sign
        if not before or not self._shapes[key]:
            self._usage(SHAPES).add(namespace, sign)
        if not self._shapes[key]:
            del self._shapes[key]

    def remove(self, namespace: str, takes: Takes) -> None:
        self.add(namespace, takes, -1)

    def exceeded(self, namespace: str, takes: Takes) -> Limit | None:
        """The limit that one more object would exceed."""
        asked = list(takes.amounts)
        if takes.shape is not None and (namespace, takes.shape) not in self._shapes:
            asked.append((SHAPES, 1))
        return next((limit for limit, amount in asked if not self._usage(limit).fits(namespace, amount)), None)

    def crowded(self) -> frozenset[str]:
        """The namespaces of which something is to be turned away."""
        return frozenset(namespace for usage in self._usages.values() for namespace in usage.crowded())

    def _usage(self, limit: Limit) -> Usage:
        if limit not in self._usages:
            self._usages[limit] = Usage(limit)
        return self._usages[limit]


@dataclass(frozen=True, slots=True)
class Guest(Generic[T]):
    """An object at the door."""

    thing: T
    namespace: str
    age: tuple[float | str, str]
    """When it was created, and its name: the oldest comes in first."""
    takes: Takes


def turned_away(guests: Iterable[Guest[T]]) -> list[tuple[T, Limit]]:
    """Those that are beyond a limit, and which one: a function of what is there, in whatever order it was read."""
    inside, outside = Tally(), []
    for guest in sorted(guests, key=lambda guest: guest.age):
        limit = inside.exceeded(guest.namespace, guest.takes)
        if limit is None:
            inside.add(guest.namespace, guest.takes)
        else:
            outside.append((guest.thing, limit))
    return outside


class Kept:
    """Bytes that are kept of what several objects may share: they count once, for as long as one has it."""

    def __init__(self, limit: Limit = KEPT_BYTES) -> None:
        self._usage = Usage(limit)
        self._sizes: dict[tuple[str, Hashable], int] = {}
        self._holders: Counter[tuple[str, Hashable]] = Counter()

    def fits(self, namespace: str, key: Hashable, size: int) -> bool:
        """Whether it is kept already, or may be."""
        return (namespace, key) in self._holders or self._usage.fits(namespace, size)

    def add(self, namespace: str, key: Hashable, size: int) -> None:
        if not self._holders[namespace, key]:
            self._sizes[namespace, key] = size
            self._usage.add(namespace, size)
        self._holders[namespace, key] += 1

    def remove(self, namespace: str, key: Hashable) -> None:
        """Does nothing where it is not kept."""
        if (namespace, key) not in self._holders:
            return
        self._holders[namespace, key] -= 1
        if not self._holders[namespace, key]:
            del self._holders[namespace, key]
            self._usage.add(namespace, -self._sizes.pop((namespace, key)))

    def replace(self, namespace: str, key: Hashable, size: int) -> bool:
        """Of one object: whether it fits in place of what was kept of it. If not, nothing is kept of it."""
        self.remove(namespace, key)
        fits = self.fits(namespace, key, size)
        if fits:
            self.add(namespace, key, size)
        return fits
