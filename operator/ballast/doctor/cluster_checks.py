"""What doctor reads of a live cluster and from within a pod, and the checks of it."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ballast.api.condition import ConditionStatus
from ballast.api.labels import LabelSelector
from ballast.api.policy import BalancingPolicy
from ballast.api.topology import SparkTopology
from ballast.doctor.catalog import Finding, Severity, found
from ballast.doctor.schedulers import LIMITS
from ballast.enums import Pin
from ballast.errors import InvalidField
from ballast.model import KUBE_SCHEDULER

# What doctor looks at in a live cluster, as values.

Labels = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Node:
    name: str
    labels: Labels = field(default_factory=dict)
    kubelet_version: str = ""
    lease_ahead_seconds: float = 0.0
    """How far its last heartbeat lies in the future; negative is usual."""


@dataclass(frozen=True, slots=True)
class SparkPod:
    namespace: str
    name: str
    labels: Labels = field(default_factory=dict)
    annotations: Labels = field(default_factory=dict)
    finalizers: tuple[str, ...] = ()
    scheduler: str = KUBE_SCHEDULER

    @property
    def opted_out(self) -> bool:
        return "disabled" in (self.labels.get(_GATE_CHOICE), self.annotations.get(_GATE_CHOICE))


@dataclass(frozen=True, slots=True)
class Budget:
    namespace: str
    name: str
    selector: LabelSelector
    disruptions_allowed: int
    counted: bool = True
    """Its controller has observed it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metrics:
    """What one policy's Prometheus answers."""

    url: str
    problem: str = ""
    """Why nothing was answered."""
    failures: Mapping[str, str] = field(default_factory=dict)
    """Signal → why its query failed."""
    without: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Signal → nodes of the pool for which it has no fresh value."""
    empty: tuple[str, ...] = ()
    """Signals of executors that have no series at all."""
    ambiguous: str = ""
    """What has several sources; empty if nothing has."""


@dataclass(frozen=True, slots=True)
class NodePool:
    """Karpenter's, as far as it says when nodes with pods are drained."""

    consolidation_policy: str
    consolidate_after: str = "0s"
    blocked: bool = False
    """A disruption budget without a schedule allows no node to be drained for consolidation."""

    @property
    def drains(self) -> bool:
        return self.consolidation_policy != "WhenEmpty" and self.consolidate_after != "Never" and not self.blocked


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    name: str
    account: str
    version: str
    denied: tuple[str, ...] = ()
    """Rights that it lacks, as `verb resource`."""
    unfenced: tuple[str, ...] = ()
    """The chart's admission policies, by the end of their names, of which none names its account."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    server: str
    system_namespace: str
    operators: tuple[Operator, ...] = ()
    definitions: bool = True
    """Whether the API server knows Ballast's kinds."""
    nodes: tuple[Node, ...] = ()
    policies: tuple[BalancingPolicy, ...] = ()
    """The oldest first."""
    topologies: tuple[SparkTopology, ...] = ()
    drivers: tuple[SparkPod, ...] = ()
    executors: tuple[SparkPod, ...] = ()
    budgets: tuple[Budget, ...] = ()
    gated: Mapping[str, bool] = field(default_factory=dict)
    """Namespace where placement is enforced → whether a new executor would be gated."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """Namespace → why an executor's release is refused there, as the API server's dry run says."""
    resting: Mapping[str, str] = field(default_factory=dict)
    """Namespace → why a GateSwitch gates no executors there for now."""
    metrics: Mapping[str, Metrics] = field(default_factory=dict)
    """By policy."""
    deschedulers: tuple[str, ...] = ()
    """Kind, namespace and name of each, as `CronJob kube-system/descheduler`."""
    node_pools: Mapping[str, NodePool] = field(default_factory=dict)
    """Karpenter's, by name: those that could be read."""
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Labels by namespace; empty if they could not be read."""
    server_version: str = ""
    own_version: str = ""
    clock_ahead_seconds: float = 0.0
    """This machine's clock minus the API server's."""
    unread: Mapping[str, str] = field(default_factory=dict)
    """What could not be read → why."""


# What the kernel allows the processes of one pod: how many open files, and how large socket buffers.
#
# Read from what `head -n 99 /proc/1/limits /proc/sys/net/core/rmem_max /proc/sys/net/core/wmem_max` prints in it.

COMMAND = "head -n 99 /proc/1/limits /proc/sys/net/core/rmem_max /proc/sys/net/core/wmem_max"
_OPEN_FILES = 65_000
"""What the tuning notes of Storm and Trident ask for."""
_BUFFER_BYTES = 1024 * 1024
"""With a round trip of 1 ms it carries 1 GiB/s, more than a link of 8 Gbit/s."""
_UNLIMITED = 2**63
_FILES = re.compile(r"^Max open files\s+\S+\s+(\d{1,18}|unlimited)\s", re.MULTILINE)
_BUFFERS = re.compile(r"^==> .*/(rmem_max|wmem_max) <==\n\s*(\d{1,18})\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class PodLimits:
    """`open_files`: the hard limit, to which a JVM raises its own. Buffers: the largest a program may ask for."""

    source: str
    open_files: int
    buffer_bytes: Mapping[str, int]
    """`rmem_max` and `wmem_max`, as far as the pod's kernel shows them."""


