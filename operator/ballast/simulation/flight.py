"""Moves on their way: an executor leaves, and its replacement is tied to the destination.

What the operator's move machine does step by step against a real cluster is here a leave time, an arrive time and the
chance of a failure; the phases that the planner sees, and the limits of time, are the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ballast.model import Move, MovePhase, MovesPolicy, PlannedMove
from ballast.moves.judgement import verdict
from ballast.moves.state import Figures
from ballast.simulation.cluster import Cluster, State
from ballast.simulation.curve import random_for
from ballast.simulation.scenario import Moving
from ballast.simulation.scheduler import Scheduler
from ballast.simulation.trace import Cause, MoveRecord, Outcome
from ballast.simulation.uid import uid_of


@dataclass(slots=True)
class Flight:
    """A move that has not ended; `move` is what the planner sees of it (in the planner's time)."""

    move: Move
    record: MoveRecord
    slot: int
    generation: int
    """Of the executor that leaves; later of its replacement."""
    stuck: bool
    lost: bool
    before: Figures
    """Measured scores of the source and the destination when it began."""


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
        return (*(flight.move for flight in self._open), *self._ended)

    @property
    def flying(self) -> bool:
        """Whether any move has not ended."""
        return bool(self._open)

    def records(self) -> tuple[MoveRecord, ...]:
        """Every move so far, in the order of their decisions."""
        flying = [flight.record for flight in self._open]
        return tuple(sorted((*self._records, *flying), key=lambda each: (each.decided_at, each.executor)))

    def begin(self, planned: PlannedMove, slot: int, scores: Mapping[str, float], time: float) -> None:
        """The executor is asked to leave. `scores`: as measured now."""
        cluster, number = self._cluster, len(self._open) + len(self._records)
        chances = random_for(self._seed, "move", slot, int(cluster.generation[slot])).random(2)
        app = cluster.crew.apps[cluster.crew.app_of[slot]]
        move = Move(
            name=f"{planned.pod}-{number}",
            namespace=planned.namespace,
            topology=planned.topology,
            component=planned.component,
            executor_uid=planned.uid,
            executor_name=planned.pod,
            source=planned.source,
            target=planned.target,
            phase=MovePhase.LEAVING,
            started_at=self._epoch + time,
            load_cores=planned.load_cores,
            application=app.name,
            resource_profile="0",
        )
        flight = Flight(
            move=move,
            record=_record(planned, slot, app.name, time),
            slot=slot,
            generation=int(cluster.generation[slot]),
            stuck=bool(chances[0] < self._moving.stuck),
            lost=bool(chances[1] < self._moving.lost),
            before=_figures(scores, planned.source, planned.target),
        )
        if not flight.stuck:
            cluster.order_to_leave(slot, time)
        self._open.append(flight)

    def advance(self, scheduler: Scheduler, scores: Mapping[str, float], time: float) -> None:
        """Everything that has happened to the moves until then. `scores`: as last measured."""
        for flight in self._open:
            match flight.move.phase:
                case MovePhase.LEAVING:
                    self._leaving(flight, scheduler, time)
                case MovePhase.ARRIVING:
                    self._arriving(flight, scheduler, time)
                case MovePhase.SETTLING:
                    self._settling(flight, scores, time)
                case _:
                    pass
        ended = [flight for flight in self._open if flight.move.phase.ended]
        self._open = [flight for flight in self._open if not flight.move.phase.ended]
        self._records += [flight.record for flight in ended]
        self._ended += [flight.move for flight in ended]

    def _leaving(self, flight: Flight, scheduler: Scheduler, time: float) -> None:
        cluster, slot = self._cluster, flight.slot
        gone = cluster.state[slot] in (State.ABSENT, State.GATED) or cluster.generation[slot] != flight.generation
        if gone:
            flight.record = replace(flight.record, left_at=time)
            flight.move = replace(flight.move, phase=MovePhase.ARRIVING, left_at=self._epoch + time)
            self._arriving(flight, scheduler, time)
        elif time - flight.record.decided_at >= self._policy.leave_timeout_seconds:
            self._end(flight, MovePhase.FAILED, Outcome.NEVER_LEFT, time)

    def _arriving(self, flight: Flight, scheduler: Scheduler, time: float) -> None:
        cluster, slot = self._cluster, flight.slot
        if not cluster.alive[slot]:
            self._end(flight, MovePhase.SUCCEEDED, Outcome.NOT_JUDGED, time)
        elif cluster.generation[slot] > flight.generation:
            if flight.move.replacement_uid is not None:
                self._end(flight, MovePhase.FAILED, Outcome.NEVER_ARRIVED, time)
            else:
                self._send(flight, scheduler, time)
        elif flight.move.replacement_uid is not None and cluster.state[slot] == State.RUNNING:
            flight.record = replace(flight.record, arrived_at=time)
            flight.move = replace(flight.move, phase=MovePhase.SETTLING, arrived_at=self._epoch + time)
        elif time - (flight.record.left_at or time) >= self._policy.arrive_timeout_seconds:
            self._end(flight, MovePhase.FAILED, Outcome.NEVER_ARRIVED, time)

    def _send(self, flight: Flight, scheduler: Scheduler, time: float) -> None:
        """The replacement is there, held by the gate: it goes to the destination, or is placed like any other."""
        cluster, slot = self._cluster, flight.slot
        target = cluster.fleet.index(flight.move.target)
        flight.generation = int(cluster.generation[slot])
        flight.move = replace(flight.move, replacement_uid=uid_of(slot, flight.generation))
        if flight.lost or not scheduler.fits(slot, target):
            cluster.cause[slot] = Cause.ASTRAY
            self._end(flight, MovePhase.FAILED, Outcome.NEVER_ARRIVED, time)
            if flight.lost:
                topology = flight.move.topology
                self.failed_by_topology[topology] = self.failed_by_topology.get(topology, 0) + 1
            return
        cluster.pinned[slot] = True
        scheduler.bind(slot, preferred=target)

    def _settling(self, flight: Flight, scores: Mapping[str, float], time: float) -> None:
        if self._cluster.generation[flight.slot] != flight.generation or not self._cluster.working[flight.slot]:
            self._end(flight, MovePhase.FAILED, Outcome.NOT_JUDGED, time)
            return
        if time - (flight.record.arrived_at or time) < self._policy.settle_seconds:
            return
        after = _figures(scores, flight.move.source, flight.move.target)
        flight.record = replace(flight.record, measured_hot_after=after.hot_score, measured_cold_after=after.cold_score)
        outcome = Outcome(verdict(flight.before, after))
        phase = MovePhase.FAILED if outcome is Outcome.DID_NOT_HELP else MovePhase.SUCCEEDED
        self._end(flight, phase, outcome, time)

    def _end(self, flight: Flight, phase: MovePhase, outcome: Outcome, time: float) -> None:
        helped = {Outcome.HELPED: True, Outcome.DID_NOT_HELP: False}.get(outcome)
        flight.record = replace(flight.record, outcome=outcome, ended_at=time)
        flight.move = replace(flight.move, phase=phase, ended_at=self._epoch + time, helped=helped)


def _figures(scores: Mapping[str, float], source: str, target: str) -> Figures:
    return Figures(hot_score=scores.get(source), cold_score=scores.get(target))


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
