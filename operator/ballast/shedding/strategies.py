"""The strategies that look at traffic, by the name that a policy gives them.

`shed(name, load, settings, state)` is one pass of any of them. The state is a text
that the caller keeps from pass to pass without reading it, and may start with the empty one. AvgShedder with unit Usage
is apart (`avg_shedder_usage`): it predicts, and so needs to know more.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from types import MappingProxyType
from typing import Any

from ballast.errors import InvalidField
from ballast.model.policy import SheddingPolicy
from ballast.model.shedders import (
    OverloadSettings,
    ShedderSettings,
    ThresholdSettings,
    TrafficSettings,
    TransferSettings,
    UniformSettings,
)
from ballast.shedding.load import NodeLoad, PoolLoad, Suggestion
from ballast.shedding.pulsar_shedders import (
    Averages,
    HitCounts,
    Hits,
    avg_shedder_traffic,
    overload_shedder,
    threshold_shedder,
    uniform_load_shedder,
)
from ballast.shedding.transfer_pool import Activity, Average, TopExecutor, TransferNode, TransferPool, top_executors
from ballast.shedding.transfer_shedder import TransferMemory, transfer_shedder

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


def shed(name: str, load: PoolLoad, settings: ShedderSettings | None, state: str) -> Shed:
    """One pass of strategy `name`, by its defaults if `settings` is None; a state that it can't read is a fresh start.

    Raises InvalidField for a name that is not in `STRATEGIES`.
    """
    if name not in STRATEGIES:
        raise InvalidField("shedding.strategy", name, f"choose one of {', '.join(sorted(STRATEGIES))}")
    return STRATEGIES[name](load, settings or SheddingPolicy(name).chosen, state)


def hit_counts(state: str, names: Iterable[str]) -> HitCounts:
    """What AvgShedder's state says of the named nodes."""
    known, _ = decoded(state, names, width=2)
    return HitCounts(tuple(sorted((name, Hits(int(low), int(high))) for name, (low, high) in known.items())))


def _avg(load: PoolLoad, settings: TrafficSettings, state: str) -> Shed:
    result = avg_shedder_traffic(load, settings, hit_counts(state, load.names()))
    # A pair goes by the higher count of its two nodes, so that of a silent one's partner need not be kept.
    resting, _ = decoded(state, load.silent, width=2)
    counts = {name: (hits.low, hits.high) for name, hits in result.memory.by_node}
    return Shed(result.suggestions, encoded({**resting, **counts}))


def _threshold(load: PoolLoad, settings: ThresholdSettings, state: str) -> Shed:
    known, _ = decoded(state, load.names(), width=1)
    before = Averages(tuple(sorted((name, usage) for name, (usage,) in known.items())))
    result = threshold_shedder(load, settings, before)
    resting, _ = decoded(state, load.silent, width=1)
    averages = {name: (usage,) for name, usage in result.memory.by_node}
    return Shed(result.suggestions, encoded({**resting, **averages}))


def _overload(load: PoolLoad, settings: OverloadSettings, state: str) -> Shed:
    return Shed(overload_shedder(load, settings), state)


def _uniform(load: PoolLoad, settings: UniformSettings, state: str) -> Shed:
    return Shed(uniform_load_shedder(load, settings), state)


def _transfer(load: PoolLoad, settings: TransferSettings, state: str) -> Shed:
    known, hits = decoded(state, load.names() | load.silent, width=2)
    before = tuple(sorted((name, Average(ratio, volume)) for name, (ratio, volume) in known.items()))
    pool = TransferPool(
        tuple(_transfer_node(node, settings.max_candidates) for node in load.nodes), load.names(), load.silent
    )
    result = transfer_shedder(pool, settings, TransferMemory(before, int(hits)), allowed=lambda *_: True)
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


STRATEGIES: Mapping[str, Callable[[PoolLoad, Any, str], Shed]] = MappingProxyType(
    {
        "AvgShedder": _avg,
        "ThresholdShedder": _threshold,
        "OverloadShedder": _overload,
        "UniformLoadShedder": _uniform,
        "TransferShedder": _transfer,
    }
)
