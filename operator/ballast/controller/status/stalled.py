"""What users see of an object that a pass can't act on, or whose state it can't show."""

from __future__ import annotations

from typing import overload

from ballast.api import BalancingPolicy, SparkTopology
from ballast.api.policy_status import PolicyStatus
from ballast.api.topology_status import TopologyStatus
from ballast.controller.status.judge import Judge


@overload
def stalled_status(resource: BalancingPolicy, reason: str, message: str, now: float) -> PolicyStatus: ...


@overload
def stalled_status(resource: SparkTopology, reason: str, message: str, now: float) -> TopologyStatus: ...


def stalled_status(
    resource: BalancingPolicy | SparkTopology, reason: str, message: str, now: float
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
    judge.set("Ready", holds=False, reason="StatusNotValid", message=message)
    changed = {"conditions": judge.conditions, "observed_generation": generation}
    return resource.status.model_copy(update=changed)
