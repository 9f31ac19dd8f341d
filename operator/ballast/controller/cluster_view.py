"""One look at the cluster, turned to one policy's pool."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

from ballast.api import BalancingPolicy, SparkTopology
from ballast.controller.cluster_objects import ClusterObjects, OpenMove, Read, planner_moves, read_moves
from ballast.controller.context import Context
from ballast.controller.ends import Finding
from ballast.controller.failures import Application, Failed, Failures
from ballast.controller.gateclock import GateClock
from ballast.controller.membership import Membership, key_of
from ballast.controller.metrics_reader import MetricsReader
from ballast.controller.observe import Metrics, Pool, observe
from ballast.controller.topology_turns import TopologyTurns
from ballast.kube.nodes import NodeFacts, model_node
from ballast.kube.pods import Pod
from ballast.model import (
    ConditionReason,
    Constraints,
    Executor,
    Levels,
    Memory,
    Move,
    MovePhase,
    Phase,
    PlacementMode,
    Snapshot,
)
from ballast.model.from_api import defect, policy_from
from ballast.moves.loads import Profile, profile_of
from ballast.moves.notices import with_first_seen
from ballast.placement.admission import Admission
from ballast.prometheus import Reading
from ballast.tenancy.door import Limit


@dataclass(frozen=True)
class ClusterView:
    """Which policy gates which pod is worked out when it is first asked for, and kept; so it has no slots."""

    objects: ClusterObjects
    pools: Pools
    gates: GateClock
    """Has seen the pods of `objects`."""
    now: float
    failures: Failures = field(default_factory=Failures)
    """Have seen them, too."""
    moves: Sequence[OpenMove] | None = None
    """Those of `objects`, where they were read already."""
    topology_turns: TopologyTurns | None = None
    """Which topologies without executors come in this reconcile; None: all of them."""

    def namespaces(self) -> frozenset[str]:
        """Those that have objects."""
        lists = self.objects.lists
        topologies = {topology.resource.metadata.namespace or "" for topology in self.objects.topologies}
        return frozenset(pod.namespace for pod in lists.pods).union(lists.others.by_namespace, topologies)

    def without(self, namespaces: frozenset[str]) -> ClusterView:
        """Of these namespaces' pods only what they request, and none of their topologies."""
        if not namespaces:
            return self
        lists, topologies = self.objects.lists, self.objects.topologies
        others = lists.others
        seen = {namespace: pods for namespace, pods in others.by_namespace.items() if namespace not in namespaces}
        lists = replace(
            lists,
            pods=tuple(_requests_alone(pod) if pod.namespace in namespaces else pod for pod in lists.pods),
            others=replace(others, by_namespace=seen),
        )
        kept = tuple(each for each in topologies if each.resource.metadata.namespace not in namespaces)
        return replace(self, objects=replace(self.objects, lists=lists, topologies=kept))

    def read_metrics(self, read: Read[BalancingPolicy], metrics: MetricsReader) -> Reading:
        """Ask the policy's Prometheus about its nodes and all executors."""
        mine = self.pools.nodes[read.resource.metadata.name]
        nodes = [node for node in self.objects.lists.nodes if node.name in mine]
        pods = [pod for pod in self.objects.lists.pods if pod.executor is not None or pod.is_driver]
        topologies = Pool.of(read.resource.spec).steered(
            (topology.resource for topology in self.objects.topologies), self.objects.lists.namespaces
        )
        reading = metrics.read(read.resource, nodes, pods, now=self.now)
        return replace(reading, rates=metrics.rates(read.resource, topologies, now=self.now))

    def context(self, read: Read[BalancingPolicy], memory: Memory, reading: Reading, moves: list[OpenMove]) -> Context:
        name = read.resource.metadata.name
        pool, namespaces = Pool.of(read.resource.spec), self.objects.lists.namespaces
        nodes = [node for node in self.objects.lists.nodes if node.name in self.pools.nodes[name]]
        policy = policy_from(read.resource, {node.name: node.labels for node in nodes})
        weights = policy.weights
        points = {n.name: weights.points_per_core(n.allocatable.cpu_cores) for n in self.objects.lists.nodes}
        seen = observe(
            self.objects.lists,
            policy,
            pool=pool,
            topologies=[topology.resource for topology in self.objects.topologies],
            coming=None if self.topology_turns is None else self.topology_turns.coming(memory),
            clock=self.gates,
            now=self.now,
            moves=self._marked(name, moves, points),
            metrics=Metrics(reading.nodes, reading.executors, reading.health),
            rates=reading.rates,
            failures=self.failures,
        )
        away = [(each, limit) for each, limit in self.objects.turned_away if pool.includes(each.resource, namespaces)]
        pods = {pod.uid: pod for pod in self.objects.lists.pods if pod.executor is not None}
        others = self._held_by_others(seen.snapshot, name, pods)
        batches = {"/".join(application): seconds for application, seconds in reading.batch_p95_seconds.items()}
        return Context(
            read=read,
            policy=policy,
            objects=replace(self.objects, topologies=(*self.objects.topologies, *(read for read, _ in away))),
            snapshot=_without(replace(with_first_seen(seen.snapshot, memory), batch_p95_seconds=batches), others),
            memory=memory,
            reading=reading,
            findings=(*seen.findings, *(_turned_away(read.resource, limit) for read, limit in away)),
            pods=pods,
            failures=self._failures_in(pool),
            others=others,
        )

    def _marked(self, policy: str, moves: list[OpenMove], points: Mapping[str, float]) -> tuple[Move, ...]:
        """All moves as the planner reads them, those of other policies marked as `elsewhere`."""
        planned = zip(moves, planner_moves(moves, points), strict=True)
        return tuple(move if self._ruler(each) == policy else replace(move, elsewhere=True) for each, move in planned)

    def _failures_in(self, pool: Pool) -> dict[Application, Failed]:
        failed, labels = self.failures.applications, self.objects.lists.namespaces
        about = pool.namespaces({namespace: labels.get(namespace, {}) for namespace, _ in failed})
        return {application: each for application, each in failed.items() if application[0] in about}

    def _held_by_others(self, snapshot: Snapshot, policy: str, pods: Mapping[str, Pod]) -> dict[str, str]:
        """By uid of gated executors, the policy that answers for them where it is another one."""
        gated = (executor for executor in snapshot.executors if executor.phase is Phase.GATED)
        holders = ((executor.uid, self._claims.holder(executor, pods[executor.uid])) for executor in gated)
        return {uid: holder for uid, holder in holders if holder is not None and holder != policy}

    @cached_property
    def _claims(self) -> Claims:
        return Claims.of(self.objects, self.pools, self._awaited())

    def _awaited(self) -> dict[str | Profile, str]:
        """The policies whose moves wait for a replacement: it is in their pass, by whomever it could be placed."""
        found: dict[str | Profile, str] = {}
        for move in read_moves(self.objects.moves)[0] if self.moves is None else self.moves:
            state, ruler = move.state, self._ruler(move)
            if ruler is None or state.phase not in (MovePhase.LEAVING, MovePhase.ARRIVING):
                continue
            subject, claimed = state.subject, state.replacement
            kin = (state.orders.namespace, subject.application, subject.resource_profile)
            found.setdefault(claimed.uid if claimed else kin, ruler)
        return found

    def own_moves(self, moves: list[OpenMove], policy: str | None) -> list[OpenMove]:
        """Those that this policy answers for; of None: those that none does."""
        return [each for each in moves if self._ruler(each) == policy]

    def _ruler(self, move: OpenMove) -> str | None:
        """The policy that the move names; without that, the one in whose pool it begins, or else ends.

        A node may leave its pool while a move is under way, and must not take the move with it.
        """
        orders, pools = move.state.orders, self.pools.nodes
        if orders.policy in pools:
            return orders.policy
        ends = (orders.source, move.state.destination)
        return next((name for end in ends for name, nodes in pools.items() if end in nodes), None)


