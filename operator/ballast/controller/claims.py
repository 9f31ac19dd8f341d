"""Which policy answers for an executor that is held. One does: what two decided, each would undo for the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ballast.api import BalancingPolicy
from ballast.controller.hindrance import hindrance
from ballast.controller.membership import Membership
from ballast.controller.observe import Pool
from ballast.controller.pools import Territories
from ballast.controller.survey import Read, Survey
from ballast.kube.nodes import NodeFacts
from ballast.kube.pods import Pod
from ballast.model import Constraints, Executor, PlacementMode
from ballast.moves.score import Profile, profile_of


@dataclass(frozen=True, slots=True)
class _Claim:
    """Of one policy."""

    policy: str
    enforces: bool
    namespaces: frozenset[str]
    steered: Membership | None
    """In the topologies that the policy names; None when it names none, and selects all."""
    nodes: Sequence[NodeFacts]
    _admitted: dict[Constraints, bool] = field(default_factory=dict)

    def includes(self, pod: Pod) -> bool:
        return pod.namespace in self.namespaces and (self.steered is None or self.steered.of(pod).declared is not None)

    def admits(self, constraints: Constraints) -> bool:
        """Whether some node of the pool would do, room apart; asked once for executors of one template."""
        known = self._admitted.get(constraints)
        if known is None:
            known = self._admitted[constraints] = any(_admits(node, constraints) for node in self.nodes)
        return known


@dataclass(frozen=True, slots=True)
class Claims:
    policies: Sequence[_Claim]
    """The oldest first."""
    awaited: Mapping[str | Profile, str]
    """Policies by the uid of the executor, or by the profile of those, that a move of theirs waits for."""

    @classmethod
    def of(cls, survey: Survey, lands: Territories, awaited: Mapping[str | Profile, str]) -> Claims:
        """`awaited`: as the field. Policies with errors claim no pods."""
        followed = [each for each in survey.policies if hindrance(each.resource, lands) is None]
        return cls(tuple(_claim(each, survey, lands) for each in followed), awaited)

    def holder(self, executor: Executor, pod: Pod) -> str | None:
        """Of the policies that include a gated executor: whose move waits for it; else the oldest enforcing one whose
        pool admits it; else the oldest whose pool does; where none does, the oldest enforcing one, or the oldest.
        """
        including = [claim for claim in self.policies if claim.includes(pod)]
        waiting = self.awaited.get(executor.uid) or self.awaited.get(profile_of(executor))

        def rank(claim: _Claim) -> tuple[bool, bool, bool]:
            return (claim.policy != waiting, not claim.admits(executor.constraints), not claim.enforces)

        best = min(including, key=rank, default=None)
        return None if best is None else best.policy


def _claim(read: Read[BalancingPolicy], survey: Survey, lands: Territories) -> _Claim:
    policy, lists = read.resource, survey.lists
    pool, mine = Pool.of(policy.spec), lands.nodes[policy.metadata.name]
    steered = pool.steered((topology.resource for topology in survey.topologies), lists.namespaces)
    return _Claim(
        policy.metadata.name,
        enforces=policy.spec.placement.mode.value == PlacementMode.ENFORCE.value,
        namespaces=pool.namespaces(lists.namespaces),
        steered=None if pool.topology_selector is None else Membership(steered, lists.namespaces),
        nodes=[node for node in lists.nodes if node.name in mine],
    )


def _admits(node: NodeFacts, constraints: Constraints) -> bool:
    return (
        constraints.selects(node.labels, node.name)
        and constraints.volumes_reach(node.labels, node.name)
        and constraints.untolerated(node.taints) is None
    )