def read_limits(text: str, *, source: str) -> PodLimits:
    """Raises InvalidField for what is not the command's output."""
    files = _FILES.search(text)
    buffers = {name: int(size) for name, size in _BUFFERS.findall(text)}
    if files is None:
        remedy = f"write the output of `kubectl exec POD -- {COMMAND}` to it"
        raise InvalidField("--limits", source, remedy)
    return PodLimits(
        source=source,
        open_files=_UNLIMITED if files[1] == "unlimited" else int(files[1]),
        buffer_bytes=buffers,
    )


def check_limits(limits: PodLimits) -> list[Finding]:
    return [*_open_files(limits), *_buffers(limits)]


def _open_files(limits: PodLimits) -> Iterator[Finding]:
    if limits.open_files < _OPEN_FILES:
        yield found("OpenFilesLow", limits.source, f"The hard limit is {limits.open_files} open files.")


def _buffers(limits: PodLimits) -> Iterator[Finding]:
    for name, size in sorted(limits.buffer_bytes.items()):
        if size < _BUFFER_BYTES:
            what = f"net.core.{name} is {size} B: one connection carries at most {size / 1000:.0f} MB/s at 1 ms."
            yield found("SocketBuffersSmall", limits.source, what)


_MINOR = re.compile(r"v?1\.([0-9]+)")
_GATE_NEEDS_MINOR = 36
_KUBELET_MINORS = 3
_CLOCK_SECONDS = 5.0
"""Well below the lease's 15 s, and above what a request takes."""
_SHOWN = 3
_NODE_POOL = "karpenter.sh/nodepool"
_QUEUE, _QUEUED = "kueue.x-k8s.io/queue-name", "kueue.x-k8s.io/managed"
"""The label that asks Kueue to queue a pod, and the finalizer of every pod that it queues."""
_GATE_CHOICE = "ballast.dev/gate"
_DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"


def check(cluster: Cluster, *, policy: str | None = None, topology: str | None = None) -> list[Finding]:
    """What concerns the cluster; only one `policy`'s pool and namespaces; or only one `topology` (namespace/name).

    Raises InvalidField where there is none of this name.
    """
    names = {each.metadata.name for each in cluster.policies}
    chosen = names
    if policy is not None:
        chosen = {_known("--policy", policy, names, "BalancingPolicy")}
        cluster = _narrowed(cluster, lambda namespace: _steers(cluster, policy, namespace), chosen)
    if topology is not None:
        own = {f"{each.metadata.namespace}/{each.metadata.name}": each for each in cluster.topologies}
        _known("--topology", topology, own, "SparkTopology")
        home = own[topology].metadata.namespace or ""
        labels = own[topology].metadata.labels
        chosen = {
            each.metadata.name
            for each in cluster.policies
            if (each.spec.topology_selector is None or each.spec.topology_selector.matches(labels))
            and _steers(cluster, each.metadata.name, home)
        }
        cluster = _narrowed(cluster, lambda namespace: namespace == home, chosen)
    left_out = {_subject(name) for name in names - chosen}
    return [finding for rule in _RULES for finding in rule(cluster) if finding.subject not in left_out]


def _known(option: str, name: str, there: Collection[str], kind: str) -> str:
    if name not in there:
        raise InvalidField(option, name, f"there is no such {kind}; there is {', '.join(sorted(there)) or 'none'}")
    return name


def _steers(cluster: Cluster, policy: str, namespace: str) -> bool:
    """Whether executors in the namespace are the policy's, as far as the namespace's labels could be read."""
    spec = next(each.spec for each in cluster.policies if each.metadata.name == policy)
    labels = cluster.namespaces.get(namespace)
    return labels is None or spec.namespace_selector.matches(labels)