def _turned_away(topology: SparkTopology, limit: Limit) -> Finding:
    message = f"its namespace has more than {limit}: this topology is left alone until older ones are deleted"
    return Finding(key_of(topology), ConditionReason.QUOTA_EXCEEDED, message, stalls=True)


def _requests_alone(pod: Pod) -> Pod:
    return replace(pod, labels={}, constraints=Constraints(), claims=(), anti_affinity=(), held=None, executor=None)


def _without(snapshot: Snapshot, uids: Container[str]) -> Snapshot:
    mine = tuple(executor for executor in snapshot.executors if executor.uid not in uids)
    return snapshot if len(mine) == len(snapshot.executors) else replace(snapshot, executors=mine)


@dataclass(frozen=True)
class _Claim:
    """Of one policy. What admits executors is worked out when it is first asked for, and kept; so it has no slots."""

    policy: str
    enforces: bool
    namespaces: frozenset[str]
    steered: Membership | None
    """In the topologies that the policy names; None when it names none, and selects all."""
    nodes: Sequence[NodeFacts]

    def includes(self, pod: Pod) -> bool:
        return pod.namespace in self.namespaces and (self.steered is None or self.steered.of(pod).declared is not None)

    def admits(self, constraints: Constraints) -> bool:
        """Whether some node of the pool would do, room and its state apart."""
        return bool(self._admission.mask(constraints).any())

    @cached_property
    def _admission(self) -> Admission:
        """Keeps the answer for executors of one template."""
        opened = (replace(node, ready=True, schedulable=True, deleted=False) for node in self.nodes)
        return Admission([model_node(node, Levels(()), leaving=()) for node in opened])


