"""One pass, as far as status is concerned."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple, overload

from ballast.api import BalancingPolicy, SparkTopology
from ballast.api.condition import Condition, ConditionStatus, drop_condition, set_condition
from ballast.api.policy_status import PolicyStatus
from ballast.api.topology_status import Recommendation, TopologyStatus
from ballast.controller.breaker import Rest
from ballast.controller.ends import Finding
from ballast.controller.failures import Application, Failed
from ballast.model import Cause, ConditionReason, Executor, LocalityView, Memory, Phase, Plan, Policy, Reason, Snapshot


@dataclass(frozen=True, slots=True)
class Outlook:
    snapshot: Snapshot
    policy: Policy
    plan: Plan
    memory: Memory
    now: float
    recommendations: Mapping[str, Recommendation] = field(default_factory=dict)
    """By topology key."""
    findings: tuple[Finding, ...] = ()
    """About topologies, for their conditions."""
    stays_off: bool = False
    """Whether the gate switch stays off although an operator leads."""
    failures: Mapping[Application, Failed] = field(default_factory=dict)
    """Of the applications in the policy's namespaces."""
    left_out: Mapping[str, str] = field(default_factory=dict)
    """As in Context."""
    rests: Mapping[str, Rest] = field(default_factory=dict)
    """The policy's namespaces whose executors are not gated for now."""
    executors: Mapping[str, list[Executor]] = field(init=False)
    """Those that have not ended, by topology key."""
    locality: Mapping[str, LocalityView] = field(init=False)
    """By topology key."""
    zones: Mapping[str, str] = field(init=False)
    """By node name; nodes without a zone are absent."""
    found: Mapping[str, list[Finding]] = field(init=False)
    """The findings, by topology key."""
    scopes: Mapping[tuple[str, str], str] = field(init=False)
    """How far a component may spread now, by topology key and component."""

    def __post_init__(self) -> None:
        members: dict[str, list[Executor]] = defaultdict(list)
        for executor in self.snapshot.executors:
            if executor.phase is not Phase.ENDED:
                members[executor.topology].append(executor)
        object.__setattr__(self, "executors", dict(members))
        zones = {node.name: zone for node in self.snapshot.nodes if (zone := node.location[0]) is not None}
        object.__setattr__(self, "locality", {view.topology: view for view in self.plan.locality})
        object.__setattr__(self, "zones", zones)
        found: dict[str, list[Finding]] = defaultdict(list)
        for finding in self.findings:
            found[finding.topology].append(finding)
        object.__setattr__(self, "found", dict(found))
        object.__setattr__(self, "scopes", {(topology, part): scope for topology, part, scope in self.memory.scopes})


class Verdict(NamedTuple):
    """Of a condition that is there only while there is one."""

    holds: bool
    reason: ConditionReason | Reason | Cause
    message: str


class Judge:
    """`conditions` after each call is the whole list; a transition time changes only with its status."""

    def __init__(self, conditions: tuple[Condition, ...], generation: int, now: float) -> None:
        self.conditions = conditions
        self._generation = generation
        self._now = datetime.fromtimestamp(now, UTC)

    def set(
        self, type_: str, *, holds: bool | None, reason: ConditionReason | Reason | Cause, message: str = ""
    ) -> None:
        self.conditions = set_condition(
            self.conditions,
            type_=type_,
            status=ConditionStatus.of(holds),
            reason=reason,
            message=message,
            observed_generation=self._generation,
            now=self._now,
        )

    def set_while(self, type_: str, verdict: Verdict | None) -> None:
        """The condition, or none of this type."""
        if verdict is None:
            self.drop(type_)
        else:
            self.set(type_, holds=verdict.holds, reason=verdict.reason, message=verdict.message)

    def drop(self, type_: str) -> None:
        self.conditions = drop_condition(self.conditions, type_)


@overload
def stalled_status(resource: BalancingPolicy, reason: ConditionReason, message: str, now: float) -> PolicyStatus: ...


@overload
def stalled_status(resource: SparkTopology, reason: ConditionReason, message: str, now: float) -> TopologyStatus: ...


def stalled_status(
    resource: BalancingPolicy | SparkTopology, reason: ConditionReason, message: str, now: float
) -> PolicyStatus | TopologyStatus:
    """Its status with the conditions that say so; everything else stays as it was. `now`: seconds since the epoch."""
    generation = resource.metadata.generation
    judge = Judge(resource.status.conditions, generation, now)
    judge.set("Ready", holds=False, reason=reason, message=message)
    judge.set("Stalled", holds=True, reason=reason, message=message)
    changed = {"conditions": judge.conditions, "observed_generation": generation}
    return resource.status.model_copy(update=changed)


@overload
def unshown_status(resource: BalancingPolicy, problem: str, now: float) -> PolicyStatus: ...


@overload
def unshown_status(resource: SparkTopology, problem: str, now: float) -> TopologyStatus: ...


def unshown_status(
    resource: BalancingPolicy | SparkTopology, problem: str, now: float
) -> PolicyStatus | TopologyStatus:
    """Its last status, with the condition that the new one can't be written. `now`: seconds since the epoch."""
    generation = resource.metadata.generation
    judge = Judge(resource.status.conditions, generation, now)
    message = f"it is acted on, but its new status is not valid: {problem}"
    judge.set("Ready", holds=False, reason=ConditionReason.STATUS_NOT_VALID, message=message)
    changed = {"conditions": judge.conditions, "observed_generation": generation}
    return resource.status.model_copy(update=changed)
