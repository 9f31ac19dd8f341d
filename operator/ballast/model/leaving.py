"""Nodes that are about to go: the taints that announce it, and by when.

The table is data. A policy adds to it, or changes a row, by `moves.drain.taints`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import inf


@dataclass(frozen=True, slots=True)
class LeavingTaint:
    """One way in which a node is announced to leave."""

    key: str
    why: str
    """In words for people, after "the node leaves:"."""
    notice_seconds: float | None = None
    """A deadline: from the taint until the node's pods are killed, as its author documents it. None: a guess, since
    nothing tells when the node goes, or whether."""
    drains: bool = True
    """Whether executors are moved away."""
    source: str = ""
    """Where that is documented."""
    dead: bool = False
    """Whether nothing on the node can leave gracefully any more, whatever else announces that it goes."""


CORDON = "node.kubernetes.io/unschedulable"
"""Also of a node with spec.unschedulable whose taint has not been added yet."""
DELETED = "metadata.deletionTimestamp"
"""In place of a taint's key: the Node object is being deleted."""

_AUTOSCALER = "kubernetes/autoscaler: cluster-autoscaler/utils/taints/taints.go, FAQ.md"
_KARPENTER = "karpenter.sh/docs/concepts/disruption, kubernetes-sigs/karpenter: pkg/apis/v1/taints.go"
_NTH = "aws/aws-node-termination-handler: pkg/node/node.go"
_AKS = "learn.microsoft.com/azure/aks/node-auto-repair, node auto-drain"

LEAVING_TAINTS: tuple[LeavingTaint, ...] = (
    LeavingTaint(
        CORDON,
        "it is cordoned",
        # Also how Oracle's OKE, kured, draino, eksctl and upgrades of managed node groups begin.
        source="kubernetes.io/docs/reference/labels-annotations-taints; "
        "docs.oracle.com/iaas/Content/ContEng/Tasks/contengusingpreemptiblecapacity.htm",
    ),
    LeavingTaint(DELETED, "it is being deleted", source=_KARPENTER),
    LeavingTaint("ToBeDeletedByClusterAutoscaler", "the cluster autoscaler is removing it", 60.0, source=_AUTOSCALER),
    # It comes and goes with the node's use: executors that left for it would have left for nothing.
    LeavingTaint(
        "DeletionCandidateOfClusterAutoscaler",
        "the cluster autoscaler may remove it soon",
        drains=False,
        source=_AUTOSCALER,
    ),
    LeavingTaint("karpenter.sh/disrupted", "Karpenter is replacing it", source=_KARPENTER),
    LeavingTaint("karpenter.sh/disruption", "Karpenter is replacing it", source=_KARPENTER),
    LeavingTaint("aws-node-termination-handler/spot-itn", "its spot machine is being reclaimed", 120.0, source=_NTH),
    LeavingTaint(
        "aws-node-termination-handler/rebalance-recommendation", "its spot machine may be reclaimed", source=_NTH
    ),
    LeavingTaint(
        "aws-node-termination-handler/scheduled-maintenance", "maintenance of its machine is scheduled", source=_NTH
    ),
    LeavingTaint(
        "aws-node-termination-handler/asg-lifecycle-termination", "its scaling group is removing it", source=_NTH
    ),
    LeavingTaint(
        "cloud.google.com/impending-node-termination",
        "its machine is about to be stopped",
        30.0,
        source="cloud.google.com/kubernetes-engine/docs/concepts/spot-vms; "
        "GoogleCloudPlatform/k8s-node-termination-handler: main.go",
    ),
    LeavingTaint(
        "remediator.kubernetes.azure.com/unschedulable", "AKS drains it for an event of its machine", 30.0, source=_AKS
    ),
    LeavingTaint(
        "remediator.aks.microsoft.com/unschedulable", "AKS drains it for an event of its machine", 30.0, source=_AKS
    ),
    LeavingTaint(
        "medik8s.io/drain",
        "it is under maintenance",
        source="medik8s/node-maintenance-operator: controllers/taint.go",
    ),
    LeavingTaint(
        "node.cloudprovider.kubernetes.io/shutdown",
        "its machine is shut down",
        drains=False,
        source="kubernetes.io/docs/reference/labels-annotations-taints",
        dead=True,
    ),
    LeavingTaint(
        "node.kubernetes.io/out-of-service",
        "it is out of service",
        drains=False,
        source="kubernetes.io/docs/reference/labels-annotations-taints",
        dead=True,
    ),
)


@dataclass(frozen=True, slots=True)
class Notice:
    """That one node is about to go."""

    taint: str
    """The key of a row of the table."""
    why: str
    seconds: float | None = None
    """A deadline, from `since`. None: a guess."""
    since: float | None = None
    """When the taint was added, or first seen; None where nothing says so."""
    drains: bool = True

    def left_seconds(self, now: float) -> float:
        """Until its pods are killed. Infinite for a guess, and for a deadline that is over: the node did not go."""
        if self.seconds is None:
            return inf
        elapsed_seconds = 0.0 if self.since is None else max(0.0, now - self.since)
        return self.seconds - elapsed_seconds if elapsed_seconds < self.seconds else inf


def notice(table: Iterable[LeavingTaint], since: Mapping[str, float | None]) -> Notice | None:
    """The shortest notice of a node; one that drains comes first, unless nothing can leave the node any more.

    `since`: by key, what the node carries. That the Node object is deleted tells nothing new where a taint tells why.
    """
    carried = [row for row in table if row.key in since]
    told = [row for row in carried if row.key != DELETED]
    if any(row.key != CORDON for row in told):
        carried = told
    rows = [row for row in carried if row.dead] or carried
    row = min(
        rows,
        key=lambda each: (not each.drains, inf if each.notice_seconds is None else each.notice_seconds),
        default=None,
    )
    return None if row is None else Notice(row.key, row.why, row.notice_seconds, since[row.key], row.drains)


def with_rows(table: Iterable[LeavingTaint], rows: Iterable[LeavingTaint]) -> tuple[LeavingTaint, ...]:
    """The table with further rows, each in place of the one with its key."""
    return tuple(({row.key: row for row in table} | {row.key: row for row in rows}).values())
