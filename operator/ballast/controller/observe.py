"""From what was read of the cluster to the Snapshot that one pass decides by. Pure: nothing is fetched here."""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from ballast.api.labels import LabelSelector
from ballast.api.policy import PolicySpec
from ballast.api.policy_metrics import Permission
from ballast.api.topology import SparkTopology
from ballast.controller.anti_affinity import AntiAffinity
from ballast.controller.ends import Finding, Rates, declared, implicit
from ballast.controller.failures import Failures
from ballast.controller.gateclock import GateClock
from ballast.controller.membership import Belonging, Membership, key_of, namespace_of
from ballast.controller.pod_index import OtherPods
from ballast.controller.surroundings import Surroundings
from ballast.controller.topology_findings import lost_findings, spec_findings, stray_findings
from ballast.errors import described
from ballast.kube import names
from ballast.kube.drivers import with_drivers
from ballast.kube.executors import SparkExecutor
from ballast.kube.nodes import NodeFacts, model_node
from ballast.kube.pods import Pod
from ballast.kube.requested import Requested
from ballast.kube.volumes import Volumes
from ballast.model import (
    ConditionReason,
    Constraints,
    Demand,
    Executor,
    ExecutorUsage,
    Levels,
    Location,
    MetricsHealth,
    Move,
    Node,
    NodeUsage,
    Phase,
    Policy,
    Resources,
    Snapshot,
    Topology,
)
from ballast.placement.aside import never_placed

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Lists:
    """What is known of the cluster: every pod, every node, each namespace's labels, and volumes."""

    pods: Sequence[Pod]
    """All pods, except those that `others` sums up. Owners of executors are known as their drivers."""
    nodes: Sequence[NodeFacts]
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    volumes: Volumes = field(default_factory=Volumes)
    others: OtherPods = field(default_factory=OtherPods)

    def __post_init__(self) -> None:
        object.__setattr__(self, "pods", with_drivers(self.pods))

    def pod(self, uid: str) -> Pod | None:
        """Of the pods that are known one by one."""
        known = chain(self.pods, *self.others.by_namespace.values())
        return next((pod for pod in known if pod.uid == uid), None)


@dataclass(frozen=True, slots=True)
class Pool:
    """What a policy is about."""

    node_selector: LabelSelector = field(default_factory=LabelSelector)
    namespace_selector: LabelSelector = field(default_factory=LabelSelector)
    topology_selector: LabelSelector | None = None
    external_namespaces: frozenset[str] = frozenset()
    topology_queries: bool = False
    """Whether queries of topologies are let run."""

    @classmethod
    def of(cls, spec: PolicySpec) -> Pool:
        return cls(
            spec.node_selector,
            spec.namespace_selector,
            spec.topology_selector,
            frozenset(spec.external_namespaces),
            spec.metrics.topology_queries is Permission.ALLOW,
        )

    def namespaces(self, labels: Mapping[str, Mapping[str, str]]) -> frozenset[str]:
        """Those that the policy is about. `labels`: of each."""
        return frozenset(name for name, found in labels.items() if self.namespace_selector.matches(found))

    def includes(self, topology: SparkTopology, namespaces: Mapping[str, Mapping[str, str]]) -> bool:
        """`namespaces`: labels of each."""
        return self.namespace_selector.matches(namespaces.get(topology.metadata.namespace or "", {})) and (
            self.topology_selector is None or self.topology_selector.matches(topology.metadata.labels)
        )

    def steered(
        self, topologies: Iterable[SparkTopology], namespaces: Mapping[str, Mapping[str, str]]
    ) -> list[SparkTopology]:
        """By key. `namespaces`: labels of each."""
        return sorted((each for each in topologies if self.includes(each, namespaces)), key=key_of)


@dataclass(frozen=True, slots=True)
class Metrics:
    """Fresh metrics: nodes by name, executors by `namespace/pod`."""

    nodes: Mapping[str, NodeUsage] = field(default_factory=dict)
    executors: Mapping[str, ExecutorUsage] = field(default_factory=dict)
    health: MetricsHealth = field(default_factory=MetricsHealth)


@dataclass(frozen=True, slots=True)
class Observation:
    snapshot: Snapshot
    findings: tuple[Finding, ...]
    """What the owners of topologies should know."""


def observe(
    lists: Lists,
    policy: Policy,
    *,
    pool: Pool,
    topologies: Iterable[SparkTopology],
    clock: GateClock,
    now: float,
    moves: Iterable[Move] = (),
    metrics: Metrics | None = None,
    rates: Rates | None = None,
    failures: Failures | None = None,
    coming: Collection[str] | None = None,
) -> Observation:
    """One pool at one moment. `clock` and `failures` must have seen `lists.pods` already.

    `coming`: keys of the topologies to look at although they have no executors; by default all are looked at.
    """
    known = metrics or Metrics()
    steered = pool.steered(topologies, lists.namespaces)
    membership = Membership(steered, lists.namespaces)
    pass_ = _Pass(
        lists,
        policy,
        pool=pool,
        membership=membership,
        clock=clock,
        metrics=known,
        failures=failures or Failures(),
        now=now,
    )
    followed = [each for each in steered if coming is None or key_of(each) in coming or pass_.has_executors(each)]
    views, findings = pass_.topologies(followed, rates=rates or {})
    stalled = {finding.topology for finding in findings if finding.stalls}
    executors = tuple(replace(e, enforced=False) if e.topology in stalled else e for e in pass_.executors)
    snapshot = Snapshot(
        taken_at=now,
        nodes=pass_.nodes(),
        executors=executors,
        topologies=tuple(views),
        moves=tuple(moves),
        pending=tuple(pass_.pending),
        contended=pass_.contended,
        metrics=known.health,
    )
    return Observation(snapshot, tuple(findings))


