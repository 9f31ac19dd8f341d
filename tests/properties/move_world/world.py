"""One state of the world, and where each scenario begins.

Times are relative to the present tick and clipped, which makes the states finite.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeVar

from ballast.model import MovePhase, MovesMode, MovesPolicy, Phase
from ballast.moves import MoveReason, MoveState, Orders, Step, Subject, Timings

T = TypeVar("T")

TICK = 10.0
LONG_AGO = -9
"""Tick at which the first executors were created."""
PAST = -3
"""Tick before which the past is all alike: every timeout below is shorter."""
LAG = 1
"""Events that may happen between what the operator reads and what it does about it."""

SETTINGS = MovesPolicy(
    mode=MovesMode.APPROVE,
    max_concurrent=2,
    max_concurrent_per_node=2,
    max_concurrent_per_topology=2,
    settle_seconds=TICK,
    cooldown_seconds=0.0,
    leave_timeout_seconds=2 * TICK,
    arrive_timeout_seconds=TICK,
    approval_timeout_seconds=2 * TICK,
)
SOURCE, TARGET, ELSEWHERE = "hot", "cold", "mild"


class Executor(NamedTuple):
    application: int
    number: int
    """Spark's executor id: never used again."""
    phase: Phase
    node: str | None
    created: int
    """Tick, the present one being 0."""
    since: int = 0
    """Tick of what the phase waits for: gated, unschedulable, being deleted."""
    unschedulable: bool = False
    pinned: str | None = None
    pinned_by: int | None = None
    nominated: bool = False
    failed: bool = False


class Allocator(NamedTuple):
    """Spark's side of one application."""

    target: int
    created: int
    """Executors so far."""


class Luck(NamedTuple):
    """How much of each kind of trouble is still to come; what is not spent may never happen."""

    shrinks: int = 0
    crashes: int = 0
    """Of executors."""
    unschedulable: int = 0
    slow_exits: int = 0
    blocks: int = 0
    """Times that a disruption budget begins to block."""
    objections: int = 0
    """Times that an executor becomes ineligible."""
    fillings: int = 0
    """Times that the destination fills up."""
    restarts: int = 0
    """Crashes of the operator."""
    thefts: int = 0
    """Times that another pod takes the room that a replacement was sent to."""
    absences: int = 0
    """Replacements that Spark never asks for."""
    switches: int = 0
    """Times that the user switches moves off."""


class World(NamedTuple):
    executors: tuple[Executor, ...]
    allocators: tuple[Allocator, ...]
    moves: tuple[MoveState | None, ...]
    """None: not yet proposed."""
    luck: Luck
    evicted: tuple[bool, ...]
    """By move: an eviction took effect."""
    discarded: tuple[int, ...]
    """By move: unscheduled replacements that were deleted."""
    blocked: bool = False
    objected: bool = False
    full: bool = False
    off: bool = False
    """The policy's moves.mode is Disabled."""
    refused: tuple[bool, ...] = ()
    """What the operator remembers: the eviction of this move was refused."""
    planned: tuple[Step | None, ...] = ()
    """What the operator is about to do, by move."""
    lag: int = 0
    seen: tuple[Executor, ...] = ()
    """The executors as the operator read them, while it has anything planned."""
    before_last: tuple[Executor, ...] | None = None
    """The executors before the operator's own last request, which the next read may still show."""


@dataclass(frozen=True, slots=True)
class Assignment:
    application: int
    number: int
    source: str = SOURCE
    target: str = TARGET
    approved: bool = True


@dataclass(frozen=True, slots=True)
class Scenario:
    name: str
    sizes: tuple[int, ...]
    """Executors per application."""
    assignments: tuple[Assignment, ...]
    luck: Luck = field(default_factory=Luck)
    gated: bool = True
    settings: MovesPolicy = SETTINGS
    admitted: bool = False
    """Moves are proposed by the operator, within the limits, instead of all being there from the start."""
    gone: bool = False
    """It starts where all these moves' executors have left."""

    def start(self) -> World:
        left = {(wanted.application, wanted.number) for wanted in self.assignments} if self.gone else set()
        executors = tuple(
            Executor(application, number, Phase.RUNNING, SOURCE, LONG_AGO)
            for application, size in enumerate(self.sizes)
            for number in range(1, size + 1)
            if (application, number) not in left
        )
        count = len(self.assignments)
        return World(
            executors=executors,
            allocators=tuple(Allocator(size, size) for size in self.sizes),
            moves=(None,) * count if self.admitted else tuple(proposal(self, i) for i in range(count)),
            luck=self.luck,
            evicted=(self.gone,) * count,
            discarded=(0,) * count,
            refused=(False,) * count,
            planned=(None,) * count,
        )


def proposal(scenario: Scenario, index: int) -> MoveState:
    wanted = scenario.assignments[index]
    move = MoveState(
        Orders(
            name=f"move-{index}",
            namespace="apps",
            topology=f"apps/{wanted.application}",
            component="executors",
            executor_uid=uid(wanted.application, wanted.number),
            executor_name=f"exec-{wanted.number}",
            source=wanted.source,
            target=wanted.target,
            created_at=0.0,
            approved=wanted.approved,
        )
    )
    return _left(move, wanted, index) if scenario.gone else move


def _left(move: MoveState, wanted: Assignment, index: int) -> MoveState:
    return replace(
        move,
        phase=MovePhase.LEAVING,
        reason=MoveReason.TERMINATING,
        target=wanted.target,
        subject=Subject(str(wanted.application), "0", str(wanted.number)),
        timings=Timings(approved_at=PAST * TICK, leaving_at=index / 100.0 - TICK),
    )


def uid(application: int, number: int) -> str:
    return f"{application}-{number}"


def owner(scenario: Scenario, move: int) -> tuple[int, int]:
    wanted = scenario.assignments[move]
    return wanted.application, wanted.number


def spent(luck: Luck, cause: str) -> Luck:
    return luck._replace(**{cause: getattr(luck, cause) - 1})


def put(items: tuple[T, ...], at: int, item: T) -> tuple[T, ...]:
    return (*items[:at], item, *items[at + 1 :])


def without(items: tuple[T, ...], at: int) -> tuple[T, ...]:
    return (*items[:at], *items[at + 1 :])
