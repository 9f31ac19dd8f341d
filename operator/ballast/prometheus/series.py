"""Prometheus' answers as plain figures, with what can't be used left out and told."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

_AGREEMENT_RATIO = 1.1
"""Two series for one thing (two Prometheus replicas, say) are averaged when they differ by no more than this."""

_SPARK_NAMESPACE = re.compile(r"^metrics_(spark_[0-9a-f]{32})_driver_")


@dataclass(frozen=True, slots=True)
class Figures:
    """One figure per key; `ambiguous` keys had several that disagree, and have none here."""

    values: Mapping[str, float]
    ambiguous: tuple[str, ...] = ()


def by_node(vector: Iterable[Mapping[str, Any]], addresses: Mapping[str, str]) -> Figures:
    """Figures by node name. `addresses`: internal IP or host name → node name, for series without a node label."""
    return _settle((_node_of(sample["metric"], addresses), _value(sample)) for sample in vector)


def by_pod(vector: Iterable[Mapping[str, Any]]) -> Figures:
    """Figures by `namespace/pod`."""
    return _settle((_joined(sample["metric"], "namespace", "pod"), _value(sample)) for sample in vector)


def by_executor(vector: Iterable[Mapping[str, Any]]) -> Figures:
    """Figures by `application id/executor id`."""
    return _settle((_joined(sample["metric"], "application_id", "executor_id"), _value(sample)) for sample in vector)


def by_application(vector: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """Sums by application id: one application may run several queries."""
    sums: dict[str, float] = {}
    for sample in vector:
        application, value = application_of(sample["metric"]), _value(sample)
        if application and value is not None:
            sums[application] = sums.get(application, 0.0) + value
    return sums


def largest_by_application(vector: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """The largest figure of each application: the slowest of its queries is what is felt."""
    largest: dict[str, float] = {}
    for sample in vector:
        application, value = application_of(sample["metric"]), _value(sample)
        if application and value is not None:
            largest[application] = max(value, largest.get(application, value))
    return largest


def samples_by_application(matrix: Iterable[Mapping[str, Any]]) -> dict[str, list[float]]:
    """Every sample of a range, by application id."""
    found: dict[str, list[float]] = {}
    for series in matrix:
        application = application_of(series["metric"])
        if application:
            numbers = (_number(text) for _, text in series.get("values", ()))
            found.setdefault(application, []).extend(n for n in numbers if n is not None)
    return found


def application_of(metric: Mapping[str, str]) -> str:
    """The application that a driver's metric belongs to: its label, or the id in the metric's own name."""
    if metric.get("application_id"):
        return metric["application_id"]
    match = _SPARK_NAMESPACE.match(metric.get("__name__", ""))
    return match.group(1).replace("_", "-", 1) if match else ""


def single(vector: Sequence[Mapping[str, Any]]) -> float | None:
    """The one figure of an answer; None when there are several, or none that is finite."""
    return _value(vector[0]) if len(vector) == 1 else None


def _node_of(metric: Mapping[str, str], addresses: Mapping[str, str]) -> str:
    if metric.get("node"):
        return metric["node"]
    instance = metric.get("instance", "")
    return addresses.get(instance) or addresses.get(instance.rsplit(":", 1)[0], "")


def _joined(metric: Mapping[str, str], first: str, second: str) -> str:
    one, two = metric.get(first, ""), metric.get(second, "")
    return f"{one}/{two}" if one and two else ""


def _value(sample: Mapping[str, Any]) -> float | None:
    """None for a range, which holds values instead."""
    point = sample.get("value")
    return _number(point[1]) if point else None


def _number(text: str) -> float | None:
    """Finite numbers only: NaN and infinities are no figures (a division by zero, a stale marker)."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if isfinite(number) else None


def _settle(pairs: Iterable[tuple[str, float | None]]) -> Figures:
    found: dict[str, list[float]] = {}
    for key, value in pairs:
        if key and value is not None:
            found.setdefault(key, []).append(value)
    ambiguous = tuple(sorted(key for key, values in found.items() if not _agree(values)))
    return Figures({key: sum(values) / len(values) for key, values in found.items() if _agree(values)}, ambiguous)


def _agree(values: list[float]) -> bool:
    low, high = min(values), max(values)
    return low == high or (low > 0 and high / low <= _AGREEMENT_RATIO)
