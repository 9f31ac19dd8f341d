"""Which executors leave a node so that a given amount of traffic leaves with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ballast.shedding.load import ExecutorLoad, NodeLoad

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