def _narrowed(cluster: Cluster, within: Callable[[str], bool], policies: Collection[str]) -> Cluster:
    """Nodes of these policies' pools, and what is in the namespaces. All policies stay: pools may overlap."""
    specs = [each.spec for each in cluster.policies if each.metadata.name in policies]
    return replace(
        cluster,
        nodes=tuple(node for node in cluster.nodes if any(spec.node_selector.matches(node.labels) for spec in specs)),
        topologies=tuple(each for each in cluster.topologies if within(each.metadata.namespace or "")),
        drivers=tuple(each for each in cluster.drivers if within(each.namespace)),
        executors=tuple(each for each in cluster.executors if within(each.namespace)),
        budgets=tuple(each for each in cluster.budgets if within(each.namespace)),
        gated={name: gated for name, gated in cluster.gated.items() if within(name)},
        refused={name: why for name, why in cluster.refused.items() if within(name)},
    )


def _subject(policy: str) -> str:
    return f"BalancingPolicy {policy}"


def _installed(cluster: Cluster) -> Iterator[Finding]:
    if not cluster.definitions:
        yield found("NotInstalled", cluster.server, "The API server does not know the kinds of ballast.dev.")
    if not cluster.operators and "deployments" not in cluster.unread:
        what = f"There is no Deployment app.kubernetes.io/name=ballast in namespace {cluster.system_namespace}."
        yield found("NotInstalled", cluster.server, what)


def _policies(cluster: Cluster) -> Iterator[Finding]:
    if (
        cluster.definitions
        and not cluster.policies
        and not any("balancingpolic" in each.lower() for each in cluster.unread)
    ):
        yield found("NoPolicy", cluster.server, "The cluster has no BalancingPolicy.")


def _rights(cluster: Cluster) -> Iterator[Finding]:
    for operator in cluster.operators:
        for right in operator.denied:
            what = f"Service account {operator.account} may not {right}."
            yield found("OperatorDenied", f"Deployment {cluster.system_namespace}/{operator.name}", what)
        if operator.unfenced:
            policies = ", ".join(f"…-{each}" for each in operator.unfenced)
            what = f"No ValidatingAdmissionPolicy {policies} names service account {operator.account}."
            yield found("OperatorNotFenced", f"Deployment {cluster.system_namespace}/{operator.name}", what)
    for what, why in cluster.unread.items():
        yield found("CannotInspect", cluster.server, f"{what}: {why}.")


def _versions(cluster: Cluster) -> Iterator[Finding]:
    server = _minor(cluster.server_version)
    if server is not None and server < _GATE_NEEDS_MINOR:
        what = f"The API server is {cluster.server_version}; the gate's admission policy needs 1.36."
        yield found("VersionSkew", cluster.server, what, severity=Severity.ERROR)
    for version in sorted({node.kubelet_version for node in cluster.nodes}):
        kubelet = _minor(version)
        if server is None or kubelet is None or server - _KUBELET_MINORS <= kubelet <= server:
            continue
        names = _some([node.name for node in cluster.nodes if node.kubelet_version == version])
        what = f"The kubelet of {names} is {version}, and the API server is {cluster.server_version}."
        yield found("VersionSkew", cluster.server, what)
    for operator in cluster.operators:
        if operator.version and cluster.own_version and operator.version != cluster.own_version:
            what = f"The operator is {operator.version}, and this command line is {cluster.own_version}."
            yield found("VersionSkew", f"Deployment {cluster.system_namespace}/{operator.name}", what)


def _clocks(cluster: Cluster) -> Iterator[Finding]:
    if abs(cluster.clock_ahead_seconds) > _CLOCK_SECONDS:
        what = f"This machine's clock is {cluster.clock_ahead_seconds:+.0f}s from the API server's."
        yield found("ClockSkew", cluster.server, what)
    for node in cluster.nodes:
        if node.lease_ahead_seconds > _CLOCK_SECONDS:
            what = f"The node's heartbeat is {node.lease_ahead_seconds:.0f}s ahead of the API server's clock."
            yield found("ClockSkew", f"Node {node.name}", what)


def _pools(cluster: Cluster) -> Iterator[Finding]:
    owned: dict[str, set[str]] = {}
    for policy in cluster.policies:
        name, subject = policy.metadata.name, _subject(policy.metadata.name)
        nodes = _pool(cluster, policy)
        mine = {node.name for node in nodes}
        for other, theirs in owned.items():
            if mine & theirs:
                what = f"It selects {_some(sorted(mine & theirs))}, as BalancingPolicy {other} does."
                yield found("PoolsOverlap", subject, what)
        owned[name] = mine
        if not nodes:
            yield found("PoolEmpty", subject, f"None of {len(cluster.nodes)} nodes matches its nodeSelector.")
            continue
        for level in policy.spec.levels:
            without = [node.name for node in nodes if not node.labels.get(level.label)]
            if without:
                what = f"{len(without)} of {len(nodes)} nodes have no label {level.label}: {_some(without)}."
                yield found("LevelLabelMissing", subject, what)


