"""The strategies that look at traffic, by the name that a policy gives them.

`shed(name, load, settings, state)` is one pass of any of them. Settings are plain numbers by the names that a policy
uses (snake case; absent ones have the strategy's defaults); the state is a text that the caller keeps from pass to
pass without reading it, and may start with the empty one. AvgShedder with unit Usage is apart
(`avg_shedder_usage`): it predicts, and so needs to know more.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from types import MappingProxyType
from typing import Any, TypeVar

from ballast.errors import InvalidField
from ballast.shedding.load import NodeLoad, PoolLoad, Suggestion
from ballast.shedding.pulsar_shedders import (
    Averages,
    HitCounts,
    Hits,
    OverloadSettings,
    ThresholdSettings,
    TrafficSettings,
    UniformSettings,
    avg_shedder_traffic,
    overload_shedder,
    threshold_shedder,
    uniform_load_shedder,
)
from ballast.shedding.transfer_pool import Activity, Average, TopExecutor, TransferNode, TransferPool, top_executors
from ballast.shedding.transfer_shedder import TransferMemory, TransferSettings, transfer_shedder

# The strategies' settings from the plain numbers of a policy; what a policy leaves out keeps its default.

Settings = Mapping[str, float]
"""By the names that a policy uses, in snake case."""
Field = tuple[str, Callable[[float], Any]]
T = TypeVar("T")


def _ratio(percent: float) -> float:
    return percent / 100.0


_TRAFFIC: Mapping[str, Field] = MappingProxyType(
    {
        "low_threshold": ("low_threshold", float),
        "high_threshold": ("high_threshold", float),
        "low_hits": ("low_hits", int),
        "high_hits": ("high_hits", int),
        "max_unload_ratio": ("max_unload_ratio", float),
        "min_rate": ("min_rate_per_second", float),
        "min_throughput": ("min_bytes_per_second", float),
    }
)
_THRESHOLD: Mapping[str, Field] = MappingProxyType(
    {
        "threshold": ("threshold", float),
        "history_weight_percent": ("history_ratio", _ratio),
        "min_throughput": ("min_bytes_per_second", float),
        "lower_boundary": ("lower_boundary", bool),
    }
)
_OVERLOAD: Mapping[str, Field] = MappingProxyType({"threshold": ("threshold", float)})
_UNIFORM: Mapping[str, Field] = MappingProxyType(
    {
        "rate_difference_percent": ("rate_difference_percent", float),
        "throughput_percent": ("bytes_ratio", _ratio),
        "max_unload_percent": ("max_unload_ratio", _ratio),
        "min_rate": ("min_rate_per_second", float),
        "min_throughput": ("min_bytes_per_second", float),
        "max_executors": ("max_executors", int),
    }
)
_TRANSFER: Mapping[str, Field] = MappingProxyType(
    {
        "target_std_dev": ("target_std_ratio", _ratio),
        "hits": ("hits", int),
        "max_nodes_per_pass": ("max_nodes", int),
        "overload_threshold": ("overload_threshold", float),
        "history_weight_percent": ("history_ratio", _ratio),
        "delay": ("cooldown_seconds", float),
        "max_age": ("ttl_seconds", float),
    }
)


def _filled(kind: Callable[..., T], fields: Mapping[str, Field], settings: Settings) -> T:
    """Raises InvalidField for a name that the strategy does not have: it must not silently keep a default."""
    unknown = sorted(settings.keys() - fields.keys())
    if unknown:
        remedy = f"no such parameter: choose one of {', '.join(sorted(fields))}"
        raise InvalidField(f"shedding.{unknown[0]}", settings[unknown[0]], remedy)
    return kind(**{field: read(settings[name]) for name, (field, read) in fields.items() if name in settings})


def traffic_settings(settings: Settings) -> TrafficSettings:
    return _filled(TrafficSettings, _TRAFFIC, settings)


def threshold_settings(settings: Settings) -> ThresholdSettings:
    return _filled(ThresholdSettings, _THRESHOLD, settings)


def overload_settings(settings: Settings) -> OverloadSettings:
    return _filled(OverloadSettings, _OVERLOAD, settings)


def uniform_settings(settings: Settings) -> UniformSettings:
    return _filled(UniformSettings, _UNIFORM, settings)


_MAX_CANDIDATES = "max_candidates"
_CANDIDATES = 10.0
"""Executors of a node that TransferShedder looks at, unless the policy's `max_candidates` says otherwise."""


def transfer_settings(settings: Settings) -> TransferSettings:
    own = {name: value for name, value in settings.items() if name != _MAX_CANDIDATES}
    return _filled(TransferSettings, _TRANSFER, own)


