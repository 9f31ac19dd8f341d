"""Findings, and every one that there is by its id. docs/doctor.md is generated from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

# A finding: what is wrong, why it matters, and what to change.

_NONE: Mapping[str, str] = {}


class Severity(StrEnum):
    ERROR = "error"
    """Ballast, or a part of it, does not work."""
    WARNING = "warning"
    """It works, and costs more or protects less than it should."""
    INFO = "info"
    """Worth knowing; does not affect the exit code."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What holds of every finding with one id."""

    severity: Severity
    why: str
    """With the measured consequence, where there is one."""
    remedy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    id: str
    """Stable: scripts may rely on it."""
    severity: Severity
    subject: str
    """The file or the object that it is about."""
    what: str
    why: str
    remedy: str
    settings: Mapping[str, str] = field(default_factory=lambda: _NONE)
    """Spark configuration that removes the finding."""
    commands: tuple[str, ...] = ()
    """Shell commands that remove the finding."""

    @property
    def anchor(self) -> str:
        return f"docs/doctor.md#{self.id.lower()}"


SUBMISSION: Mapping[str, Entry] = {
    "DecommissionOff": Entry(
        Severity.ERROR,
        "Without decommissioning an eviction kills the executor: running tasks fail, its cached blocks and shuffle "
        "files are lost. Measured on Spark 4.3: a killed executor failed its task; with decommissioning none failed, "
        "and the executor ended with exit code 0.",
        "Set spark.decommission.enabled=true. The image needs /opt/decom.sh and ps.",
    ),
    "LocalityWait": Entry(
        Severity.WARNING,
        "Spark waits this long for an executor that has left before a task may run elsewhere, and stateful tasks stay "
        "on the survivors. Measured with 3s: the longest batch took 7.0 to 10.1 s, and in two of four runs the "
        "replacement got no stateful task at all. With 0s: 3.5 to 3.9 s, and the replacement did its full share.",
        "Set spark.locality.wait=0s. On Kubernetes each executor is a separate host, so the wait gains little.",
    ),
    "StorageDecommissionGrace": Entry(
        Severity.ERROR,
        "A decommissioned executor exits only after a migration pass that began after its last task; a pass runs once "
        "in each replicationReattemptInterval. Measured with Spark's defaults (30s and 30s of grace): the executor was "
        "killed after 30.2 s with exit code 143. With an interval of 2s it exited by itself after 3.3 s.",
        "Set spark.storage.decommission.replicationReattemptInterval=2s, or for a job that only streams "
        "spark.storage.decommission.enabled=false: the shuffle files of a finished batch are not needed.",
    ),
    "FailuresNeverExpire": Entry(
        Severity.WARNING,
        "Executors that end with an exit code other than 0 count as failures for the application's whole life. At the "
        "limit, 2 x executors and at least 3, the driver exits with code 11. A stream that runs for weeks gets there "
        "by evictions alone.",
        "Set spark.executor.failuresValidityInterval=1h.",
    ),
    "IdleTimeoutBelowGate": Entry(
        Severity.ERROR,
        "With dynamic allocation the driver deletes a Pending executor that is older than executorIdleTimeout when it "
        "has more than it wants. An executor that is still gated is Pending.",
        "Set spark.dynamicAllocation.executorIdleTimeout to more than the policy's placement.gateTimeout; Spark's "
        "default is 60s.",
    ),
    "RegisteredWaitBelowGate": Entry(
        Severity.WARNING,
        "The driver begins with the executors that it has after maxRegisteredResourcesWaitingTime. Executors that are "
        "still gated get no state of the first batches, and state stays where it is first.",
        "Set spark.scheduler.maxRegisteredResourcesWaitingTime to more than the policy's placement.gateTimeout; "
        "Spark's default is 30s.",
    ),
    "AllocatorOutOfScope": Entry(
        Severity.ERROR,
        "Executors of a StatefulSet or Deployment are restarted by its controller, all with the label "
        "spark-exec-id=EXECID. Ballast can't tell a replacement from them and leaves these executors alone.",
        "Set spark.kubernetes.allocation.pods.allocator=direct, Spark's default.",
    ),
    "DepartedExecutorFetches": Entry(
        Severity.WARNING,
        "A fetch from an executor that has left waits (maxRetries + 1) x connectionCreationTimeout + maxRetries x "
        "retryWait where the network drops packets to its address instead of refusing them. Measured with Spark 4.3's "
        "shuffle client and its defaults: 496 s; with 5s and 1s: 24 s.",
        "Set spark.shuffle.io.connectionCreationTimeout=5s and spark.shuffle.io.retryWait=1s.",
    ),
    "ClientRackMissing": Entry(
        Severity.INFO,
        "The job uses Kafka and names no client.rack, so consumers read from partition leaders in every zone. With the "
        "zone of each executor there, they read from a replica in their own zone: at no cost, and about half of the "
        "cross-zone traffic that placement saves for readers.",
        "Give its Kafka reader the zone of each executor (docs/routing.md), or kafka.client.rack=ZONE if the job is in "
        "one zone, and set the brokers' replica.selector.class to RackAwareReplicaSelector.",
    ),
    "SelectorMatchesDriver": Entry(
        Severity.INFO,
        "Ballast never gates, places or moves a driver. A component that matches the driver and no executor is empty: "
        "nothing of it is placed.",
        "Label the executors only (spark.kubernetes.executor.label.*), or add spark-role: executor to the selector.",
    ),
    "TopologyLabelMissing": Entry(
        Severity.WARNING,
        "Nothing says which SparkTopology these executors belong to. They are not placed near what they exchange data "
        "with, and in a namespace without the label ballast.dev/gate=enabled they are not gated at all.",
        "Set spark.kubernetes.executor.label.ballast.dev/topology to the SparkTopology's name, or let a component's "
        "selector match labels that the executors have.",
    ),
}
"""Findings of an application before it runs."""