class _Pass:
    """One walk over the pods, and what comes of it."""

    def __init__(
        self,
        lists: Lists,
        policy: Policy,
        *,
        pool: Pool,
        membership: Membership,
        clock: GateClock,
        metrics: Metrics,
        failures: Failures,
        now: float,
    ) -> None:
        self._lists, self._policy, self._pool, self._now = lists, policy, pool, now
        self._membership, self._clock, self._metrics = membership, clock, metrics
        self._requested = Requested(lists.others.requested)
        self._with_more: dict[tuple[int, object, object], Constraints] = {}
        self._anti_affinity = AntiAffinity(lists.pods, lists.others.keeping_away, lists.nodes, lists.namespaces)
        self._ends: dict[str, list[Pod]] = defaultdict(list)
        self._members: dict[str, dict[str, Pod]] = defaultdict(dict)
        self._applications: dict[str, set[str]] = defaultdict(set)
        self._strays: dict[str, set[str]] = defaultdict(set)
        self._lost: dict[str, Counter[str]] = defaultdict(Counter)
        """By the key of a topology that selects executors of others: how many, by the others' keys."""
        self._failed = failures.counts()
        self.executors: list[Executor] = []
        self.pending: list[Demand] = []
        self.contended = False
        self._walk()

    def _walk(self) -> None:
        about = self._pool.namespaces(self._lists.namespaces)
        # kube-scheduler gives kept room to pods of higher priority: it counts unless all gated executors are such pods.
        least = min((pod.priority for pod in self._lists.pods if pod.executor and pod.held), default=0)
        for namespace, pods in self._lists.others.by_namespace.items():
            self._ends[namespace] += pods
        for pod in sorted(self._lists.pods, key=lambda pod: (pod.namespace, pod.name)):
            kept_on = pod.room_kept_on if pod.priority >= least else None
            self._requested.add(pod, kept_on=kept_on)
            facts = pod.executor
            if facts is None:
                self._ends[pod.namespace].append(pod)
            elif pod.namespace in about:
                belonging = self._membership.of(pod)
                if self._pool.topology_selector is None or belonging.declared is not None:
                    self._take(pod, facts, belonging, kept=kept_on is not None)
                    continue
            self.contended |= pod.waits_for_a_node
            if kept_on is None and pod.about_to_be_bound(self._now):
                self.pending.append(Demand(pod.requests, self._constraints(pod)))

    def _take(self, pod: Pod, facts: SparkExecutor, belonging: Belonging, *, kept: bool) -> None:
        self._members[belonging.topology].setdefault(belonging.component, pod)
        self._applications[belonging.topology].add(facts.application)
        if not belonging.known:
            self._strays[belonging.topology].add(belonging.component)
        for loser in belonging.lost_by:
            self._lost[loser][belonging.topology] += pod.phase is not Phase.ENDED
        self.executors.append(
            Executor(
                namespace=pod.namespace,
                name=pod.name,
                uid=pod.uid,
                application=facts.application,
                executor_id=facts.executor_id,
                resource_profile=facts.resource_profile,
                topology=belonging.topology,
                component=belonging.component,
                phase=pod.phase,
                created_at=pod.created_at,
                node=pod.node,
                requests=pod.requests,
                constraints=self._constraints(pod),
                cores=facts.cores,
                gates=pod.awaited_gates if names.GATE in pod.gates else pod.gates,
                last_gate_since=self._clock.alone_since.get(pod.uid),
                first_read=self._clock.first_read.get(pod.uid),
                running_since=facts.running_since,
                unschedulable_since=facts.unschedulable_since,
                lacks_room=facts.lacks_room,
                nominated=pod.nominated,
                room_kept=kept,
                scheduler=pod.scheduler,
                gang=facts.gang,
                never_unschedulable=pod.never_unschedulable,
                graceful=facts.graceful,
                allocator_direct=facts.allocator_direct,
                kueue_managed=facts.kueue_managed,
                pinned=facts.pinned_at is not None,
                pinned_at=facts.pinned_at,
                placed=facts.placed,
                enforced=belonging.opted_in and not facts.opted_out,
                labeled=belonging.labeled,
                by_other_pods=facts.by_other_pods or self._anti_affinity.unsure,
                late_claims=not self._lists.volumes.all_bound(pod.namespace, pod.claims),
                unknown_topology=belonging.unknown_topology,
                soft_spread_keys=facts.soft_spread_keys,
                application_name=pod.labels.get(names.SPARK_APPLICATION_NAME, ""),
                expected=facts.expected,
                usage=self._metrics.executors.get(pod.key),
            )
        )

    def _constraints(self, pod: Pod) -> Constraints:
        """With its volumes and others' anti-affinity; executors of one template share a value if these are alike."""
        terms = self._lists.volumes.node_terms(pod.namespace, pod.claims) if pod.claims else ()
        anti_affinity = self._anti_affinity.demands(pod)
        if not (terms or anti_affinity):
            return pod.constraints
        key = (id(pod.constraints), terms, anti_affinity)
        if key not in self._with_more:
            self._with_more[key] = replace(pod.constraints, volume_terms=terms, anti_affinity=anti_affinity)
        return self._with_more[key]

    def nodes(self) -> tuple[Node, ...]:
        """The pool's nodes by name, with the requests of every pod bound to them."""
        chosen = [facts for facts in self._lists.nodes if self._pool.node_selector.matches(facts.labels)]
        preemptible = self._preemptible_by(self._least_priority())
        return tuple(
            model_node(
                facts,
                self._policy.levels,
                requested=self._requested.on(facts.name),
                preemptible=preemptible.get(facts.name),
                usage=self._metrics.nodes.get(facts.name),
                leaving=self._policy.moves.drain.taints,
            )
            for facts in sorted(chosen, key=lambda facts: facts.name)
        )

    def _least_priority(self) -> int | None:
        """Of the executors that Ballast can place now, which preempt pods of lower priority; None where one may not.

        Not of those that gates of others still hold, as Kueue's: they are not placed before these are gone.
        """
        schedulers = self._policy.placement.scheduler_names
        ready = {
            each.uid
            for each in self.executors
            if each.phase is Phase.GATED and not each.gates and each.enforced and never_placed(each, schedulers) is None
        }
        gated = [pod for pod in self._lists.pods if pod.uid in ready]
        if not gated or not all(pod.preempts for pod in gated):
            return None
        return min(pod.priority for pod in gated)

    def _preemptible_by(self, priority: int | None) -> Mapping[str, Resources]:
        """By node, what pods of a lower priority request there."""
        if priority is None:
            return {}
        found: dict[str, Resources] = defaultdict(Resources)
        for node, by_priority in self._lists.others.by_priority.items():
            for each, requests in by_priority.items():
                if each < priority:
                    found[node] = found[node].plus(requests)
        for pod in self._lists.pods:
            if pod.node is not None and pod.is_preempted_by(priority):
                found[pod.node] = found[pod.node].plus(pod.requests)
        return found

    def has_executors(self, topology: SparkTopology) -> bool:
        """Also where others have them that its selectors match."""
        key = key_of(topology)
        return key in self._members or key in self._lost

    def topologies(self, steered: Sequence[SparkTopology], *, rates: Rates) -> tuple[list[Topology], list[Finding]]:
        around = self._surroundings(self._policy.levels)
        views: list[Topology] = []
        findings: list[Finding] = []
        for topology in steered:
            try:
                view, found = self._followed(topology, around, rates)
            except Exception as error:  # noqa: BLE001 -- one topology must not fail the pass of all
                key = key_of(topology)
                _LOG.exception("topology %s can't be followed", key)
                findings.append(Finding(key, ConditionReason.TOPOLOGY_FAILED, described(error), stalls=True))
            else:
                views.append(view)
                findings += found
        known = {view.key for view in views}
        for key, members in sorted(self._members.items()):
            if key not in known:
                labels = {name: pod.labels for name, pod in members.items()}
                views.append(implicit(key, members, around, labels=labels, failed=self._failures(key)))
        return views, findings

    def _followed(self, topology: SparkTopology, around: Surroundings, rates: Rates) -> tuple[Topology, list[Finding]]:
        key = key_of(topology)
        applications, strays = self._applications.get(key, ()), self._strays.get(key, set())
        view, found = declared(topology, around, rates=rates, applications=applications, failed=self._failures(key))
        extra = implicit(key, strays, around, labels={}).components
        said = [
            *stray_findings(key, strays),
            *lost_findings(key, self._lost[key]),
            *spec_findings(topology, rates=rates, queries_allowed=self._pool.topology_queries),
        ]
        return replace(view, components=(*view.components, *extra)), [*found, *said]

    def _failures(self, topology: str) -> int:
        """Of all the applications whose executors belong to it."""
        namespace = namespace_of(topology)
        return sum(self._failed[namespace, each] for each in self._applications.get(topology, ()))

    def _surroundings(self, levels: Levels) -> Surroundings:
        facts = {node.name: node for node in self._lists.nodes}

        def locate(name: str) -> Location | None:
            return facts[name].location(levels) if name in facts else None

        return Surroundings(
            self._ends, locate, levels=len(levels.ordered), external_namespaces=self._pool.external_namespaces
        )