def _stopped(cluster: Cluster) -> Iterator[Finding]:
    for policy in cluster.policies:
        if policy.spec.stopped:
            yield found("PolicyStopped", _subject(policy.metadata.name), "Its spec.stopped is true.")


def _gate(cluster: Cluster) -> Iterator[Finding]:
    for namespace, gated in cluster.gated.items():
        if not gated:
            what = "An executor created with the API server's dry run gets no gate ballast.dev/placement."
            if namespace in cluster.resting:
                what = f"Gating rests: {cluster.resting[namespace]}."
            yield found("GateNotEffective", f"Namespace {namespace}", what)


def _releases(cluster: Cluster) -> Iterator[Finding]:
    for namespace, why in cluster.refused.items():
        yield found("ReleaseRefused", f"Namespace {namespace}", why)


def _metrics(cluster: Cluster) -> Iterator[Finding]:
    for policy, seen in cluster.metrics.items():
        subject = _subject(policy)
        if seen.problem:
            yield found("PrometheusUnreachable", subject, f"{seen.url}: {seen.problem}.")
            continue
        for signal, why in seen.failures.items():
            yield found("QueryIncomplete", subject, f"The query {signal} failed: {why}.")
        for signal, nodes in seen.without.items():
            if nodes:
                what = f"The query {signal} has no fresh value for {_some(nodes)}."
                yield found("QueryIncomplete", subject, what)
        if seen.ambiguous:
            yield found("MetricsAmbiguous", subject, f"{seen.ambiguous[0].upper()}{seen.ambiguous[1:]}.")
        for signal in seen.empty:
            what = f"The query {signal} has no series, although executors run."
            yield found("QueryIncomplete", subject, what, severity=Severity.INFO)


def _by_namespace(pods: Iterable[SparkPod]) -> Mapping[str, Sequence[SparkPod]]:
    found: dict[str, list[SparkPod]] = defaultdict(list)
    for pod in pods:
        found[pod.namespace].append(pod)
    return found


def _budgets(cluster: Cluster) -> Iterator[Finding]:
    executors = _by_namespace(cluster.executors)
    for budget in cluster.budgets:
        if budget.disruptions_allowed > 0 or not budget.counted:
            continue
        held = [pod.name for pod in executors.get(budget.namespace, ()) if budget.selector.matches(pod.labels)]
        if held:
            patch = """'{"spec":{"minAvailable":null,"maxUnavailable":1}}'"""
            command = f"kubectl patch pdb {budget.name} -n {budget.namespace} --type merge -p {patch}"
            what = f"It allows no disruption and selects {len(held)} executors: {_some(held)}."
            subject = f"PodDisruptionBudget {budget.namespace}/{budget.name}"
            yield found("BudgetBlocks", subject, what, commands=(command,))


def _drivers(cluster: Cluster) -> Iterator[Finding]:
    all_drivers, executors = _by_namespace(cluster.drivers), _by_namespace(cluster.executors)
    for topology in cluster.topologies:
        namespace = topology.metadata.namespace or ""
        for component in topology.spec.components:
            selector = component.selector
            if selector is None:
                continue
            if drivers := [pod.name for pod in all_drivers.get(namespace, ()) if selector.matches(pod.labels)]:
                alone = not any(selector.matches(pod.labels) for pod in executors.get(namespace, ()))
                what = (
                    f"The selector of component {component.name} matches the driver {_some(drivers)}"
                    f"{' and no executor' if alone else ''}."
                )
                subject = f"SparkTopology {namespace}/{topology.metadata.name}"
                severity = Severity.WARNING if alone else None
                yield found("SelectorMatchesDriver", subject, what, severity=severity)


def _not_placed(cluster: Cluster) -> Iterator[Finding]:
    """As the operator's table has it."""
    for policy in cluster.policies:
        for condition in policy.status.conditions:
            if condition.type == "ExecutorsPlaced" and condition.status is ConditionStatus.FALSE:
                subject = _subject(policy.metadata.name)
                yield found("ExecutorsNotPlaced", subject, f"{condition.reason}: {condition.message}.")


