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
        return f"ballast docs doctor#{self.id.lower()}"


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
    "DeparturesNotRetained": Entry(
        Severity.WARNING,
        "While a stage runs, its tasks fetch from the addresses that executors had when it began. Each one that leaves "
        "costs the stage an attempt, and Spark gives up after four in a row, unless it remembers the departed ones. "
        "Measured on Spark 4.3: the fourth departure within one stage ended the job, with storage migration off and "
        "on; with 100 the job went on after five. Without it, Ballast drains no more than three executors an hour.",
        "Set spark.scheduler.maxRetainedRemovedDecommissionExecutors=100, before Spark 4.0 also "
        "spark.stage.ignoreDecommissionFetchFailure=true, and tell Ballast by the executors' label "
        "ballast.dev/retained-departures=100, or by retainedDepartures of a SparkTopology's component.",
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
        "Give its Kafka reader the zone of each executor (see `ballast docs routing`), or kafka.client.rack=ZONE if "
        "the job is in one zone, and set the brokers' replica.selector.class to RackAwareReplicaSelector.",
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
    "NotOnKubernetes": Entry(
        Severity.ERROR,
        "Ballast places pods, and these executors are no pods that Spark creates. Nothing else was checked.",
        "Submit it with --master k8s://…, or check another application.",
    ),
    "ForeignScheduler": Entry(
        Severity.ERROR,
        "The operator places executors of the schedulers that placement.schedulerNames names, by default of "
        "default-scheduler, and leaves all others alone (cause ForeignScheduler). Profiles of kube-scheduler do all "
        "that Ballast needs. Volcano and YuniKorn keep to scheduling gates and required affinity, so the zone holds.",
        "Leave the scheduler's name out, or add it to placement.schedulerNames of the BalancingPolicy. A policy in the "
        "same file as the application is read, too. Use no gangs.",
    ),
    "Gang": Entry(
        Severity.ERROR,
        "The scheduler of a gang binds its members together or not at all, and reserves room for them before Ballast "
        "has chosen a place. So the operator releases executors of a gang as they are (cause Gang), and never moves "
        "them.",
        "Submit the application without the pod group or task group, or opt it out with the label "
        "ballast.dev/gate=disabled.",
    ),
    "SizeUnknown": Entry(
        Severity.INFO,
        "Spark creates so many executors in several batches, and the zone is chosen when the first one is seen, for "
        "as many as are going to come. Where nothing says how many, it is the roomiest zone and the smallest rack "
        "that holds the first ones, and a large set may later find no zone with room for all of it.",
        "Set spark.kubernetes.executor.label.ballast.dev/executors, or executors of the component in a SparkTopology. "
        "If dynamic allocation may go beyond that number, write the larger one.",
    ),
    "GracePeriodTooShort": Entry(
        Severity.ERROR,
        "A pod is killed when its grace period ends. A decommissioned executor was measured to exit after 3.3 s at the "
        "earliest, so this one always loses its tasks and blocks. Before Spark 4.1 the pod template's value counts; "
        "from then on Spark's setting does.",
        "Set a grace period of 60 s or more there.",
    ),
    "GracePeriodIgnored": Entry(
        Severity.WARNING,
        "Before Spark 4.1 the grace period of executors comes from the pod template, and "
        "spark.kubernetes.executor.terminationGracePeriodSeconds does nothing. From 4.1 on the setting, or its default "
        "of 30s, overrides the template.",
        "Set it where this version of Spark reads it.",
    ),
    "RemoteShuffle": Entry(
        Severity.INFO,
        "Executors don't shuffle among themselves. They should be near the service's workers instead, and pods don't "
        "tell that.",
        "Declare the workers as an external component of a SparkTopology (see `ballast docs remote-shuffle`).",
    ),
    "WorkloadUnknown": Entry(
        Severity.INFO,
        "Executors of an unknown workload are placed and never moved.",
        "If it is a streaming application, set spark.kubernetes.executor.label.ballast.dev/workload=Streaming, or "
        "workload: Streaming of its component in a SparkTopology. With the real-time trigger it is RealTime.",
    ),
    "RealTimeMoved": Entry(
        Severity.WARNING,
        "A query with the real-time trigger (Spark 4.1 and newer) needs a task slot for each task at all times. It "
        "ends (CONCURRENT_SCHEDULER_INSUFFICIENT_SLOT) when it loses one executor, also by decommissioning.",
        "Set spark.kubernetes.executor.label.ballast.dev/workload=RealTime, or workload: RealTime of its component in "
        "a SparkTopology. Such executors are placed, and never moved.",
    ),
    "StateMetricsOff": Entry(
        Severity.WARNING,
        "Without it Spark exports neither the size of the state nor the duration of batches. While the size of its "
        "state is unknown, an executor is not moved.",
        "Set spark.sql.streaming.metricsEnabled=true.",
    ),
    "RocksDbState": Entry(
        Severity.INFO,
        "Of RocksDB, Spark exports the memory and not the size of the state on disk: in Spark 4.3 21 MB of 413 MB. "
        "Where that shows, the state is unknown, and an executor whose state is unknown is not moved.",
        "Give its size by metrics.advanced.queries.stateBytes of the policy, or set moves.allowUnknownState there.",
    ),
    "MetricsNotExposed": Entry(
        Severity.WARNING,
        "The driver exposes its metrics to Prometheus by this sink. Without it the size of the state is unknown, and "
        "an executor whose state is unknown is not moved.",
        "Set the sink's class and path, and let Prometheus scrape port 4040 of the driver at /metrics/prometheus.",
    ),
    "ExecutorMetricsOff": Entry(
        Severity.WARNING,
        "The driver exposes the task time of each executor only with this setting. Without it Ballast can't tell what "
        "an executor adds to its node.",
        "Set spark.ui.prometheus.enabled=true.",
    ),
    "JmxMetricsUnread": Entry(
        Severity.WARNING,
        "The JMX exporter gives Spark's metrics other names, which no preset of Ballast reads: for Ballast this "
        "application has no metrics.",
        "Add Spark's own servlet (spark.metrics.conf.*.sink.prometheusServlet.*, spark.ui.prometheus.enabled=true) and "
        "scrape the driver's port 4040. The exporter may stay.",
    ),
    "MetricsNamespaceSet": Entry(
        Severity.WARNING,
        "Metrics' names then begin with that text instead of the application's id. Ballast can't tell whose they are.",
        "Leave spark.metrics.namespace unset, or let the scrape add the application's id (the pod label "
        "spark-app-selector) as the label application_id.",
    ),
    "PythonMemoryIgnored": Entry(
        Severity.WARNING,
        "In client mode Spark does not know that the application is Python's, and leaves this memory out of the pod's "
        "request and limit. Measured on Spark 4.3: 4505 MiB instead of 7782 MiB.",
        "Set spark.kubernetes.resource.type=python.",
    ),
    "SerialCollector": Entry(
        Severity.INFO,
        "Java 17 to 25 takes the serial collector where it sees less than 1792 MiB of memory or fewer than two "
        "processors. Each collection then stops the executor and uses one core.",
        "Set -XX:+UseG1GC in spark.executor.extraJavaOptions, or give executors more memory and cores.",
    ),
    "ParallelCollector": Entry(
        Severity.INFO,
        "Java 8 takes the parallel collector. Each collection then stops the executor, a full one for seconds. "
        "`ballast size` does not read the GC logs of Java 8.",
        "Set -XX:+UseG1GC in spark.executor.extraJavaOptions, or run executors on Java 11 or later (Spark 3.0 and "
        "later).",
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
        "Your account lacks a right that a check needs. The checks that depend on it were skipped.",
        "Ask for the right, or ask a user who has it to run doctor.",
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
    "NoPolicy": Entry(
        Severity.WARNING,
        "There is no BalancingPolicy, so the operator places and moves nothing.",
        "Create one: kubectl apply -f examples/balancingpolicy.yaml, with your Prometheus' address.",
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
        "update, or adds to it what may not be changed. The executor is deleted after the gate timeout, and executors "
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
    "MetricsAmbiguous": Entry(
        Severity.ERROR,
        "One Prometheus holds several clusters with nodes of the same name or address, replicas of one Prometheus "
        "without deduplication, or two scrapes of one exporter. Their values would be added up, so they are not used, "
        "and nothing is moved from or to such a node.",
        "Choose one: spec.metrics.prometheus.matchers, such as cluster: prod. Ask an endpoint that removes duplicates. "
        "Name the scrape's job in spec.metrics.advanced.jobs.",
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
    "ExecutorsNotPlaced": Entry(
        Severity.WARNING,
        "The operator's last pass left executors as they are although they opted in. `ballast docs placement` explains "
        "the causes.",
        "Do what the message says; kubectl ballast explain pod/NAME has the same for each executor.",
    ),
    "SchedulerLimits": Entry(
        Severity.INFO,
        "Executors of this scheduler are placed, and not all of a placement holds there. `ballast docs "
        "placement#other-schedulers` has the table.",
        "Leave placement.pin at Zone, or set it to Rack or Node: what is required holds.",
    ),
    "PolicyMissing": Entry(
        Severity.WARNING,
        "The namespace opts its executors in, and no BalancingPolicy includes it: nothing places them.",
        "Let the namespaceSelector of a BalancingPolicy select the namespace, or remove its label.",
    ),
    "OtherMover": Entry(
        Severity.WARNING,
        "Another controller evicts pods from the same nodes. The descheduler moves executors by requested resources, "
        "and its plugin RemovePodsViolatingNodeAffinity, with preferred affinity, by the nodes that Ballast preferred. "
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
