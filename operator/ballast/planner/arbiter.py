"""The one place that decides: strategies suggest, the arbiter approves, or refuses by the rules with a reason."""

from __future__ import annotations

from ballast.model import Executor, Gap, Move, MovePhase, MovesPolicy, Objection, PlannedMove, Policy, Reason, Snapshot
from ballast.moves.budget import ExecutorCounts
from ballast.moves.candidates import Candidates
from ballast.moves.drain import DrainRules
from ballast.moves.rest import Rest
from ballast.moves.rules import Rules, Way, locality_loss
from ballast.shedding.load import Suggestion


def planned(suggestion: Suggestion, executor: Executor, *, strategy: str, load_cores: float) -> PlannedMove:
    """The values of the suggestion; where it predicts nothing, scores stay as they are and nothing is gained."""
    cold = suggestion.cold_score or 0.0
    hot_after = suggestion.hot_score if suggestion.hot_after is None else suggestion.hot_after
    cold_after = cold if suggestion.cold_after is None else suggestion.cold_after
    return PlannedMove(
        executor=executor.key,
        uid=executor.uid,
        topology=executor.topology,
        component=executor.component,
        source=suggestion.source,
        target=suggestion.target or suggestion.source,
        strategy=strategy,
        hot_score=suggestion.hot_score,
        cold_score=cold,
        hot_after=hot_after,
        cold_after=cold_after,
        gain=Gap(suggestion.hot_score, cold).narrowed(Gap(hot_after, cold_after)),
        hits=suggestion.hits,
        load_cores=load_cores,
    )


class Arbiter:
    """Rules on one pass's suggestions, one after the other; each one that is approved counts against those after it."""

    def __init__(self, snapshot: Snapshot, policy: Policy, *, resting: Rest, now: float) -> None:
        self._policy, self._resting, self._now = policy, resting, now
        self._executors = {executor.uid: executor for executor in snapshot.executors}
        self._drains = DrainRules(snapshot, policy, now)
        self._rules = Rules(
            policy, snapshot.moves, resting=resting, counts=ExecutorCounts.of(snapshot.executors), now=now
        )

    def ruling(self, move: PlannedMove) -> Objection | None:
        """Why it is refused; None: it is approved."""
        objection = self._drain_ruling(move) if move.taint else self._level_ruling(move)
        if objection is None:
            started = as_started(move, self._now)
            self._rules, self._drains = self._rules.with_move(started), self._drains.with_move(started)
        return objection

    def _level_ruling(self, move: PlannedMove) -> Objection | None:
        return self.on_executor(move.namespace, move.uid) or self._rules.objection(_way(move))

    def _drain_ruling(self, move: PlannedMove) -> Objection | None:
        """None of leveling's budgets and gains: what stays on the node is killed."""
        return self._drains.objection(self._executors[move.uid])

    def on_drains(self) -> Objection | None:
        """Why no executor may be drained now."""
        return self._drains.of_pool()

    def on_leaver(self, executor: Executor) -> Objection | None:
        """Why this executor may not be drained now."""
        return self._drains.objection(executor)

    def on_executor(self, namespace: str, uid: str) -> Objection | None:
        """Why no move of this executor is suggested again so soon, or next to the one that is under way."""
        return self._resting.of_executor(namespace, uid) or self._rules.of_executor((namespace, uid))

    def on_topology(self, key: str) -> Objection | None:
        """Why none of this topology may move now."""
        return self._rules.of_topology(key)

    def on_node(self, name: str, *, gives: bool) -> Objection | None:
        """Why nothing may move from this node (or to it) now."""
        return self._rules.of_node(name, gives=gives)

    def on_nodes(self, source: str, target: str) -> Objection | None:
        """Why nothing may move between these two, in this direction, now."""
        return self._rules.of_nodes(source, target)


def _way(move: PlannedMove) -> Way:
    return Way(
        executor_uid=move.uid,
        topology=move.topology,
        source=move.source,
        target=move.target,
        before=Gap(move.hot_score, move.cold_score),
        after=Gap(move.hot_after, move.cold_after),
        locality_delta_ratio=move.locality_delta_ratio,
    )


def as_started(move: PlannedMove, now: float) -> Move:
    """As it stands once it is released: what a later suggestion, or a later pass, has to reckon with."""
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
        taint=move.taint,
    )


# What a shedding strategy is told about new moves: next to what is possible, what would be refused anyway.
#
# A strategy that knows which topologies and nodes rest looks at the others of a hot node instead of suggesting, pass
# after pass, what the arbiter can't approve.


class ArbiterTerms:
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
        ends = ((executor.node, True), (target, False))
        nodes = (self._arbiter.on_node(name, gives=gives) for name, gives in ends if name is not None)
        reverse = self._arbiter.on_nodes(executor.node or "", target) if target is not None else None
        gain = self.candidates.gain_objection(executor, target) if target is not None else None
        found = (self._objection(executor), *nodes, reverse, gain)
        return next((each[1] for each in found if each is not None and each[0] is reason), "")

    def takes(self, executor: str, target: str) -> bool:
        return target in self.candidates.takers(self.candidates.executor(executor))

    def is_near(self, executor: str, target: str) -> bool:
        return locality_loss(self.locality_delta_ratio(executor, target), self._policy) is None

    def refusal(self, executor: str, target: str, arriving: tuple[str, ...]) -> Reason | None:
        mover = self.candidates.executor(executor)
        rest = self._arbiter.on_topology(mover.topology) or self._arbiter.on_node(mover.node or "", gives=True)
        if rest is not None:
            return rest[0]
        refused = self.candidates.refusal(executor, target, arriving)
        if refused is not None:
            return refused
        rest = self._arbiter.on_node(target, gives=False) or self._arbiter.on_nodes(mover.node or "", target)
        if rest is not None:
            return rest[0]
        return None if self.is_near(executor, target) else Reason.LOCALITY_LOSS

    def cost(self, executor: str, target: str) -> float:
        return self.candidates.cost(executor, target)

    def locality_delta_ratio(self, executor: str, target: str) -> float:
        return self.candidates.locality_delta_ratio(self.candidates.executor(executor), target)

    def _objection(self, executor: Executor) -> Objection | None:
        own = self.candidates.objection(executor) or self._arbiter.on_executor(executor.namespace, executor.uid)
        return own or self._arbiter.on_topology(executor.topology)
