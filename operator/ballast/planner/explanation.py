"""Why an executor is where it is, why it is or isn't moved, and where it would go."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from ballast.errors import BallastError
from ballast.model import (
    Anchor,
    Executor,
    Levels,
    Location,
    Memory,
    Move,
    MovesMode,
    Node,
    Objection,
    Phase,
    Pin,
    Placement,
    Plan,
    Policy,
    Reason,
    Resources,
    Scope,
    Snapshot,
    Topology,
    Unplaced,
)
from ballast.moves.budget import ExecutorCounts
from ballast.moves.candidates import Candidates
from ballast.moves.drain import leavers
from ballast.moves.eligibility import cause
from ballast.moves.rest import Rest, rest
from ballast.moves.rules import Rules, worth
from ballast.placement import admission
from ballast.placement.aside import never_placed
from ballast.placement.tie import untied
from ballast.planner import strategy_state
from ballast.planner.plan import plan
from ballast.planner.replan import replanned

_MOST_PAST = 10


class UnknownExecutorError(BallastError):
    """No such executor in the pool's namespaces."""


@dataclass(frozen=True, slots=True)
class Explanation:
    executor: str
    """`namespace/pod`."""
    policy: str
    phase: str
    node: str | None
    topology: str
    component: str
    score: float | None
    """Of its node, percent."""
    speed: float
    """Of its node: work done per second of CPU, against the pool's ordinary machine."""
    pair: str | None
    low_hits: int
    high_hits: int
    slowness: float | None
    pressure_ratio: float | None
    """Of its node: share of time in which something waited for CPU."""
    load_cores: float | None
    """CPU cores that would travel with it."""
    unplaced: Unplaced | None
    """Why it is not placed although it opted in, or not as its pod asks for."""
    grounds: tuple[str, ...]
    """Why it is where it is."""
    ends: tuple[End, ...]
    """How far it is from what it talks to."""
    verdict: str
    """What would be done with it now."""
    objections: tuple[tuple[str, str], ...]
    """Reason and words of everything that speaks against moving it now."""
    destination: str | None
    """Where it would be placed if it were to be placed now."""
    alternatives: tuple[Alternative, ...]
    """Node by node: whether it could move there, and why not."""
    neighbors: tuple[tuple[str, int], ...]
    """Executors of its topology by node, the most first."""
    past: tuple[Move, ...]
    """Moves of it, of the one it replaced, or of its component; the latest first."""


def explain(snapshot: Snapshot, policy: Policy, memory: Memory, now: float, *, executor: str) -> Explanation:
    """Explain one executor (`namespace/pod`). Raises UnknownExecutorError."""
    found = next((e for e in snapshot.executors if e.key == executor), None)
    if found is None:
        raise UnknownExecutorError(f"{executor}: no executor of that name in the namespaces of policy {policy.name}")
    decided, _ = plan(snapshot, policy, memory, now)
    candidates = strategy_state.candidates(snapshot, policy, memory, now=now)
    view = next((node for node in decided.pool.nodes if node.name == found.node), None)
    ahead = {node.name: node.projected for node in decided.pool.nodes if node.projected is not None}
    why = next((each for each in decided.unplaced if each.executor == found.key), None)
    aside = never_placed(found, policy.placement.scheduler_names)
    placed = () if aside is not None else replanned(snapshot, policy, memory, [found])
    destination = next((p.node for p in placed), None)
    past, resting = (
        _past(found, snapshot),
        rest(snapshot.moves, policy.moves, now, closed_namespaces=snapshot.closed_namespaces),
    )
    leaves = any(executor.uid == found.uid for executor, _ in leavers(snapshot, policy, now))
    rules = Rules(policy, snapshot.moves, resting=resting, counts=ExecutorCounts.of(snapshot.executors), now=now)
    return Explanation(
        executor=executor,
        policy=policy.name,
        phase=found.phase.value,
        node=found.node,
        topology=found.topology,
        component=found.component,
        score=view.score if view else None,
        speed=view.speed if view else 1.0,
        pair=view.pair if view else None,
        low_hits=view.low_hits if view else 0,
        high_hits=view.high_hits if view else 0,
        slowness=candidates.slowness(found),
        pressure_ratio=candidates.pressure_ratio(found.node or ""),
        load_cores=candidates.loads.known(found),
        unplaced=why,
        grounds=tuple(_grounds(found, snapshot, memory, past, why)),
        ends=ends(found, snapshot, policy.levels),
        verdict=_verdict(found, decided, policy.moves.mode),
        objections=_objections(
            found,
            policy,
            decided=decided,
            standing=candidates.drain_objections(found)
            if leaves
            else standing(found, candidates=candidates, rules=rules, resting=resting),
        ),
        destination=destination,
        alternatives=alternatives(
            found, snapshot, policy, candidates=candidates, rules=None if leaves else rules, scores=ahead
        ),
        neighbors=_neighbors(found, snapshot),
        past=past,
    )


