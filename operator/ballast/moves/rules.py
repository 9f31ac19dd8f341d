"""What forbids a move: one rulebook for moves that are suggested, explained, simulated, made by hand or revalidated.

An executor's own eligibility is in `eligibility`, what a node takes in `candidates`; here is what follows from the
predicted scores, from the policy, and from other moves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from ballast.model import (
    Gap,
    Move,
    MovesPolicy,
    Objection,
    PlacementMode,
    Policy,
    Reason,
)
from ballast.moves import budget
from ballast.moves.budget import ExecutorCounts
from ballast.moves.rest import IN_FLIGHT, REVERSE, ExecutorId, Rest, under_way, ways

DRIFT_POINTS = 5.0
"""Scores move between a decision and its effect: a move that was predicted is still good if it overshoots by so much.

A move that carries no prediction has no such tolerance.
"""


@dataclass(frozen=True, slots=True)
class Way:
    """One executor from one node to another, and what that is predicted to bring."""

    executor_uid: str
    topology: str
    source: str
    target: str
    before: Gap | None
    """Like `after`, None where one of the nodes has no fresh metrics."""
    after: Gap | None
    locality_delta_ratio: float
    """Growth of the topology's cost of traffic; below 0 is nearer."""
    unmeasured: str = ""
    """The node without fresh metrics, if there is one."""

    @property
    def executor(self) -> ExecutorId:
        return self.topology.partition("/")[0], self.executor_uid


def worth(way: Way, moves: MovesPolicy, *, tolerance_points: float = 0.0) -> Objection | None:
    """Whether the move brings enough, by its own prediction: on the destination, the gap and the locality.

    `tolerance_points`: by so much may the destination end hotter than the node that is left.
    """
    if way.target == way.source:
        return Reason.NO_DESTINATION, "source and destination are the same node"
    if way.before is None or way.after is None:
        return Reason.STALE_METRICS, f"{way.unmeasured} has no fresh metrics, so it takes part in no move"
    return (
        overshoot(way.before, way.after, way.target, tolerance_points=tolerance_points)
        or gain_shortfall(way.before, way.after, way.target, moves)
        or locality_loss(way.locality_delta_ratio, moves)
    )


def overshoot(before: Gap, after: Gap, target: str, *, tolerance_points: float = 0.0) -> Objection | None:
    """The destination must not end hotter than the node that is left, unless that cools both enough (`Gap`)."""
    if not before.overshoots(after, tolerance_points):
        return None
    return Reason.OVERSHOOT, f"{target} would end at {after.cold:.1f}, above {after.hot:.1f}"


def gain_shortfall(before: Gap, after: Gap, target: str, moves: MovesPolicy) -> Objection | None:
    """The gap must narrow by at least minGain."""
    gain = before.narrowed(after)
    if gain >= moves.min_gain:
        return None
    return Reason.MIN_GAIN, f"the gap to {target} would narrow by {gain:.1f} points, minGain is {moves.min_gain:g}"


def locality_loss(delta_ratio: float, moves: MovesPolicy) -> Objection | None:
    """The topology's traffic must not cost more than maxLocalityLossPercent allows."""
    most = moves.max_locality_loss
    if delta_ratio <= most:
        return None
    return Reason.LOCALITY_LOSS, f"traffic would cost {delta_ratio:.1%} more, over {most:.1%}"


def weightless(policy: Policy) -> Objection | None:
    """Whether what a move takes along, which is CPU, counts for nothing in the scores."""
    if policy.weights.cpu > 0:
        return None
    words = "a move takes along CPU, which does not count in the scores: set metrics.weights.cpu above 0"
    return Reason.UNKNOWN_LOAD, words


def unheld(policy: Policy) -> Objection | None:
    """Whether kube-scheduler alone would place a replacement: only where placement is enforced is it gated."""
    if policy.moves.mode.acts and policy.placement.mode is not PlacementMode.ENFORCE:
        return Reason.NOT_ENFORCED, "its replacement would not be held for its destination: set placement.mode: Enforce"
    return None


