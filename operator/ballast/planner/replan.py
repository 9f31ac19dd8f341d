"""Replanning: where executors would go now if their present places were given up."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ballast.model import Executor, LocalityView, Memory, Node, Phase, Placement, Policy, Resources, Snapshot, Topology
from ballast.moves.loads import Loads
from ballast.moves.score import measured, points_per_core, projected
from ballast.placement.aside import never_placed
from ballast.placement.locality import counts_by_topology, locality
from ballast.placement.placing import place
from ballast.placement.room import in_flight
from ballast.placement.tie import untied
from ballast.planner.strategy_state import known_loads, recalled


@dataclass(frozen=True, slots=True)
class ReplannedTopology:
    """One topology as it is placed, and as it would be placed."""

    topology: str
    executors: int
    """Those on the pool's nodes, and those that wait for a place."""
    before: LocalityView
    after: LocalityView
    places: Mapping[str, Mapping[str, int]]
    """Executors per component and node after it."""
    relocated: int
    """How many executors would have to be elsewhere."""
    unplaced: tuple[Placement, ...]
    """Those that no node would take, with the reason."""


def replanned_topology(snapshot: Snapshot, policy: Policy, key: str) -> ReplannedTopology | None:
    """Placing the whole topology `key` at once, with no regard to where its executors were; None if it has none.

    Executors that are never placed stay where they are: those of schedulers that the policy does not name, and gangs.
    """
    members = [executor for executor in placeable(snapshot, policy) if executor.topology == key]
    if not members:
        return None
    placements = replanned(snapshot, policy, Memory(), members)
    whole = members_by_topology(snapshot.executors)[key]
    return compared(key, members, placements, whole, lambda executors: _locality(snapshot, policy, key, executors))


def members_by_topology(executors: Iterable[Executor]) -> Mapping[str, list[Executor]]:
    """Every executor whose traffic counts, also those that are never placed."""
    found: dict[str, list[Executor]] = defaultdict(list)
    for executor in executors:
        if executor.phase is not Phase.ENDED:
            found[executor.topology].append(executor)
    return found


def settled(executors: Iterable[Executor], targets: Mapping[str, str | None]) -> list[Executor]:
    """The executors at their targets (nodes by uid); without one, because no node takes it, each stays where it is."""
    return [
        replace(each, phase=Phase.PENDING, node=node) if (node := targets.get(each.uid)) is not None else each
        for each in executors
    ]


def compared(
    key: str,
    members: Sequence[Executor],
    placements: Iterable[Placement],
    whole: Collection[Executor],
    view: Callable[[Collection[Executor]], LocalityView],
) -> ReplannedTopology:
    """`members` of the topology `key` as they are, and where `placements` put them.

    `whole`: all its executors, also those that are never placed; `view`: how far the traffic of executors travels.
    """
    own = {executor.uid for executor in members}
    found = {placement.uid: placement for placement in placements if placement.uid in own}
    targets = {uid: placement.node for uid, placement in found.items()}
    places = _places(settled(members, targets))
    return ReplannedTopology(
        topology=key,
        executors=len(members),
        before=view(whole),
        after=view(settled(whole, targets)),
        places=places,
        relocated=_relocated(_places(members), places),
        unplaced=tuple(placement for placement in found.values() if placement.node is None),
    )


def placed_again(snapshot: Snapshot, policy: Policy, *, left_out: Collection[str] = ()) -> list[Placement]:
    """All executors of the pool at once, with no regard to where they were, so that no room is promised twice.

    `left_out`: topologies whose executors stay where they are.
    """
    members = [e for e in placeable(snapshot, policy) if e.topology not in left_out]
    return replanned(snapshot, policy, Memory(), members) if members else []


