"""What a recording does not tell, in sentences: each says what was assumed instead, or what is not counted."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ballast.api import BalancingPolicy
from ballast.model import LoadUnit, Policy
from ballast.simulation.recorded.executors import Arrivals
from ballast.simulation.recorded.known import Known, KnownApplication, pods_of
from ballast.simulation.recorded.meter import RecordedDemand, RecordedMeter
from ballast.simulation.recording import Recording

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
    own = sorted(policy.spec.metrics.queries.to_dict())
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