def _grounds(
    executor: Executor, snapshot: Snapshot, memory: Memory, past: tuple[Move, ...], why: Unplaced | None
) -> Iterator[str]:
    if executor.phase is Phase.GATED:
        yield "it is on no node yet: Ballast's gate holds it"
    elif executor.node is None:
        yield "it is on no node yet: its scheduler has not bound it"
    else:
        yield from _chosen(executor, past)
    if why is not None:
        yield why.detail
    if executor.phase is Phase.GATED or executor.node is None:
        return
    if executor.node not in {node.name for node in snapshot.nodes}:
        yield f"{executor.node} does not belong to the policy's pool, so nothing moves it"
    for topology, component, counts in memory.placements:
        if (topology, component) == (executor.topology, executor.component) and executor.node in dict(counts):
            yield f"{executor.node} is one of the nodes to which executors of {component} return (sticky)"


def _chosen(executor: Executor, past: tuple[Move, ...]) -> Iterator[str]:
    came = next((move for move in past if move.replacement_uid == executor.uid), None)
    if came is not None:
        yield f"it came in place of {came.executor_name} by move {came.name}, from {came.source}"
    if executor.pinned:
        yield "Ballast chose its place and tied it there when it released it"
    elif executor.enforced:
        yield "kube-scheduler chose its node; Ballast required none"
    else:
        yield "kube-scheduler chose its node; its namespace or pod has not opted in"


_MOVES = {
    MovesMode.RECOMMEND: "would move to {} (the policy only recommends)",
    MovesMode.APPROVE: "is proposed to move to {}",
    MovesMode.ENFORCE: "moves to {}",
}


def _verdict(executor: Executor, decided: Plan, mode: MovesMode) -> str:
    for move in decided.moves:
        if move.uid == executor.uid:
            why = cause(slowness=move.slowness, pressure_ratio=move.pressure_ratio)
            moves = _MOVES.get(mode, "would move to {}").format(move.target)
            if move.taint:
                return f"{moves}: {move.source} is about to go ({move.taint})"
            return f"{moves}: the gap narrows by {move.gain:.1f} points; {why}"
    for placement in (*decided.placements, *decided.replacements):
        if placement.uid == executor.uid:
            return f"is released to {_where(placement)}" + (f" ({placement.reason})" if placement.reason else "")
    for hold in decided.holds:
        if hold.uid == executor.uid:
            return f"is held ({hold.reason})"
    return "stays"


def _where(placement: Placement) -> str:
    if placement.node is None and placement.pin is not Pin.NONE:
        return f"a node that an autoscaler provides in {placement.location[0]}"
    return placement.node or "any node that kube-scheduler finds"


def standing(executor: Executor, *, candidates: Candidates, rules: Rules, resting: Rest) -> Iterator[Objection]:
    """Everything that forbids to move it now, wherever to."""
    yield from candidates.objections(executor)
    for objection in (
        rules.of_policy(),
        resting.of_executor(executor.namespace, executor.uid),
        rules.of_pool(),
        rules.of_topology(executor.topology),
        rules.of_node(executor.node or "", gives=True),
    ):
        if objection is not None:
            yield objection


def _objections(
    executor: Executor, policy: Policy, *, decided: Plan, standing: Iterable[Objection]
) -> tuple[tuple[str, str], ...]:
    """Reason and words. None for one that moves: what speaks against it has been weighed."""
    if any(move.uid == executor.uid for move in decided.moves):
        return ()
    found = [(reason.value, words) for reason, words in standing]
    found += [
        (refusal.reason.value, refusal.detail or _towards(refusal.target))
        for refusal in decided.refusals
        if refusal.subject in (executor.key, executor.node, policy.name)
    ]
    hot = {pair[0] for pair in decided.pool.pairs}
    if not found and executor.node is not None and executor.node not in hot:
        found.append((Reason.BALANCED.value, f"{executor.node} is not the hot end of any pair"))
    return tuple(dict.fromkeys(found))


