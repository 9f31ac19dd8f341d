"""ThresholdShedder: unloads nodes whose smoothed usage is above the pool's mean by a threshold.

Source: Pulsar's `ThresholdShedder`. It names no destination and looks back through a moving average, which is why it
may unload too much; it is here for pools that already work with it. The mean is that of the nodes among which load is
spread: one that nothing may be sent to has no part in it.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass

from ballast.shedding.load import NodeLoad, PoolLoad, Suggestion, reaching, volume

_MARGIN_RATIO = 0.05
_LOWER_BOUNDARY_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class ThresholdSettings:
    threshold: float = 10.0
    """Points above the mean."""
    history_ratio: float = 0.9
    """Weight of the past in the moving average."""
    min_bytes_per_second: float = 10.0 * 1024 * 1024
    """Less than this isn't worth unloading."""
    lower_boundary: bool = False
    """When no node is too hot but one is too cold, unload the hottest."""
    average_twice: bool = False
    """As Pulsar: the lower-boundary step adds the same figures to the averages once more."""
    idle_too: bool = False
    """As Pulsar: while the need isn't met, executors without traffic leave as well."""
    keep_departed: bool = False
    """As Pulsar: a node that left keeps its average for the day it returns."""


@dataclass(frozen=True, slots=True)
class Averages:
    """Smoothed usage by node as a ratio, sorted by name. Plain values, fit for JSON."""

    by_node: tuple[tuple[str, float], ...] = ()

    def within(self, nodes: Container[str]) -> Averages:
        """Without the nodes that have left."""
        return Averages(tuple((name, usage) for name, usage in self.by_node if name in nodes))


@dataclass(frozen=True, slots=True)
class ThresholdResult:
    suggestions: tuple[Suggestion, ...]
    memory: Averages


def threshold_shedder(load: PoolLoad, settings: ThresholdSettings, memory: Averages) -> ThresholdResult:
    """Suggestions of one pass, without destinations."""
    history = dict(memory.by_node)
    usage = smoothed(load, history, settings.history_ratio)
    mean = _mean(load, usage)
    suggestions: list[Suggestion] = []
    if mean > 0:
        suggestions += _above_mean(load, usage, mean, settings)
        if not suggestions and settings.lower_boundary:
            if settings.average_twice:
                usage = smoothed(load, usage, settings.history_ratio)
                mean = _mean(load, usage)
            suggestions += _below_lower_boundary(load, usage, mean, settings)
    remembered = history | usage if settings.keep_departed else usage
    return ThresholdResult(tuple(suggestions), Averages(tuple(sorted(remembered.items()))))


def smoothed(load: PoolLoad, history: Mapping[str, float], history_ratio: float) -> dict[str, float]:
    """The moving average of each node's usage ratio, with this pass added, in the pool's order."""
    found: dict[str, float] = {}
    for node in load.nodes:
        now = node.score / 100
        before = history.get(node.name)
        found[node.name] = now if before is None else before * history_ratio + (1 - history_ratio) * now
    return found


def _mean(load: PoolLoad, usage: Mapping[str, float]) -> float:
    total, count = 0.0, 0
    for node in load.nodes:
        if node.receives:
            total, count = total + usage[node.name], count + 1
    return total / count if count else 0.0


def _above_mean(
    load: PoolLoad, usage: Mapping[str, float], mean: float, settings: ThresholdSettings
) -> Iterator[Suggestion]:
    threshold = settings.threshold / 100
    for node in load.nodes:
        if usage[node.name] < mean + threshold:
            continue
        need = node.bytes_per_second * (usage[node.name] - mean - threshold + _MARGIN_RATIO)
        if need >= settings.min_bytes_per_second:
            yield from _shed(node, need, mean, idle_too=settings.idle_too)


def _below_lower_boundary(
    load: PoolLoad, usage: Mapping[str, float], mean: float, settings: ThresholdSettings
) -> Iterator[Suggestion]:
    threshold = settings.threshold / 100
    boundary = mean - threshold
    hottest = _hottest(load, usage, above=boundary)
    if hottest is None or all(usage[node.name] >= boundary for node in load.nodes if node.receives):
        return
    need = hottest.bytes_per_second * threshold * _LOWER_BOUNDARY_SHARE
    if need >= settings.min_bytes_per_second:
        yield from _shed(hottest, need, mean, idle_too=settings.idle_too)


def _hottest(load: PoolLoad, usage: Mapping[str, float], *, above: float) -> NodeLoad | None:
    """The most used node that can spare an executor."""
    able = [node for node in load.nodes if len(node.executors) > 1 and usage[node.name] > above]
    return max(able, key=lambda node: usage[node.name], default=None)


def _shed(node: NodeLoad, need: float, mean: float, *, idle_too: bool) -> Iterator[Suggestion]:
    for executor in reaching(node, need=need, size=volume, idle_too=idle_too):
        yield Suggestion(
            executor=executor.name,
            source=node.name,
            target=None,
            hot_score=node.score,
            difference=node.score - 100 * mean,
        )


# OverloadShedder: unloads nodes above a fixed usage, whatever the others do.
#
# Source: Pulsar's `OverloadShedder`. It keeps nothing from pass to pass and names no destination.

_OVERLOAD_MARGIN_RATIO = 0.05


@dataclass(frozen=True, slots=True)
class OverloadSettings:
    threshold: float = 85.0
    """Percent."""
    idle_too: bool = False
    """As Pulsar: executors without traffic leave as well, even from a node that has none, which can't help it."""


def overload_shedder(load: PoolLoad, settings: OverloadSettings) -> tuple[Suggestion, ...]:
    """Suggestions of one pass, without destinations."""
    return tuple(suggestion for node in load.nodes for suggestion in _unload(node, settings))


def _unload(node: NodeLoad, settings: OverloadSettings) -> Iterator[Suggestion]:
    usage, threshold = node.score / 100, settings.threshold / 100
    if usage < threshold:
        return
    need = node.bytes_per_second * (usage - threshold + _OVERLOAD_MARGIN_RATIO)
    for executor in reaching(node, need=need, size=volume, idle_too=settings.idle_too):
        yield Suggestion(
            executor=executor.name,
            source=node.name,
            target=None,
            hot_score=node.score,
            difference=node.score - settings.threshold,
        )
