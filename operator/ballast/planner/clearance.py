"""The arbiter's second look at a move that is about to leave, or whose replacement is about to be pinned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from ballast.model import Executor, Move, MovePhase, Phase, Policy, Reason, Refusal, Snapshot
from ballast.moves import budget
from ballast.moves.cooldown import Objection, precedent, rest
from ballast.placement.room import in_flight
from ballast.planner.arbiter import unheld
from ballast.planner.candidates import Candidates
from ballast.planner.ledger import projected

Clearance = tuple[Refusal | None, str | None]
"""Why not, or another destination than the move's; both None: go on."""


def clearance(
    snapshot: Snapshot,
    policy: Policy,
    move: Move,
    *,
    candidates: Candidates,
    measured: Mapping[str, float],
    now: float,
) -> Clearance:
    """Everything that could forbid the move now, its own part in budgets, reservations and scores left out.

    `candidates` are of the same executors and nodes; `snapshot.moves` may be newer. `measured`: scores, percent.
    """
    others = replace(snapshot, moves=tuple(m for m in snapshot.moves if (m.namespace, m.name) != _key(move)))
    look = _Look(others, policy, move, candidates.given(booked=in_flight(others), now=now), measured, now)
    if move.phase is MovePhase.ARRIVING:
        replacement = look.executor(move.replacement_uid)
        return (None, None) if replacement is None else look.destination(replacement)
    executor = look.executor(move.executor_uid)
    if executor is None:
        words = f"policy {policy.name} does not steer it: its namespaceSelector or topologySelector leaves it out"
        return Refusal(move.executor_name, Reason.NOT_OPTED_IN, words), None
    refusal = look.objection(executor)
    return (refusal, None) if refusal is not None else look.destination(executor)


def _key(move: Move) -> tuple[str, str]:
    return (move.namespace, move.name)


@dataclass(frozen=True)
class _Look:
    """`others`: the pool with every move but this one."""

    others: Snapshot
    policy: Policy
    move: Move
    candidates: Candidates
    measured: Mapping[str, float]
    now: float

    @cached_property
    def scores(self) -> Mapping[str, float]:
        """As they will be without this move."""
        return projected(self.others, self.policy, self.candidates.loads, self.measured)

    def executor(self, uid: str | None) -> Executor | None:
        return next((e for e in self.others.executors if e.uid == uid), None)

    def objection(self, executor: Executor) -> Refusal | None:
        """Why it must not leave, wherever to."""
        target = self.move.target
        found = self._standing(executor) or self._history(executor, target) or self._worth(executor, target)
        return Refusal(executor.key, *found, target) if found is not None else None

    def _standing(self, executor: Executor) -> Objection | None:
        """What is wrong with the executor, or with moving anything at all."""
        metrics = self.others.metrics
        if not metrics.available:
            return Reason.NO_METRICS, f"{metrics.reason}: {metrics.message}"
        wrong = self._misdescribed(executor)
        if wrong:
            return Reason.MISDESCRIBED, wrong
        return self.candidates.objection(executor) or unheld(self.policy)

    def _misdescribed(self, executor: Executor) -> str:
        """What the move says of the executor and is not so: else it would count for another node or topology."""
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

    def _history(self, executor: Executor, target: str) -> Objection | None:
        """Whether other moves forbid going to `target`.

        Those that are only proposed, or wait for their own second look, must not block each other for ever.
        """
        move, moves = self.move, self.policy.moves
        paused = rest(self.others.moves, moves, self.now).of_topology(move.topology)
        ahead = [m for m in self.others.moves if m.phase is not MovePhase.PROPOSED and not _behind(m, move)]
        return (
            paused
            or precedent(
                ahead,
                moves,
                executor_uid=move.executor_uid,
                component=executor.component,
                source=move.source,
                target=target,
                now=self.now,
            )
            or budget.objection(ahead, moves, topology=move.topology, source=move.source, target=target, now=self.now)
        )

    def _worth(self, executor: Executor, target: str) -> Objection | None:
        """Whether going to `target` still helps: figures may have changed since it was decided or asked for."""
        for name in (self.move.source, target):
            if name not in self.scores and any(node.name == name for node in self.others.nodes):
                return Reason.STALE_METRICS, f"{name} has no fresh figures"
        found = self._levelling(executor, target)
        if found is not None:
            return found
        loss, most = self.candidates.locality_delta_ratio(executor, target), self.policy.moves.max_locality_loss
        if loss > most:
            return Reason.LOCALITY_LOSS, f"locality gets {loss:.1%} dearer, over {most:.1%}"
        return None

    def _levelling(self, executor: Executor, target: str) -> Objection | None:
        """Figures change from look to look: the target may end the hotter one, if not so much as to be shed again."""
        hot, cold = self.scores.get(self.move.source), self.scores.get(target)
        if hot is None or cold is None:
            return None
        least = self.policy.moves.min_gain
        left = hot - self.candidates.points_on(executor, self.move.source)
        arrived = cold + self.candidates.points_on(executor, target)
        if arrived - left >= self.policy.shedding.avg_shedder.low_threshold:
            return Reason.OVERSHOOT, f"{target} would end at {arrived:.1f}, above {left:.1f}"
        gain = abs(hot - cold) - abs(left - arrived)
        if gain < least:
            return Reason.MIN_GAIN, f"the gap to {target} would narrow by {gain:.1f} points, minGain is {least:g}"
        return None

    def destination(self, executor: Executor) -> Clearance:
        """The move's own destination, else the next coldest that takes it and stays colder than the source."""
        refused = self.candidates.refusal(executor.key, self.move.target, ())
        if refused is None:
            return None, None
        limit = self.scores.get(self.move.source, float("inf"))
        for name in sorted(self.scores, key=lambda node: (self.scores[node], node)):
            if name in (self.move.source, self.move.target) or self.scores[name] >= limit:
                continue
            if self.candidates.refusal(executor.key, name, ()) is None and self._will_do(executor, name):
                return None, name
        gain = self.candidates.gain_objection(executor, self.move.target)
        why = gain[1] if gain is not None and gain[0] is refused else f"{self.move.target} can't take it"
        return Refusal(executor.key, refused, f"{why}, and no other cold node can", self.move.target), None

    def _will_do(self, executor: Executor, name: str) -> bool:
        """Whether the next look, too, would let it go there; a replacement has left already, and must go somewhere."""
        if executor.phase is not Phase.RUNNING:
            return True
        arrived = self.scores[name] + self.candidates.points_on(executor, name)
        left = self.scores.get(self.move.source, float("inf")) - self.candidates.points_on(executor, self.move.source)
        return arrived <= left and (self._worth(executor, name) or self._history(executor, name)) is None


def _behind(other: Move, move: Move) -> bool:
    """Whether the other one is approved as well, but later: the earlier goes first."""
    return other.phase is MovePhase.APPROVED and (other.started_at, *_key(other)) > (move.started_at, *_key(move))
