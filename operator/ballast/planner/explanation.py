"""Why an executor is where it is, why it is or isn't moved, and where it would go."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from ballast.errors import BallastError
from ballast.model import Executor, Memory, Phase, Plan, Policy, Snapshot
from ballast.placement.proximity import place
from ballast.planner import eligibility
from ballast.planner.ledger import projected
from ballast.planner.load import loads
from ballast.planner.plan import plan
from ballast.planner.score import scores
from ballast.planner.slowness import Evidence, evidence


class UnknownExecutorError(BallastError):
    """No such executor in the pool's namespaces."""


@dataclass(frozen=True, slots=True)
class Explanation:
    executor: str
    phase: str
    node: str | None
    topology: str
    component: str
    score: float | None
    """Of its node, percent."""
    pair: str | None
    low_hits: int
    high_hits: int
    slowness: float | None
    load_cores: float | None
    verdict: str
    """What would be done with it now."""
    objections: tuple[tuple[str, str], ...]
    """Reason and words of everything that speaks against moving it."""
    destination: str | None
    """Where it would be placed if it were to be placed now."""
    neighbours: tuple[tuple[str, int], ...]
    """Executors of its topology by node, the most first."""


def explain(snapshot: Snapshot, policy: Policy, memory: Memory, now: float, *, executor: str) -> Explanation:
    """Explain one executor (`namespace/pod`). Raises UnknownExecutorError."""
    found = next((e for e in snapshot.executors if e.key == executor), None)
    if found is None:
        raise UnknownExecutorError(f"{executor}: no executor of that name in this pool; see `kubectl ballast status`")
    decided, _ = plan(snapshot, policy, memory, now)
    view = next((node for node in decided.pool.nodes if node.name == found.node), None)
    proof = evidence(snapshot.executors).get(found.uid, Evidence())
    return Explanation(
        executor=executor,
        phase=found.phase.value,
        node=found.node,
        topology=found.topology,
        component=found.component,
        score=view.score if view else None,
        pair=view.pair if view else None,
        low_hits=view.low_hits if view else 0,
        high_hits=view.high_hits if view else 0,
        slowness=proof.slowness,
        load_cores=loads(snapshot.executors).known(found),
        verdict=_verdict(found, decided),
        objections=_objections(found, snapshot, policy, decided, proof),
        destination=_destination(found, snapshot, policy, memory),
        neighbours=_neighbours(found, snapshot),
    )


def _verdict(executor: Executor, decided: Plan) -> str:
    for move in decided.moves:
        if move.uid == executor.uid:
            return f"moves to {move.target}: the gap narrows by {move.gain:.1f} points"
    for placement in decided.placements:
        if placement.uid == executor.uid:
            where = placement.node or "anywhere"
            return f"is released to {where}" + (f" ({placement.reason})" if placement.reason else "")
    for hold in decided.holds:
        if hold.uid == executor.uid:
            return f"is held ({hold.reason})"
    return "stays"


def _objections(
    executor: Executor, snapshot: Snapshot, policy: Policy, decided: Plan, proof: Evidence
) -> tuple[tuple[str, str], ...]:
    topology = next((t for t in snapshot.topologies if t.key == executor.topology), None)
    live = sum(
        e.phase is Phase.RUNNING and (e.topology, e.component) == (executor.topology, executor.component)
        for e in snapshot.executors
    )
    case = eligibility.Case(executor, topology, live, proof, snapshot.taken_at)
    found = [(reason.value, words) for reason, words in eligibility.objections(case, policy.moves)]
    found += [
        (refusal.reason.value, refusal.detail)
        for refusal in decided.refusals
        if refusal.subject in (executor.key, executor.node)
    ]
    return tuple(dict.fromkeys(found))


def _destination(executor: Executor, snapshot: Snapshot, policy: Policy, memory: Memory) -> str | None:
    """Where it would go if it were placed now, its present place being given up."""
    others = tuple(e for e in snapshot.executors if e.uid != executor.uid)
    waiting = replace(executor, phase=Phase.GATED, node=None, last_gate_since=snapshot.taken_at)
    nodes = tuple(
        replace(node, requested=node.requested.minus(executor.requests)) if node.name == executor.node else node
        for node in snapshot.nodes
    )
    without = replace(snapshot, executors=(*others, waiting), nodes=nodes)
    ahead = projected(without, policy, loads(others), scores(nodes, policy.weights).by_node)
    found = place(without, policy, memory, gated=(waiting,), scores=ahead)
    return next((placement.node for placement in found), None)


def _neighbours(executor: Executor, snapshot: Snapshot) -> tuple[tuple[str, int], ...]:
    homes = Counter(e.node for e in snapshot.executors if e.topology == executor.topology and e.node is not None)
    return tuple(sorted(homes.items(), key=lambda item: (-item[1], item[0])))
