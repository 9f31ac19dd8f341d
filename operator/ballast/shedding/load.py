"""What a shedding strategy looks at and what it answers.

It looks at nodes with their scores and traffic and the executors on them; with unit Usage at scores in percent of each
node's own capacity. It answers with suggestions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from ballast.model.reason import Reason


@dataclass(frozen=True, slots=True)
class ExecutorLoad:
    """The unit of a move (Pulsar: a bundle)."""

    name: str
    """Unique in the pool, such as `namespace/pod`."""
    rate_per_second: float | None = None
    """Records in and out; None when there is no value: then it counts as present and is never chosen."""
    bytes_per_second: float | None = None
    """Bytes in and out."""
    movable: bool = True
    """False: something forbids the move (it was moved recently, say)."""

    @property
    def known(self) -> bool:
        return self.rate_per_second is not None and self.bytes_per_second is not None


@dataclass(frozen=True, slots=True)
class NodeLoad:
    name: str
    score: float
    """Largest weighted resource usage, in percent of the node's own capacity; can exceed 100."""
    rate_per_second: float = 0.0
    """Records in and out of the node, as the node itself reports them."""
    bytes_per_second: float = 0.0
    age_seconds: float = 0.0
    """Age of the values."""
    since_unload_seconds: float | None = None
    """From the last unload of the node to its values; None when it was not unloaded recently."""
    executors: tuple[ExecutorLoad, ...] = ()
    receives: bool = True
    """False: nothing new may be sent there, so it only gives, and how little it has to do says nothing."""

    def candidates(self) -> list[ExecutorLoad]:
        """The executors that may be suggested, in the given order."""
        return [executor for executor in self.executors if executor.movable and executor.known]


@dataclass(frozen=True, slots=True)
class PoolLoad:
    """One moment of a pool. Where values tie, the node or executor that stands first wins."""

    nodes: tuple[NodeLoad, ...]
    silent: frozenset[str] = frozenset()
    """Nodes of the pool that have no fresh metrics now: what a strategy remembers of them stays as it is."""

    @classmethod
    def of(cls, nodes: Iterable[NodeLoad], silent: frozenset[str] = frozenset()) -> PoolLoad:
        """The pool in the order of names, so that the order in which it was read decides nothing."""
        return cls(tuple(sorted(nodes, key=lambda node: node.name)), silent)

    def names(self) -> frozenset[str]:
        return frozenset(node.name for node in self.nodes)


# Which executors leave a node so that a given amount of traffic leaves with them.

Size = Callable[[ExecutorLoad], float]


def rate(executor: ExecutorLoad) -> float:
    return executor.rate_per_second or 0.0


def volume(executor: ExecutorLoad) -> float:
    return executor.bytes_per_second or 0.0


def largest_first(node: NodeLoad, size: Size) -> list[ExecutorLoad]:
    """The candidates of a node; equal ones stay in the given order."""
    return sorted(node.candidates(), key=lambda executor: -size(executor))


def filling(node: NodeLoad, *, need: float, size: Size) -> Iterator[ExecutorLoad]:
    """The largest that fit into `need`, then smaller ones into what is left; never above `need`, never idle ones."""
    left = need
    for executor in largest_first(node, size):
        if 0 < size(executor) <= left:
            left -= size(executor)
            yield executor


def reaching(node: NodeLoad, *, need: float, size: Size, idle_too: bool = False) -> Iterator[ExecutorLoad]:
    """The largest until `need` is met, at least one; the last may exceed it. A node's only executor stays.

    Those without traffic stay as well, unless `idle_too`: moving them brings nothing nearer.
    """
    if len(node.executors) <= 1:
        return
    marked = 0.0
    for index, executor in enumerate(largest_first(node, size)):
        if (index > 0 and marked >= need) or (size(executor) <= 0 and not idle_too):
            return
        marked += size(executor)
        yield executor


