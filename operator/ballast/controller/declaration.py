"""What the owner of a SparkTopology should know about what it declares."""

from __future__ import annotations

from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter

from ballast.api.topology import SparkTopology
from ballast.controller.ends import Finding, Rates
from ballast.controller.membership import key_of

QUERY_NOT_ALLOWED = "QueryNotAllowed"


def remarks(topology: SparkTopology, *, rates: Rates, queries_allowed: bool) -> list[Finding]:
    """`rates`: the answers that its queries had, where the policy lets them run."""
    return [*_about_queries(topology, rates, allowed=queries_allowed), *_about_cycles(topology)]


def _about_queries(topology: SparkTopology, rates: Rates, *, allowed: bool) -> Iterator[Finding]:
    key = key_of(topology)
    asked = list(_queries(topology))
    if asked and not allowed:
        fields = ", ".join(field for field, _ in asked[:3]) + (" and others" if len(asked) > 3 else "")
        yield Finding(
            key,
            QUERY_NOT_ALLOWED,
            f"{fields}: the policy does not let queries of topologies run: write bytesPerSecond, or ask the owner of "
            "the policy for metrics.topologyQueries: Allow",
        )
        return
    for field, text in asked:
        if (key, text) not in rates:
            message = f"{field}: the query gave no single, finite figure, so the mean of the declared rates stands in"
            yield Finding(key, "QueryWithoutFigure", message)


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
            "CycleInStreams",
            f"streams form a cycle ({way}): its components are placed after the others, in no order of sending",
        )
