"""A node as the API server has it, cut down to what a decision can depend on."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from ballast.errors import InvalidField
from ballast.kube import names
from ballast.kube.amounts import AmountReader
from ballast.kube.document import JSON, seconds
from ballast.model import (
    CORDON,
    DELETED,
    LEAVING_TAINTS,
    LeavingTaint,
    Levels,
    Location,
    Node,
    NodeUsage,
    Notice,
    Resources,
    Taint,
)
from ballast.model.leaving import notice

_WITH_TIME = ("ToBeDeletedByClusterAutoscaler", "DeletionCandidateOfClusterAutoscaler")
"""Taints whose value is the time at which they were added, in seconds since the epoch."""
_DIGITS_OF_A_TIME = 12


@dataclass(frozen=True, slots=True)
class NodeFacts:
    name: str
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    allocatable: Resources
    ready: bool
    schedulable: bool
    deleted: bool
    """Whether it is being deleted."""
    created_at: float
    speed: float = 1.0
    network_capacity_bits_per_second: float | None = None
    """From the node's annotation."""
    addresses: tuple[str, ...] = ()
    """Internal addresses and host names, by which a metrics server may call it."""
    tainted_since: tuple[tuple[str, float], ...] = ()
    """By the key of a taint, when it was added, where that is known; also when the deletion of the node was asked for.
    Apart from the taints, which are compared."""

    def location(self, levels: Levels) -> Location:
        return tuple(self.labels.get(level.label) or None for level in levels.ordered)


class NodeReader:
    """Reads nodes' JSON."""

    def __init__(self) -> None:
        self._amounts = AmountReader()

    def read(self, node: JSON) -> NodeFacts:
        metadata, spec, status = node["metadata"], node.get("spec") or {}, node.get("status") or {}
        annotations = metadata.get("annotations") or {}
        taints = tuple(
            Taint(entry["key"], entry.get("value") or "", entry["effect"]) for entry in spec.get("taints") or ()
        )
        return NodeFacts(
            name=metadata["name"],
            labels=metadata.get("labels") or {},
            taints=taints,
            allocatable=self._amounts.allocatable(node),
            ready=any(c["type"] == "Ready" and c["status"] == "True" for c in status.get("conditions") or ()),
            schedulable=not spec.get("unschedulable", False),
            deleted="deletionTimestamp" in metadata,
            created_at=seconds(metadata.get("creationTimestamp")) or 0.0,
            speed=self._annotated(annotations.get(names.SPEED)) or 1.0,
            network_capacity_bits_per_second=self._annotated(annotations.get(names.NETWORK_CAPACITY)),
            addresses=tuple(sorted({entry["address"] for entry in status.get("addresses") or ()})),
            tainted_since=tuple(_times(metadata, spec.get("taints") or ())),
        )

    def _annotated(self, text: str | None) -> float | None:
        """A positive quantity from an annotation; what can't be read counts as absent."""
        if not text:
            return None
        try:
            value = self._amounts.quantity(text)
        except InvalidField:
            return None
        return value if value > 0 and math.isfinite(value) else None


def _times(metadata: JSON, taints: Iterable[JSON]) -> Iterator[tuple[str, float]]:
    """The API server stamps `timeAdded` of NoExecute taints alone."""
    if (deleted := seconds(metadata.get("deletionTimestamp"))) is not None:
        yield DELETED, deleted
    for entry in taints:
        key, value = entry["key"], entry.get("value") or ""
        since = seconds(entry.get("timeAdded"))
        if since is None and key in _WITH_TIME and value.isascii() and value.isdigit():
            since = float(value[:_DIGITS_OF_A_TIME])
        if since is not None:
            yield key, since


def leaving_notice(facts: NodeFacts, table: Iterable[LeavingTaint]) -> Notice | None:
    """That it is about to go, by the table; None when it stays."""
    known = dict(facts.tainted_since)
    since = {taint.key: known.get(taint.key) for taint in facts.taints}
    if not facts.schedulable:
        since.setdefault(CORDON, None)
    if facts.deleted:
        since[DELETED] = known.get(DELETED)
    return notice(table, since)


def model_node(
    facts: NodeFacts,
    levels: Levels,
    *,
    requested: Resources | None = None,
    preemptible: Resources | None = None,
    usage: NodeUsage | None = None,
    leaving: Iterable[LeavingTaint] = LEAVING_TAINTS,
) -> Node:
    """The planner's view of a node; `requested`: of every pod bound to it, `preemptible`: of those of low priority.

    `leaving`: what announces that it goes.
    """
    found = leaving_notice(facts, leaving)
    return Node(
        name=facts.name,
        location=facts.location(levels),
        allocatable=facts.allocatable,
        requested=requested if requested is not None else Resources(),
        preemptible=preemptible,
        labels=facts.labels,
        taints=facts.taints,
        ready=facts.ready,
        schedulable=facts.schedulable,
        leaving=found.why if found is not None and found.taint != CORDON else "",
        notice=found,
        speed=facts.speed,
        usage=usage,
    )
