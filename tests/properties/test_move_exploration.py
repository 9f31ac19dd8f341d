"""The move machine against everything that can happen to it: breadth first over all interleavings.

The transition function (`advance`) is the real one. Around it stands a small world (`move_world`); a state is a whole
world, what the operator has read and not yet acted on included, so that crashes and stale reads come at every point.
How the operator reads, writes and acts is this world's own, which is what makes it small enough to be explored whole:
test_moves_carried_out does that by the real code, along fewer ways, and with two leaders. test_move_world compares what
this world reads with what the real code reads.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from random import Random

import pytest

from ballast.model import MovePhase
from ballast.moves import DeleteUnscheduled, Evict, Step
from ballast.moves.arriving import MAX_ATTEMPTS
from tests.properties.move_world.events import events
from tests.properties.move_world.operator_side import forgotten
from tests.properties.move_world.world import SETTINGS, Assignment, Luck, Scenario, World, owner, uid

_AHEAD = {
    # Refused: the node of a drain stays after all.
    MovePhase.PROPOSED: {MovePhase.APPROVED, MovePhase.EXPIRED, MovePhase.REFUSED},
    MovePhase.APPROVED: {MovePhase.LEAVING, MovePhase.REFUSED, MovePhase.EXPIRED},
    MovePhase.LEAVING: {MovePhase.ARRIVING, MovePhase.REFUSED, MovePhase.FAILED},
    MovePhase.ARRIVING: {MovePhase.SETTLING, MovePhase.SUCCEEDED, MovePhase.FAILED},
    MovePhase.SETTLING: {MovePhase.SUCCEEDED, MovePhase.FAILED},
}
_GOING = (MovePhase.LEAVING, MovePhase.ARRIVING, MovePhase.SETTLING)
_UNTOUCHED = (MovePhase.PROPOSED, MovePhase.APPROVED, MovePhase.REFUSED, MovePhase.EXPIRED)

_ONE = (Assignment(0, 1),)
_TWO = (Assignment(0, 1), Assignment(0, 2))
_ONE_AT_A_TIME = replace(SETTINGS, max_concurrent=1)
_ONE_PER_TOPOLOGY = replace(SETTINGS, max_concurrent_per_topology=1)
_ONE_PER_NODE = replace(SETTINGS, max_concurrent_per_node=1)

WHOLE = (
    Scenario("undisturbed", (2,), _ONE),
    Scenario("approved late or never", (1,), (Assignment(0, 1, approved=False),)),
    Scenario("killed at the end of its grace period", (1,), _ONE, Luck(slow_exits=1)),
)
"""Small enough to be explored to the last state, and in seconds."""

WHOLE_SLOWLY = (
    Scenario("ineligible, the operator crashing", (1,), _ONE, Luck(objections=1, restarts=1)),
    Scenario("blocked, the operator crashing", (1,), _ONE, Luck(blocks=1, restarts=1)),
    Scenario("unschedulable, then full", (1,), _ONE, Luck(unschedulable=1, fillings=1)),
    Scenario("unschedulable more often than is tried", (1,), _ONE, Luck(unschedulable=MAX_ATTEMPTS + 1)),
    Scenario("its place is lost, the operator crashing", (1,), _ONE, Luck(thefts=1, fillings=1, restarts=1)),
    Scenario("shrinking", (2,), _ONE, Luck(shrinks=1, absences=1)),
    Scenario("executors crash, no gate", (1,), _ONE, Luck(crashes=1), gated=False),
    Scenario("blocked, then switched off", (1,), _ONE, Luck(blocks=1, switches=1)),
)
"""Small enough to be explored to the last state."""

BOUNDED = (
    (12, Scenario("two of one application", (2,), _TWO)),
    (9, Scenario("crossed replacements", (2,), _TWO, gone=True)),
    (9, Scenario("one replacement for two", (2,), _TWO, Luck(absences=1, restarts=1), gone=True)),
    (9, Scenario("a replacement dies", (2,), _TWO, Luck(crashes=1, shrinks=1), gone=True)),
    (13, Scenario("two of one pool, one at a time", (2,), _TWO, settings=_ONE_AT_A_TIME)),
    (13, Scenario("two of one topology, one at a time", (2,), _TWO, settings=_ONE_PER_TOPOLOGY)),
    (13, Scenario("two applications, one node", (1, 1), (Assignment(0, 1), Assignment(1, 1)), settings=_ONE_PER_NODE)),
    (20, Scenario("proposed within the limits", (2,), _TWO, settings=_ONE_AT_A_TIME, admitted=True)),
    (
        5,
        Scenario(
            "everything at once",
            (2, 1),
            (Assignment(0, 1), Assignment(0, 2, approved=False), Assignment(1, 1)),
            Luck(1, 1, 1, 1, 1, 1, 1, 1, 1),
        ),
    ),
)
"""Explored breadth first up to so many states, which must take in all interleavings of the number of events that
stands before the scenario; beyond by following what was reached to its end, and by long random walks. A change that
makes the world larger must raise MOST_STATES, too, or say here how much less is tried.
"""

MOST_STATES = 20_000
ENDINGS = 500
"""Of the states not looked beyond, so many are followed to their end."""
WALKS = 40


def _named(value: Scenario | int) -> str:
    return value.name if isinstance(value, Scenario) else f"{value} events"


# The search


class _Numbers:
    """A small number for each distinct value. Values are shared between worlds, so most are known by identity."""

    def __init__(self) -> None:
        self._by_identity: dict[int, int] = {}
        self._by_value: dict[Hashable, int] = {}
        self._kept: list[Hashable] = []

    def of(self, value: Hashable) -> int:
        number = self._by_identity.get(id(value))
        if number is None:
            number = self._by_value.setdefault(value, len(self._by_value))
            self._by_identity[id(value)] = number
            self._kept.append(value)
        return number

    def key(self, world: World) -> Hashable:
        of = self.of
        return (
            tuple(map(of, world.executors)),
            world.allocators,
            tuple(map(of, world.moves)),
            world[3:11],
            tuple(map(of, world.planned)),
            world.lag,
            tuple(map(of, world.seen)),
            world.before_last is not None and tuple(map(of, world.before_last)),
        )


@dataclass
class Explored:
    """Everything that was reached. States are numbered in the order in which they were found."""

    states: list[World]
    reached_by: list[tuple[int, str]] = field(default_factory=lambda: [(0, "")])
    depths: list[int] = field(default_factory=lambda: [0])
    successors: list[list[int]] = field(default_factory=list)
    frontier: list[int] = field(default_factory=list)
    """Not looked beyond, since the search was bounded."""

    @property
    def depth(self) -> int:
        """All interleavings of so many events were tried."""
        return min((self.depths[state] for state in self.frontier), default=max(self.depths))

    def trail(self, state: int) -> str:
        steps = []
        while state:
            state, event = self.reached_by[state]
            steps.append(event)
        return " → ".join(reversed(steps)) or "the start"


def explore(scenario: Scenario, *, most: int) -> Explored:
    """Breadth first; every transition and every state is checked."""
    start = scenario.start()
    found, numbers = Explored([start]), _Numbers()
    known = {numbers.key(start): 0}
    for at, world in enumerate(found.states):  # the list grows while it is gone through
        after: list[int] = []
        found.successors.append(after)
        if len(found.states) >= most:
            found.frontier.append(at)
            continue
        for event, next_world in () if at_rest(world) else events(scenario, world):
            number = known.setdefault(numbers.key(next_world), len(found.states))
            if number == len(found.states):
                found.states.append(next_world)
                found.reached_by.append((at, event))
                found.depths.append(found.depths[at] + 1)
                wrong = unsound(scenario, next_world)
                assert not wrong, f"{wrong}, after {found.trail(at)} → {event}"
            after.append(number)
            wrong = misstep(scenario, world, event, next_world)
            assert not wrong, f"{wrong}, after {found.trail(at)} → {event}"
    return found


def at_rest(world: World) -> bool:
    return all(move is not None and move.phase.ended for move in world.moves)


def stuck(found: Explored, resting: set[int]) -> list[int]:
    """States from which no path was found to any of `resting`."""
    before: list[list[int]] = [[] for _ in found.states]
    for state, successors in enumerate(found.successors):
        for after in successors:
            before[after].append(state)
    seen, queue = set(resting), deque(resting)
    while queue:
        for state in before[queue.popleft()]:
            if state not in seen:
                seen.add(state)
                queue.append(state)
    return [state for state in range(len(found.states)) if state not in seen]


# What must never happen


def misstep(scenario: Scenario, world: World, event: str, after: World) -> str:
    """What is wrong with this event; empty if nothing is."""
    if event.startswith("act"):
        index = int(event.split()[1])
        step = world.planned[index]
        assert step is not None
        wrong = _undisciplined(step) or _overreach(scenario, world, index, step, after)
        if wrong:
            return f"move {index} {wrong}"
    return _unwanted(event, after) or _illegal_transition(world, after)


def unsound(scenario: Scenario, world: World) -> str:
    """What is wrong with this state; empty if nothing is."""
    return _over_limits(scenario, world) or _untrue_end(world) or _shared(world)


def _undisciplined(step: Step) -> str:
    if step.changed and step.effect is not None:
        return "writes its status and acts in one step"
    return "has two effects in one step" if len(step.actions) > 1 else ""


def _overreach(scenario: Scenario, world: World, index: int, step: Step, after: World) -> str:
    move, effect = world.moves[index], step.effect
    if effect is None or world.executors == after.executors or move is None:
        return ""
    if isinstance(effect, Evict):
        open_to_it = move.phase is MovePhase.LEAVING and not move.withdrawn and not world.evicted[index]
        right = open_to_it and effect.uid == uid(*owner(scenario, index))
        return "" if right else f"evicts {effect.uid} while {move.phase}"
    if move.phase is not MovePhase.ARRIVING or move.replacement is None or move.replacement.uid != effect.uid:
        return f"touches {effect.uid}, which is not its replacement"
    excessive = isinstance(effect, DeleteUnscheduled) and after.discarded[index] > MAX_ATTEMPTS
    return "deletes too many replacements" if excessive else ""


def _unwanted(event: str, after: World) -> str:
    """Whoever reads that moves are off evicts nobody; what was decided before may still be on its way."""
    evicted = [i for i, step in enumerate(after.planned) if step is not None and isinstance(step.effect, Evict)]
    return f"move {evicted[0]} evicts although moves are off" if "read" in event and after.off and evicted else ""


def _illegal_transition(world: World, after: World) -> str:
    for index, (old, new) in enumerate(zip(world.moves, after.moves, strict=True)):
        if old is None or new is None or old is new:
            continue
        if old.phase.ended and old != new:
            return f"move {index} changed after its end"
        if old.phase is not new.phase and new.phase not in _AHEAD[old.phase]:
            return f"move {index} went from {old.phase} to {new.phase}"
    return ""


def _over_limits(scenario: Scenario, world: World) -> str:
    going = [move for move in world.moves if move is not None and move.phase in _GOING]
    limits = scenario.settings
    if len(going) > limits.max_concurrent:
        return f"{len(going)} moves are under way"
    topologies = Counter(move.orders.topology for move in going)
    nodes = Counter(node for move in going for node in {move.orders.source, move.destination})
    if any(count > limits.max_concurrent_per_topology for count in topologies.values()):
        return f"moves under way per topology: {dict(topologies)}"
    if any(count > limits.max_concurrent_per_node for count in nodes.values()):
        return f"moves under way per node: {dict(nodes)}"
    return ""


def _untrue_end(world: World) -> str:
    for index, move in enumerate(world.moves):
        if move is not None and world.evicted[index] and move.phase in _UNTOUCHED:
            return f"move {index} evicted its executor and is {move.phase}"
    return ""


def _shared(world: World) -> str:
    """Two moves never count on one replacement, and none on one that another has placed."""
    holders: dict[str, int] = {}
    for index, move in enumerate(world.moves):
        if move is None or move.replacement is None or move.phase is MovePhase.ARRIVING:
            continue
        other = holders.setdefault(move.replacement.uid, index)
        if other != index:
            return f"moves {other} and {index} both count on {move.replacement.uid}"
        for executor in world.executors:
            placed = uid(executor.application, executor.number) == move.replacement.uid
            if placed and executor.pinned_by not in (None, index):
                return f"move {index} counts on {move.replacement.uid}, which move {executor.pinned_by} placed"
    return ""


# The fair course of things


_DUE = ("act", "read", "exit", "delete", "allocate", "propose", "approve", "bind", "start", "unblock")
_RUSHED = 400
"""Events after which a course that has not come to rest never will."""


def fairly(scenario: Scenario, world: World) -> World:
    """What becomes of the world if nothing goes wrong from now on and everybody does what is to be done."""
    event = ""
    for _ in range(_RUSHED):
        if at_rest(world):
            return world
        event, world = _next(scenario, world, _DUE, last=event)
    raise AssertionError(f"no rest: {[(move.phase, move.reason) for move in world.moves if move is not None]}")


def _next(scenario: Scenario, world: World, wanted: Sequence[str], *, last: str) -> tuple[str, World]:
    """The first event of the kind wanted most; time passes after one that had no effect, or if there is none."""
    following = list(events(scenario, world))
    kinds = () if last == "in vain" else tuple(wanted)
    ranked = [
        (event, after)
        for kind in (*kinds, "tick")
        for event, after in following
        if event.startswith(kind) and event != "bind to hot"
    ]
    event, after = ranked[0]
    vain = event.startswith("act") and (after.moves, after.executors) == (world.moves, world.executors)
    return "in vain" if vain else event, after


@dataclass(frozen=True)
class Course:
    """One way that things can go, without choice."""

    name: str
    scenario: Scenario
    trouble: tuple[str, ...] = ()
    """Kinds of events that happen as soon as they can."""


_ALONE = Scenario("one move", (2,), _ONE)
COURSES = (
    Course("undisturbed", _ALONE),
    Course("two moves of one application", Scenario("two", (2,), _TWO)),
    Course("no replacement", replace(_ALONE, luck=Luck(absences=1)), ("forgo",)),
    Course("unschedulable once", replace(_ALONE, luck=Luck(unschedulable=1)), ("unschedulable",)),
    Course("never schedulable", replace(_ALONE, luck=Luck(unschedulable=9)), ("unschedulable",)),
    Course("blocked for good", replace(_ALONE, luck=Luck(blocks=1)), ("block",)),
    Course("ineligible", replace(_ALONE, luck=Luck(objections=1)), ("object",)),
    Course("full", replace(_ALONE, luck=Luck(fillings=1)), ("fill",)),
    Course("its place is lost", replace(_ALONE, luck=Luck(thefts=1)), ("lose its place",)),
    Course("no gate", replace(_ALONE, gated=False)),
)


def outcome(course: Course, *, crash_at: int | None = None, written: bool = False) -> tuple[World, int]:
    """Where the course ends, and how many writes it took; the operator crashes before or after one of them."""
    world, event, writes = course.scenario.start(), "", 0
    for _ in range(_RUSHED):
        if at_rest(world):
            return world._replace(luck=Luck(), refused=(), before_last=None), writes
        event, after = _next(course.scenario, world, (*course.trouble, *_DUE[:-1]), last=event)
        if event.startswith(("act", "in vain")):
            if writes == crash_at:
                after = forgotten(after if written else world)
            writes += 1
        world = after
    raise AssertionError(f"no rest: {world.moves}")


# The tests


@pytest.mark.parametrize(
    "scenario", [*WHOLE, *(pytest.param(each, marks=pytest.mark.soak) for each in WHOLE_SLOWLY)], ids=_named
)
def test_every_state_keeps_the_rules_and_leads_to_rest(scenario: Scenario) -> None:
    found = explore(scenario, most=200_000)
    assert not found.frontier, "the scenario is too large to be explored whole"
    print(f"\n{scenario.name}: {len(found.states)} states, all of them, {found.depth} events deep")
    assert_nothing_is_stuck(found)


@pytest.mark.soak
@pytest.mark.parametrize(("depth", "scenario"), BOUNDED, ids=_named)
def test_moves_that_meet_keep_the_rules_and_come_to_rest(depth: int, scenario: Scenario) -> None:
    """Every state is at rest, leads to one that is, or to one not looked beyond; of these, many are followed."""
    found = explore(scenario, most=MOST_STATES)
    print(f"\n{scenario.name}: {len(found.states)} states, all interleavings of {found.depth} events")
    assert found.depth >= depth, "the world has grown: raise MOST_STATES"
    assert_nothing_is_stuck(found)
    for state in found.frontier[:: max(1, len(found.frontier) // ENDINGS)]:
        fairly(scenario, found.states[state])


def assert_nothing_is_stuck(found: Explored) -> None:
    resting = {number for number, world in enumerate(found.states) if at_rest(world)}
    lost = stuck(found, resting.union(found.frontier))
    assert not lost, f"no path to rest from {found.trail(lost[0])}"


@pytest.mark.parametrize("scenario", [scenario for _, scenario in BOUNDED], ids=_named)
def test_long_random_walks_keep_the_rules_and_come_to_rest(scenario: Scenario) -> None:
    chance = Random(scenario.name)
    for _ in range(WALKS):
        world, trail = scenario.start(), []
        for _ in range(chance.randrange(20, 150)):
            if at_rest(world):
                break
            event, after = chance.choice(list(events(scenario, world)))
            trail.append(event)
            wrong = misstep(scenario, world, event, after) or unsound(scenario, after)
            assert not wrong, f"{wrong}, after {' → '.join(trail)}"
            world = after
        fairly(scenario, world)


@pytest.mark.parametrize("course", COURSES, ids=lambda course: course.name)
def test_a_crash_before_or_after_any_write_changes_nothing_in_the_end(course: Course) -> None:
    undisturbed, writes = outcome(course)
    assert writes
    for crash_at in range(writes):
        for written in (False, True):
            ending, _ = outcome(course, crash_at=crash_at, written=written)
            assert ending == undisturbed, f"crash {'after' if written else 'before'} write {crash_at}"


def test_each_course_ends_as_it_should() -> None:
    ends = {
        course.name: [str(move.reason) for move in outcome(course)[0].moves if move is not None] for course in COURSES
    }
    assert ends == {
        "undisturbed": ["Helped"],
        "two moves of one application": ["Helped", "Helped"],
        "no replacement": ["TargetShrank"],
        "unschedulable once": ["Helped"],
        "never schedulable": ["Helped"],
        "blocked for good": ["DisruptionBudget"],
        "ineligible": ["DataSkew"],
        "full": ["Helped"],
        "its place is lost": ["ReturnedToSource"],
        "no gate": ["Helped"],
    }
