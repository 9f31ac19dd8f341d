"""Everything that belongs to one pass over one pool, gathered once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from ballast.api import BalancingPolicy
from ballast.controller.cluster_objects import ClusterObjects, Read
from ballast.controller.ends import Finding
from ballast.controller.failures import Application, Failed
from ballast.controller.membership import key_of
from ballast.kube import kinds, names
from ballast.kube.document import JSON
from ballast.kube.events import Regarding
from ballast.kube.pods import Pod
from ballast.model import ConditionReason, Executor, Memory, Policy, Snapshot
from ballast.moves.candidates import Candidates
from ballast.moves.score import measured, points_per_core
from ballast.planner import strategy_state
from ballast.prometheus import Reading

Kin = tuple[str, str, str]
"""Namespace, application, resource profile."""


_OF_SNAPSHOT = ("executors", "points_per_core", "measured", "candidates", "slownesses")


@dataclass(frozen=True)
class Context:
    """What follows from these fields is worked out when it is first asked for, and kept; so it has no slots."""

    read: Read[BalancingPolicy]
    policy: Policy
    objects: ClusterObjects
    snapshot: Snapshot
    memory: Memory
    reading: Reading
    findings: tuple[Finding, ...]
    pods: Mapping[str, Pod]
    """Executors' pods by uid."""
    failures: Mapping[Application, Failed] = field(default_factory=dict)
    """Of the applications in the policy's namespaces."""
    others: Mapping[str, str] = field(default_factory=dict)
    """By uid of held executors that this policy includes, too: the policy that answers for them."""
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Namespaces that the pass is made without, since it fails with them, and why."""

    @property
    def name(self) -> str:
        return self.policy.name

    def with_pods(self, namespace: str, application: str, pods: Sequence[Pod]) -> Context:
        """With `pods`, just read, for all pods of this application, executors and drivers."""
        uids = {pod.uid for pod in pods}

        def is_other(pod: Pod) -> bool:
            same = pod.namespace == namespace and pod.labels.get(names.SPARK_APPLICATION) == application
            return pod.uid not in uids and not (application and same)

        kept = [pod for pod in self.objects.lists.pods if is_other(pod)]
        lists = replace(self.objects.lists, pods=(*kept, *pods))
        known = {pod.uid: pod for pod in lists.pods if pod.executor is not None}
        fresh = replace(self, objects=replace(self.objects, lists=lists), pods=known)
        # What does not depend on the pods need not be worked out again.
        fresh.__dict__.update({name: self.__dict__[name] for name in _OF_SNAPSHOT if name in self.__dict__})
        return fresh

    def leaving_out(self, namespaces: Mapping[str, str], objects: ClusterObjects) -> Context:
        """`objects`: also those of these namespaces, whose topologies then say that the pass leaves them out."""
        if not namespaces:
            return self
        findings = (
            Finding(key_of(read.resource), ConditionReason.PASS_FAILED, namespaces[namespace], stalls=True)
            for read in objects.topologies
            if (namespace := read.resource.metadata.namespace or "") in namespaces
        )
        return replace(self, objects=objects, left_out=namespaces, findings=(*self.findings, *findings))

    @cached_property
    def executors(self) -> Mapping[str, Executor]:
        """By uid."""
        return {executor.uid: executor for executor in self.snapshot.executors}

    @cached_property
    def points_per_core(self) -> Mapping[str, float]:
        """Points of score that a core of load makes, by node."""
        return points_per_core(self.snapshot, self.policy)

    @cached_property
    def measured(self) -> Mapping[str, float]:
        """Scores of the nodes with fresh metrics, percent."""
        return measured(self.snapshot, self.policy).by_node

    @cached_property
    def candidates(self) -> Candidates:
        return strategy_state.candidates(self.snapshot, self.policy, self.memory, now=self.snapshot.taken_at)

    @cached_property
    def slownesses(self) -> Mapping[str, float]:
        """By executor uid, where there are task metrics."""
        return self.candidates.slownesses

    def topology(self, key: str) -> Regarding | None:
        """The SparkTopology of this key, for Events and owners; None where none was declared."""
        return self._topologies.get(key)

    @cached_property
    def _topologies(self) -> Mapping[str, Regarding]:
        return {key_of(read.resource): _regarding(read.raw["metadata"]) for read in self.objects.topologies}

    def kin(self, kin: Kin) -> Sequence[Pod]:
        """The executors' pods of one application and resource profile, sorted by uid."""
        return self._kin.get(kin, ())

    @cached_property
    def _kin(self) -> Mapping[Kin, Sequence[Pod]]:
        found: dict[Kin, list[Pod]] = defaultdict(list)
        for _, pod in sorted(self.pods.items()):
            if pod.executor is not None:
                found[pod.namespace, pod.executor.application, pod.executor.resource_profile].append(pod)
        return found

    def drivers(self, namespace: str, application: str) -> Sequence[Pod]:
        """The application's driver pods, ended ones too; none when its driver is outside of the cluster."""
        return self._drivers.get((namespace, application), ())

    def driver(self, key: str) -> Regarding | None:
        """The driver of an implicit topology, whose key names the application."""
        namespace, _, application = key.partition("/")
        pod = next(iter(self.drivers(namespace, application)), None)
        return Regarding(kinds.POD, pod.name, pod.uid, pod.namespace) if pod else None

    @cached_property
    def _drivers(self) -> Mapping[tuple[str, str], Sequence[Pod]]:
        found: dict[tuple[str, str], list[Pod]] = defaultdict(list)
        for pod in self.objects.lists.pods:
            for application in pod.driven:
                found[pod.namespace, application].append(pod)
        return found


def _regarding(metadata: JSON) -> Regarding:
    return Regarding(kinds.SPARK_TOPOLOGY, metadata["name"], metadata["uid"], metadata["namespace"])
