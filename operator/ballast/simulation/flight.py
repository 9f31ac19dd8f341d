"""Moves on their way, carried by the operator's state machine (`ballast.moves.advance`).

What the operator reads from a real cluster comes from the simulated one, and what it does there is done here: an
eviction takes a while, Spark asks for another executor, and the replacement is tied to the destination.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from ballast.model import Move, MovePhase, MovesPolicy, Phase, PlannedMove, Reason, Refusal
from ballast.moves import (
    DeleteUnscheduled,
    Effect,
    Evict,
    Facts,
    Figures,
    MoveState,
    Orders,
    PinReplacement,
    Pod,
    ReleaseUnpinned,
    Revalidation,
    Word,
    advance,
)
from ballast.moves.record import to_move
from ballast.simulation.cluster import PHASES, Cluster, State, uid_of
from ballast.simulation.demand import random_for
from ballast.simulation.scenario import Moving
from ballast.simulation.scheduler import Scheduler
from ballast.simulation.trace import Cause, MoveRecord, Outcome

_MOST_STEPS = 8
"""States that one move may enter at one moment."""


@dataclass(slots=True)
class Flight:
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


class Flights:
    """Every move of a run. `epoch`: the planner's time when the run begins."""

    def __init__(self, cluster: Cluster, moving: Moving, policy: MovesPolicy, *, seed: int, epoch: float) -> None:
        self._cluster, self._moving, self._policy = cluster, moving, policy
        self._seed, self._epoch = seed, epoch
        self._open: list[Flight] = []
        self._ended: list[Move] = []
        self._records: list[MoveRecord] = []
        self.failed_by_topology: dict[str, int] = {}

    def moves(self, time: float) -> tuple[Move, ...]:
        """As the planner sees them: under way, or ended within their ttl."""
        oldest = self._epoch + time - self._policy.ttl_seconds
        self._ended = [move for move in self._ended if (move.ended_at or 0.0) >= oldest]
        return (*(_planned(flight) for flight in self._open), *self._ended)

    @property
    def flying(self) -> bool:
        """Whether any move has not ended."""
        return bool(self._open)

    def records(self) -> tuple[MoveRecord, ...]:
        """Every move so far, in the order of their decisions."""
        flying = [flight.record for flight in self._open]
        return tuple(sorted((*self._records, *flying), key=lambda each: (each.decided_at, each.executor)))

    def begin(
        self, planned: PlannedMove, slot: int, scheduler: Scheduler, scores: Mapping[str, float], time: float
    ) -> None:
        """The move is approved, and its executor asked to leave. `scores`: as measured now."""
        cluster, number = self._cluster, len(self._open) + len(self._records)
        chances = random_for(self._seed, "move", slot, int(cluster.generation[slot])).random(2)
        app = cluster.executor_slots.apps[cluster.executor_slots.app_of[slot]]
        flight = Flight(
            state=MoveState(_orders(planned, f"{planned.pod}-{number}", self._epoch + time)),
            record=_record(planned, slot, app.name, time),
            load_cores=planned.load_cores,
            slot=slot,
            generation=int(cluster.generation[slot]),
            stuck=bool(chances[0] < self._moving.stuck),
            lost=bool(chances[1] < self._moving.lost),
        )
        self._carry(flight, scheduler, scores, time)
        self._open.append(flight)

    def advance(self, scheduler: Scheduler, scores: Mapping[str, float], time: float) -> None:
        """Everything that has happened to the moves until then. `scores`: as last measured."""
        for flight in self._open:
            self._carry(flight, scheduler, scores, time)
        ended = [flight for flight in self._open if flight.state.phase.ended]
        self._open = [flight for flight in self._open if not flight.state.phase.ended]
        self._records += [flight.record for flight in ended]
        self._ended += [_planned(flight) for flight in ended]

    def _carry(self, flight: Flight, scheduler: Scheduler, scores: Mapping[str, float], time: float) -> None:
        """Steps on while only states are entered, as the operator does."""
        for _ in range(_MOST_STEPS):
            if flight.lost and self._newcomer(flight) is not None:
                self._lose(flight, time)
            step = advance(flight.state, self._facts(flight, scheduler, scores), self._policy, self._epoch + time)
            if step.effect is not None:
                self._do(step.effect, flight, scheduler, time)
            if not step.changed:
                return
            flight.state = step.move
            if step.entered:
                flight.record = _noted(flight, time)

    def _facts(self, flight: Flight, scheduler: Scheduler, scores: Mapping[str, float]) -> Facts:
        newcomer = self._newcomer(flight)
        return Facts(
            executor=self._executor(flight),
            newcomers=() if newcomer is None else (newcomer,),
            revalidation=self._revalidation(flight, newcomer, scheduler),
            application_ended=not self._cluster.alive[flight.slot],
            scores=scores,
            eviction_failed=flight.refused,
        )

    def _executor(self, flight: Flight) -> Pod | None:
        here = self._cluster.generation[flight.slot] == flight.generation
        return self._pod(flight.slot) if here else None

    def _newcomer(self, flight: Flight) -> Pod | None:
        """The executor that Spark has asked for in the place of the one that left."""
        newer = self._cluster.generation[flight.slot] > flight.generation
        return self._pod(flight.slot) if newer else None

    def _pod(self, slot: int) -> Pod | None:
        cluster = self._cluster
        state, node = State(int(cluster.state[slot])), int(cluster.node[slot])
        if state is State.ABSENT:
            return None
        born_at = self._epoch + float(cluster.born_at[slot])
        running_since = float(cluster.running_since[slot])
        waiting_since = float(cluster.unschedulable_since[slot])
        return Pod(
            uid=uid_of(slot, int(cluster.generation[slot])),
            name=cluster.names[slot],
            phase=PHASES[state],
            created_at=born_at,
            application=cluster.executor_slots.apps[cluster.executor_slots.app_of[slot]].name,
            resource_profile="0",
            node=cluster.fleet.names[node] if node >= 0 else None,
            gate_since=born_at if state is State.GATED else None,
            unschedulable_since=None if np.isnan(waiting_since) else self._epoch + waiting_since,
            running_since=None if np.isnan(running_since) else self._epoch + running_since,
            pinned=bool(cluster.pinned[slot]),
        )

    def _revalidation(self, flight: Flight, newcomer: Pod | None, scheduler: Scheduler) -> Revalidation:
        """A move is begun in the pass that decides it; only the room for its replacement may have gone since."""
        if newcomer is None or newcomer.phase is not Phase.GATED:
            return Revalidation()
        target = flight.state.destination
        if scheduler.fits(flight.slot, self._cluster.fleet.index(target)):
            return Revalidation()
        return Revalidation(Refusal(newcomer.name, Reason.NO_ROOM, f"{target} can't take it"))

    def _do(self, effect: Effect, flight: Flight, scheduler: Scheduler, time: float) -> None:
        cluster, slot = self._cluster, flight.slot
        match effect:
            case Evict():
                if flight.stuck:
                    flight.refused = "it is stuck"
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

    def _lose(self, flight: Flight, time: float) -> None:
        """The replacement fails at once; the one that Spark asks for next is placed like any other."""
        topology = flight.state.orders.topology
        self.failed_by_topology[topology] = self.failed_by_topology.get(topology, 0) + 1
        self._cluster.cause[flight.slot] = Cause.ASTRAY
        timings = replace(flight.state.timings, ended_at=self._epoch + time)
        flight.state = replace(flight.state, phase=MovePhase.FAILED, reason=Word.REPLACEMENT_LOST, timings=timings)
        flight.lost, flight.record = False, _noted(flight, time)


def _planned(flight: Flight) -> Move:
    """As the planner sees it."""
    known = to_move(flight.state, source_points_per_core=0.0)
    return replace(known, load_cores=flight.load_cores, application=flight.record.application, resource_profile="0")


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
        decided=Figures(planned.hot_score, planned.cold_score),
        predicted=Figures(planned.hot_after, planned.cold_after),
    )


def _noted(flight: Flight, time: float) -> MoveRecord:
    """The record once the move has come into another phase."""
    state, known = flight.state, flight.record
    match state.phase:
        case MovePhase.ARRIVING:
            return replace(known, left_at=time)
        case MovePhase.SETTLING if _at_destination(state):
            return replace(known, arrived_at=time)
        case phase if phase.ended:
            after = state.after if _at_destination(state) else Figures()
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
    if state.reason == Word.APPLICATION_ENDED:
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
    )
