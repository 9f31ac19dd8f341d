"""Prometheus' answers as plain values: what can't be used is left out and counted."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import isnan

_AGREEMENT_RATIO = 1.1
"""Two series for one thing (two Prometheus replicas, say) are averaged when they differ by no more than this."""

_SPARK_NAMESPACE = re.compile(r"^metrics_(spark_[0-9a-f]{32})_driver_")

_CORES, _BYTES, _BYTES_PER_SECOND, _SECONDS = 100_000.0, 2.0**50, 1e13, 1e6
BOUNDS: Mapping[str, float] = {
    "nodeCpu": _CORES,
    "nodeMemory": _BYTES,
    "nodeNetworkReceive": 8 * _BYTES_PER_SECOND,
    "nodeNetworkTransmit": 8 * _BYTES_PER_SECOND,
    "nodeNetworkCapacity": 8 * _BYTES_PER_SECOND,
    "nodePressure": 1.5,  # a rate over few samples may come out above 1
    "nodeAge": 1e9,
    "executorCpu": _CORES,
    "executorMemory": _BYTES,
    "executorNetwork": _BYTES_PER_SECOND,
    "executorRecords": 1e12,
    "executorThrottling": 1.5,
    "executorTaskSeconds": _SECONDS,
    "executorSlots": _SECONDS,
    "executorBytes": _BYTES,
    "executorShuffleRead": _BYTES_PER_SECOND,
    "executorShuffleWrite": _BYTES_PER_SECOND,
    "stateBytes": _BYTES,
    "batchSeconds": _SECONDS,
    "batchMilliseconds": 1000 * _SECONDS,
}
"""The highest value that a signal can have; the lowest is 0 for all of them."""
_HIGHEST = 1e15
"""For signals without their own bound."""


@dataclass(frozen=True, slots=True)
class Series:
    """Its values are any floats, in the order of time: one of an instant vector, several of a range."""

    labels: Mapping[str, str]
    values: tuple[float, ...]
    ranged: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    series: tuple[Series, ...] = ()
    malformed: int = 0
    """Series that could not be read."""
    ahead_seconds: float = 0.0
    """By how much the server's clock is ahead of ours, at least; negative: behind."""
    shortened: bool = False
    """A longer answer could not be read: it has fewer series of each namespace."""


@dataclass(frozen=True, slots=True)
class Admitted:
    """What of an answer is within its signal's bounds. A NaN is no value (0/0, a stale marker), and no fault."""

    series: tuple[Series, ...]
    malformed: int = 0
    out_of_range: int = 0
    """Samples."""
    first: Mapping[str, str] | None = None
    """Labels of the first series that had a sample out of range."""


def admitted(signal: str, answer: Answer) -> Admitted:
    highest = BOUNDS.get(signal, _HIGHEST)
    kept: list[Series] = []
    first: Mapping[str, str] | None = None
    out_of_range = 0
    for series in answer.series:
        sound = tuple(value for value in series.values if 0 <= value <= highest)
        absurd = sum(not isnan(value) for value in series.values) - len(sound)
        if absurd:
            out_of_range, first = out_of_range + absurd, first or series.labels
        kept.append(series if len(sound) == len(series.values) else replace(series, values=sound))
    return Admitted(tuple(kept), answer.malformed, out_of_range, first)


@dataclass(frozen=True, slots=True)
class ValueByKey:
    """One value per key; `ambiguous` keys had several that disagree, and have none here."""

    values: Mapping[str, float]
    ambiguous: tuple[str, ...] = ()
    doubled: Mapping[str, tuple[Mapping[str, str], ...]] = field(default_factory=dict)
    """Labels of the series of keys that have several sources. These have no value: it may be another cluster's."""


@dataclass(frozen=True, slots=True)
class Doubled:
    """The series of one signal that are sums over several sources."""

    groups: Container[tuple[str, ...]] = ()

    @classmethod
    def of(cls, answer: Iterable[Series], signal: str) -> Doubled:
        return cls({_group(series.labels) for series in answer if series.labels.get("signal") == signal})

    def has(self, series: Series) -> bool:
        return _group(series.labels) in self.groups


_GROUP = ("namespace", "node", "pod", "instance")
"""The labels of the presets' series of nodes and of executors."""


