"""What a shedding strategy is told about new moves: beside what is possible, what would be refused anyway.

A strategy that knows which topologies and nodes rest looks at the others of a hot node instead of suggesting, pass
after pass, what the arbiter can't approve.
"""

from __future__ import annotations

from ballast.model import Executor, Policy, Reason, Snapshot
from ballast.planner import budget
from ballast.planner.candidates import Candidates
from ballast.planner.rest import Rest


class Terms:
    """Wraps `candidates` for one pass; the arbiter still has the last word."""

    def __init__(
        self, candidates: Candidates, snapshot: Snapshot, policy: Policy, *, resting: Rest, now: float
    ) -> None:
        self.candidates = candidates
        self._moves, self._policy, self._resting, self._now = snapshot.moves, policy, resting, now
        self._topologies: dict[str, budget.Objection | None] = {}
        self._nodes: dict[str, budget.Objection | None] = {}

    def objection(self, executor: Executor) -> Reason | None:
        """Why it may not move at all, now."""
        found = self._objection(executor)
        return found[0] if found else None

    def words(self, key: str) -> str:
        """The words of that objection; empty for a node or when there is none."""
        found = self._objection(self.candidates.executor(key)) if self.candidates.knows(key) else None
        return found[1] if found else ""

    def refusal(self, executor: str, target: str, arriving: tuple[str, ...]) -> Reason | None:
        refused = self.candidates.refusal(executor, target, arriving)
        if refused is not None:
            return refused
        rest = self._node(target)
        if rest is not None:
            return rest[0]
        dearer = self.locality_delta_ratio(executor, target)
        return Reason.LOCALITY_LOSS if dearer > self._policy.moves.max_locality_loss else None

    def cost(self, executor: str, target: str) -> float:
        return self.candidates.cost(executor, target)

    def locality_delta_ratio(self, executor: str, target: str) -> float:
        return self.candidates.locality_delta_ratio(self.candidates.executor(executor), target)

    def _objection(self, executor: Executor) -> budget.Objection | None:
        own = self.candidates.objection(executor)
        return own or self._resting.executors.get(executor.uid) or self._topology(executor.topology)

    def _topology(self, key: str) -> budget.Objection | None:
        if key not in self._topologies:
            found = budget.topology_objection(self._moves, self._policy.moves, topology=key, now=self._now)
            self._topologies[key] = self._resting.of_topology(key) or found
        return self._topologies[key]

    def _node(self, name: str) -> budget.Objection | None:
        if name not in self._nodes:
            self._nodes[name] = budget.node_objection(self._moves, self._policy.moves, node=name, now=self._now)
        return self._nodes[name]
