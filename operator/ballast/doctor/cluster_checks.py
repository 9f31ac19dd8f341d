"""Checks of a live cluster."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from ballast.api.policy import BalancingPolicy
from ballast.doctor.catalog import found
from ballast.doctor.cluster import Cluster, Node
from ballast.doctor.finding import Finding, Severity
from ballast.errors import InvalidField

_MINOR = re.compile(r"v?1\.([0-9]+)")
_GATE_NEEDS_MINOR = 36
_KUBELET_MINORS = 3
_CLOCK_SECONDS = 5.0
"""Well below the lease's 15 s, and above what a request takes."""
_SHOWN = 3
_NODE_POOL = "karpenter.sh/nodepool"
_WHEN_EMPTY = "WhenEmpty"
_DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"


def check(cluster: Cluster, *, policy: str | None = None) -> list[Finding]:
    """`policy`: leave out what is about other policies. Raises InvalidField where there is none of this name."""
    names = {each.metadata.name for each in cluster.policies}
    if policy is not None and policy not in names:
        known = ", ".join(sorted(names)) or "none"
        raise InvalidField("--policy", policy, f"there is no BalancingPolicy of this name: there is {known}")
    left_out = {_subject(name) for name in names if policy not in (None, name)}
    return [finding for rule in _RULES for finding in rule(cluster) if finding.subject not in left_out]


def _subject(policy: str) -> str:
    return f"BalancingPolicy {policy}"


def _installed(cluster: Cluster) -> Iterator[Finding]:
    if not cluster.definitions:
        yield found("NotInstalled", cluster.server, "The API server does not know the kinds of ballast.dev.")
    if not cluster.operators and "deployments" not in cluster.unread:
        what = f"There is no Deployment app.kubernetes.io/name=ballast in namespace {cluster.system_namespace}."
        yield found("NotInstalled", cluster.server, what)


def _rights(cluster: Cluster) -> Iterator[Finding]:
    for operator in cluster.operators:
        for right in operator.denied:
            what = f"Service account {operator.account} may not {right}."
            yield found("OperatorDenied", f"Deployment {cluster.system_namespace}/{operator.name}", what)
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


def _gate(cluster: Cluster) -> Iterator[Finding]:
    for namespace, gated in cluster.gated.items():
        if not gated:
            what = "An executor created with the API server's dry run gets no gate ballast.dev/placement."
            yield found("GateNotEffective", f"Namespace {namespace}", what)


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
        for signal in seen.empty:
            what = f"The query {signal} has no series, although executors run."
            yield found("QueryIncomplete", subject, what, severity=Severity.INFO)


def _budgets(cluster: Cluster) -> Iterator[Finding]:
    for budget in cluster.budgets:
        if budget.disruptions_allowed > 0 or not budget.counted:
            continue
        held = [
            pod.name
            for pod in cluster.executors
            if pod.namespace == budget.namespace and budget.selector.matches(pod.labels)
        ]
        if held:
            patch = """'{"spec":{"minAvailable":null,"maxUnavailable":1}}'"""
            command = f"kubectl patch pdb {budget.name} -n {budget.namespace} --type merge -p {patch}"
            what = f"It allows no disruption and selects {len(held)} executors: {_some(held)}."
            subject = f"PodDisruptionBudget {budget.namespace}/{budget.name}"
            yield found("BudgetBlocks", subject, what, commands=(command,))


def _drivers(cluster: Cluster) -> Iterator[Finding]:
    for topology in cluster.topologies:
        namespace = topology.metadata.namespace
        for component in topology.spec.components:
            selector = component.selector
            if selector is None:
                continue
            drivers = [p.name for p in cluster.drivers if p.namespace == namespace and selector.matches(p.labels)]
            alone = not any(p.namespace == namespace and selector.matches(p.labels) for p in cluster.executors)
            if drivers:
                what = (
                    f"The selector of component {component.name} matches the driver {_some(drivers)}"
                    f"{' and no executor' if alone else ''}."
                )
                subject = f"SparkTopology {namespace}/{topology.metadata.name}"
                severity = Severity.WARNING if alone else None
                yield found("SelectorMatchesDriver", subject, what, severity=severity)


def _movers(cluster: Cluster) -> Iterator[Finding]:
    for name in cluster.deschedulers:
        yield found("OtherMover", name, "It is a descheduler.")
    for policy in cluster.policies:
        named = {pool for node in _pool(cluster, policy) if (pool := node.labels.get(_NODE_POOL))}
        pools = sorted(pool for pool in named if cluster.consolidation.get(pool) != _WHEN_EMPTY)
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
    return f"{pool} (consolidationPolicy {cluster.consolidation.get(pool, 'not readable')})"


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
    _rights,
    _versions,
    _clocks,
    _pools,
    _gate,
    _metrics,
    _budgets,
    _drivers,
    _movers,
)
