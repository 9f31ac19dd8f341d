"""Strategy Proximity: a whole set of executors at once, close to each other and to what they talk to.

The zone is chosen first, then racks within it, then nodes within the spread limits (after Storm's resource-aware
scheduling: executors in the order of proximity needs, each to the nearest node with room).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ballast.model import Executor, Memory, Pin, Placement, Policy, Reason, Resources, Snapshot
from ballast.placement.admission import Admission, refusal
from ballast.placement.crew import Crew, crews
from ballast.placement.grid import grid
from ballast.placement.heat import would_be_unloaded
from ballast.placement.outcome import preferred_location, why_not
from ballast.placement.outlook import TIERS, Pool, outlook
from ballast.placement.part import parts
from ballast.placement.problem import Layout
from ballast.placement.room import fits, room
from ballast.placement.search import Effort, search
from ballast.placement.sequence import sequence

_NOTHING_RESERVED: Mapping[str, Resources] = {}
_NO_FIGURES: Mapping[str, float] = {}
_NO_PINS: Mapping[str, str] = {}


def place(
    snapshot: Snapshot,
    policy: Policy,
    memory: Memory,
    *,
    gated: Sequence[Executor],
    pins: Mapping[str, str] = _NO_PINS,
    scores: Mapping[str, float] = _NO_FIGURES,
    reserved: Mapping[str, Resources] = _NOTHING_RESERVED,
    loads: Mapping[str, float] = _NO_FIGURES,
    effort: Effort | None = None,
) -> list[Placement]:
    """Where each gated executor goes; one placement per executor, sorted by executor.

    `gated`: the executors to place now, of any number of topologies. `pins`: node by executor uid, for the
    replacements of moves. `scores`: score by node in percent, what is on its way included. `reserved`: amounts by
    node that are spoken for (moves in flight). `loads`: expected CPU cores by executor uid, its request otherwise.
    An executor that can't be placed within the limits has node None, Pin.NONE and a reason; in its location stand
    the zone and racks that it should prefer, where they are known.
    """
    if not gated:
        return []
    places = grid(snapshot.nodes, policy.levels)
    admission = Admission(places.nodes)
    space = room(snapshot, places, admission, gated=gated, scores=scores, reserved=reserved)
    pool = Pool(places, space, admission, policy.placement, would_be_unloaded(space.scores, policy.shedding))
    work = _Pass(pool, policy, loads)
    ordered = sorted(gated, key=lambda executor: (executor.key, executor.uid))
    free = [e for e in ordered if e.uid not in pins or not work.pin(e, pins[e.uid])]
    bound = {placement.uid: placement.node for placement in work.placements if placement.node is not None}
    for crew in crews(snapshot, places, memory, gated=free, bound=bound, sticky=policy.placement.sticky, loads=loads):
        own = sum(len(group.executors) for group in crew.groups)
        work.place(crew, effort or _effort(own, len(free)), pins)
    return sorted(work.placements, key=lambda placement: (placement.executor, placement.uid))


_STEPS_OF_A_PASS = 3000
_MOST_STEPS = 2000
_STEPS_OF_AN_EXECUTOR = 40
_LEAST_STEPS = 10
_FEW = 200
_MANY = 5000


def _effort(own: int, all_executors: int) -> Effort:
    """A pass's steps shared out by size, so that it stays short; few executors get a thorough search."""
    share = _STEPS_OF_A_PASS * own // max(1, all_executors)
    steps = max(_LEAST_STEPS, min(share, _MOST_STEPS, _STEPS_OF_AN_EXECUTOR * own))
    return Effort(steps=steps, thorough=all_executors <= _FEW, orders=all_executors <= _MANY)


@dataclass(slots=True)
class _Pass:
    """One call of `place`: the pool as it fills, and what has been decided."""

    pool: Pool
    policy: Policy
    loads: Mapping[str, float]
    placements: list[Placement]

    def __init__(self, pool: Pool, policy: Policy, loads: Mapping[str, float]) -> None:
        self.pool, self.policy, self.loads, self.placements = pool, policy, loads, []

    def pin(self, executor: Executor, name: str) -> bool:
        """Place on the node that a move chose; False when the node is gone, refuses it or has no room."""
        position = self.pool.grid.index.get(name)
        if position is None or refusal(executor, self.pool.grid.nodes[position]) is not None:
            return False
        space = self.pool.room
        demand = space.vector(executor.requests)
        if not fits(space.free[position : position + 1], demand, space.slack)[0]:
            return False
        load = self.loads.get(executor.uid, executor.requests.cpu_cores)
        space.take(position, demand, load_cores=load)
        self._settle(executor, position, self.policy.moves.pin)
        return True

    def place(self, crew: Crew, effort: Effort, pins: Mapping[str, str]) -> None:
        for part in parts(crew):
            left = {group: len(crew.groups[group].executors) for group in part}
            for tier in range(TIERS):
                if left and self.pool.grid.nodes:
                    left = self._place_tier(crew, left, tier, effort, pins)
            for group, count in left.items():
                self._release(crew, group, count)

    def _place_tier(
        self, crew: Crew, left: Mapping[int, int], tier: int, effort: Effort, pins: Mapping[str, str]
    ) -> dict[int, int]:
        """Place what a tier of nodes holds; what is still left, by group."""
        view = outlook(self.pool, crew, left, tier)
        row = {int(group): position for position, group in enumerate(view.groups)}
        turns = [row[group] for group in sequence(crew, left, self.policy.placement.order)]
        layout = search(view, turns, effort)
        if layout is None:
            return dict(left)
        remaining: dict[int, int] = {}
        for group, position in row.items():
            self._commit(
                crew, group, layout, position, offset=len(crew.groups[group].executors) - left[group], pins=pins
            )
            if layout.missing[position]:
                remaining[group] = int(layout.missing[position])
        return remaining

    def _commit(
        self, crew: Crew, group: int, layout: Layout, row: int, *, offset: int, pins: Mapping[str, str]
    ) -> None:
        members = crew.groups[group]
        demand = self.pool.room.vector(members.requests)
        waiting = iter(members.executors[offset:])
        for column in layout.placed[row].nonzero()[0]:
            position, count = int(layout.problem.nodes[column]), int(layout.placed[row, column])
            self.pool.room.take(position, demand, count=count, load_cores=members.load_cores)
            crew.present[members.component, position] += count
            crew.vacancies[members.component, position] = max(0, crew.vacancies[members.component, position] - count)
            for _ in range(count):
                executor = next(waiting)
                self._settle(executor, position, self.policy.placement.pin, wished=pins.get(executor.uid))

    def _settle(self, executor: Executor, position: int, pin: Pin, wished: str | None = None) -> None:
        node = self.pool.grid.nodes[position]
        reason = None if wished is None else Reason.NO_ROOM
        detail = "" if wished is None else f"{wished} can't take it any more"
        self.placements.append(Placement(executor.key, executor.uid, node.name, node.location, pin, reason, detail))

    def _release(self, crew: Crew, group: int, count: int) -> None:
        """Let the last `count` of a group go unpinned, with the reason."""
        reason, detail = why_not(self.pool, crew, group)
        location = preferred_location(self.pool, crew, crew.groups[group].component)
        for executor in crew.groups[group].executors[-count:]:
            self.placements.append(Placement(executor.key, executor.uid, None, location, Pin.NONE, reason, detail))
