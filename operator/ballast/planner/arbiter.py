"""The one place that decides: strategies suggest, the arbiter approves or refuses with a reason."""

from __future__ import annotations

from ballast.model import (
    Exit,
    Move,
    MovePhase,
    MovesMode,
    PlacementMode,
    PlannedMove,
    Policy,
    Reason,
    Snapshot,
)
from ballast.moves import budget
from ballast.moves.cooldown import Objection, Rest, precedent


class Arbiter:
    """Rules on one pass's suggestions, one after the other; each one that is approved counts against those after it."""

    def __init__(self, snapshot: Snapshot, policy: Policy, *, resting: Rest, now: float) -> None:
        self._policy, self._resting, self._now = policy, resting, now
        self._moves = list(snapshot.moves)
        self._topologies: dict[str, Objection | None] = {}
        self._nodes: dict[str, Objection | None] = {}

    def ruling(self, move: PlannedMove) -> Objection | None:
        """Why it is refused; None: it is approved."""
        objection = self._objection(move)
        if objection is None:
            self._moves.append(as_started(move, self._now))
            self._topologies.clear()
            self._nodes.clear()
        return objection

    def on_executor(self, executor_uid: str) -> Objection | None:
        """Why this one may not move now, whatever the way."""
        return self._resting.executors.get(executor_uid)

    def on_topology(self, key: str) -> Objection | None:
        """Why none of this topology may move now."""
        if key not in self._topologies:
            found = budget.topology_objection(self._moves, self._policy.moves, topology=key, now=self._now)
            self._topologies[key] = self._resting.of_topology(key) or found
        return self._topologies[key]

    def on_node(self, name: str) -> Objection | None:
        """Why nothing may move from or to this node now."""
        if name not in self._nodes:
            self._nodes[name] = budget.node_objection(self._moves, self._policy.moves, node=name, now=self._now)
        return self._nodes[name]

    def _objection(self, move: PlannedMove) -> Objection | None:
        return (
            self.on_executor(move.uid)
            or unheld(self._policy)
            or _agentless(self._policy)
            or _sense(move, self._policy)
            or self._resting.of_topology(move.topology)
            or self._precedent(move)
            or budget.pool_objection(self._moves, self._policy.moves, self._now)
            or self.on_topology(move.topology)
            or self.on_node(move.source)
            or self.on_node(move.target)
        )

    def _precedent(self, move: PlannedMove) -> Objection | None:
        return precedent(
            self._moves,
            self._policy.moves,
            executor_uid=move.uid,
            component=move.component,
            source=move.source,
            target=move.target,
            now=self._now,
        )


def unheld(policy: Policy) -> Objection | None:
    """Whether a replacement would go wherever kube-scheduler likes: only where placement is enforced is it held."""
    acting = policy.moves.mode in (MovesMode.APPROVE, MovesMode.ENFORCE)
    if acting and policy.placement.mode is not PlacementMode.ENFORCE:
        return Reason.NOT_ENFORCED, "its replacement would not be held for its destination: set placement.mode: Enforce"
    return None


def _agentless(policy: Policy) -> Objection | None:
    """Whether every move would be refused as soon as it were made."""
    if policy.moves.exit is Exit.AGENT and policy.moves.mode in (MovesMode.APPROVE, MovesMode.ENFORCE):
        return Reason.NO_AGENT, "moves.exit is Agent, and there is no agent yet: set moves.exit: Evict"
    return None


def _sense(move: PlannedMove, policy: Policy) -> Objection | None:
    """Whether the move is worth it, by its own figures."""
    if move.target == move.source:
        return Reason.NO_DESTINATION, "source and destination are the same node"
    if move.hot_after < move.cold_after:
        return Reason.OVERSHOOT, f"{move.target} would end at {move.cold_after:.1f}, above {move.hot_after:.1f}"
    if move.gain < policy.moves.min_gain:
        return Reason.MIN_GAIN, f"the gap narrows by {move.gain:.1f} points, minGain is {policy.moves.min_gain:g}"
    if move.locality_delta_ratio > policy.moves.max_locality_loss:
        return (
            Reason.LOCALITY_LOSS,
            f"locality gets {move.locality_delta_ratio:.1%} dearer, over {policy.moves.max_locality_loss:.1%}",
        )
    return None


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
