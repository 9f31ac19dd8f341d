"""The one place that decides: strategies suggest, the arbiter approves, or refuses by the rules with a reason."""

from __future__ import annotations

from ballast.model import Gap, Move, MovePhase, PlannedMove, Policy, Snapshot
from ballast.moves.cooldown import Objection, Rest
from ballast.moves.rules import Rules, Way


class Arbiter:
    """Rules on one pass's suggestions, one after the other; each one that is approved counts against those after it."""

    def __init__(self, snapshot: Snapshot, policy: Policy, *, resting: Rest, now: float) -> None:
        self._policy, self._resting, self._now = policy, resting, now
        self._rules = Rules(policy, snapshot.moves, resting=resting, now=now)

    def ruling(self, move: PlannedMove) -> Objection | None:
        """Why it is refused; None: it is approved."""
        objection = self.on_executor(move.uid) or self._rules.objection(_way(move, self._policy))
        if objection is None:
            self._rules = self._rules.with_move(as_started(move, self._now))
        return objection

    def on_executor(self, executor_uid: str) -> Objection | None:
        """Why no move of this executor is suggested again so soon."""
        return self._resting.executors.get(executor_uid)

    def on_topology(self, key: str) -> Objection | None:
        """Why none of this topology may move now."""
        return self._rules.of_topology(key)

    def on_node(self, name: str) -> Objection | None:
        """Why nothing may move from or to this node now."""
        return self._rules.of_node(name)


def _way(move: PlannedMove, policy: Policy) -> Way:
    return Way(
        executor_uid=move.uid,
        topology=move.topology,
        component=move.component,
        source=move.source,
        target=move.target,
        before=Gap(move.hot_score, move.cold_score),
        after=Gap(move.hot_after, move.cold_after),
        locality_delta_ratio=move.locality_delta_ratio,
        exit=policy.moves.exit,
    )


def as_started(move: PlannedMove, now: float) -> Move:
    """As it stands once it is let go: what a later suggestion, or a later pass, has to reckon with."""
    return Move(
        name=f"suggested:{move.executor}",
        namespace=move.namespace,
        topology=move.topology,
        component=move.component,
        executor_uid=move.uid,
        executor_name=move.executor,
        source=move.source,
        target=move.target,
        phase=MovePhase.APPROVED,
        started_at=now,
        load_cores=move.load_cores,
    )
