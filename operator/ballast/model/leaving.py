"""Nodes that are about to go: the taints that announce it, and how long they leave.

The table is data. A policy adds to it, or changes a row, by `moves.drain.taints`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LeavingTaint:
    """One way in which a node is announced to leave."""

    key: str
    why: str
    """In words for people, after "the node leaves:"."""
    notice_seconds: float
    """From the taint until the node's pods are killed, as its author documents it; else how long that usually takes."""
    drains: bool = True
    """Whether executors are moved away. False: they can't leave gracefully any more, or are not to."""
    source: str = ""
    """Where that is documented."""


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
        300.0,
        # Also how Oracle's OKE, kured, draino, eksctl and upgrades of managed node groups begin.
        source="kubernetes.io/docs/reference/labels-annotations-taints; "
        "docs.oracle.com/iaas/Content/ContEng/Tasks/contengusingpreemptiblecapacity.htm",
    ),
    LeavingTaint(DELETED, "it is being deleted", 300.0, source=_KARPENTER),
    LeavingTaint("ToBeDeletedByClusterAutoscaler", "the cluster autoscaler is removing it", 60.0, source=_AUTOSCALER),
    LeavingTaint(
        "DeletionCandidateOfClusterAutoscaler", "the cluster autoscaler may remove it soon", 600.0, source=_AUTOSCALER
    ),
    LeavingTaint("karpenter.sh/disrupted", "Karpenter is replacing it", 300.0, source=_KARPENTER),
    LeavingTaint("karpenter.sh/disruption", "Karpenter is replacing it", 300.0, source=_KARPENTER),
    LeavingTaint("karpenter.sh/termination", "Karpenter is removing it", 300.0, source=_KARPENTER),
    LeavingTaint("aws-node-termination-handler/spot-itn", "its spot machine is being reclaimed", 120.0, source=_NTH),
    LeavingTaint(
        "aws-node-termination-handler/rebalance-recommendation", "its spot machine may be reclaimed", 300.0, source=_NTH
    ),
    LeavingTaint(
        "aws-node-termination-handler/scheduled-maintenance",
        "maintenance of its machine is scheduled",
        600.0,
        source=_NTH,
    ),
    LeavingTaint(
        "aws-node-termination-handler/asg-lifecycle-termination", "its scaling group is removing it", 300.0, source=_NTH
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
        300.0,
        source="medik8s/node-maintenance-operator: controllers/taint.go",
    ),
    # Nothing on these can leave gracefully any more.
    LeavingTaint(
        "node.cloudprovider.kubernetes.io/shutdown",
        "its machine is shut down",
        0.0,
        drains=False,
        source="kubernetes.io/docs/reference/labels-annotations-taints",
    ),
    LeavingTaint(
        "node.kubernetes.io/out-of-service",
        "it is out of service",
        0.0,
        drains=False,
        source="kubernetes.io/docs/reference/labels-annotations-taints",
    ),
)


@dataclass(frozen=True, slots=True)
class Notice:
    """That one node is about to go."""

    taint: str
    """The key of a row of the table."""
    why: str
    seconds: float
    since: float | None = None
    """When the taint was added; None where nothing says so."""
    drains: bool = True

    def left_seconds(self, now: float) -> float:
        """Until its pods are killed, as far as can be told; the whole notice where its beginning is not known."""
        if self.since is None or self.since > now:
            return self.seconds
        return max(0.0, self.since + self.seconds - now)


def notice(table: Iterable[LeavingTaint], since: Mapping[str, float | None]) -> Notice | None:
    """The shortest notice of a node; one that drains comes first. `since`: by key, what the node carries."""
    found = [
        Notice(row.key, row.why, row.notice_seconds, since[row.key], row.drains) for row in table if row.key in since
    ]
    return min(found, key=lambda each: (not each.drains, each.seconds), default=None)


def with_rows(table: Iterable[LeavingTaint], rows: Iterable[LeavingTaint]) -> tuple[LeavingTaint, ...]:
    """The table with further rows, each in place of the one with its key."""
    return tuple(({row.key: row for row in table} | {row.key: row for row in rows}).values())
