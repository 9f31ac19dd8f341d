"""What a shedding strategy looks at: nodes with their scores and traffic, and the executors on them.

Every strategy is a function of `(PoolLoad, settings, memory)` that returns suggestions and the memory for the next
pass; nothing else is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ExecutorLoad:
    """The unit of a move (Pulsar: a bundle)."""

    name: str
    """Unique in the pool, such as `namespace/pod`."""
    rate_per_second: float | None = None
    """Records in and out; None when there is no figure: then it counts as present and is never chosen."""
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
    """Age of the figures."""
    since_unload_seconds: float | None = None
    """From the last unload of the node to its figures; None when it was not unloaded recently."""
    executors: tuple[ExecutorLoad, ...] = ()
    receives: bool = True
    """False: nothing new may be sent there, so it only gives, and how little it has to do says nothing."""

    def candidates(self) -> list[ExecutorLoad]:
        """The executors that may be suggested, in the given order."""
        return [executor for executor in self.executors if executor.movable and executor.known]


@dataclass(frozen=True, slots=True)
class PoolLoad:
    """One moment of a pool. Where figures tie, the node or executor that stands first wins."""

    nodes: tuple[NodeLoad, ...]
    silent: frozenset[str] = frozenset()
    """Nodes of the pool that have no fresh figures now: what a strategy remembers of them stays as it is."""

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
