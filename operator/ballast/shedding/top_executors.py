"""The busiest executors of a node, idlest first: what a node reports to TransferShedder.

Source: Pulsar's `TopKBundles` and the order of its `NamespaceBundleStats`. The figures are compared one after the
other, in coarse steps, so that small differences do not reorder the report.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import floor

_BYTES_STEP = 1e5
_RATE_STEP = 100.0
_CONNECTIONS_STEP = 500
_CACHE_STEP = 100_000


@dataclass(frozen=True, slots=True)
class Activity:
    name: str
    bytes_in_per_second: float
    bytes_out_per_second: float
    rate_per_second: float
    """Records in and out."""
    connections: int = 0
    """Topics, producers and consumers."""
    cache_bytes: int = 0


def top_executors(activities: Iterable[Activity], *, most: int, inbound_first: bool = False) -> tuple[str, ...]:
    """The names of the `most` busiest, idlest first; those that move no bytes are left out.

    Busiest by bytes in and out; with `inbound_first` by bytes in, then by bytes out, as Pulsar has it.
    """
    busy = [activity for activity in activities if activity.bytes_in_per_second + activity.bytes_out_per_second > 0]
    busiest = sorted(busy, key=_inbound if inbound_first else _total, reverse=True)[:most]
    return tuple(activity.name for activity in reversed(busiest))


def _total(activity: Activity) -> tuple[int, ...]:
    return (_steps(activity.bytes_in_per_second + activity.bytes_out_per_second, _BYTES_STEP), *_other(activity))


def _inbound(activity: Activity) -> tuple[int, ...]:
    inbound, outbound = activity.bytes_in_per_second, activity.bytes_out_per_second
    return (_steps(inbound, _BYTES_STEP), _steps(outbound, _BYTES_STEP), *_other(activity))


def _other(activity: Activity) -> tuple[int, ...]:
    return (
        _steps(activity.rate_per_second, _RATE_STEP),
        activity.connections // _CONNECTIONS_STEP,
        activity.cache_bytes // _CACHE_STEP,
    )


def _steps(figure: float, step: float) -> int:
    return floor(figure / step + 0.5)