class Rules:
    """The rules of one policy at one moment. `moves`: those that count for the limits; `resting`: after ended ones.

    `by_hand`: for moves that a user asks for.
    """

    def __init__(
        self,
        policy: Policy,
        moves: Sequence[Move],
        *,
        resting: Rest,
        counts: ExecutorCounts,
        now: float,
        tolerance_points: float = 0.0,
        by_hand: bool = False,
    ) -> None:
        self._policy, self._moves, self._resting, self._now = policy, tuple(moves), resting, now
        self._counts, self._tolerance_points, self._by_hand = counts, tolerance_points, by_hand
        self._topologies: dict[str, Objection | None] = {}
        self._namespaces: dict[str, Objection | None] = {}
        self._nodes: dict[tuple[str, bool], Objection | None] = {}

    def with_move(self, move: Move) -> Rules:
        """The same once this move has begun, too."""
        moves = (*self._moves, move)
        return Rules(
            self._policy,
            moves,
            resting=self._resting,
            counts=self._counts,
            now=self._now,
            tolerance_points=self._tolerance_points,
            by_hand=self._by_hand,
        )

    def objection(self, way: Way) -> Objection | None:
        """The weightiest reason against the move, or None."""
        return (
            self.of_policy()
            or worth(way, self._policy.moves, tolerance_points=self._tolerance_points)
            or self.of_others(way)
        )

    def of_policy(self) -> Objection | None:
        """Why no move may be made at all."""
        return weightless(self._policy) or unheld(self._policy)

    def of_others(self, way: Way) -> Objection | None:
        """Why other moves, under way or ended, forbid this one now."""
        return (
            self.of_precedent(way)
            or self.of_pool()
            or self.of_topology(way.topology)
            or self.of_node(way.source, gives=True)
            or self.of_node(way.target, gives=False)
        )

    def of_precedent(self, way: Way) -> Objection | None:
        """Why a move of the same executor, or one the other way, forbids this one."""
        return self.of_executor(way.executor) or self.of_nodes(way.source, way.target)

    def of_executor(self, executor: ExecutorId) -> Objection | None:
        """Why another move of this executor forbids one of it."""
        return IN_FLIGHT if executor in self._under_way else None

    def of_nodes(self, source: str, target: str) -> Objection | None:
        """Why nothing may move between these two, in this direction."""
        return REVERSE if (target, source) in self._ways else None

    @cached_property
    def _under_way(self) -> frozenset[ExecutorId]:
        return under_way(self._moves)

    @cached_property
    def _ways(self) -> frozenset[tuple[str, str]]:
        return ways(self._moves, self._policy.moves, self._now, by_hand=self._by_hand)

    def of_pool(self) -> Objection | None:
        """Why no executor of the pool may move now."""
        asked = (self._moves, self._policy.moves, self._counts, self._now)
        return budget.pool_objection(*asked) or (budget.by_hand_objection(*asked) if self._by_hand else None)

    def of_topology(self, key: str) -> Objection | None:
        """Why no executor of this topology, or of its namespace, may move now."""
        if key not in self._topologies:
            asked = (self._moves, self._policy.moves, self._counts)
            self._topologies[key] = (
                self._resting.of_topology(key)
                or budget.topology_objection(*asked, topology=key, now=self._now)
                or self._of_namespace(key.partition("/")[0])
            )
        return self._topologies[key]

    def _of_namespace(self, name: str) -> Objection | None:
        """Asked for each of its topologies, of which there may be thousands."""
        if name not in self._namespaces:
            asked = (self._moves, self._policy.moves, self._counts)
            self._namespaces[name] = budget.namespace_objection(*asked, namespace=name, now=self._now)
        return self._namespaces[name]

    def of_node(self, name: str, *, gives: bool) -> Objection | None:
        """Why no executor may move from this node (or to it) now."""
        if (name, gives) not in self._nodes:
            self._nodes[name, gives] = budget.node_objection(
                self._moves,
                self._policy.moves,
                self._counts,
                node=name,
                gives=gives,
                now=self._now,
                by_hand=self._by_hand,
            )
        return self._nodes[name, gives]
