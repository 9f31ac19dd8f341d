"""Checking a move again right before its effect: before its executor leaves, and before its replacement is pinned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from ballast.model import Executor, Move, MovePhase, Objection, Phase, Policy, Reason, Refusal, Snapshot
from ballast.moves.budget import ExecutorCounts
from ballast.moves.candidates import Candidates
from ballast.moves.drain import DrainRules, destinations
from ballast.moves.rest import rest
from ballast.moves.rules import Rules
from ballast.moves.score import projected
from ballast.moves.step import Revalidation
from ballast.placement.room import in_flight


def revalidate(
    snapshot: Snapshot,
    policy: Policy,
    move: Move,
    *,
    candidates: Candidates,
    measured: Mapping[str, float],
    now: float,
    tolerance_points: float = 0.0,
) -> Revalidation:
    """Everything that could forbid the move now, its own part in budgets, reservations and scores left out.

    `candidates` are of the same executors and nodes; `snapshot.moves` may be newer. `measured`: scores, percent.
    `tolerance_points`: by so much may the move overshoot, since scores have changed since it was predicted.
    """
    others = replace(snapshot, moves=tuple(m for m in snapshot.moves if (m.namespace, m.name) != _key(move)))
    view = _View(
        others, policy, move, candidates.given(reserved=in_flight(others), now=now), measured, now, tolerance_points
    )
    if move.phase is MovePhase.ARRIVING:
        replacement = view.executor(move.replacement_uid)
        return Revalidation() if replacement is None else view.destination(replacement)
    executor = view.executor(move.executor_uid)
    if executor is None:
        words = f"policy {policy.name} does not steer it: its namespaceSelector or topologySelector leaves it out"
        return Revalidation(Refusal(move.executor_name, Reason.NOT_OPTED_IN, words))
    refusal = view.objection(executor)
    return Revalidation(refusal) if refusal is not None else view.destination(executor)


def proposal(snapshot: Snapshot, policy: Policy, move: Move, now: float) -> Revalidation:
    """What ends a move that waits for approval: of a drain, that its node stays. All else is revalidated later."""
    found = DrainRules(snapshot, policy, now).of_node(move.source) if move.taint else None
    return Revalidation() if found is None else Revalidation(Refusal(move.executor_name, *found))


def _key(move: Move) -> tuple[str, str]:
    return (move.namespace, move.name)


@dataclass(frozen=True)
class _View:
    """`others`: the pool with every move but this one."""

    others: Snapshot
    policy: Policy
    move: Move
    candidates: Candidates
    measured: Mapping[str, float]
    now: float
    tolerance_points: float

    @cached_property
    def scores(self) -> Mapping[str, float]:
        """As they will be without this move."""
        return projected(self.others, self.policy, self.candidates.loads, self.measured)

    def executor(self, uid: str | None) -> Executor | None:
        return next((e for e in self.others.executors if e.uid == uid), None)

    def objection(self, executor: Executor) -> Refusal | None:
        """Why it must not leave, wherever to."""
        if self.move.taint:
            return self._undrained(executor)
        target = self.move.target
        found = self._standing(executor) or self._ruling(executor, target, self._rules(self.tolerance_points))
        return Refusal(executor.key, *found, target) if found is not None else None

    def _undrained(self, executor: Executor) -> Refusal | None:
        """Why it must not leave its node although that is about to go. Metrics and gains don't matter."""
        wrong = self._misdescribed(executor)
        if wrong:
            return Refusal(executor.key, Reason.MISDESCRIBED, wrong)
        found = (
            self._ungated(executor)
            or next(self.candidates.drain_objections(executor), None)
            or DrainRules(self.others, self.policy, self.now, self._ahead).objection(executor)
        )
        return None if found is None else Refusal(executor.key, *found, self.move.target)

    def _ungated(self, executor: Executor) -> Objection | None:
        ungated = self.others.ungated_namespaces.get(executor.namespace)
        return None if ungated is None else (Reason.NOT_ENFORCED, f"its replacement would not be gated: {ungated}")

    def _standing(self, executor: Executor) -> Objection | None:
        """Why the executor, or any executor, must not move."""
        metrics = self.others.metrics
        if not metrics.available:
            return Reason.NO_METRICS, f"{metrics.reason}: {metrics.message_for_users(self.policy.name)}"
        wrong = self._misdescribed(executor)
        if wrong:
            return Reason.MISDESCRIBED, wrong
        return self._ungated(executor) or self.candidates.objection(executor)

    def _misdescribed(self, executor: Executor) -> str:
        """Which field of the move is wrong about its executor: the move would count for another node or topology."""
        move = self.move
        if executor.node != move.source:
            return f"it is on {executor.node or 'no node'}, not on {move.source}"
        if not any(node.name == move.source for node in self.others.nodes):
            return f"{move.source} does not belong to the pool of policy {self.policy.name}"
        if executor.topology != move.topology:
            return f"it belongs to topology {executor.topology}, not to {move.topology}"
        if move.component not in ("", executor.component):
            return f"it belongs to component {executor.component}, not to {move.component}"
        return ""

    def _ruling(self, executor: Executor, target: str, rules: Rules) -> Objection | None:
        """By the rules. Where the destination has left the pool, another may do: its scores forbid nothing."""
        way = self.candidates.way(executor, target, self.scores)
        if any(node.name == target for node in self.others.nodes):
            return rules.objection(way)
        return rules.of_policy() or rules.of_others(way)

    @cached_property
    def _strict(self) -> Rules:
        """For a destination that the move was not predicted for."""
        return self._rules(0.0)

    def _rules(self, tolerance_points: float) -> Rules:
        resting = rest(self.others.moves, self.policy.moves, self.now)
        return Rules(
            self.policy,
            self._ahead,
            resting=resting,
            counts=ExecutorCounts.of(self.others.executors),
            now=self.now,
            tolerance_points=tolerance_points,
            by_hand=self.move.by_hand,
        )

    @property
    def _ahead(self) -> list[Move]:
        """Those that count: ones that are only proposed, or wait for their own revalidation, must not block each
        other for ever.
        """
        return [m for m in self.others.moves if m.phase is not MovePhase.PROPOSED and not _behind(m, self.move)]

    def destination(self, executor: Executor) -> Revalidation:
        """The move's own destination, else the next coldest that takes it and stays colder than the source."""
        if self.move.taint:
            return self._off_the_node(executor)
        refused = self.candidates.refusal(executor.key, self.move.target, ())
        if refused is None:
            return Revalidation()
        limit = self.scores.get(self.move.source, float("inf"))
        for name in sorted(self.scores, key=lambda node: (self.scores[node], node)):
            if name in (self.move.source, self.move.target) or self.scores[name] >= limit:
                continue
            if self.candidates.refusal(executor.key, name, ()) is None and self._will_do(executor, name):
                return Revalidation(destination=name)
        gain = self.candidates.gain_objection(executor, self.move.target)
        why = gain[1] if gain is not None and gain[0] is refused else f"{self.move.target} can't take it"
        return Revalidation(Refusal(executor.key, refused, f"{why}, and no other cold node can", self.move.target))

    def _off_the_node(self, executor: Executor) -> Revalidation:
        """The move's own destination, else the best one; a drain goes on wherever there is room."""
        found = destinations(self.candidates, self.others, self.policy, self.scores)
        refused = found.takes(executor, self.move.target)
        if refused is None:
            return Revalidation()
        best = found.best(executor, {})
        if best is not None and best != self.move.source:
            return Revalidation(destination=best)
        words = f"{self.move.target} can't take it, and no other node can"
        return Revalidation(Refusal(executor.key, refused, words, self.move.target))

    def _will_do(self, executor: Executor, name: str) -> bool:
        """Whether the next revalidation, too, would clear it; a replacement must go somewhere."""
        return executor.phase is not Phase.RUNNING or self._ruling(executor, name, self._strict) is None


def _behind(other: Move, move: Move) -> bool:
    """Whether the other one is approved as well, but later: the earlier goes first."""
    return other.phase is MovePhase.APPROVED and (other.started_at, *_key(other)) > (move.started_at, *_key(move))
