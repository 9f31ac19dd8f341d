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
from typing import Protocol

import numpy as np

from ballast.api import BalancingPolicy
from ballast.model import LoadUnit, Policy
from ballast.model.from_api import policy_from
from ballast.planner.plan import plan
from ballast.simulation.cluster import Change, Cluster, Kind
from ballast.simulation.engine import Planner, Progress, Run, World, simulate
from ballast.simulation.policies import enforced, policy_in
from ballast.simulation.recorded.executors import (
    Arrivals,
    RecordedLife,
    recorded_fleet,
    recorded_slots,
    recorded_topologies,
)
from ballast.simulation.recorded.known import Known, KnownApplication, completed, pods_of
from ballast.simulation.recorded.meter import RecordedDemand, RecordedMeter, demand
from ballast.simulation.recorded.slots import slots
from ballast.simulation.recorder import Title
from ballast.simulation.recording import Recording
from ballast.simulation.scenario import Moving, Scenario
from ballast.simulation.study import Case, Result
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


class Trial(Protocol):
    """Equal arguments give equal results, in whichever process."""

    def run(self, policy: BalancingPolicy, case: Case) -> Result:
        """What only recommends, or waits for approval, is run as if it enforced. Raises BallastError."""
        ...


@dataclass(frozen=True, slots=True)
class ScenarioTrial:
    scenario: Scenario

    def run(self, policy: BalancingPolicy, case: Case) -> Result:
        obeyed = enforced(policy_in(policy, self.scenario))
        return Result.of(case, simulate(self.scenario, obeyed, seed=case.seed, label=case.policy))


@dataclass(frozen=True, slots=True)
class RecordingTrial:
    recording: Recording
    how: Replay

    def run(self, policy: BalancingPolicy, case: Case) -> Result:
        known = self.how.known.nodes
        hosts = {
            node.name: {"kubernetes.io/hostname": node.name, **(known[node.name].labels if node.name in known else {})}
            for node in self.recording.nodes
        }
        obeyed = enforced(policy_from(policy, hosts))
        found = replay(self.recording, obeyed, how=self.how, seed=case.seed, label=case.policy)
        return Result.of(case, found.trace, (*of_queries(policy), *found.unknown))


_FULL_RATIO = 0.98
"""Of a machine's cores: above it, executors may have wanted more than they were seen to use."""


def of_recording(recording: Recording, policy: Policy, known: Known, *, arrivals: Arrivals) -> Iterator[str]:
    """What holds whatever the policy decides."""
    yield from recording.unknown
    yield (
        "every run begins with an empty memory: hits are counted from the window's first pass on, and executors that "
        "are there then count as long running"
    )
    yield from _of_nodes(recording, known)
    yield from _of_applications(recording, policy, known)
    yield from _of_figures(recording, policy)
    if arrivals is Arrivals.POLICY:
        yield "executors that the policy places start in 20 s on any node"


def of_queries(policy: BalancingPolicy) -> Iterator[str]:
    own = sorted(policy.spec.metrics.advanced.queries.to_dict())
    if own:
        yield (
            f"the policy's own queries ({', '.join(own)}) were not asked: the history holds what the queries of its "
            "preset gave"
        )


def _of_nodes(recording: Recording, known: Known) -> Iterator[str]:
    whole = sum(node.whole for node in recording.nodes)
    if whole:
        yield (
            f"what {whole} of {len(recording.nodes)} nodes offer to pods is not known: their scores are percent of the "
            "machine"
        )
    if recording.cordoned is None:
        yield "which nodes were cordoned is not recorded: all that were there took executors"
    strange = sum(node.name not in known.nodes for node in recording.nodes)
    if strange:
        yield (
            f"zones, racks and speeds of {strange} of {len(recording.nodes)} nodes are not known: locality counts "
            "nodes alone there, a core is a core, and room is what executors do not request"
        )


def _of_applications(recording: Recording, policy: Policy, known: Known) -> Iterator[str]:
    applications = {(each.namespace, each.application, pods_of(each.name)) for each in recording.executors}
    found = [known.application(*each) for each in sorted(applications)]
    told = [each for each in found if each is not None]
    if len(told) < len(found):
        yield (
            f"what {len(found) - len(told)} of {len(found)} applications are is not known: they count as streaming "
            "applications that opted in and leave gracefully, and what they exchange with others is not judged"
        )
    yield from _of_state(found, policy)
    if found:
        yield "how long tasks take, and pressure, are not recorded: no move lacks evidence"
    asking = sum(each.request_cores is None for each in recording.executors)
    if asking and len(told) < len(found):
        yield f"what {asking} executors request is not known: where no snapshot tells, they fit on any node"


def _of_state(found: list[KnownApplication | None], policy: Policy) -> Iterator[str]:
    sizes = sum(each is None or each.state_bytes is None for each in found)
    if sizes and not policy.moves.allow_unknown_state:
        yield (
            f"how much state the executors of {sizes} of {len(found)} applications hold is not known: it counts as "
            "small enough to be moved"
        )


def _of_figures(recording: Recording, policy: Policy) -> Iterator[str]:
    if recording.step_seconds > policy.interval_seconds:
        yield (
            f"figures are {recording.step_seconds:g} s apart, passes {policy.interval_seconds:g} s: some passes see "
            "the figures of the one before"
        )
    known = np.isfinite(recording.node_cpu)
    silent = np.asarray(~known.any(axis=1))
    missing = int(silent.sum())
    if missing:
        yield (
            f"{missing} of {recording.steps} steps have no metrics of any node: nothing is moved then, and they count "
            "as level"
        )
    partly = recording.present & ~known & ~silent[:, None]
    if partly.any():
        nodes = int(partly.any(axis=0).sum())
        yield f"{nodes} nodes lack figures at some steps: they take part in no leveling then"
    weights = policy.weights
    if weights.network_receive > 0 or weights.network_transmit > 0:
        yield "what nodes' networks can carry is not recorded: their weights count for nothing"
    if weights.memory > 0 and not np.isfinite(recording.node_memory).any():
        yield "nodes' memory is not recorded: its weight counts for nothing"
    if policy.shedding.avg_shedder.unit is LoadUnit.TRAFFIC and policy.shedding.strategy == "AvgShedder":
        yield "executors' records are not recorded: only their bytes count as traffic"
    machine = np.array([node.machine_cores for node in recording.nodes])
    full = int((np.nan_to_num(recording.node_cpu) >= _FULL_RATIO * machine).sum())
    if full:
        yield (
            f"nodes were full at {full} of {recording.node_cpu.size} node-steps: what executors there would have used "
            "beyond that is not known and not counted"
        )


def of_replay(recording: Recording, *, demand: RecordedDemand, meter: RecordedMeter, stayed: int) -> Iterator[str]:
    """What came up in the run."""
    guessed = int(demand.guessed.sum())
    if guessed:
        yield f"{guessed} of {len(demand.guessed)} executors have no metrics at all: they count as idle when moved"
    if stayed:
        yield (
            f"{stayed} moves that the operator made were not repeated, for the policy decided otherwise: what their "
            "executors would have used had they stayed is taken to be what they used where they went"
        )
    if meter.full:
        yield (
            f"executors wanted more than a full node had at {len(meter.full)} of {recording.node_cpu.size} node-steps: "
            "they got their share of it"
        )
