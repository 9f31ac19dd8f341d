"""Placing a pass's gated executors: strategies choose among the nodes, room and limits say which there are.

Executors that a move waits for go to its target. Others first go back to where they were, as far as the policy wants
it. The rest go where the policy's strategy sends them: to cool nodes as long as there are some, and near their
component as far as it may not spread.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from ballast.model import (
    Executor,
    Location,
    Memory,
    Phase,
    Pin,
    Placement,
    Policy,
    Reason,
    Resources,
    Scope,
    Snapshot,
)
from ballast.model.arrays import BoolArray, FloatArray
from ballast.placement.admission import Admission, refusal
from ballast.placement.executor_order import sequence
from ballast.placement.expectation import ComponentKey, Expectation, ReservedRoom
from ballast.placement.growth import awaited_zones, requires_zone
from ballast.placement.node_locations import NodeLocations, node_locations
from ballast.placement.placement_view import TIERS, PlacementView, Pool, hot_score, placement_view, would_be_unloaded
from ballast.placement.proximity import Effort
from ballast.placement.reasons import preferred_location, split_by, why_not
from ballast.placement.repair import repairable, repaired, seat
from ballast.placement.room import Room, about_to_be_bound, fits, room
from ballast.placement.scope import by_topology, region
from ballast.placement.shortage import Round, placeable, rounds
from ballast.placement.stickiness import returning
from ballast.placement.strategies import PlacementState, after, awaited_by_moves, chosen, headings, sets
from ballast.placement.strategy import Seats, Strategy
from ballast.placement.workload import TopologyWorkload, workloads

_NOTHING_RESERVED: Mapping[str, Resources] = {}
_NO_VALUES: Mapping[str, float] = {}
_NO_STATE = PlacementState()
_NOBODY: Mapping[str, str] = {}
_ALL_COMPLETE: Mapping[ComponentKey, Expectation] = {}


class _Waiting(Protocol):
    def __call__(
        self, executors: Sequence[Executor], seated: Mapping[str, str] = _NOBODY, *, crowded: bool = False
    ) -> Iterator[TopologyWorkload]:
        """The workloads of some of the pass's executors, by topology.

        `seated`: node by uid of others of the pass. `crowded`: there is not room for all of them.
        """


@dataclass(frozen=True, slots=True)
class Placed:
    placements: list[Placement]
    """One per executor, sorted by executor."""
    state: PlacementState
    """What the next pass must know."""


def place(
    snapshot: Snapshot,
    policy: Policy,
    memory: Memory,
    *,
    gated: Sequence[Executor],
    scores: Mapping[str, float] = _NO_VALUES,
    reserved: Mapping[str, Resources] = _NOTHING_RESERVED,
    unbound: Mapping[str, Resources] | None = None,
    loads: Mapping[str, float] = _NO_VALUES,
    measured: Mapping[str, float] | None = None,
    state: PlacementState = _NO_STATE,
    effort: Effort | None = None,
    expected: Mapping[ComponentKey, Expectation] = _ALL_COMPLETE,
) -> Placed:
    """Where each gated executor goes.

    `gated`: the executors to place now, of any number of topologies. `scores`: score by node in percent, what is on
    its way included; `measured`: without that, the same if None. `reserved`: amounts by node set aside for moves
    in flight. `unbound`: amounts that pods will take which are not bound yet, as `expected` says; worked out if None.
    `loads`: expected CPU cores by executor uid, its request otherwise. `expected`: by component; of one that is not in
    it all executors are there. An executor that can't be placed within the limits has node None and a reason; in its
    location stand the zone and racks that it should prefer, where they are known. Its pin is Zone if an autoscaler can
    provide a node for it there, otherwise None.
    """
    if not gated:
        return Placed([], state)
    places = node_locations(snapshot.nodes, policy.levels)
    space = room(
        snapshot, places, gated=gated, scores=scores, reserved=reserved, unbound=unbound, weights=policy.weights
    )
    pool = _pool(places, space, policy, ReservedRoom(places, space, expected))
    known = scores if measured is None else measured
    # A user may have any number of executors that no node can take: they must not shorten the search for others.
    able = placeable(gated, space, pool.admission)
    strategy = chosen(pool, snapshot, state, gated=able or gated, measured=known, effort=effort)
    pins = {uid: move.target for uid, move in awaited_by_moves(snapshot, gated).items()}
    awaited = awaited_zones(snapshot.executors, policy.levels)
    work = _Pass(pool, policy, strategy, scopes=by_topology(memory.scopes), loads=loads, pins=pins, awaited=awaited)
    sent = work.foresee(snapshot, state)
    free = [e for e in sorted(gated, key=lambda e: (e.key, e.uid)) if e.uid not in pins or not work.pin(e)]
    bound = headings(snapshot, sent.items()) | _nodes(work.placements)
    work.reserve(snapshot.executors, bound)

    parts = rounds(placeable(free, space, pool.admission), space, pool.admission)

    def waiting(
        executors: Sequence[Executor], seated: Mapping[str, str] = _NOBODY, *, crowded: bool = False
    ) -> Iterator[TopologyWorkload]:
        return workloads(
            snapshot,
            places,
            memory,
            gated=executors,
            bound={**bound, **seated},
            sticky=policy.placement.sticky,
            loads=loads,
            crowded=crowded,
            expected=expected,
        )

    work.place_all(free, parts, waiting)
    found = sorted(work.placements, key=lambda placement: (placement.executor, placement.uid))
    return Placed(found, replace(after(strategy, state), sent=tuple(sorted((sent | _nodes(found)).items()))))


def _nodes(placements: Iterable[Placement]) -> dict[str, str]:
    """Node by uid, of the placements that have one."""
    return {placement.uid: placement.node for placement in placements if placement.node is not None}


def _pool(places: NodeLocations, space: Room, policy: Policy, reserved: ReservedRoom) -> Pool:
    reached = _reached(places, space)
    hot, limit = would_be_unloaded(reached, policy.shedding), hot_score(reached, policy.shedding)
    return Pool(places, space, Admission(places.nodes), policy.placement, hot, limit, reserved)


def _reached(places: NodeLocations, space: Room) -> FloatArray:
    """Scores, NaN for nodes that nothing may be sent to: those are no measure for the others."""
    closed = np.fromiter((not node.open for node in places.nodes), dtype=np.bool_, count=len(places.nodes))
    return np.where(closed, np.nan, space.scores)


@dataclass(slots=True)
class _Pass:
    """One call of `place`: the pool as it fills, and what has been decided."""

    pool: Pool
    policy: Policy
    strategy: Strategy
    scopes: Mapping[str, Mapping[str, Scope]]
    """By component, by topology."""
    loads: Mapping[str, float]
    pins: Mapping[str, str]
    awaited: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """By topology and component: the zone in which executors wait for nodes."""
    placements: list[Placement] = field(default_factory=list)
    seats: dict[str, int] = field(default_factory=dict)
    """Position of the node by uid, of executors that the strategy or stickiness placed."""
    notes: dict[str, str] = field(default_factory=dict)
    """By uid: the limit that splits the executor's set."""

    def foresee(self, snapshot: Snapshot, state: PlacementState) -> dict[str, str]:
        """Count executors that were sent somewhere and are not bound yet; their nodes, by uid.

        Load is expected only of those that are likely to be bound: others may wait for good (a host port that is
        taken), and would make nodes look hot that are not.
        """
        before = dict(state.sent)
        likely = {executor.uid for executor in about_to_be_bound(snapshot)} if before else set()
        sent: dict[str, str] = {}
        for executor in snapshot.executors:
            name = before.get(executor.uid)
            if name in self.pool.locations.index and executor.phase is Phase.PENDING and executor.node is None:
                position = self.pool.locations.index[name]
                sent[executor.uid] = name
                if executor.uid in likely:
                    self.pool.room.heat(position, self._load(executor))
                    self.strategy.took(executor, position)
        return sent

    def reserve(self, executors: Iterable[Executor], bound: Mapping[str, str]) -> None:
        """Reserve room for those to come where others of theirs are. `bound`: node by uid of those on their way."""
        if self.pool.reserved is not None:
            self.pool.reserved.look(executors, bound)

    def _load(self, executor: Executor) -> float:
        return self.loads.get(executor.uid, executor.requests.cpu_cores)

    def pin(self, executor: Executor) -> bool:
        """Place on the node that a move chose; False when the node is gone, refuses it or has no room."""
        position = self.pool.locations.index.get(self.pins[executor.uid])
        if position is None or refusal(executor, self.pool.locations.nodes[position]) is not None:
            return False
        space = self.pool.room
        demand = space.vector(executor.requests)
        if not fits(space.free[position : position + 1], demand, space.slack)[0]:
            return False
        space.take(position, demand, load_cores=self._load(executor))
        self.strategy.took(executor, position)
        self._settle(executor, position, self.policy.moves.pin)
        return True

    def place_all(self, executors: Sequence[Executor], parts: Sequence[Round], waiting: _Waiting) -> None:
        """Place one topology after the other, repair what stays without a node, and record the results.

        `parts`: those that a node could take, in the order in which they have their turn.
        """
        nodes = self.pool.locations.nodes
        for part in parts:
            seated = {uid: nodes[position].name for uid, position in self.seats.items()}
            for workload in waiting(part.executors, seated, crowded=part.crowded):
                self._place(workload)
        self._repair([executor for part in parts for executor in part.executors], waiting)
        self._settle_all(executors, waiting)

    def _repair(self, executors: Sequence[Executor], waiting: _Waiting) -> None:
        """Find room for executors that have none, by sending them or others of the pass elsewhere."""
        if all(executor.uid in self.seats for executor in executors):
            return
        nodes = self.pool.locations.nodes
        few = repairable(executors, len(nodes))
        mine = {executor.uid for executor in few}
        seats = {uid: position for uid, position in self.seats.items() if uid in mine}
        others = {uid: position for uid, position in self.seats.items() if uid not in mine}
        seated = {uid: nodes[position].name for uid, position in others.items()}
        self.seats = others | repaired(self.pool, waiting(few, seated), seats, executors=len(few))

    def _place(self, workload: TopologyWorkload) -> None:
        near = region(workload, self.pool.locations, self.scopes.get(workload.topology.key, {}))
        left = {group: len(members.executors) for group, members in enumerate(workload.groups)}
        for tier in range(TIERS if self.pool.locations.nodes else 0):
            if not left:
                break
            left = self._return(workload, left, tier)
            for part in sets(self.strategy, workload):
                mine = {group: left.pop(group) for group in part if group in left}
                left |= self._place_tier(workload, mine, tier, near)
        if self.pool.reserved is not None:
            self.pool.reserved.placed(workload.topology.key, workload.components, workload.present)

    def _settle_all(self, executors: Sequence[Executor], waiting: _Waiting) -> None:
        """Record where these go, and why some find no node."""
        for executor in executors:
            if executor.uid in self.seats:
                wished = self.pins.get(executor.uid)
                self._settle(executor, self.seats[executor.uid], self.policy.placement.pin, wished=wished)
        short = {executor.topology for executor in executors if executor.uid not in self.seats}
        for workload in waiting([executor for executor in executors if executor.topology in short]):
            seat(workload, self.seats)
            for index, group in enumerate(workload.groups):
                self._release(workload, index, [e for e in group.executors if e.uid not in self.seats])

    def _return(self, workload: TopologyWorkload, left: dict[int, int], tier: int) -> dict[int, int]:
        if not left or not workload.vacancies.any():
            return left
        view = placement_view(self.pool, workload, left, tier)
        return self._commit(view, left, returning(view), told=True)

    def _place_tier(
        self, workload: TopologyWorkload, left: dict[int, int], tier: int, near: BoolArray | None
    ) -> dict[int, int]:
        """Place what a tier of nodes holds; what is still left, by group."""
        for within in (None,) if near is None else (near, None):
            before = 0
            # A strategy may look at some of very many nodes only: then it looks again at what it has not seen.
            while left and (count := sum(left.values())) != before:
                view, before = placement_view(self.pool, workload, left, tier, within=within), count
                if not view.capacity.any():
                    break
                row = {int(group): position for position, group in enumerate(view.groups)}
                turns = [row[group] for group in sequence(workload, left, self.policy.placement.order)]
                seats = self.strategy.seats(view, turns)
                self._note(view, left, split_by(view, seats))
                left = self._commit(view, left, seats, told=False)
        return left

    def _note(self, view: PlacementView, left: Mapping[int, int], limits: Mapping[int, str]) -> None:
        """Keep which limit splits the set of a component, for the details of its placements."""
        for group in left:
            members = view.workload.groups[group]
            if members.component in limits:
                first = len(members.executors) - left[group]
                self.notes.update((e.uid, limits[members.component]) for e in members.executors[first:])

    def _commit(self, view: PlacementView, left: Mapping[int, int], seats: Seats, *, told: bool) -> dict[int, int]:
        """`told`: the strategy has yet to be told of these."""
        workload, remaining = view.workload, dict(left)
        for group, nodes in zip(view.groups.tolist(), seats, strict=True):
            members = workload.groups[group]
            demand = self.pool.room.vector(members.requests)
            for position, count in Counter(nodes).items():
                self.pool.room.take(position, demand, count=count, load_cores=members.load_cores)
                workload.present[members.component, position] += count
                vacant = workload.vacancies[members.component, position]
                workload.vacancies[members.component, position] = max(0, vacant - count)
            first = len(members.executors) - left[group]
            for executor, position in zip(members.executors[first:], nodes, strict=False):
                if told:
                    self.strategy.took(executor, position)
                self.seats[executor.uid] = position
            remaining[group] -= len(nodes)
        return {group: count for group, count in remaining.items() if count > 0}

    def _settle(self, executor: Executor, position: int, pin: Pin, wished: str | None = None) -> None:
        node = self.pool.locations.nodes[position]
        reason = None if wished is None else Reason.NO_ROOM
        detail = self.notes.get(executor.uid, "") if wished is None else f"{wished} can't take it any more"
        self.placements.append(Placement(executor.key, executor.uid, node.name, node.location, pin, reason, detail))

    def _release(self, workload: TopologyWorkload, group: int, executors: Sequence[Executor]) -> None:
        """Release executors of a group without a node, with the reason."""
        if not executors:
            return
        reason, detail = why_not(self.pool, workload, group)
        location, pin = self._near(workload, group), Pin.NONE
        if reason is Reason.POOL_FULL and self.policy.placement.pin is not Pin.NONE:
            pin = Pin.ZONE if requires_zone(self.pool, workload, group, location) else Pin.NONE
        for executor in executors:
            self.placements.append(Placement(executor.key, executor.uid, None, location, pin, reason, detail))

    def _near(self, workload: TopologyWorkload, group: int) -> Location:
        component = workload.components[workload.groups[group].component]
        awaited = self.awaited.get((workload.topology.key, component))
        return preferred_location(self.pool, workload, group, awaited=awaited)
