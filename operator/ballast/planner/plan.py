"""One pass over one pool."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import hypot, sqrt

from ballast.model import (
    Executor,
    LoadUnit,
    LocalityView,
    Memory,
    NodeHits,
    NodeView,
    Phase,
    Pin,
    Placement,
    Plan,
    PlannedMove,
    Policy,
    PoolView,
    Reason,
    Refusal,
    Resources,
    Snapshot,
)
from ballast.moves.candidates import Candidates
from ballast.moves.loads import Loads
from ballast.moves.notices import first_seen, with_first_seen
from ballast.moves.rest import Rest, rest
from ballast.moves.score import Scores, measured, points_per_core, projected
from ballast.placement.expectation import RESERVED_SECONDS, expectations
from ballast.placement.locality import counts_by_topology, locality
from ballast.placement.placing import Placed
from ballast.placement.preemption import place_preempting
from ballast.placement.room import expected, in_flight, nominated_while_gated
from ballast.placement.scope import next_scopes
from ballast.placement.shortage import short_of_room
from ballast.placement.strategies import PlacementState, awaited_by_moves, headings
from ballast.planner.arbiter import Arbiter
from ballast.planner.draining import Draining, drain
from ballast.planner.leveling import Leveling, TrafficState, level
from ballast.planner.nominations import overdue_nominations, with_nominations
from ballast.planner.release import (
    Releases,
    given_up,
    of_one_pass,
    patience_ends,
    releases,
    tried_lately,
    unschedulable,
    waiting_sets,
    without_waiting,
)
from ballast.planner.strategy_state import (
    USAGE,
    displaced,
    kept,
    known_loads,
    observed,
    recalled,
    restored,
    with_speeds,
)
from ballast.planner.unplaced import unplaced
from ballast.shedding.avg_shedder_usage import UsageMemory
from ballast.shedding.strategies import hit_counts

# What a pass has placed, for the moves that the same pass decides after it.


def reservations(
    reserved: Mapping[str, Resources], snapshot: Snapshot, placements: Iterable[Placement]
) -> dict[str, Resources]:
    """Amounts set aside by node: `reserved` by moves under way, and what this pass places."""
    found = dict(reserved)
    requests = {executor.uid: executor.requests for executor in snapshot.executors}
    for placement in placements:
        if placement.node is not None and placement.uid in requests:
            found[placement.node] = found.get(placement.node, Resources()).plus(requests[placement.uid])
    return found


def with_placed(
    scores: Mapping[str, float], snapshot: Snapshot, policy: Policy, loads: Loads, placements: Iterable[Placement]
) -> dict[str, float]:
    """The scores (percent) with the load that placed executors will bring."""
    ahead = dict(scores)
    chosen = {placement.uid: placement.node for placement in placements if placement.node in ahead}
    if not chosen:
        return ahead
    points = points_per_core(snapshot, policy)
    for executor in snapshot.executors:
        node = chosen.get(executor.uid)
        if node is not None:
            ahead[node] += loads.expected(executor, on=node) * points[node]
    return ahead


Places = tuple[tuple[str, str, tuple[tuple[str, int], ...]], ...]


def remembered(snapshot: Snapshot, memory: Memory) -> Places:
    """Executors per node of each component.

    While executors of a component are missing, or are not running yet, the places they had are kept; likewise while
    fewer run than before and more may come. Topologies that exist no more are forgotten.
    """
    running: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    unsettled: set[tuple[str, str]] = set()
    growing: set[tuple[str, str]] = set()
    for executor in snapshot.executors:
        _count(executor, running, unsettled)
        if snapshot.taken_at - executor.created_at < RESERVED_SECONDS:
            growing.add((executor.topology, executor.component))
    known = {topology.key for topology in snapshot.topologies} | {executor.topology for executor in snapshot.executors}
    kept = {
        (topology, component): counts
        for topology, component, counts in memory.placements
        if topology in known
        and (
            (topology, component) not in running
            or (topology, component) in unsettled
            or ((topology, component) in growing and running[topology, component].total() < _total(counts))
        )
    }
    for key, counts in running.items():
        if key not in kept:
            kept[key] = tuple(sorted(counts.items()))
    return tuple((topology, component, counts) for (topology, component), counts in sorted(kept.items()))


def _total(counts: tuple[tuple[str, int], ...]) -> int:
    return sum(count for _, count in counts)


def _count(executor: Executor, running: dict[tuple[str, str], Counter[str]], unsettled: set[tuple[str, str]]) -> None:
    key = (executor.topology, executor.component)
    if executor.phase is Phase.RUNNING and executor.node is not None:
        running[key][executor.node] += 1
    elif executor.phase is not Phase.ENDED:
        unsettled.add(key)


_PREFERRED = "its place is preferred, not required: neither its own label nor one of its namespace opted in"
_REFUSED_LATELY = "its place is preferred, not required: others of its component could not run in theirs lately"
_BY_OTHER_PODS = (
    "its place is preferred, not required: its pod requires affinity to other pods, or a spread over them, or not all "
    "pods that may keep it away were looked at; kube-scheduler decides about these"
)
_LATE_CLAIMS = (
    "its place is preferred, not required: it mounts a claim that has no volume yet, and kube-scheduler decides where "
    "that is made"
)


@dataclass(frozen=True, slots=True)
class _Inputs:
    """What everything in a pass starts from."""

    snapshot: Snapshot
    policy: Policy
    memory: Memory
    now: float
    before: PlacementState
    """What the placement strategy knew after the pass before."""
    measured: Scores
    loads: Loads
    projected: Mapping[str, float]
    reserved: Mapping[str, Resources]
    """Amounts by node that moves under way will need, and what executors that stay gated are nominated to."""
    unbound: Mapping[str, Resources]
    """Those that pods will take which are pending and not bound."""
    resting: Rest


def plan(snapshot: Snapshot, policy: Policy, memory: Memory, now: float) -> tuple[Plan, Memory]:
    """Decide everything that is to be done about one pool at `now` (seconds since the epoch).

    Pure: the same arguments give the same plan. Without metrics nothing is moved and the hits stay as they are;
    placing goes on by requests alone.
    """
    snapshot = with_first_seen(snapshot, memory)
    inputs = _inputs(snapshot, policy, memory, now)
    released = _releases(inputs)
    inputs = replace(inputs, reserved=_still_reserved(inputs, released))
    placed = _placed(inputs, released.place)
    placements = (*_unpinned(released), *placed.placements)
    moves = _moves(inputs, placements, placed.state)
    leveling, draining = moves.leveling, moves.draining
    remembering = replace(
        with_speeds(kept(leveling.memory, policy, placed.state), snapshot, policy, now=now),
        placements=remembered(snapshot, memory),
        scopes=next_scopes(snapshot, policy, memory),
        notices=first_seen(snapshot),
    )
    stuck, remembering = unschedulable(snapshot, policy.levels, remembering, now, unbound=inputs.unbound)
    overdue, clear_at = overdue_nominations(snapshot, now)
    decided = Plan(
        placements=with_nominations(placements, snapshot, policy.levels),
        holds=released.holds,
        replacements=stuck,
        overdue_nominations=overdue,
        displaced=displaced(memory, policy, snapshot),
        moves=(*draining.moves, *leveling.moves),
        refusals=(*draining.refusals, *leveling.refusals, *_unplaced(placements)),
        pool=_pool(inputs, leveling),
        locality=_localities(inputs),
        paused=tuple(sorted(inputs.resting.paused)),
        wake_at=_wake_at(released, clear_at, patience_ends(snapshot, now)),
    )
    return replace(decided, unplaced=unplaced(snapshot, policy, decided)), remembering


def _inputs(snapshot: Snapshot, policy: Policy, memory: Memory, now: float) -> _Inputs:
    found = measured(snapshot, policy)
    known = known_loads(snapshot, policy, memory)
    ahead = projected(snapshot, policy, known, found.by_node)
    resting = rest(snapshot.moves, policy.moves, now, closed_namespaces=snapshot.closed_namespaces)
    before = recalled(memory, policy, snapshot)
    reserved = in_flight(snapshot)
    unbound = expected(snapshot, policy.levels, sent=headings(snapshot, before.sent))
    return _Inputs(snapshot, policy, memory, now, before, found, known, ahead, reserved, unbound, resting)


def _releases(inputs: _Inputs) -> Releases:
    placement, now = inputs.policy.placement, inputs.now
    return of_one_pass(_due(inputs, releases(inputs.snapshot, placement, now)), placement, now)


def _due(inputs: _Inputs, found: Releases) -> Releases:
    """A set waits for the rest of it only as long as the pool has room for those that are there."""
    waiting = list(waiting_sets(found, inputs.snapshot.executors).values())
    if not waiting:
        return found
    # What is placed now comes first.
    _, *short = short_of_room(
        inputs.snapshot,
        inputs.policy.levels,
        [found.place, *waiting],
        reserved=inputs.reserved,
        unbound=inputs.unbound,
    )
    return without_waiting(found, [members for members, lacking in zip(waiting, short, strict=True) if lacking])


def _still_reserved(inputs: _Inputs, released: Releases) -> Mapping[str, Resources]:
    """Without the room of moves whose replacements are placed in this pass; with that of nominations that stay."""
    filled = {(move.namespace, move.name) for move in awaited_by_moves(inputs.snapshot, released.place).values()}
    moves = tuple(move for move in inputs.snapshot.moves if (move.namespace, move.name) not in filled)
    leaving = {executor.uid for executor in (*released.place, *(each for each, _ in released.unpinned))}
    found = in_flight(replace(inputs.snapshot, moves=moves)) if filled else dict(inputs.reserved)
    for node, amounts in nominated_while_gated(inputs.snapshot, leaving).items():
        found[node] = found.get(node, Resources()).plus(amounts)
    return found


def _unpinned(released: Releases) -> tuple[Placement, ...]:
    return tuple(_as_it_is(executor, reason) for executor, reason in released.unpinned)


def _as_it_is(executor: Executor, reason: Reason) -> Placement:
    return Placement(executor.key, executor.uid, None, (), Pin.NONE, reason)


def _placed(inputs: _Inputs, gated: Sequence[Executor]) -> Placed:
    measured = inputs.measured.by_node
    found = place_preempting(
        inputs.snapshot,
        inputs.policy,
        inputs.memory,
        gated=gated,
        scores=inputs.projected,
        reserved=inputs.reserved,
        unbound=inputs.unbound,
        loads={executor.uid: inputs.loads.expected(executor) for executor in gated},
        measured=measured,
        state=observed(inputs.before, inputs.snapshot, inputs.policy, measured=measured, now=inputs.now),
        expected=expectations(inputs.snapshot, inputs.memory) if gated else {},
    )
    in_vain, hopeless = (
        {e.uid for e in gated if (e.topology, e.component) in components}
        for components in (tried_lately(inputs.memory, inputs.now), given_up(inputs.memory, inputs.now))
    )
    return replace(found, placements=_tied(found.placements, gated, in_vain=in_vain, hopeless=hopeless))


def _tied(
    placements: list[Placement], gated: Sequence[Executor], *, in_vain: Collection[str], hopeless: Collection[str]
) -> list[Placement]:
    """Don't pin executors that must not be deleted: an unschedulable pin could not be undone.

    Nor those that require a spread over pods, or (anti-)affinity to them: the pin would defeat the spread, or leave
    them no node. Nor those whose volume is still to be made. `in_vain`: those that should not wait for a node in their
    zone, since others of their component have. `hopeless`: those whose places kube-scheduler may refuse again.
    """
    loose = dict.fromkeys(hopeless, _REFUSED_LATELY)
    loose |= {executor.uid: _PREFERRED for executor in gated if not executor.labeled}
    loose |= {executor.uid: _LATE_CLAIMS for executor in gated if executor.late_claims}
    loose |= {executor.uid: _BY_OTHER_PODS for executor in gated if executor.by_other_pods}
    return [
        replace(
            p,
            pin=Pin.NONE,
            reason=p.reason or (Reason.TOO_MANY_ATTEMPTS if p.uid in hopeless else None),
            detail=p.detail or loose.get(p.uid, _PREFERRED),
        )
        if p.uid in loose or (p.node is None and p.uid in in_vain)
        else p
        for p in placements
    ]


@dataclass(frozen=True, slots=True)
class _Moves:
    """The moves that a pass suggests, of drains and of leveling."""

    draining: Draining
    leveling: Leveling


def _moves(inputs: _Inputs, placements: tuple[Placement, ...], state: PlacementState) -> _Moves:
    """By what the nodes will hold once these are placed, and those of earlier passes are bound.

    Nodes that are about to go are emptied first: their notice runs out. One arbiter rules on both.
    """
    snapshot, policy = inputs.snapshot, inputs.policy
    scores = with_placed(inputs.projected, snapshot, policy, inputs.loads, placements)
    reserved = reservations(inputs.reserved, snapshot, placements)
    candidates = Candidates(
        snapshot,
        policy,
        inputs.loads,
        reserved=reserved,
        unbound=inputs.unbound,
        sent=headings(snapshot, state.sent) | {p.uid: p.node for p in placements if p.node is not None},
        now=inputs.now,
    )
    arbiter = Arbiter(snapshot, policy, resting=inputs.resting, now=inputs.now)
    draining = drain(snapshot, policy, candidates=candidates, scores=scores, arbiter=arbiter, now=inputs.now)
    if draining.moves:
        scores, reserved = _with_drained(scores, reserved, draining.moves, candidates)
        candidates = candidates.given(reserved=reserved, now=inputs.now)
    leveling = level(
        snapshot,
        policy,
        inputs.memory,
        scores=scores,
        loads=inputs.loads,
        candidates=candidates,
        arbiter=arbiter,
        now=inputs.now,
    )
    return _Moves(draining, leveling)


def _with_drained(
    scores: Mapping[str, float],
    reserved: Mapping[str, Resources],
    moves: Iterable[PlannedMove],
    candidates: Candidates,
) -> tuple[dict[str, float], dict[str, Resources]]:
    """Scores (percent) and amounts set aside by node, with what drains bring to their destinations."""
    ahead, taken = dict(scores), dict(reserved)
    for move in moves:
        executor = candidates.executor(move.executor)
        taken[move.target] = taken.get(move.target, Resources()).plus(executor.requests)
        if move.scored:
            ahead[move.source] = max(0.0, ahead[move.source] - candidates.points_on(executor, move.source))
            ahead[move.target] += candidates.points_on(executor, move.target)
    return ahead, taken


def _pool(inputs: _Inputs, leveling: Leveling) -> PoolView:
    return pool_view(
        inputs.snapshot,
        hits=node_hits(leveling.memory, inputs.policy, [node.name for node in inputs.snapshot.nodes]),
        measured=inputs.measured,
        projected=inputs.projected,
        speed=inputs.loads.speed,
        pairs=leveling.pairs,
        low_threshold=inputs.policy.shedding.avg_shedder.low_threshold,
    )


def _unplaced(placements: tuple[Placement, ...]) -> tuple[Refusal, ...]:
    return tuple(Refusal(p.executor, p.reason, p.detail) for p in placements if p.reason is not None and p.node is None)


def _localities(inputs: _Inputs) -> tuple[LocalityView, ...]:
    counts = counts_by_topology(inputs.snapshot.executors, inputs.snapshot.nodes)
    ratio = inputs.policy.placement.max_executors_per_node_ratio
    return tuple(
        locality(topology, counts[topology.key], inputs.policy.levels, max_node_ratio=ratio)
        for topology in inputs.snapshot.topologies
        if topology.key in counts
    )


def _wake_at(released: Releases, *others: float | None) -> float | None:
    """The earliest of all times at which an executor has waited long enough."""
    ends = [hold.until for hold in released.holds]
    return min((at for at in (*ends, *others) if at is not None), default=None)


# How often in a row nodes were part of too wide a gap, as the policy's strategy remembers it.


def node_hits(memory: Memory, policy: Policy, nodes: Iterable[str]) -> Mapping[str, NodeHits]:
    """Those of `nodes` that have any. Only AvgShedder counts them node by node."""
    if policy.shedding.strategy != "AvgShedder":
        return {}
    known = set(nodes)
    if policy.shedding.avg_shedder.unit is LoadUnit.USAGE:
        streaks = (restored(memory, USAGE, UsageMemory) or UsageMemory()).streaks
        return {name: NodeHits(each.low, each.high, each.last_at_seconds) for name, each in streaks if name in known}
    state = restored(memory, policy.shedding.strategy, TrafficState) or TrafficState()
    counts = hit_counts(state.text, known).by_node
    return {name: NodeHits(each.low, each.high, state.at) for name, each in counts}


Pair = tuple[str, str, float]
"""Hot node, cold node, difference in points."""


def pool_view(
    snapshot: Snapshot,
    *,
    hits: Mapping[str, NodeHits],
    measured: Scores,
    projected: Mapping[str, float],
    speed: Mapping[str, float],
    pairs: Sequence[Pair],
    low_threshold: float,
) -> PoolView:
    """Values over the nodes with a score; `balanced` is None while no two of them have one."""
    executors = Counter(e.node for e in snapshot.executors if e.phase in (Phase.RUNNING, Phase.PENDING))
    partner = _partners(pairs)
    nodes = tuple(
        NodeView(
            name=node.name,
            location=node.location,
            score=measured.by_node.get(node.name),
            projected=projected.get(node.name),
            executors=executors.get(node.name, 0),
            pair=partner.get(node.name),
            speed=speed.get(node.name, 1.0),
            low_hits=hits.get(node.name, _NO_HITS).low,
            high_hits=hits.get(node.name, _NO_HITS).high,
        )
        for node in snapshot.nodes
    )
    return replace(_with_state(nodes, measured.by_node, pairs, low_threshold), dropped=measured.dropped)


_NO_HITS = NodeHits()


def _partners(pairs: Sequence[Pair]) -> dict[str, str]:
    partner: dict[str, str] = {}
    for hot, cold, _ in pairs:
        partner[hot], partner[cold] = cold, hot
    return partner


def _with_state(
    nodes: tuple[NodeView, ...], measured: Mapping[str, float], pairs: Sequence[Pair], low_threshold: float
) -> PoolView:
    ranked = sorted(measured.items(), key=lambda item: (item[1], item[0]))
    count = len(ranked)
    mean = sum(score for _, score in ranked) / count if count else None
    deviation = hypot(*(score - mean for _, score in ranked)) / sqrt(count) if mean is not None else None
    gap = ranked[-1][1] - ranked[0][1] if count > 1 else None
    return PoolView(
        nodes=nodes,
        total=len(nodes),
        eligible=count,
        stale=len(nodes) - count,
        mean=mean,
        std_dev=deviation,
        hottest=ranked[-1][0] if count else None,
        coldest=ranked[0][0] if count else None,
        pairs=tuple(pairs),
        balanced=None if gap is None else gap < low_threshold,
    )
