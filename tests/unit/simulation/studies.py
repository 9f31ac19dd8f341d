"""Studies made by hand: three policies, of which one moves nothing, on a pool with one hot node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ballast.simulation.study import Case, Document, Result, Study
from ballast.simulation.trace import MoveRecord, Outcome, Trace
from tests.unit.simulation.traces import move, trace

CAREFUL, EAGER, STILL = "careful", "eager", "still"
PASSES, NODES = 60, 6
_HOT, _QUIET = 90.0, 30.0


def study(
    policies: Sequence[str] = (CAREFUL, EAGER, STILL),
    *,
    windows: Sequence[str] = ("pool 2026-11-20", "pool 2026-11-21"),
    seeds: Sequence[int] | Mapping[str, Sequence[int]] = (1, 2),
    **other: Any,
) -> Study:
    """Whatever is not called `still` levels the pool: `eager` at once and by too many moves, others after a while.

    `seeds`: of every window, or by window.
    """
    results = [
        result(policy, window=window, seed=seed, noise=3.0 * number + seed, **other)
        for policy in policies
        for number, window in enumerate(windows)
        for seed in (seeds[window] if isinstance(seeds, Mapping) else seeds)
    ]
    return Study(tuple(results), {policy: document(policy) for policy in policies})


def result(
    policy: str, *, window: str = "w", seed: int = 1, noise: float = 0.0, unknown: tuple[str, ...] = (), **other: Any
) -> Result:
    return Result.of(Case(policy, window, seed), _trace(policy, noise, **other), unknown)


def _trace(policy: str, noise: float, *, nodes: int = NODES, **other: Any) -> Trace:
    level_at = {STILL: PASSES + 1, EAGER: 12}.get(policy, 25)
    usage = [
        [(_HOT if at < level_at else _QUIET + 8.0) + noise, *[_QUIET + (0.0 if at < level_at else 9.0)] * (nodes - 1)]
        for at in range(PASSES)
    ]
    return trace(usage, **{"moves": moves(policy), "policy": policy, **other})


def moves(policy: str) -> tuple[MoveRecord, ...]:
    if policy == STILL:
        return ()
    if policy == EAGER:
        return tuple(
            move(0, 1 + number % 4, 60.0 * (3 + 2 * number), outcome=outcome)
            for number, outcome in enumerate([*Outcome] * 2)
        )
    return (move(0, 1, 900.0, measured_hot_after=50.0, measured_cold_after=40.0), move(0, 2, 1380.0))


def document(policy: str, spec: Mapping[str, Any] | None = None) -> Document:
    moving = {"moves": {"mode": "Disabled" if policy == STILL else "Recommend"}}
    selector = {"nodeSelector": {"matchLabels": {"pool": "streaming"}}}
    return {
        "apiVersion": "ballast.dev/v1alpha1",
        "kind": "BalancingPolicy",
        "metadata": {"name": policy.split(" ", 1)[0]},
        "spec": {**selector, **(moving if spec is None else spec)},
    }