def _foreign(cluster: Cluster) -> Iterator[Finding]:
    """By namespace, before placement is enforced, too."""
    aside: dict[tuple[str, str], list[str]] = defaultdict(list)
    for pod in cluster.executors:
        if not pod.opted_out and any(
            pod.scheduler not in policy.spec.placement.scheduler_names
            for policy in cluster.policies
            if _steers(cluster, policy.metadata.name, pod.namespace)
        ):
            aside[pod.namespace, pod.scheduler].append(pod.name)
    for (namespace, scheduler), pods in sorted(aside.items()):
        what = f"{len(pods)} executors have spec.schedulerName {scheduler}: {_some(sorted(pods))}."
        yield found("ForeignScheduler", f"Namespace {namespace}", what, severity=Severity.WARNING)


def _limited(cluster: Cluster) -> Iterator[Finding]:
    for policy in cluster.policies:
        placement = policy.spec.placement
        for name in placement.scheduler_names:
            if name in LIMITS:
                alone = "; placement.pin is None, so nothing is required" if placement.pin is Pin.NONE else ""
                what = f"Its placement.schedulerNames names {name}. {LIMITS[name]}{alone}."
                severity = Severity.WARNING if alone and name == "yunikorn" else None
                yield found("SchedulerLimits", _subject(policy.metadata.name), what, severity=severity)


def _uncovered(cluster: Cluster) -> Iterator[Finding]:
    if not cluster.policies:
        return
    counts = Counter(pod.namespace for pod in cluster.executors if not pod.opted_out)
    for namespace, count in sorted(counts.items()):
        labels = cluster.namespaces.get(namespace, {})
        steered = any(_steers(cluster, policy.metadata.name, namespace) for policy in cluster.policies)
        if labels.get(_GATE_CHOICE) == "enabled" and not steered:
            what = f"It has the label {_GATE_CHOICE}=enabled and {count} executors."
            yield found("PolicyMissing", f"Namespace {namespace}", what)


def _queues(cluster: Cluster) -> Iterator[Finding]:
    unqueued: dict[str, list[str]] = defaultdict(list)
    for pod in cluster.executors:
        if _QUEUE in pod.labels and _QUEUED not in pod.finalizers:
            unqueued[pod.namespace].append(pod.name)
    for namespace, pods in sorted(unqueued.items()):
        what = f"{_some(pods)}: label {_QUEUE}, but not managed by Kueue, so no quota is taken."
        yield found("KueueTakesNoQuota", f"Namespace {namespace}", what)


def _movers(cluster: Cluster) -> Iterator[Finding]:
    for name in cluster.deschedulers:
        yield found("OtherMover", name, "It is a descheduler.")
    for policy in cluster.policies:
        named = {pool for node in _pool(cluster, policy) if (pool := node.labels.get(_NODE_POOL))}
        pools = sorted(name for name in named if (known := cluster.node_pools.get(name)) is None or known.drains)
        exposed = [pod.name for pod in cluster.executors if pod.annotations.get(_DO_NOT_DISRUPT) != "true"]
        if pools and exposed:
            patch = """'{"spec":{"disruption":{"consolidationPolicy":"WhenEmpty"}}}'"""
            commands = tuple(f"kubectl patch nodepool {pool} --type merge -p {patch}" for pool in pools)
            what = (
                f"Its nodes belong to Karpenter's NodePool {_some([_consolidated(cluster, pool) for pool in pools])}, "
                f"and {len(exposed)} executors have no annotation {_DO_NOT_DISRUPT}."
            )
            yield found("OtherMover", _subject(policy.metadata.name), what, commands=commands)


def _consolidated(cluster: Cluster, pool: str) -> str:
    """The NodePool's name with what is known of its consolidation."""
    known = cluster.node_pools.get(pool)
    if known is None:
        return f"{pool} (consolidationPolicy not readable)"
    return f"{pool} (consolidationPolicy {known.consolidation_policy} after {known.consolidate_after})"


def _pool(cluster: Cluster, policy: BalancingPolicy) -> list[Node]:
    return [node for node in cluster.nodes if policy.spec.node_selector.matches(node.labels)]


def _minor(version: str) -> int | None:
    match = _MINOR.match(version)
    return int(match[1]) if match else None


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{', '.join(names[:_SHOWN])}{more}"


_RULES: Sequence[Callable[[Cluster], Iterator[Finding]]] = (
    _installed,
    _policies,
    _rights,
    _versions,
    _clocks,
    _pools,
    _stopped,
    _gate,
    _releases,
    _metrics,
    _budgets,
    _drivers,
    _not_placed,
    _foreign,
    _limited,
    _uncovered,
    _queues,
    _movers,
)
