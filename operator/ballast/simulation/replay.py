"""Runs a policy over a recording: what would have happened, had it been in force?

The engine, the planner and the order of things are those of `simulate`. The policy's passes are when the operator had
its own, or else at the policy's interval from the window's first step on. The memory is empty at first: hits are
counted again, and every executor has run for long.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from math import ceil

import numpy as np

from ballast.model import Policy
from ballast.planner.plan import plan
from ballast.simulation.cluster import Change, Cluster, Kind
from ballast.simulation.engine import Planner, Progress, Run, World
from ballast.simulation.recorded.assumptions import of_recording, of_replay
from ballast.simulation.recorded.executors import (
    Arrivals,
    RecordedLife,
    recorded_fleet,
    recorded_slots,
    recorded_topologies,
)
from ballast.simulation.recorded.known import Known, completed
from ballast.simulation.recorded.meter import RecordedMeter, demand
from ballast.simulation.recorded.slots import slots
from ballast.simulation.recorder import Title
from ballast.simulation.recording import Recording
from ballast.simulation.scenario import Moving
from ballast.simulation.trace import Trace

# When a replayed policy has its passes: when the operator had them, where it had them about as often.

_SLOWER = 1.5
"""Passes that take long, or wait for a slow Prometheus, come later than the interval says, by up to this factor."""
_SOONER = 0.75


def due(recorded: Sequence[float], interval_seconds: float) -> Iterator[float]:
    """Seconds since the recording began, ascending and without end.

    `recorded`: the operator's passes, ascending. Where it had none for long, as before it was installed, there are
    passes at the interval.
    """
    last = -interval_seconds
    for moment in recorded if _as_often(recorded, interval_seconds) else ():
        while moment - last > _SLOWER * interval_seconds:
            last += interval_seconds
            yield last
        last = moment
        yield last
    yield from count(last + interval_seconds, interval_seconds)


def _as_often(recorded: Sequence[float], interval_seconds: float) -> bool:
    """A policy of another interval has its own passes, and so has any where the record is too coarse to tell."""
    apart = np.diff(recorded)
    return bool(len(apart)) and _SOONER <= float(np.median(apart)) / interval_seconds <= _SLOWER


_STEP_SECONDS = 15.0
"""At most, between two looks at what has happened; moves take less than many a recording's step."""
_LEVEL_POINTS = 15.0
"""A gap of up to this counts as level, as in a scenario that does not say otherwise."""


@dataclass(frozen=True, slots=True)
class Replay:
    """How a recording is run, whatever the policy."""

    arrivals: Arrivals = Arrivals.RECORDED
    known: Known = Known()  # noqa: RUF009 -- a frozen value
    moving: Moving = Moving()  # noqa: RUF009 -- as above
    level_points: float = _LEVEL_POINTS


@dataclass(frozen=True, slots=True, eq=False)
class Replayed:
    trace: Trace
    unknown: tuple[str, ...]
    """What the recording does not tell, and what that means for the figures: a sentence each."""


def replay(
    recording: Recording,
    policy: Policy,
    *,
    how: Replay | None = None,
    seed: int = 0,
    label: str | None = None,
    progress: Progress | None = None,
    planner: Planner = plan,
) -> Replayed:
    """One run. Moves are made in mode Enforce only. Equal arguments give equal traces.

    `seed`: of the chances of moves to fail, of which there are none unless `how` says so.
    """
    how = how or Replay()
    recording = completed(recording, how.known)
    chain = slots(recording)
    fleet = recorded_fleet(recording, how.known)
    executor_slots = recorded_slots(recording, chain, how.known)
    life = RecordedLife(recording, chain, how.arrivals)
    cluster = Cluster(fleet, executor_slots, moving=how.moving, changes=sorted(_changes(recording), key=_at), life=life)
    step = recording.step_seconds / ceil(recording.step_seconds / _STEP_SECONDS)
    given = demand(recording, chain, fleet.speed, window_seconds=policy.window_seconds)
    meter = RecordedMeter(
        recording, chain, cluster, given, window_seconds=policy.window_seconds, step_seconds=step
    )  # fmt: skip
    world = World(
        title=Title(
            recording.name, label or policy.name, seed, recording.duration_seconds, policy.window_seconds,
            how.level_points,
        ),
        cluster=cluster,
        meter=meter,
        topologies=recorded_topologies(executor_slots, how.known),
        moving=how.moving,
        epoch=recording.start,
        passes=due(recording.passes, policy.interval_seconds),
        step_seconds=step,
        scrape_seconds=step,
    )  # fmt: skip
    trace = Run(world, policy, planner).to_the_end(progress)
    told = (
        *of_recording(recording, policy, how.known, arrivals=how.arrivals),
        *of_replay(recording, demand=given, meter=meter, stayed=len(life.stayed)),
    )
    return Replayed(trace, told)


def _at(change: Change) -> float:
    return change.at


def _changes(recording: Recording) -> Iterator[Change]:
    """Nodes that come and go or are cordoned; the very first ones are there, and open, from the beginning."""
    cordoned = np.zeros_like(recording.present) if recording.cordoned is None else recording.cordoned
    for node in range(len(recording.nodes)):
        there, closed = recording.present[:, node], recording.present[:, node] & cordoned[:, node]
        before = (bool(there[0]), False)
        for step, now in enumerate(zip(there.tolist(), closed.tolist(), strict=True)):
            if now != before:
                yield from (Change(step * recording.step_seconds, node, kind) for kind in _kinds(*now))
            before = now


def _kinds(there: bool, closed: bool) -> tuple[Kind, ...]:
    if not there:
        return (Kind.GONE,)
    return (Kind.BACK, Kind.WARNED) if closed else (Kind.BACK,)
