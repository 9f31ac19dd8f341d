"""Everything that belongs to one pass over one pool, gathered once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ballast.api import BalancingPolicy
from ballast.controller.ends import Finding
from ballast.controller.survey import Read, Survey
from ballast.kube import names
from ballast.kube.pods import Pod
from ballast.model import Memory, Policy, Snapshot
from ballast.planner.ledger import projected
from ballast.planner.load import Loads, loads
from ballast.planner.score import measured
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

    def drivers(self, namespace: str, application: str) -> list[Pod]:
        """The application's driver pods, ended ones too; none when its driver is outside of the cluster."""
        return [
            pod
            for pod in self.survey.lists.pods
            if pod.is_driver and pod.namespace == namespace and pod.labels.get(names.SPARK_APPLICATION) == application
        ]

    def loads(self) -> Loads:
        return loads(self.snapshot.executors)

    def measured(self) -> Mapping[str, float]:
        """Scores of the nodes with fresh figures, percent."""
        return measured(self.snapshot, self.policy).by_node

    def projected(self) -> Mapping[str, float]:
        return projected(self.snapshot, self.policy, self.loads(), self.measured())
