"""What a shedding strategy is told about new moves: next to what is possible, what would be refused anyway.

A strategy that knows which topologies and nodes rest looks at the others of a hot node instead of suggesting, pass
after pass, what the arbiter can't approve.
"""

from __future__ import annotations

from ballast.model import Executor, MovesPolicy, Reason
from ballast.moves.candidates import Candidates
from ballast.moves.cooldown import Objection
from ballast.moves.rules import locality_loss
from ballast.planner.arbiter import Arbiter


class Terms:
    """Wraps `candidates` for one pass; the arbiter still has the last word."""

    def __init__(self, candidates: Candidates, arbiter: Arbiter, policy: MovesPolicy) -> None:
        self.candidates, self._arbiter, self._policy = candidates, arbiter, policy

    def objection(self, executor: Executor) -> Reason | None:
        """Why it may not move at all, now."""
        found = self._objection(executor)
        return found[0] if found else None

    def words(self, key: str, target: str | None, reason: Reason) -> str:
        """The words of the objection for that reason; empty for a node or when there is none."""
        if not self.candidates.knows(key):
            return ""
        executor = self.candidates.executor(key)
        nodes = (self._arbiter.on_node(name) for name in (executor.node, target) if name is not None)
        gain = self.candidates.gain_objection(executor, target) if target is not None else None
        found = (self._objection(executor), *nodes, gain)
        return next((each[1] for each in found if each is not None and each[0] is reason), "")

    def refusal(self, executor: str, target: str, arriving: tuple[str, ...]) -> Reason | None:
        mover = self.candidates.executor(executor)
        rest = self._arbiter.on_topology(mover.topology) or self._arbiter.on_node(mover.node or "")
        if rest is not None:
            return rest[0]
        refused = self.candidates.refusal(executor, target, arriving)
        if refused is not None:
            return refused
        rest = self._arbiter.on_node(target)
        if rest is not None:
            return rest[0]
        dearer = locality_loss(self.locality_delta_ratio(executor, target), self._policy)
        return None if dearer is None else dearer[0]

    def cost(self, executor: str, target: str) -> float:
        return self.candidates.cost(executor, target)

    def locality_delta_ratio(self, executor: str, target: str) -> float:
        return self.candidates.locality_delta_ratio(self.candidates.executor(executor), target)

    def _objection(self, executor: Executor) -> Objection | None:
        own = self.candidates.objection(executor) or self._arbiter.on_executor(executor.uid)
        return own or self._arbiter.on_topology(executor.topology)
