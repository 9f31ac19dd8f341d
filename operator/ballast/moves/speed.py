"""How fast machine types are against each other, learned from what the same applications do there.

Where an application runs on machines of two types, its executors on both do the same work. Their records per second of
CPU show how fast one type is compared with the other. The type with the most nodes is the reference. Nodes of one type
are alike, so what is learned holds for nodes on which no executor runs yet.

A node may declare its speed (annotation ballast.dev/speed). Then what is declared counts, and nothing is learned.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import exp, fsum, log

from ballast.model import Executor, Node, Phase, Snapshot
from ballast.moves.loads import Profile, profile_of

INSTANCE_TYPE = "node.kubernetes.io/instance-type"

_HORIZON_SECONDS = 1800.0
"""After this time two thirds of a type's speed are known."""
_LEAST_SECONDS = 900.0
"""A speed that was seen for less is not used yet."""
_LEAST_DIFFERENCE_RATIO = 0.1
"""Types that differ by less count as equally fast: caches and neighbors make such differences, too."""
_SLOWEST, _FASTEST = 0.25, 4.0
"""Machines of one pool differ by no more. An application's records are what its executors claim: one that lies must
weigh no more than the CPU that it uses."""
_LEAST_EXECUTORS = 2
"""Of an application on each type, so that one with unlike data does not speak for its machine."""
_REMEMBERED = 32
"""Machine types kept from pass to pass, because status has to stay small."""


@dataclass(frozen=True, slots=True)
class TypeSpeed:
    machine_type: str
    log_speed: float = 0.0
    """Natural logarithm of its speed ÷ that of the reference, averaged over the horizon."""
    seen_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Speeds:
    """Plain values, fit for JSON."""

    reference: str = ""
    """The machine type whose speed is 1."""
    types: tuple[TypeSpeed, ...] = ()
    last_at_seconds: float | None = None


def observed(before: Speeds, snapshot: Snapshot, *, window_seconds: float, now: float) -> Speeds:
    """The speeds after one more pass; metrics are means over the window, so that once a window is enough.

    When another type has the most nodes, learning begins again.
    """
    reference = _reference(snapshot.nodes)
    if reference is None or not snapshot.metrics.available:
        return before
    if before.reference != reference:
        before = Speeds(reference)
    last = before.last_at_seconds
    # A time in the future: the wall clock stepped backwards.
    if last is not None and 0 <= now - last < window_seconds:
        return before
    # One pass after a long pause is not enough to go by.
    elapsed_seconds = window_seconds if last is None or now < last else min(now - last, _LEAST_SECONDS / 2)
    known = {each.machine_type: each for each in before.types}
    for machine_type, value in _log_speeds(snapshot, reference).items():
        past = known.get(machine_type) or TypeSpeed(machine_type)
        known[machine_type] = _averaged(past, value, elapsed_seconds=elapsed_seconds)
    kept = sorted(known.values(), key=lambda each: (-each.seen_seconds, each.machine_type))[:_REMEMBERED]
    return Speeds(reference, tuple(sorted(kept, key=lambda each: each.machine_type)), now)


_NOTHING = Speeds()


def node_speeds(nodes: Iterable[Node], learned: Speeds = _NOTHING) -> dict[str, float]:
    """By node: work per second of CPU against an ordinary machine; what is declared before what was learned."""
    listed = list(nodes)
    if _declared(listed):
        return {node.name: node.speed for node in listed}
    by_type = {each.machine_type: _speed(each) for each in learned.types}
    return {node.name: by_type.get(node.labels.get(INSTANCE_TYPE, ""), 1.0) for node in listed}


def _speed(learned: TypeSpeed) -> float:
    speed = min(max(exp(learned.log_speed), _SLOWEST), _FASTEST)
    if learned.seen_seconds < _LEAST_SECONDS or abs(speed - 1.0) < _LEAST_DIFFERENCE_RATIO:
        return 1.0
    return round(speed, 2)


def _reference(nodes: Iterable[Node]) -> str | None:
    """The type with the most nodes; None where there are no two types, or where speeds are declared."""
    listed = list(nodes)
    counts = Counter(node.labels[INSTANCE_TYPE] for node in listed if INSTANCE_TYPE in node.labels)
    if len(counts) < 2 or _declared(listed):
        return None
    return min(counts, key=lambda each: (-counts[each], each))


def _declared(nodes: Iterable[Node]) -> bool:
    """Whether an annotation says of one that it is faster or slower than an ordinary machine."""
    return any(node.speed != 1.0 for node in nodes)


def _averaged(before: TypeSpeed, value: float, *, elapsed_seconds: float) -> TypeSpeed:
    seen_seconds = before.seen_seconds + elapsed_seconds
    # A mean of all that was seen at first, then one that forgets.
    weight = max(1.0 - exp(-elapsed_seconds / _HORIZON_SECONDS), elapsed_seconds / seen_seconds)
    average = before.log_speed + weight * (value - before.log_speed)
    return TypeSpeed(before.machine_type, round(average, 4), round(seen_seconds, 1))


@dataclass(slots=True)
class _Done:
    """By executors of one application on machines of one type."""

    records_per_second: list[float]
    cpu_cores: list[float]

    @property
    def records_per_core_second(self) -> float:
        return fsum(self.records_per_second) / fsum(self.cpu_cores)


def _log_speeds(snapshot: Snapshot, reference: str) -> dict[str, float]:
    """By machine type that shares an application with the reference; an application weighs by the CPU that it uses."""
    values: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for by_type in _done(snapshot).values():
        base = by_type.get(reference)
        if base is None:
            continue
        for machine_type, done in by_type.items():
            if machine_type != reference:
                weight = min(fsum(done.cpu_cores), fsum(base.cpu_cores))
                speed = done.records_per_core_second / base.records_per_core_second
                values[machine_type].append((weight, log(min(max(speed, _SLOWEST), _FASTEST))))
    return {
        machine_type: fsum(weight * value for weight, value in found) / fsum(weight for weight, _ in found)
        for machine_type, found in values.items()
    }


def _done(snapshot: Snapshot) -> Mapping[Profile, Mapping[str, _Done]]:
    """By machine type, where enough executors are measured."""
    types = {node.name: node.labels[INSTANCE_TYPE] for node in snapshot.nodes if INSTANCE_TYPE in node.labels}
    found: dict[Profile, dict[str, _Done]] = defaultdict(dict)
    for executor in snapshot.executors:
        machine_type = types.get(executor.node or "")
        measured = _measured(executor)
        if machine_type is not None and measured is not None:
            done = found[profile_of(executor)].setdefault(machine_type, _Done([], []))
            done.records_per_second.append(measured[0])
            done.cpu_cores.append(measured[1])
    return {
        profile: {name: done for name, done in by_type.items() if len(done.cpu_cores) >= _LEAST_EXECUTORS}
        for profile, by_type in found.items()
    }


def _measured(executor: Executor) -> tuple[float, float] | None:
    """Records per second and cores, where both are measured."""
    usage = executor.usage
    if executor.phase is not Phase.RUNNING or usage is None:
        return None
    records, cores = usage.records_per_second, usage.cpu_cores
    return (records, cores) if records and cores and records > 0 and cores > 0 else None
