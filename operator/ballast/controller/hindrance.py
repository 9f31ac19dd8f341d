"""What keeps a policy from being followed at all."""

from __future__ import annotations

from typing import NamedTuple

from ballast.api import BalancingPolicy
from ballast.controller.pools import Territories
from ballast.planner.defects import defect


class Hindrance(NamedTuple):
    """As the policy's condition has it."""

    reason: str
    message: str


def hindrance(policy: BalancingPolicy, lands: Territories) -> Hindrance | None:
    """None where a pass over the policy's pool makes sense."""
    overlap = lands.stalled.get(policy.metadata.name)
    if overlap is not None:
        return Hindrance("PoolsOverlap", overlap)
    wrong = defect(policy)
    return None if wrong is None else Hindrance("InvalidSpec", str(wrong))