CLUSTER: Mapping[str, Entry] = {
    "NotInstalled": Entry(
        Severity.ERROR,
        "Without Ballast's definitions and an operator nothing is placed or moved, and new executors are not gated.",
        "Install the chart, or name the operator's namespace with --system-namespace.",
    ),
    "OperatorDenied": Entry(
        Severity.ERROR,
        "The operator's service account lacks a right that it needs, so what depends on it fails.",
        "Apply the chart's roles again. With evictionNamespaces set, list every namespace whose executors may move.",
    ),
    "OperatorNotFenced": Entry(
        Severity.ERROR,
        "The chart's admission policies limit what the operator may do with its rights, and they name its account. "
        "Where they are missing, its token may be used for all that its roles grant, such as to evict drivers.",
        "Install the chart in that namespace, or render it for that namespace: in an overlay, kustomize's namespace "
        "and namePrefix leave the account's name in the policies as it is.",
    ),
    "CannotInspect": Entry(
        Severity.INFO,
        "Your account lacks a right that a check needs, or there is more than doctor looks through. The checks that "
        "depend on it were skipped.",
        "Ask for the right, or ask a user who has it to run doctor. Delete selectors that are not needed.",
    ),
    "VersionSkew": Entry(
        Severity.WARNING,
        "Kubernetes supports kubelets up to three minor versions older than the API server, and none that is newer. "
        "The gate's admission policy needs Kubernetes 1.36. Command line and operator are tested at one version only.",
        "Upgrade what is older.",
    ),
    "ClockSkew": Entry(
        Severity.WARNING,
        "The operator counts by the API server's clock, whatever its own machine's says. It uses no metrics of a "
        "Prometheus whose clock differs by more than 10 s, and then nothing is moved. This command counts by its "
        "machine's clock.",
        "Synchronize the clocks with NTP.",
    ),
    "LevelLabelMissing": Entry(
        Severity.WARNING,
        "A node without the label of a level has no known place at it. Executors there count as far from all others "
        "at that level; if no node has the label, the level has no effect.",
        "Label the nodes, or remove the level from spec.levels.",
    ),
    "PoolEmpty": Entry(
        Severity.ERROR,
        "The policy's nodeSelector matches no node, so the policy does nothing.",
        "Correct spec.nodeSelector or label the nodes.",
    ),
    "PoolsOverlap": Entry(
        Severity.ERROR,
        "Two policies select the same node. The younger one does nothing as long as they overlap.",
        "Change spec.nodeSelector of one of them.",
    ),
    "PolicyStopped": Entry(
        Severity.WARNING,
        "A stopped policy gates, places and moves nothing.",
        "kubectl ballast start starts it again.",
    ),
    "GateNotEffective": Entry(
        Severity.ERROR,
        "A policy enforces placement, but an executor that is created here now is not gated. It is scheduled without "
        "regard to what it talks to.",
        "Check that the operator leads (kubectl ballast status), that the chart has gate.install=true, and that the "
        "GateSwitch has gating: true. If all of that holds, a mutating webhook drops the gate, as webhooks do that "
        "know an older pod: kubectl get mutatingwebhookconfigurations lists them.",
    ),
    "ReleaseRefused": Entry(
        Severity.ERROR,
        "The operator releases an executor by an update of the pod. A webhook or an admission policy refuses that "
        "update, or adds to it what may not be changed. Measured: the executor is deleted after 13 s, and executors "
        "of the namespace are not gated or placed for 5 minutes, later for up to an hour.",
        "Exempt the operator's account, or updates of executors, from what the message names. kubectl get "
        "validatingwebhookconfigurations,mutatingwebhookconfigurations,validatingadmissionpolicies lists what there "
        "is.",
    ),
    "PrometheusUnreachable": Entry(
        Severity.ERROR,
        "Without metrics there are no scores, and nothing is moved.",
        "Correct spec.metrics.prometheus. From a laptop, forward the port and use --prometheus.",
    ),
    "QueryIncomplete": Entry(
        Severity.WARNING,
        "The query gives no fresh value for some nodes or for no executor. A node without a fresh CPU value is "
        "excluded from moves; other signals are then missing from scores and evidence.",
        "Choose the preset that matches how Prometheus scrapes, or write the query yourself: "
        "spec.metrics.advanced.queries.",
    ),
    "BudgetBlocks": Entry(
        Severity.WARNING,
        "A PodDisruptionBudget allows no disruption now. The Eviction API refuses to evict the executors that it "
        "selects, so their moves fail.",
        "Let the budget allow one executor to be away: maxUnavailable: 1.",
    ),
    "KueueTakesNoQuota": Entry(
        Severity.WARNING,
        "Kueue queues no pod whose owner is queued, and an executor's owner is its driver. Measured with Kueue 0.15: "
        "such executors have no Workload, and start at once whatever the quota is.",
        "Add the annotation kueue.x-k8s.io/pod-suspending-parent to the executors "
        "(spark.kubernetes.executor.annotation.*), or remove the label from them.",
    ),
    "OtherMover": Entry(
        Severity.WARNING,
        "Another controller evicts pods from the same nodes. The descheduler moves executors by requested resources. "
        "Karpenter's consolidation with WhenEmptyOrUnderutilized empties nodes that it could do without. Both undo "
        "placements, and neither knows what executors exchange.",
        "Exclude executors from the descheduler (a namespace or label filter). Set consolidationPolicy: WhenEmpty, "
        "or annotate executors with karpenter.sh/do-not-disrupt.",
    ),
}
"""Findings of a live cluster."""