def _towards(target: str | None) -> str:
    return f"towards {target}" if target else ""


def _neighbors(executor: Executor, snapshot: Snapshot) -> tuple[tuple[str, int], ...]:
    homes = Counter(e.node for e in snapshot.executors if e.topology == executor.topology and e.node is not None)
    return tuple(sorted(homes.items(), key=lambda item: (-item[1], item[0])))


def _past(executor: Executor, snapshot: Snapshot) -> tuple[Move, ...]:
    mine = [
        move
        for move in snapshot.moves
        if (move.namespace == executor.namespace and executor.uid in (move.executor_uid, move.replacement_uid))
        or (move.topology, move.component) == (executor.topology, executor.component)
    ]
    return tuple(sorted(mine, key=lambda move: (-move.started_at, move.name))[:_MOST_PAST])


# Node by node: whether an executor could move there, what it would cost, and why not.


@dataclass(frozen=True, slots=True)
class Alternative:
    node: str
    location: Location
    here: bool
    score: float | None
    """As it is projected, percent; None without fresh metrics."""
    score_after: float | None
    """Had the executor moved there; on its own node: had it left."""
    locality_delta_ratio: float
    """Growth of the topology's cost of traffic; negative = cheaper."""
    reason: str | None
    """Why a move can't go there; None when it can."""
    detail: str


def alternatives(
    executor: Executor,
    snapshot: Snapshot,
    policy: Policy,
    *,
    candidates: Candidates,
    rules: Rules | None,
    scores: Mapping[str, float],
) -> tuple[Alternative, ...]:
    """Its own node first, then those that could take it, the coldest first, then the others by name.

    None for an executor that does not run: it is placed, not moved. `candidates` and `rules`: of the same
    snapshot; no rules: its node is about to go. `scores`: projected scores by node, percent.
    """
    if executor.phase is not Phase.RUNNING:
        return ()
    options = _Alternatives(untied(executor, policy.levels), policy, candidates, rules, scores)
    return tuple(sorted((options.of(node) for node in snapshot.nodes), key=_rank))


def _rank(each: Alternative) -> tuple[bool, bool, float, str]:
    after = each.score_after if each.score_after is not None and each.reason is None else float("inf")
    return (not each.here, each.reason is not None, after, each.node)


@dataclass(frozen=True, slots=True)
class _Alternatives:
    executor: Executor
    policy: Policy
    candidates: Candidates
    rules: Rules | None
    """None: its node is about to go, so that it need gain nothing."""
    scores: Mapping[str, float]

    def of(self, node: Node) -> Alternative:
        here = node.name == self.executor.node
        delta = 0.0 if here else self.candidates.locality_delta_ratio(self.executor, node.name)
        objection = None if here else self._objection(node)
        return Alternative(
            node=node.name,
            location=node.location,
            here=here,
            score=self.scores.get(node.name),
            score_after=self._after(node.name, here=here),
            locality_delta_ratio=delta,
            reason=objection[0].value if objection else None,
            detail=objection[1] if objection else "",
        )

    def _after(self, node: str, *, here: bool) -> float | None:
        if node not in self.scores:
            return None
        points = self.candidates.points_on(self.executor, node)
        return max(0.0, self.scores[node] - points if here else self.scores[node] + points)

    def _objection(self, node: Node) -> Objection | None:
        asked = self.candidates.unfit if self.rules is None else self.candidates.refusal
        refused = asked(self.executor.key, node.name, ())
        if refused is not None:
            return refused, self._words(refused, node)
        if self.rules is None:
            return None
        way = self.candidates.way(self.executor, node.name, self.scores)
        return (
            worth(way, self.policy.moves) or self.rules.of_precedent(way) or self.rules.of_node(node.name, gives=False)
        )

    def _words(self, reason: Reason, node: Node) -> str:
        admitted = admission.refusal(self.executor, node)
        if admitted is not None:
            return admitted[1]
        if reason is Reason.NO_ROOM:
            return _shortage(self.executor.requests, self.candidates.room(node))
        if reason is Reason.SPREAD_LIMIT:
            return f"it holds as many executors of {self.executor.component} as the policy allows"
        if reason is Reason.SEPARATED:
            return "it holds a component that must be kept apart"
        gain = self.candidates.gain_objection(self.executor, node.name)
        return gain[1] if gain is not None else ""


