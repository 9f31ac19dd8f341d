"""A node as the API server has it, cut down to what a decision can depend on."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from ballast.errors import InvalidField
from ballast.kube import names
from ballast.kube.amounts import AmountReader
from ballast.kube.document import JSON, seconds
from ballast.model import Levels, Location, Node, NodeUsage, Resources, Taint

_LEAVING = {
    "ToBeDeletedByClusterAutoscaler": "the cluster autoscaler is removing it",
    "DeletionCandidateOfClusterAutoscaler": "the cluster autoscaler may remove it soon",
    "karpenter.sh/disrupted": "Karpenter is replacing it",
    "karpenter.sh/disruption": "Karpenter is replacing it",
    "karpenter.sh/termination": "Karpenter is removing it",
    "node.cloudprovider.kubernetes.io/shutdown": "its machine is shut down",
    "node.kubernetes.io/out-of-service": "it is out of service",
    "cloud.google.com/impending-node-termination": "its machine is about to be stopped",
    "aws-node-termination-handler/spot-itn": "its spot machine is being reclaimed",
    "aws-node-termination-handler/rebalance-recommendation": "its spot machine may be reclaimed",
    "aws-node-termination-handler/scheduled-maintenance": "maintenance of its machine is scheduled",
    "aws-node-termination-handler/asg-lifecycle-termination": "its scaling group is removing it",
}


@dataclass(frozen=True, slots=True)
class NodeFacts:
    name: str
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    allocatable: Resources
    ready: bool
    schedulable: bool
    leaving: str
    """Why it is about to go, in words; empty when it stays."""
    created_at: float
    speed: float = 1.0
    network_capacity_bits_per_second: float | None = None
    """From the node's annotation."""
    addresses: tuple[str, ...] = ()
    """Internal addresses and host names, by which a metrics server may call it."""

    def location(self, levels: Levels) -> Location:
        return tuple(self.labels.get(level.label) or None for level in levels.ordered)


class NodeReader:
    """`offered`: the reader adds the kinds of resources that nodes have to it."""

    def __init__(self, offered: set[str] | None = None) -> None:
        self._amounts = AmountReader(offered)

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
            leaving=_leaving(metadata, taints),
            created_at=seconds(metadata.get("creationTimestamp")) or 0.0,
            speed=self._annotated(annotations.get(names.SPEED)) or 1.0,
            network_capacity_bits_per_second=self._annotated(annotations.get(names.NETWORK_CAPACITY)),
            addresses=tuple(sorted({entry["address"] for entry in status.get("addresses") or ()})),
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


def _leaving(metadata: JSON, taints: tuple[Taint, ...]) -> str:
    if "deletionTimestamp" in metadata:
        return "it is being deleted"
    return next((_LEAVING[taint.key] for taint in taints if taint.key in _LEAVING), "")


def model_node(
    facts: NodeFacts, levels: Levels, *, requested: Resources | None = None, usage: NodeUsage | None = None
) -> Node:
    """The planner's view of a node; `requested`: of every pod bound to it."""
    return Node(
        name=facts.name,
        location=facts.location(levels),
        allocatable=facts.allocatable,
        requested=requested if requested is not None else Resources(),
        labels=facts.labels,
        taints=facts.taints,
        ready=facts.ready,
        schedulable=facts.schedulable,
        leaving=facts.leaving,
        speed=facts.speed,
        usage=usage,
    )