def placeable(snapshot: Snapshot, policy: Policy) -> list[Executor]:
    """Executors on the pool's nodes, and those that wait for a place, without those that Ballast never places."""
    homes, schedulers = {node.name for node in snapshot.nodes}, policy.placement.scheduler_names
    return [e for e in snapshot.executors if never_placed(e, schedulers) is None and _placeable(e, homes)]


def replanned(snapshot: Snapshot, policy: Policy, memory: Memory, executors: Collection[Executor]) -> list[Placement]:
    """Where these executors would go now; their own requests and load are taken off the nodes they are on.

    What moves of others under way need stays spoken for. `memory` is what stickiness, the scope and the policy's
    strategy go by. Executors that Ballast tied to a place are free of that tie, as their replacements would be.
    """
    chosen = {executor.uid for executor in executors}
    waiting = {e.uid: _waiting(e, policy, snapshot.taken_at) for e in executors}
    known = known_loads(snapshot, policy, memory)
    without = replace(
        snapshot,
        nodes=_relieved(snapshot, executors),
        executors=tuple(waiting.get(e.uid, e) for e in snapshot.executors),
        moves=tuple(m for m in snapshot.moves if chosen.isdisjoint((m.executor_uid, m.replacement_uid))),
    )
    ahead = _cooled(snapshot, policy, known, executors)
    return place(
        without,
        policy,
        memory,
        gated=tuple(waiting.values()),
        scores=ahead,
        reserved=in_flight(without),
        loads={executor.uid: known.expected(executor) for executor in executors},
        measured=measured(snapshot, policy).by_node,
        state=recalled(memory, policy, snapshot),
    ).placements


def _placeable(executor: Executor, homes: Collection[str]) -> bool:
    if executor.phase is Phase.GATED:
        return True
    return executor.phase in (Phase.RUNNING, Phase.PENDING) and executor.node in homes


def _waiting(executor: Executor, policy: Policy, now: float) -> Executor:
    freed = untied(executor, policy.levels)
    return replace(
        freed, phase=Phase.GATED, node=None, last_gate_since=now, first_read=None, running_since=None, pinned=False
    )


def _relieved(snapshot: Snapshot, executors: Collection[Executor]) -> tuple[Node, ...]:
    asked: dict[str, Resources] = defaultdict(Resources)
    for executor in executors:
        if executor.node is not None:
            asked[executor.node] = asked[executor.node].plus(executor.requests)
    return tuple(
        replace(node, requested=node.requested.minus(asked[node.name])) if node.name in asked else node
        for node in snapshot.nodes
    )


def _cooled(snapshot: Snapshot, policy: Policy, known: Loads, executors: Collection[Executor]) -> Mapping[str, float]:
    """Projected scores without the load of these executors."""
    ahead = projected(snapshot, policy, known, measured(snapshot, policy).by_node)
    points = points_per_core(snapshot, policy)
    for executor in executors:
        home = executor.node
        if home in ahead and executor.phase in (Phase.RUNNING, Phase.PENDING):
            ahead[home] = max(0.0, ahead[home] - known.expected(executor) * points[home])
    return ahead


def _locality(snapshot: Snapshot, policy: Policy, key: str, executors: Collection[Executor]) -> LocalityView:
    counts = counts_by_topology(executors, snapshot.nodes).get(key, {})
    found = next((topology for topology in snapshot.topologies if topology.key == key), None)
    topology = found or Topology(key, key.split("/", 1)[0], key.split("/", 1)[-1], components=(), implicit=True)
    return locality(topology, counts, policy.levels, max_node_ratio=policy.placement.max_executors_per_node_ratio)


def _places(executors: Collection[Executor]) -> Mapping[str, Counter[str]]:
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for executor in executors:
        if executor.node is not None:
            found[executor.component][executor.node] += 1
    return found


def _relocated(before: Mapping[str, Counter[str]], after: Mapping[str, Counter[str]]) -> int:
    """Executors of one component are alike, so only how many each node holds counts."""
    return sum((counts - after.get(component, Counter())).total() for component, counts in before.items())