@dataclass(frozen=True, slots=True)
class Claims:
    policies: Sequence[_Claim]
    """The oldest first."""
    awaited: Mapping[str | Profile, str]
    """Policies by the uid of the executor, or by the profile of those, that a move of theirs waits for."""

    @classmethod
    def of(cls, objects: ClusterObjects, pools: Pools, awaited: Mapping[str | Profile, str]) -> Claims:
        """`awaited`: as the field. Policies with errors claim no pods."""
        followed = [each for each in objects.policies if blocked(each.resource, pools) is None]
        return cls(tuple(_claim(each, objects, pools) for each in followed), awaited)

    def holder(self, executor: Executor, pod: Pod) -> str | None:
        """Of the policies that include a gated executor: whose move waits for it; else the oldest enforcing one whose
        pool admits it; else the oldest whose pool does; where none does, the oldest enforcing one, or the oldest.
        """
        including = [claim for claim in self.policies if claim.includes(pod)]
        if len(including) < 2:
            return including[0].policy if including else None
        waiting = self.awaited.get(executor.uid) or self.awaited.get(profile_of(executor))

        def rank(claim: _Claim) -> tuple[bool, bool, bool]:
            return (claim.policy != waiting, not claim.admits(executor.constraints), not claim.enforces)

        return min(including, key=rank).policy


def _claim(read: Read[BalancingPolicy], objects: ClusterObjects, pools: Pools) -> _Claim:
    policy, lists = read.resource, objects.lists
    pool, mine = Pool.of(policy.spec), pools.nodes[policy.metadata.name]
    steered = pool.steered((topology.resource for topology in objects.topologies), lists.namespaces)
    return _Claim(
        policy.metadata.name,
        enforces=policy.spec.placement.mode.value == PlacementMode.ENFORCE.value,
        namespaces=pool.namespaces(lists.namespaces),
        steered=None if pool.topology_selector is None else Membership(steered, lists.namespaces),
        nodes=[node for node in lists.nodes if node.name in mine],
    )


@dataclass(frozen=True, slots=True)
class Pools:
    """Nodes by policy name. Pools must not overlap: of two that do, the younger policy is `stalled`, with why."""

    nodes: Mapping[str, frozenset[str]]
    stalled: Mapping[str, str]


def pools_of(policies: Sequence[Read[BalancingPolicy]], nodes: Sequence[NodeFacts]) -> Pools:
    """`policies`: the oldest first."""
    owned: dict[str, frozenset[str]] = {}
    stalled: dict[str, str] = {}
    for read in policies:
        policy = read.resource
        name = policy.metadata.name
        mine = frozenset(node.name for node in nodes if policy.spec.node_selector.matches(node.labels))
        clash = next((other for other, theirs in owned.items() if theirs & mine), None)
        if clash is None:
            owned[name] = mine
        else:
            shared = sorted(owned[clash] & mine)
            stalled[name] = (
                f"its nodes overlap with those of the older policy {clash} ({', '.join(shared[:3])}); "
                "change spec.nodeSelector of one of them"
            )
    return Pools(owned, stalled)


class Blocked(NamedTuple):
    """As the policy's condition has it."""

    reason: ConditionReason
    message: str


def blocked(policy: BalancingPolicy, pools: Pools) -> Blocked | None:
    """None where a pass over the policy's pool makes sense."""
    overlap = pools.stalled.get(policy.metadata.name)
    if overlap is not None:
        return Blocked(ConditionReason.POOLS_OVERLAP, overlap)
    wrong = defect(policy)
    return None if wrong is None else Blocked(ConditionReason.INVALID_SPEC, str(wrong))
