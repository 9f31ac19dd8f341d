"""One pass, as far as status is concerned."""

from __future__ import annotations

from dataclasses import dataclass

from ballast.model import Memory, Plan, Policy, Snapshot


@dataclass(frozen=True, slots=True)
class Outlook:
    snapshot: Snapshot
    policy: Policy
    plan: Plan
    memory: Memory
    now: float
