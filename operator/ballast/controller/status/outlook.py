"""One pass, as far as status is concerned."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from ballast.api.topology_status import Recommendation
from ballast.controller.ends import Finding
from ballast.model import Executor, LocalityView, Memory, Phase, Plan, Policy, Reason, Snapshot


@dataclass(frozen=True, slots=True)
class Outlook:
    snapshot: Snapshot
    policy: Policy
    plan: Plan
    memory: Memory
    now: float
    recommendations: Mapping[str, Recommendation] = field(default_factory=dict)
    """By topology key."""
    remarks: Mapping[str, Finding] = field(default_factory=dict)
    """What keeps a topology's own queries from running, by its key."""
    unseen: Mapping[str, Finding] = field(default_factory=dict)
    """What keeps an external component of a topology from being seen, by its key."""
    stays_off: bool = False
    """Whether the gate switch stays off although an operator leads."""
    unplaced: Mapping[Reason, int] = field(default_factory=dict)
    """Executors that were released without a decided place in the last hour, by reason."""
    executors: Mapping[str, list[Executor]] = field(init=False)
    """Those that have not ended, by topology key."""
    locality: Mapping[str, LocalityView] = field(init=False)
    """By topology key."""
    zones: Mapping[str, str] = field(init=False)
    """By node name; nodes without a zone are absent."""
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
        object.__setattr__(self, "scopes", {(topology, part): scope for topology, part, scope in self.memory.scopes})
