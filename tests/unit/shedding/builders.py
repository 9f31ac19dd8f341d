"""Pools in a few words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ballast.model.reason import Reason
from ballast.shedding.load import ExecutorLoad, NodeLoad, PoolLoad, UsageExecutor, UsageNode, UsagePool

MIB = 1024.0 * 1024.0


def busy(
    name: str,
    score: float,
    rates: Sequence[float] = (),
    *,
    rate: float | None = None,
    volumes: Sequence[float] = (),
    volume: float | None = None,
) -> NodeLoad:
    """A node with executors `name/0`, `name/1`… of the given rates (records) or volumes (bytes)."""
    count = max(len(rates), len(volumes))
    padded_rates = [*rates, *[0.0] * (count - len(rates))]
    padded_volumes = [*volumes, *[0.0] * (count - len(volumes))]
    executors = tuple(ExecutorLoad(f"{name}/{i}", padded_rates[i], padded_volumes[i]) for i in range(count))
    return NodeLoad(
        name,
        score,
        rate_per_second=sum(rates) if rate is None else rate,
        bytes_per_second=sum(volumes) if volume is None else volume,
        executors=executors,
    )


def pool(*nodes: NodeLoad) -> PoolLoad:
    return PoolLoad.of(nodes)


def used(
    name: str,
    score: float,
    loads: Sequence[float | None] = (),
    *,
    cores: float = 16.0,
    speed: float = 1.0,
    receives: bool = True,
    refusals: Mapping[int, Reason] | None = None,
) -> UsageNode:
    """A node with executors `name/0`, `name/1`… that use so many cores."""
    said = refusals or {}
    executors = tuple(UsageExecutor(f"{name}/{i}", load, said.get(i)) for i, load in enumerate(loads))
    return UsageNode(name, score, cores, speed, receives, executors)


def usage_pool(*nodes: UsageNode) -> UsagePool:
    return UsagePool(nodes)