_GIB = float(1 << 30)


def _shortage(asked: Resources, free: Resources) -> str:
    if asked.cpu_cores > free.cpu_cores + 1e-6:
        return f"{max(0.0, free.cpu_cores):.2f} cores are free, {asked.cpu_cores:.2f} are asked for"
    if asked.memory_bytes > free.memory_bytes + 1.0:
        return f"{max(0.0, free.memory_bytes) / _GIB:.1f} GiB are free, {asked.memory_bytes / _GIB:.1f} are asked for"
    if asked.pods > free.pods + 1e-6:
        return "it holds as many pods as it may"
    return "something else that it asks for is not free"


# How far an executor is from what it talks to, end by end.


class EndKind(StrEnum):
    COMPONENT = "Component"
    EXTERNAL = "External"
    DRIVER = "Driver"


@dataclass(frozen=True, slots=True)
class End:
    """One component, external workload or driver that an executor exchanges data with."""

    name: str
    kind: EndKind
    distance: float
    """Mean over what is there, in the policy's own unit."""
    scopes: tuple[tuple[Scope, float], ...]
    """Share of it within each scope and no nearer one, near to far; the shares sum to 1."""


def ends(executor: Executor, snapshot: Snapshot, levels: Levels) -> tuple[End, ...]:
    """Its own component first, then streams in their order, then the driver; empty while it is on no known node."""
    places = {node.name: node.location for node in snapshot.nodes}
    here = places.get(executor.node or "")
    if here is None:
        return ()
    topology = next((t for t in snapshot.topologies if t.key == executor.topology), None)
    peers = _peers(executor, snapshot, places)
    found = [_component(name, peers[name], here, levels) for name in _partners(executor, topology) if name in peers]
    found += list(_external(executor, topology, here, levels))
    if topology is not None and topology.driver is not None:
        found.append(_fixed("driver", EndKind.DRIVER, [topology.driver], here, levels))
    return tuple(found)


def _partners(executor: Executor, topology: Topology | None) -> list[str]:
    """Components that it exchanges with, its own first."""
    names = [executor.component]
    for stream in topology.streams if topology else ():
        if executor.component in (stream.source, stream.target):
            names += [stream.source, stream.target]
    return list(dict.fromkeys(names))


def _peers(executor: Executor, snapshot: Snapshot, places: Mapping[str, Location]) -> dict[str, Counter[Location]]:
    """The other executors of its topology: how many of each component are at each location."""
    found: dict[str, Counter[Location]] = {}
    for other in snapshot.executors:
        bound = other.node in places and other.phase in (Phase.RUNNING, Phase.PENDING)
        if bound and other.topology == executor.topology and other.uid != executor.uid:
            found.setdefault(other.component, Counter())[places[other.node or ""]] += 1
    return found


def _component(name: str, peers: Counter[Location], here: Location, levels: Levels) -> End:
    total = peers.total()
    return _end(name, EndKind.COMPONENT, ((there, n / total) for there, n in peers.items()), here, levels)


def _external(executor: Executor, topology: Topology | None, here: Location, levels: Levels) -> Iterator[End]:
    for name in _partners(executor, topology)[1:]:
        component = topology.component(name) if topology else None
        if component is not None and component.anchors:
            yield _fixed(name, EndKind.EXTERNAL, component.anchors, here, levels)


def _fixed(name: str, kind: EndKind, anchors: Iterable[Anchor], here: Location, levels: Levels) -> End:
    return _end(name, kind, ((anchor.location, anchor.share) for anchor in anchors), here, levels)


def _end(name: str, kind: EndKind, places: Iterable[tuple[Location, float]], here: Location, levels: Levels) -> End:
    shares: dict[Scope, float] = {}
    distance = 0.0
    for there, share in places:
        scope = levels.scope(here, there)
        shares[scope] = shares.get(scope, 0.0) + share
        distance += share * levels.distance(here, there)
    near_to_far = [(scope, shares[scope]) for scope in Scope if scope in shares]
    return End(name, kind, distance, tuple(near_to_far))