POD: Mapping[str, Entry] = {
    "OpenFilesLow": Entry(
        Severity.WARNING,
        "Every connection, shuffle file and state file is an open file. A JVM raises its own limit to the hard one; "
        'at that limit tasks fail with "Too many open files". Storm\'s tuning notes ask for 65000.',
        "Raise the limit of the container runtime (LimitNOFILE of its unit on the nodes).",
    ),
    "SocketBuffersSmall": Entry(
        Severity.INFO,
        "A program that asks for a socket buffer (spark.shuffle.io.receiveBuffer, Kafka's receive.buffer.bytes) gets "
        "no more than this, and a connection carries no more than one buffer per round trip. A buffer that no program "
        "asks for is tuned by the kernel (net.ipv4.tcp_rmem) and is not limited by it.",
        "Leave Spark's buffers at their default and set Kafka's receive.buffer.bytes=-1, or raise net.core.rmem_max "
        "and net.core.wmem_max on the nodes.",
    ),
}
"""Findings of what the kernel allows a pod."""

CATALOG: Mapping[str, Entry] = {**SUBMISSION, **POD, **CLUSTER}


def found(
    id_: str,
    subject: str,
    what: str,
    *,
    severity: Severity | None = None,
    settings: Mapping[str, str] | None = None,
    commands: tuple[str, ...] = (),
) -> Finding:
    """`severity`: of this case, where it differs from the entry's."""
    entry = CATALOG[id_]
    return Finding(
        id=id_,
        severity=severity or entry.severity,
        subject=subject,
        what=what,
        why=entry.why,
        remedy=entry.remedy,
        settings=settings or {},
        commands=commands,
    )
