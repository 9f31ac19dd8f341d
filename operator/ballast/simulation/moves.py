"""Moves on their way, carried by the operator's state machine (`ballast.moves.advance`).

What the operator reads from a real cluster comes from the simulated one, and what it does there is done here: an
eviction takes a while, Spark asks for another executor, and the replacement is tied to the destination.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from ballast.model import Location, Move, MovePhase, MovesPolicy, Phase, PlannedMove, Reason, Refusal
from ballast.model.arrays import BoolArray, FloatArray
from ballast.moves import (
    DeleteUnscheduled,
    Effect,
    Evict,
    Facts,
    MoveMetrics,
    MoveReason,
    MoveState,
    Orders,
    PinReplacement,
    Pod,
    ReleaseUnpinned,
    Revalidation,
    advance,
)
from ballast.moves.record import to_move
from ballast.simulation.cluster import PHASES, Cluster, State, uid_of
from ballast.simulation.demand import random_for
from ballast.simulation.scenario import Moving
from ballast.simulation.trace import Cause, MoveRecord, Outcome

_MOST_STEPS = 8
"""States that one move may enter at one moment."""

_FORGIVEN = np.array([1e-6, 1.0, 1e-6])


class Scheduler:
    """For one moment; what it binds counts against the room of what comes after."""

    def __init__(self, cluster: Cluster, locations: tuple[Location, ...], time: float) -> None:
        self._cluster, self._locations, self._time = cluster, locations, time
        self._free = cluster.allocatable - cluster.requested()
        self._open = cluster.open

    def fits(self, slot: int, node: int) -> bool:
        return bool(self._able(slot)[node])

    def bind(self, slot: int, *, preferred: int | None = None, within: Location = ()) -> int | None:
        """The node it was bound to, or None: it waits for room.

        The preferred node if it fits there; else, among the nodes that agree with `within` (far to near, as far as it
        goes), the one that will have the largest mean share of CPU and memory left.
        """
        able = self._able(slot)
        if preferred is not None and able[preferred]:
            node = preferred
        else:
            able &= self._agreeing(within)
            if not able.any():
                self._cluster.release(slot, self._time)
                return None
            node = int(np.argmax(np.where(able, self._shares(slot), -np.inf)))
        self._free[node] -= self._cluster.executor_slots.requests[slot]
        self._cluster.bind(slot, node, self._time)
        return node

    def _able(self, slot: int) -> BoolArray:
        fitting: BoolArray = (self._free + _FORGIVEN >= self._cluster.executor_slots.requests[slot]).all(axis=1)
        return fitting & self._open

    def _shares(self, slot: int) -> FloatArray:
        left = self._free[:, :2] - self._cluster.executor_slots.requests[slot, :2]
        shares: FloatArray = (left / self._cluster.allocatable[:, :2]).mean(axis=1)
        return shares

    def _agreeing(self, within: Location) -> BoolArray:
        depth = len(within)
        return np.array([location[:depth] == within for location in self._locations]) if depth else self._open


@dataclass(slots=True)
class SimulatedMove:
    """A move that has not ended."""

    state: MoveState
    record: MoveRecord
    load_cores: float
    slot: int
    generation: int
    """Of the executor that leaves."""
    stuck: bool
    lost: bool
    refused: str = ""
    """Why its eviction failed."""


class SimulatedMoves:
    """Every move of a run. `epoch`: the planner's time when the run begins."""

    def __init__(self, cluster: Cluster, moving: Moving, policy: MovesPolicy, *, seed: int, epoch: float) -> None:
        self._cluster, self._moving, self._policy = cluster, moving, policy
        self._seed, self._epoch = seed, epoch
        self._open: list[SimulatedMove] = []
        self._ended: list[Move] = []
        self._records: list[MoveRecord] = []
        self.failed_by_topology: dict[str, int] = {}

    def moves(self, time: float) -> tuple[Move, ...]:
        """As the planner sees them: under way, or ended within their ttl."""
        oldest = self._epoch + time - self._policy.ttl_seconds
        self._ended = [move for move in self._ended if (move.ended_at or 0.0) >= oldest]
        return (*(_planned(move) for move in self._open), *self._ended)

    @property
    def under_way(self) -> bool:
        """Whether any move has not ended."""
        return bool(self._open)

    def records(self) -> tuple[MoveRecord, ...]:
        """Every move so far, in the order of their decisions."""
        under_way = [move.record for move in self._open]
        return tuple(sorted((*self._records, *under_way), key=lambda each: (each.decided_at, each.executor)))

    def begin(
        self, planned: PlannedMove, slot: int, scheduler: Scheduler, scores: Mapping[str, float], time: float
    ) -> None:
        """The move is approved, and its executor asked to leave. `scores`: as measured now."""
        cluster, number = self._cluster, len(self._open) + len(self._records)
        chances = random_for(self._seed, "move", slot, int(cluster.generation[slot])).random(2)
        app = cluster.executor_slots.apps[cluster.executor_slots.app_of[slot]]
        move = SimulatedMove(
            state=MoveState(_orders(planned, f"{planned.pod}-{number}", self._epoch + time)),
            record=_record(planned, slot, app.name, time),
            load_cores=planned.load_cores,
            slot=slot,
            generation=int(cluster.generation[slot]),
            stuck=bool(chances[0] < self._moving.stuck),
            lost=bool(chances[1] < self._moving.lost),
        )
        self._carry(move, scheduler, scores, time)
        self._open.append(move)

    def advance(self, scheduler: Scheduler, scores: Mapping[str, float], time: float) -> None:
        """Everything that has happened to the moves until then. `scores`: as last measured."""
        for move in self._open:
            self._carry(move, scheduler, scores, time)
        ended = [move for move in self._open if move.state.phase.ended]
        self._open = [move for move in self._open if not move.state.phase.ended]
        self._records += [move.record for move in ended]
        self._ended += [_planned(move) for move in ended]

    def _carry(self, move: SimulatedMove, scheduler: Scheduler, scores: Mapping[str, float], time: float) -> None:
        """Steps on while only states are entered, as the operator does."""
        for _ in range(_MOST_STEPS):
            if move.lost and self._newcomer(move) is not None:
                self._lose(move, time)
            step = advance(move.state, self._facts(move, scheduler, scores), self._policy, self._epoch + time)
            if step.effect is not None:
                self._do(step.effect, move, scheduler, time)
            if not step.changed:
                return
            move.state = step.move
            if step.entered:
                move.record = _noted(move, time)

    def _facts(self, move: SimulatedMove, scheduler: Scheduler, scores: Mapping[str, float]) -> Facts:
        newcomer = self._newcomer(move)
        return Facts(
            executor=self._executor(move),
            newcomers=() if newcomer is None else (newcomer,),
            revalidation=self._revalidation(move, newcomer, scheduler),
            application_ended=not self._cluster.alive[move.slot],
            scores=scores,
            eviction_failed=move.refused,
        )

    def _executor(self, move: SimulatedMove) -> Pod | None:
        here = self._cluster.generation[move.slot] == move.generation
        return self._pod(move.slot) if here else None

    def _newcomer(self, move: SimulatedMove) -> Pod | None:
        """The executor that Spark has asked for in the place of the one that left."""
        newer = self._cluster.generation[move.slot] > move.generation
        return self._pod(move.slot) if newer else None

    def _pod(self, slot: int) -> Pod | None:
        cluster = self._cluster
        state, node = State(int(cluster.state[slot])), int(cluster.node[slot])
        if state is State.ABSENT:
            return None
        born_at = self._epoch + float(cluster.born_at[slot])
        running_since = float(cluster.running_since[slot])
        waiting_since = float(cluster.unschedulable_since[slot])
        app = cluster.executor_slots.apps[cluster.executor_slots.app_of[slot]]
        return Pod(
            uid=uid_of(slot, int(cluster.generation[slot])),
            name=cluster.names[slot],
            phase=PHASES[state],
            created_at=born_at,
            application=app.name,
            resource_profile="0",
            requests=app.requests,
            node=cluster.fleet.names[node] if node >= 0 else None,
            gate_since=born_at if state is State.GATED else None,
            unschedulable_since=None if np.isnan(waiting_since) else self._epoch + waiting_since,
            running_since=None if np.isnan(running_since) else self._epoch + running_since,
            pinned=bool(cluster.pinned[slot]),
        )

    def _revalidation(self, move: SimulatedMove, newcomer: Pod | None, scheduler: Scheduler) -> Revalidation:
        """A move is begun in the pass that decides it; only the room for its replacement may have gone since."""
        if newcomer is None or newcomer.phase is not Phase.GATED:
            return Revalidation()
        target = move.state.destination
        if scheduler.fits(move.slot, self._cluster.fleet.index(target)):
            return Revalidation()
        return Revalidation(Refusal(newcomer.name, Reason.NO_ROOM, f"{target} can't take it"))

    def _do(self, effect: Effect, move: SimulatedMove, scheduler: Scheduler, time: float) -> None:
        cluster, slot = self._cluster, move.slot
        match effect:
            case Evict():
                if move.stuck:
                    move.refused = "it is stuck"
                else:
                    cluster.order_to_leave(slot, time)
            case PinReplacement():
                cluster.pinned[slot] = True
                scheduler.bind(slot, preferred=cluster.fleet.index(effect.node))
            case ReleaseUnpinned():
                cluster.cause[slot] = Cause.ASTRAY
                cluster.release(slot, time)
            case DeleteUnscheduled():
                cluster.delete(slot, time)

    def _lose(self, move: SimulatedMove, time: float) -> None:
        """The replacement fails at once; the one that Spark asks for next is placed like any other."""
        topology = move.state.orders.topology
        self.failed_by_topology[topology] = self.failed_by_topology.get(topology, 0) + 1
        self._cluster.cause[move.slot] = Cause.ASTRAY
        timings = replace(move.state.timings, ended_at=self._epoch + time)
        move.state = replace(move.state, phase=MovePhase.FAILED, reason=MoveReason.REPLACEMENT_LOST, timings=timings)
        move.lost, move.record = False, _noted(move, time)