@dataclass(frozen=True, slots=True)
class UsageExecutor:
    name: str
    """Unique in the pool, such as `namespace/pod`."""
    load_cores: float | None
    """CPU cores of load that a move takes along, as used on the node where it is; None = unknown, never moved."""
    refusal: Reason | None = None
    """Why it may not be moved at all; None = it may."""
    idle: bool = False
    """Whether its move would level nothing, wherever it went."""


@dataclass(frozen=True, slots=True)
class UsageNode:
    name: str
    score: float
    """Percent of its own capacity, what is arriving and leaving included; can exceed 100."""
    capacity_cores: float
    """CPU that makes up 100 points (allocatable cores divided by the CPU weight)."""
    speed: float = 1.0
    """Work done per core-second, relative to the pool's ordinary machine."""
    receives: bool = True
    """False: nothing new may be sent there (cordoned, leaving, not ready, tainted for all)."""
    executors: tuple[UsageExecutor, ...] = ()
    gives: bool = True
    """False: nothing that runs there could be moved, so its partner is better paired with another hot node."""
    astray: float = 0.0
    """Points of its score by which its executors differ from the means of their applications."""
    foreign: float = 0.0
    """Points of its score that its executors don't make."""
    passing: float = 0.0
    """Points by which the score was brought nearer the pool's middle, since they are not known to last."""


@dataclass(frozen=True, slots=True)
class UsagePool:
    """The nodes with fresh metrics. Their order decides nothing; equal values go by name."""

    nodes: tuple[UsageNode, ...]
    silent: frozenset[str] = frozenset()
    """Nodes of the pool that have no fresh metrics now."""
    unsettled: frozenset[str] = frozenset()
    """Nodes whose score changes for a known reason; it teaches nothing about chance."""
    moving: frozenset[str] = frozenset()
    """Those of them that a move leaves or reaches."""


class Terms(Protocol):
    """What a move would cost and whether it is possible; asked only of executors and nodes that come into question."""

    def takes(self, executor: str, target: str) -> bool:
        """Whether `target` admits `executor` and has room for it; quickly, and `refusal` may still object."""

    def is_near(self, executor: str, target: str) -> bool:
        """Whether `target` makes traffic cost no more than the policy allows; quickly, as `takes`."""

    def refusal(self, executor: str, target: str, arriving: tuple[str, ...]) -> Reason | None:
        """Why `executor` can't go to `target` once `arriving` (chosen before it in this pass) are there too."""

    def cost(self, executor: str, target: str) -> float:
        """What the move costs next to the load: state held, warmth lost, locality lost. Any unit, at least 0."""

    def locality_delta_ratio(self, executor: str, target: str) -> float:
        """Growth of its topology's cost of traffic (0.1 = 10 % more); negative = less, and so nearer."""


class AnythingGoes:
    """Terms under which every move is possible and costs nothing."""

    def takes(self, executor: str, target: str) -> bool:
        del executor, target
        return True

    def is_near(self, executor: str, target: str) -> bool:
        del executor, target
        return True

    def refusal(self, executor: str, target: str, arriving: tuple[str, ...]) -> Reason | None:
        del executor, target, arriving
        return None

    def cost(self, executor: str, target: str) -> float:
        del executor, target
        return 0.0

    def locality_delta_ratio(self, executor: str, target: str) -> float:
        del executor, target
        return 0.0


@dataclass(frozen=True, slots=True)
class Suggestion:
    executor: str
    source: str
    target: str | None
    """None: the strategy unloads without naming a destination; placement has to find one."""
    hot_score: float
    """Score of the source, percent; where moves are predicted, once the suggestions before this one are done."""
    cold_score: float | None = None
    difference: float | None = None
    """Points between the two (or between the source and what the strategy compares it with)."""
    hits: int = 0
    """How often in a row the condition had been seen."""
    hot_after: float | None = None
    """The same once this one is done, too; None = not predictable."""
    cold_after: float | None = None
    cause: str = ""
    """What the strategy saw, where it tells several conditions apart."""
