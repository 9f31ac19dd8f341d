"""The strategies that look at traffic, by the name that a policy gives them.

`shed(name, load, settings, state)` is one pass of any of them. Settings are plain numbers by the names that a policy
uses (snake case; absent ones have the strategy's defaults); the state is a text that the caller keeps from pass to
pass without reading it, and may start with the empty one. AvgShedder with unit Usage is apart
(`avg_shedder_usage`): it predicts, and so needs to know more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from ballast.errors import InvalidField
from ballast.shedding import settings as read
from ballast.shedding import shorthand
from ballast.shedding.avg_shedder_traffic import avg_shedder_traffic
from ballast.shedding.hits import HitCounts, Hits
from ballast.shedding.load import NodeLoad, PoolLoad
from ballast.shedding.overload_shedder import overload_shedder
from ballast.shedding.settings import Settings
from ballast.shedding.suggestion import Suggestion
from ballast.shedding.threshold_shedder import Averages, threshold_shedder
from ballast.shedding.top_executors import Activity, top_executors
from ballast.shedding.transfer_load import Average, TopExecutor, TransferNode, TransferPool
from ballast.shedding.transfer_shedder import TransferMemory, transfer_shedder
from ballast.shedding.uniform_load_shedder import uniform_load_shedder

_CANDIDATES = 10.0
"""Executors of a node that TransferShedder looks at, unless the policy's `max_candidates` says otherwise."""


@dataclass(frozen=True, slots=True)
class Shed:
    suggestions: tuple[Suggestion, ...]
    """`target` is None where the strategy leaves the destination to placement."""
    state: str


def shed(name: str, load: PoolLoad, settings: Settings, state: str) -> Shed:
    """One pass of strategy `name`; a state that it can't read is a fresh start.

    Raises InvalidField for a name that is not in `STRATEGIES`.
    """
    if name not in STRATEGIES:
        raise InvalidField("shedding.strategy", name, f"choose one of {', '.join(sorted(STRATEGIES))}")
    return STRATEGIES[name](load, settings, state)


def hit_counts(state: str, names: Iterable[str]) -> HitCounts:
    """What AvgShedder's state says of the named nodes."""
    known, _ = shorthand.read(state, names, width=2)
    return HitCounts(tuple(sorted((name, Hits(int(low), int(high))) for name, (low, high) in known.items())))


def _avg(load: PoolLoad, settings: Settings, state: str) -> Shed:
    result = avg_shedder_traffic(load, read.traffic(settings), hit_counts(state, load.names()))
    # A pair goes by the higher count of its two nodes, so that of a silent one's partner need not be kept.
    resting, _ = shorthand.read(state, load.silent, width=2)
    counts = {name: (hits.low, hits.high) for name, hits in result.memory.by_node}
    return Shed(result.suggestions, shorthand.written({**resting, **counts}))


def _threshold(load: PoolLoad, settings: Settings, state: str) -> Shed:
    known, _ = shorthand.read(state, load.names(), width=1)
    before = Averages(tuple(sorted((name, usage) for name, (usage,) in known.items())))
    result = threshold_shedder(load, read.threshold(settings), before)
    resting, _ = shorthand.read(state, load.silent, width=1)
    averages = {name: (usage,) for name, usage in result.memory.by_node}
    return Shed(result.suggestions, shorthand.written({**resting, **averages}))


def _overload(load: PoolLoad, settings: Settings, state: str) -> Shed:
    return Shed(overload_shedder(load, read.overload(settings)), state)


def _uniform(load: PoolLoad, settings: Settings, state: str) -> Shed:
    return Shed(uniform_load_shedder(load, read.uniform(settings)), state)


def _transfer(load: PoolLoad, settings: Settings, state: str) -> Shed:
    known, hits = shorthand.read(state, load.names() | load.silent, width=2)
    before = tuple(sorted((name, Average(ratio, volume)) for name, (ratio, volume) in known.items()))
    most = int(settings.get("max_candidates", _CANDIDATES))
    pool = TransferPool(tuple(_transfer_node(node, most) for node in load.nodes), load.names(), load.silent)
    result = transfer_shedder(pool, read.transfer(settings), TransferMemory(before, int(hits)), allowed=lambda *_: True)
    averages = {name: (each.load_ratio, each.bytes_per_second) for name, each in result.memory.averages}
    return Shed(result.suggestions, shorthand.written(averages, extra=result.memory.hits))


def _transfer_node(node: NodeLoad, most: int) -> TransferNode:
    known = {executor.name: executor for executor in node.executors if executor.known}
    activities = (
        Activity(name, executor.bytes_per_second or 0.0, 0.0, executor.rate_per_second or 0.0)
        for name, executor in known.items()
    )
    top = (known[name] for name in top_executors(activities, most=most))
    return TransferNode(
        name=node.name,
        score=node.score,
        bytes_per_second=node.bytes_per_second,
        top=tuple(TopExecutor(each.name, each.bytes_per_second or 0.0, each.movable) for each in top),
        age_seconds=node.age_seconds,
        since_unload_seconds=node.since_unload_seconds,
        receives=node.receives,
    )


STRATEGIES: Mapping[str, Callable[[PoolLoad, Settings, str], Shed]] = MappingProxyType(
    {
        "AvgShedder": _avg,
        "ThresholdShedder": _threshold,
        "OverloadShedder": _overload,
        "UniformLoadShedder": _uniform,
        "TransferShedder": _transfer,
    }
)