def _planned(move: SimulatedMove) -> Move:
    """As the planner sees it."""
    known = to_move(move.state, source_points_per_core=0.0)
    return replace(known, load_cores=move.load_cores, application=move.record.application, resource_profile="0")


def _orders(planned: PlannedMove, name: str, now: float) -> Orders:
    return Orders(
        name=name,
        namespace=planned.namespace,
        topology=planned.topology,
        component=planned.component,
        executor_uid=planned.uid,
        executor_name=planned.pod,
        source=planned.source,
        target=planned.target,
        created_at=now,
        approved=True,
        decided=MoveMetrics(planned.hot_score, planned.cold_score),
        predicted=MoveMetrics(planned.hot_after, planned.cold_after),
        taint=planned.taint,
    )


def _noted(move: SimulatedMove, time: float) -> MoveRecord:
    """The record once the move has come into another phase."""
    state, known = move.state, move.record
    match state.phase:
        case MovePhase.ARRIVING:
            return replace(known, left_at=time)
        case MovePhase.SETTLING if _at_destination(state):
            return replace(known, arrived_at=time)
        case phase if phase.ended:
            after = state.after if _at_destination(state) else MoveMetrics()
            return replace(
                known,
                outcome=_outcome(state),
                ended_at=time,
                measured_hot_after=after.hot_score,
                measured_cold_after=after.cold_score,
            )
        case _:
            return known


def _at_destination(state: MoveState) -> bool:
    return state.replacement is not None and state.replacement.node == state.destination


def _outcome(state: MoveState) -> Outcome:
    if state.reason == MoveReason.APPLICATION_ENDED:
        return Outcome.NOT_JUDGED
    if state.timings.arriving_at is None:
        return Outcome.NEVER_LEFT
    if state.timings.settling_at is None or not _at_destination(state):
        return Outcome.NEVER_ARRIVED
    if state.helped is None:
        return Outcome.NOT_JUDGED
    return Outcome.HELPED if state.helped else Outcome.DID_NOT_HELP


def _record(planned: PlannedMove, slot: int, application: str, time: float) -> MoveRecord:
    return MoveRecord(
        executor=planned.executor,
        slot=slot,
        application=application,
        source=planned.source,
        target=planned.target,
        decided_at=time,
        hot_score=planned.hot_score,
        cold_score=planned.cold_score,
        hot_after=planned.hot_after,
        cold_after=planned.cold_after,
        load_cores=planned.load_cores,
        locality_delta_ratio=planned.locality_delta_ratio,
        outcome=Outcome.UNDER_WAY,
        taint=planned.taint,
    )
