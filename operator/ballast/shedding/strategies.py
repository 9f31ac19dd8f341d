"""The strategies that look at traffic, by the name that a policy gives them.

`shed(name, load, settings, state)` is one pass of any of them. Settings are plain numbers by the names that a policy
uses (snake case; absent ones have the strategy's defaults); the state is a JSON text that the caller keeps from pass
to pass without reading it, and may start with the empty one. AvgShedder with unit Usage is apart
(`avg_shedder_usage`): it predicts, and so needs to know more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from ballast.errors import InvalidField
from ballast.shedding import shorthand
from ballast.shedding.avg_shedder_traffic import TrafficSettings, avg_shedder_traffic
from ballast.shedding.hits import HitCounts, Hits
from ballast.shedding.load import NodeLoad, PoolLoad
from ballast.shedding.overload_shedder import OverloadSettings, overload_shedder
from ballast.shedding.suggestion import Suggestion
from ballast.shedding.threshold_shedder import Averages, ThresholdSettings, threshold_shedder
from ballast.shedding.top_executors import Activity, top_executors
from ballast.shedding.transfer_load import Average, TopExecutor, TransferNode, TransferPool
from ballast.shedding.transfer_shedder import TransferMemory, TransferSettings, transfer_shedder
from ballast.shedding.uniform_load_shedder import UniformSettings, uniform_load_shedder

Settings = Mapping[str, float]


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


def _avg(load: PoolLoad, settings: Settings, state: str) -> Shed:
    default = TrafficSettings()
    chosen = TrafficSettings(
        low_threshold=settings.get("low_threshold", default.low_threshold),
        high_threshold=settings.get("high_threshold", default.high_threshold),
        low_hits=int(settings.get("low_hits", default.low_hits)),
        high_hits=int(settings.get("high_hits", default.high_hits)),
        max_unload_ratio=settings.get("max_unload_ratio", default.max_unload_ratio),
        min_rate_per_second=settings.get("min_rate", default.min_rate_per_second),
        min_bytes_per_second=settings.get("min_throughput", default.min_bytes_per_second),
    )
    known, _ = shorthand.read(state, load.names(), width=2)
    before = HitCounts(tuple(sorted((name, Hits(int(low), int(high))) for name, (low, high) in known.items())))
    result = avg_shedder_traffic(load, chosen, before)
    return Shed(
        result.suggestions, shorthand.written({name: (hits.low, hits.high) for name, hits in result.memory.by_node})
    )


def _threshold(load: PoolLoad, settings: Settings, state: str) -> Shed:
    default = ThresholdSettings()
    chosen = ThresholdSettings(
        threshold=settings.get("threshold", default.threshold),
        history_ratio=settings.get("history_weight", default.history_ratio),
        min_bytes_per_second=settings.get("min_throughput", default.min_bytes_per_second),
        lower_boundary=bool(settings.get("lower_boundary", default.lower_boundary)),
    )
    known, _ = shorthand.read(state, load.names(), width=1)
    before = Averages(tuple(sorted((name, usage) for name, (usage,) in known.items())))
    result = threshold_shedder(load, chosen, before)
    return Shed(result.suggestions, shorthand.written({name: (usage,) for name, usage in result.memory.by_node}))


def _overload(load: PoolLoad, settings: Settings, state: str) -> Shed:
    chosen = OverloadSettings(threshold=settings.get("threshold", OverloadSettings().threshold))
    return Shed(overload_shedder(load, chosen), state)


def _uniform(load: PoolLoad, settings: Settings, state: str) -> Shed:
    default = UniformSettings()
    most = settings.get("max_executors")
    chosen = UniformSettings(
        rate_difference_percent=settings.get("rate_difference", default.rate_difference_percent),
        bytes_ratio=settings.get("throughput_ratio", default.bytes_ratio),
        max_unload_ratio=settings.get("max_unload_ratio", default.max_unload_ratio),
        min_rate_per_second=settings.get("min_rate", default.min_rate_per_second),
        min_bytes_per_second=settings.get("min_throughput", default.min_bytes_per_second),
        max_executors=None if most is None else int(most),
    )
    return Shed(uniform_load_shedder(load, chosen), state)


_CANDIDATES = 10.0


def _transfer(load: PoolLoad, settings: Settings, state: str) -> Shed:
    default = TransferSettings()
    chosen = TransferSettings(
        target_std_ratio=settings.get("target_std_dev", 100 * default.target_std_ratio) / 100,
        hits=int(settings.get("hits", default.hits)),
        max_nodes=int(settings.get("max_nodes_per_pass", default.max_nodes)),
        cooldown_seconds=settings.get("delay", default.cooldown_seconds),
        ttl_seconds=settings.get("max_age", default.ttl_seconds),
        overload_threshold=settings.get("overload_threshold", default.overload_threshold),
        history_ratio=settings.get("history_weight", default.history_ratio),
    )
    most = int(settings.get("max_candidates", _CANDIDATES))
    pool = TransferPool(tuple(_transfer_node(node, most) for node in load.nodes), load.names())
    known, hits = shorthand.read(state, load.names(), width=2)
    before = tuple(sorted((name, Average(ratio, volume)) for name, (ratio, volume) in known.items()))
    result = transfer_shedder(
        pool, chosen, TransferMemory(before, int(hits)), allowed=lambda _, source, target: source != target
    )
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
