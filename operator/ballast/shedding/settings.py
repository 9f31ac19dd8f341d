"""The strategies' settings from the plain numbers of a policy; what a policy leaves out keeps its default."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeVar

from ballast.shedding.avg_shedder_traffic import TrafficSettings
from ballast.shedding.overload_shedder import OverloadSettings
from ballast.shedding.threshold_shedder import ThresholdSettings
from ballast.shedding.transfer_shedder import TransferSettings
from ballast.shedding.uniform_load_shedder import UniformSettings

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
        "history_weight": ("history_ratio", float),
        "min_throughput": ("min_bytes_per_second", float),
        "lower_boundary": ("lower_boundary", bool),
    }
)
_OVERLOAD: Mapping[str, Field] = MappingProxyType({"threshold": ("threshold", float)})
_UNIFORM: Mapping[str, Field] = MappingProxyType(
    {
        "rate_difference": ("rate_difference_percent", float),
        "throughput_ratio": ("bytes_ratio", float),
        "max_unload_ratio": ("max_unload_ratio", float),
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
        "history_weight": ("history_ratio", float),
        "delay": ("cooldown_seconds", float),
        "max_age": ("ttl_seconds", float),
    }
)


def _filled(kind: Callable[..., T], fields: Mapping[str, Field], settings: Settings) -> T:
    return kind(**{field: read(settings[name]) for name, (field, read) in fields.items() if name in settings})


def traffic(settings: Settings) -> TrafficSettings:
    return _filled(TrafficSettings, _TRAFFIC, settings)


def threshold(settings: Settings) -> ThresholdSettings:
    return _filled(ThresholdSettings, _THRESHOLD, settings)


def overload(settings: Settings) -> OverloadSettings:
    return _filled(OverloadSettings, _OVERLOAD, settings)


def uniform(settings: Settings) -> UniformSettings:
    return _filled(UniformSettings, _UNIFORM, settings)


def transfer(settings: Settings) -> TransferSettings:
    return _filled(TransferSettings, _TRANSFER, settings)
