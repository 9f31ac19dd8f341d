"""OverloadShedder: unloads nodes above a fixed usage, whatever the others do.

Source: Pulsar's `OverloadShedder`. It keeps nothing from pass to pass and names no destination.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ballast.shedding.load import NodeLoad, PoolLoad, Suggestion, reaching, volume

_MARGIN_RATIO = 0.05


@dataclass(frozen=True, slots=True)
class OverloadSettings:
    threshold: float = 85.0
    """Percent."""
    idle_too: bool = False
    """As Pulsar: executors without traffic leave as well, even from a node that has none, which can't help it."""


def overload_shedder(load: PoolLoad, settings: OverloadSettings) -> tuple[Suggestion, ...]:
    """Suggestions of one pass, without destinations."""
    return tuple(suggestion for node in load.nodes for suggestion in _shed(node, settings))


def _shed(node: NodeLoad, settings: OverloadSettings) -> Iterator[Suggestion]:
    usage, threshold = node.score / 100, settings.threshold / 100
    if usage < threshold:
        return
    need = node.bytes_per_second * (usage - threshold + _MARGIN_RATIO)
    for executor in reaching(node, need=need, size=volume, idle_too=settings.idle_too):
        yield Suggestion(
            executor=executor.name,
            source=node.name,
            target=None,
            hot_score=node.score,
            difference=node.score - settings.threshold,
        )
