"""What the owner of a SparkTopology should know about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter

from ballast.api.topology import SparkTopology
from ballast.controller.ends import Finding, Rates
from ballast.controller.membership import key_of
from ballast.kube import names
from ballast.model import ConditionReason

_MOST_NAMED = 12
"""Other topologies that a message names."""


def stray_findings(key: str, strays: set[str]) -> list[Finding]:
    return [
        Finding(
            key,
            ConditionReason.UNKNOWN_COMPONENT,
            f"executors labeled as component {name} belong to none of spec.components: add it, or set "
            f"{names.COMPONENT} to one that exists",
        )
        for name in sorted(strays)
    ]


def lost_findings(key: str, lost: Counter[str]) -> list[Finding]:
    """`lost`: executors that its selectors match and that belong to others, by the others' keys."""
    if not lost.total():
        return []
    owners = [f"{count} to {owner}" for owner, count in sorted(lost.items()) if count]
    more = f" and to {len(owners) - _MOST_NAMED} more" if len(owners) > _MOST_NAMED else ""
    named = ", ".join(owners[:_MOST_NAMED]) + more
    message = (
        f"executors that components[].selector matches belong to others ({named}): the label {names.TOPOLOGY} comes "
        "first, then the topology whose name comes first; narrow the selectors"
    )
    return [Finding(key, ConditionReason.SELECTORS_OVERLAP, message)]


def spec_findings(topology: SparkTopology, *, rates: Rates, queries_allowed: bool) -> list[Finding]:
    """`rates`: the answers that its queries had, where the policy lets them run."""
    return [*_about_queries(topology, rates, allowed=queries_allowed), *_about_cycles(topology)]


def _about_queries(topology: SparkTopology, rates: Rates, *, allowed: bool) -> Iterator[Finding]:
    key = key_of(topology)
    asked = list(_queries(topology))
    if asked and not allowed:
        fields = ", ".join(field for field, _ in asked[:3]) + (" and others" if len(asked) > 3 else "")
        yield Finding(
            key,
            ConditionReason.QUERY_NOT_ALLOWED,
            f"{fields}: the policy does not let queries of topologies run: write bytesPerSecond, or ask the owner of "
            "the policy for metrics.topologyQueries: Allow",
        )
        return
    for path, text in asked:
        if (key, text) not in rates:
            message = f"{path}: the query gave no single, finite value, so the mean of the declared rates stands in"
            yield Finding(key, ConditionReason.QUERY_WITHOUT_VALUE, message)


def _queries(topology: SparkTopology) -> Iterator[tuple[str, str]]:
    """Field and PromQL of each."""
    for component in topology.spec.components:
        if component.exchange is not None and component.exchange.query:
            yield f"components[{component.name}].exchange.query", component.exchange.query
    for stream in topology.spec.streams:
        if stream.rate is not None and stream.rate.query:
            yield f"streams[{stream.from_}, {stream.to}].rate.query", stream.rate.query


def _about_cycles(topology: SparkTopology) -> Iterator[Finding]:
    """Those of components that are placed: what comes back from an external one has no order of placing to break."""
    placed = {component.name for component in topology.spec.components if component.external is None}
    senders: dict[str, list[str]] = {}
    for stream in topology.spec.streams:
        if {stream.from_, stream.to} <= placed:
            senders.setdefault(stream.to, []).append(stream.from_)
    try:
        TopologicalSorter(senders).prepare()
    except CycleError as error:
        way = " → ".join(error.args[1])
        yield Finding(
            key_of(topology),
            ConditionReason.CYCLE_IN_STREAMS,
            f"streams form a cycle ({way}): its components are placed after the others, in no order of sending",
        )