# A strategy's state: a few values per node as a short text, because a status has to stay small. Node names are replaced
# by eight characters of their digest, so the values can be read back only with the nodes' names; values of nodes that
# have left are forgotten.

ValuesByNode = Mapping[str, tuple[float, ...]]


def encoded(values_by_node: ValuesByNode, *, extra: float = 0) -> str:
    """JSON of the values by node, to six digits, and of one extra value."""
    nodes = {_short(name): [_rounded(value) for value in values] for name, values in sorted(values_by_node.items())}
    return json.dumps({"extra": extra, "nodes": nodes}, separators=(",", ":"))


def decoded(text: str, names: Iterable[str], *, width: int) -> tuple[dict[str, tuple[float, ...]], float]:
    """The values of the named nodes, `width` each, and the extra one; nothing where the text is not ours."""
    try:
        found = json.loads(text)
        nodes = {str(key): tuple(map(float, values)) for key, values in found["nodes"].items()}
        extra = float(found["extra"])
    except (ValueError, TypeError, KeyError, AttributeError):
        return {}, 0.0
    shorts = {name: _short(name) for name in names}
    return {name: nodes[short] for name, short in shorts.items() if len(nodes.get(short, ())) == width}, extra


def _short(name: str) -> str:
    return urlsafe_b64encode(blake2b(name.encode(), digest_size=6).digest()).decode()


def _rounded(value: float) -> float:
    rounded = float(f"{value:.6g}")
    return int(rounded) if rounded.is_integer() else rounded


@dataclass(frozen=True, slots=True)
class Shed:
    suggestions: tuple[Suggestion, ...]
    """`target` is None where the strategy leaves the destination to placement."""
    state: str


def shed(name: str, load: PoolLoad, settings: Settings, state: str) -> Shed:
    """One pass of strategy `name`; a state that it can't read is a fresh start.

    Raises InvalidField for a name that is not in `STRATEGIES`, and for a setting that the strategy does not have.
    """
    if name not in STRATEGIES:
        raise InvalidField("shedding.strategy", name, f"choose one of {', '.join(sorted(STRATEGIES))}")
    return STRATEGIES[name](load, settings, state)


def hit_counts(state: str, names: Iterable[str]) -> HitCounts:
    """What AvgShedder's state says of the named nodes."""
    known, _ = decoded(state, names, width=2)
    return HitCounts(tuple(sorted((name, Hits(int(low), int(high))) for name, (low, high) in known.items())))


def _avg(load: PoolLoad, settings: Settings, state: str) -> Shed:
    result = avg_shedder_traffic(load, traffic_settings(settings), hit_counts(state, load.names()))
    # A pair goes by the higher count of its two nodes, so that of a silent one's partner need not be kept.
    resting, _ = decoded(state, load.silent, width=2)
    counts = {name: (hits.low, hits.high) for name, hits in result.memory.by_node}
    return Shed(result.suggestions, encoded({**resting, **counts}))


def _threshold(load: PoolLoad, settings: Settings, state: str) -> Shed:
    known, _ = decoded(state, load.names(), width=1)
    before = Averages(tuple(sorted((name, usage) for name, (usage,) in known.items())))
    result = threshold_shedder(load, threshold_settings(settings), before)
    resting, _ = decoded(state, load.silent, width=1)
    averages = {name: (usage,) for name, usage in result.memory.by_node}
    return Shed(result.suggestions, encoded({**resting, **averages}))


def _overload(load: PoolLoad, settings: Settings, state: str) -> Shed:
    return Shed(overload_shedder(load, overload_settings(settings)), state)


def _uniform(load: PoolLoad, settings: Settings, state: str) -> Shed:
    return Shed(uniform_load_shedder(load, uniform_settings(settings)), state)


def _transfer(load: PoolLoad, settings: Settings, state: str) -> Shed:
    known, hits = decoded(state, load.names() | load.silent, width=2)
    before = tuple(sorted((name, Average(ratio, volume)) for name, (ratio, volume) in known.items()))
    most = int(settings.get(_MAX_CANDIDATES, _CANDIDATES))
    pool = TransferPool(tuple(_transfer_node(node, most) for node in load.nodes), load.names(), load.silent)
    result = transfer_shedder(
        pool, transfer_settings(settings), TransferMemory(before, int(hits)), allowed=lambda *_: True
    )
    averages = {name: (each.load_ratio, each.bytes_per_second) for name, each in result.memory.averages}
    return Shed(result.suggestions, encoded(averages, extra=result.memory.hits))


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
