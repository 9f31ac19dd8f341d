"""What strategies and learned speeds remember from pass to pass, and what a pass makes of it at its start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any, TypeVar, cast

from pydantic import TypeAdapter, ValidationError

from ballast.model import Displaced, Memory, Phase, Policy, Snapshot
from ballast.moves.candidates import Candidates
from ballast.moves.loads import Loads, loads
from ballast.moves.score import astray
from ballast.moves.speed import Speeds, node_speeds
from ballast.moves.speed import observed as observed_speeds
from ballast.placement import strategies
from ballast.placement.room import expected, in_flight
from ballast.placement.strategies import PlacementState, headings
from ballast.shedding.avg_shedder_usage import UsageMemory
from ballast.shedding.lasting import lasting_ratios

# A strategy's own memory as text, so that status can keep it whatever the strategy.

T = TypeVar("T")

USAGE = "AvgShedderUsage"
"""The key of AvgShedder with unit Usage, whose state differs from that with unit Traffic."""
NODE_SPEED = "NodeSpeed"
"""The key of what is learned about machine types, whatever the strategy."""


def stored(memory: Memory, name: str, state: object) -> Memory:
    """`memory` with the state of strategy `name`."""
    text = encoded(state)
    others = {key: value for key, value in memory.shedding if key != name}
    return replace(memory, shedding=tuple(sorted({**others, name: text}.items())))


def restored(memory: Memory, name: str, kind: type[T]) -> T | None:
    """The state of strategy `name`; None when there is none, or one that this version can't read."""
    text = dict(memory.shedding).get(name)
    return None if text is None else decoded(text, kind)


def encoded(state: object) -> str:
    return _adapter(cast("Any", type(state))).dump_json(state).decode()


def decoded(text: str, kind: type[T]) -> T | None:
    """None for a text that this version can't read."""
    try:
        found: T = _adapter(cast("Any", kind)).validate_json(text)
    except ValidationError:
        return None
    return found


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    """Building one takes longer than a pass."""
    return TypeAdapter(kind)


def candidates(snapshot: Snapshot, policy: Policy, memory: Memory, *, now: float) -> Candidates:
    """Which executors may move and where to, as things are before a pass; `memory`: of the pass before."""
    sent = headings(snapshot, recalled(memory, policy, snapshot).sent)
    return Candidates(
        snapshot,
        policy,
        known_loads(snapshot, policy, memory),
        reserved=in_flight(snapshot),
        unbound=expected(snapshot, policy.levels, sent=sent),
        sent=sent,
        now=now,
    )


def known_loads(snapshot: Snapshot, policy: Policy, memory: Memory) -> Loads:
    """What executors use; what they use beyond their applications' means counts as far as it has lasted by `memory`."""
    learned = restored(memory, NODE_SPEED, Speeds) or Speeds()
    found = loads(snapshot.executors, node_speeds(snapshot.nodes, learned))
    state = restored(memory, USAGE, UsageMemory)
    if state is None:
        return found
    return found.with_lasting(lasting_ratios(state.lasting, astray(snapshot, policy, found)))


def with_speeds(memory: Memory, snapshot: Snapshot, policy: Policy, *, now: float) -> Memory:
    """The memory with what this pass shows of the speed of machine types."""
    before = restored(memory, NODE_SPEED, Speeds) or Speeds()
    after = observed_speeds(before, snapshot, window_seconds=policy.window_seconds, now=now)
    return memory if after == before else stored(memory, NODE_SPEED, after)


def recalled(memory: Memory, policy: Policy, snapshot: Snapshot) -> PlacementState:
    """What the policy's strategy knew after the pass before; those that are bound by now, or gone, are forgotten."""
    state = _stored(memory, policy)
    unbound = {e.uid for e in snapshot.executors if e.phase is Phase.PENDING and e.node is None}
    return replace(state, sent=tuple((uid, node) for uid, node in state.sent if uid in unbound))


def displaced(memory: Memory, policy: Policy, snapshot: Snapshot) -> tuple[Displaced, ...]:
    """The executors that were bound since the pass before, and not to the node that was chosen for them."""
    chosen = dict(_stored(memory, policy).sent)
    return tuple(
        Displaced(executor.key, executor.topology, chosen[executor.uid], executor.node)
        for executor in (snapshot.executors if chosen else ())
        if executor.node is not None and chosen.get(executor.uid, executor.node) != executor.node
    )


def _stored(memory: Memory, policy: Policy) -> PlacementState:
    text = dict(memory.placement_state).get(policy.placement.strategy)
    return (None if text is None else decoded(text, PlacementState)) or PlacementState()


def observed(
    state: PlacementState, snapshot: Snapshot, policy: Policy, *, measured: Mapping[str, float], now: float
) -> PlacementState:
    """The state with the pass's values in its averages: once a metric window, because they are means over it."""
    step = max(policy.window_seconds, policy.interval_seconds)
    averages = policy.placement.strategy in ("LeastLongTermRate", "LeastResourceUsage")
    # A time in the future: the wall clock stepped backwards.
    if not averages or not snapshot.metrics.available or 0 <= now - state.observed_at < step:
        return state
    if policy.placement.strategy == "LeastResourceUsage":
        ratio = policy.placement.history_ratio
        usage = strategies.usage_observed(snapshot, measured, state.usage, history_ratio=ratio)
        return replace(state, usage=usage, observed_at=now)
    samples = int(policy.placement.long_window_seconds // step)
    rates = strategies.rates_observed(snapshot, state.rates, most_samples=samples)
    return replace(state, rates=rates, observed_at=now)


def kept(memory: Memory, policy: Policy, state: PlacementState) -> Memory:
    """The memory with the state; that of other strategies is given up."""
    if state == PlacementState():
        return replace(memory, placement_state=())
    return replace(memory, placement_state=((policy.placement.strategy, encoded(state)),))