def _group(labels: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(labels.get(name, "") for name in _GROUP)


def by_node(vector: Iterable[Series], addresses: Mapping[str, str], doubled: Doubled | None = None) -> ValueByKey:
    """Values by node name. `addresses`: internal IP or host name → node name, for series without a node label.

    Where something exports series about a node at its own address, only these count: a pod on it may export such
    series, too, and its scrape may label them with the node. `doubled`: of a signal whose sources are counted.
    """
    own: dict[str, list[Series]] = defaultdict(list)
    others: dict[str, list[Series]] = defaultdict(list)
    for series in vector:
        node, host = _node_of(series.labels, addresses), _host(series.labels, addresses)
        found = others if host is None or addresses[host] != node else own
        found[node].append(series)
    return _one_each({**others, **own}, doubled)


def by_pod(vector: Iterable[Series], addresses: Container[str], doubled: Doubled | None = None) -> ValueByKey:
    """Values by `namespace/pod`.

    Where a node exports such series about a pod, only these count: the pod may export them itself, too, and their
    scrape labels them as its own. `addresses`: internal IPs and host names of nodes. `doubled`: as for nodes.
    """
    from_nodes: dict[str, list[Series]] = defaultdict(list)
    from_others: dict[str, list[Series]] = defaultdict(list)
    for series in vector:
        found = from_others if _host(series.labels, addresses) is None else from_nodes
        found[_joined(series.labels, "namespace", "pod")].append(series)
    return _one_each({**from_others, **from_nodes}, doubled)


def _one_each(found: Mapping[str, list[Series]], doubled: Doubled | None) -> ValueByKey:
    """Several series are several sources where these are counted, and replicas that may agree elsewhere."""
    several = {
        key: tuple(each.labels for each in series)
        for key, series in found.items()
        if doubled is not None and key and (len(series) > 1 or any(map(doubled.has, series)))
    }
    values = averaged((key, value_of(each)) for key, series in found.items() if key not in several for each in series)
    return replace(values, doubled=several)


def application_of(labels: Mapping[str, str]) -> str:
    """The application that a driver's series belongs to: its label, or the id in the metric's own name."""
    if labels.get("application_id"):
        return labels["application_id"]
    match = _SPARK_NAMESPACE.match(labels.get("__name__", ""))
    return match.group(1).replace("_", "-", 1) if match else ""


def single(answer: Answer) -> float | None:
    """The one value of an answer; None when there are several, or none that is finite and at least 0."""
    found = admitted("", answer).series
    return value_of(found[0]) if len(found) == 1 else None


def value_of(series: Series) -> float | None:
    """None for a range, which holds several."""
    return series.values[0] if series.values and not series.ranged else None


def _node_of(labels: Mapping[str, str], addresses: Mapping[str, str]) -> str:
    if labels.get("node"):
        return labels["node"]
    return addresses.get(_host(labels, addresses) or "", "")


def _host(labels: Mapping[str, str], addresses: Container[str]) -> str | None:
    """The one of `addresses` that the label `instance` names."""
    instance = labels.get("instance", "")
    return next((each for each in (instance, without_port(instance)) if each in addresses), None)


def without_port(instance: str) -> str:
    """`[fd00::1]:9100` names fd00::1: an IPv6 address has brackets only next to a port."""
    host, colon, port = instance.rpartition(":")
    return host.removeprefix("[").removesuffix("]") if colon and port.isdecimal() else instance


def _joined(labels: Mapping[str, str], first: str, second: str) -> str:
    one, two = labels.get(first, ""), labels.get(second, "")
    return f"{one}/{two}" if one and two else ""


def averaged(pairs: Iterable[tuple[str, float | None]]) -> ValueByKey:
    found: dict[str, list[float]] = {}
    for key, value in pairs:
        if key and value is not None:
            found.setdefault(key, []).append(value)
    ambiguous = tuple(sorted(key for key, values in found.items() if not _agree(values)))
    return ValueByKey({key: sum(values) / len(values) for key, values in found.items() if _agree(values)}, ambiguous)


def _agree(values: list[float]) -> bool:
    low, high = min(values), max(values)
    return low == high or (low > 0 and high / low <= _AGREEMENT_RATIO)
