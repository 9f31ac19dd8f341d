"""Runs of the shedders over rows of scores."""

from __future__ import annotations

from collections.abc import Iterator

from ballast.model.shedders import TrafficSettings
from ballast.shedding.avg_shedder_usage import PairState, UsageMemory, UsageSettings, avg_shedder_usage
from ballast.shedding.load import ExecutorLoad, NodeLoad, PoolLoad, UsageNode, UsagePool
from ballast.shedding.pulsar_shedders import HitCounts, avg_shedder_traffic
from tests.properties.score_noise import Scores

PASS_SECONDS = 60.0
EAGER = UsageSettings(min_hot_score=0.0)
"""The defaults, except for the minimum score, behind which noise could hide."""


def acted_upon(rows: Scores, settings: UsageSettings = EAGER, *, beginning: int = 0) -> Iterator[tuple[int, PairState]]:
    """Each pass (from 1) and pair that unit Usage would do something about.

    On so many nodes executors are `beginning`, in each pass on others.
    """
    memory = UsageMemory()
    for index, row in enumerate(rows, start=1):
        nodes = tuple(UsageNode(f"n{i:03d}", float(score), 16.0) for i, score in enumerate(row))
        begun = (nodes[(index * beginning + i) % len(nodes)].name for i in range(beginning))
        pool = UsagePool(nodes, unsettled=frozenset(begun))
        result = avg_shedder_usage(pool, settings, memory, now_seconds=PASS_SECONDS * index)
        memory = result.memory
        yield from ((index, pair) for pair in result.pairs if pair.reason is None)


def first_acted_upon(rows: Scores, hot: str, settings: UsageSettings = EAGER, *, after: int = 0) -> int | None:
    """The pass, counted from the one behind `after`, in which something is done about node `hot`."""
    for index, pair in acted_upon(rows, settings):
        if index > after and pair.hot.name == hot:
            return index - after
    return None


def pulsar_unloads(rows: Scores) -> int:
    """How often the real class's rule would unload a node; each has traffic in proportion to its score."""
    settings = TrafficSettings(keep_departed=True, forget_in_vain=True, min_rate_per_second=0.0)
    memory, unloads = HitCounts(), 0
    for row in rows:
        nodes = (_traffic_node(f"n{i:03d}", 100.0 + float(score)) for i, score in enumerate(row))
        result = avg_shedder_traffic(PoolLoad(tuple(nodes)), settings, memory)
        memory = result.memory
        unloads += len({suggestion.source for suggestion in result.suggestions})
    return unloads


def _traffic_node(name: str, score: float) -> NodeLoad:
    return NodeLoad(name, score, score * 100.0, executors=(ExecutorLoad(f"{name}/0", 1.0, 0.0),))
