"""Everything that belongs to one pass over one pool, gathered once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ballast.api import BalancingPolicy
from ballast.controller.ends import Finding
from ballast.controller.survey import Read, Survey
from ballast.kube.pods import Pod
from ballast.model import Memory, Policy, Snapshot
from ballast.planner.ledger import projected
from ballast.planner.load import Loads, loads
from ballast.planner.score import scores
from ballast.prometheus import Reading


@dataclass(frozen=True, slots=True)
class Context:
    read: Read[BalancingPolicy]
    policy: Policy
    survey: Survey
    snapshot: Snapshot
    memory: Memory
    reading: Reading
    findings: tuple[Finding, ...]
    pods: Mapping[str, Pod]
    """Executors' pods by uid."""

    @property
    def name(self) -> str:
        return self.policy.name

    def loads(self) -> Loads:
        return loads(self.snapshot.executors)

    def measured(self) -> Mapping[str, float]:
        """Scores of the nodes with fresh figures, percent."""
        nodes = self.snapshot.nodes if self.snapshot.metrics.available else ()
        return scores(nodes, self.policy.weights).by_node

    def projected(self) -> Mapping[str, float]:
        return projected(self.snapshot, self.policy, self.loads(), self.measured())
