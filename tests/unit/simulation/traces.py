"""Traces made by hand."""

from __future__ import annotations

from typing import Any

import numpy as np

from ballast.simulation.trace import MoveRecord, Outcome, Stretch, Trace


def trace(usage: list[list[float]], *, every: float = 60.0, **other: Any) -> Trace:
    """A pass a minute; what is not said is quiet: nodes open, an executor on each, no moves."""
    rows = np.array(usage, dtype=float)
    passes, nodes = rows.shape
    known: dict[str, Any] = {
        "scenario": "by hand",
        "policy": "none",
        "seed": 1,
        "duration_seconds": every * passes,
        "window_seconds": every,
        "level_points": 15.0,
        "nodes": tuple(f"node-{i}" for i in range(nodes)),
        "capacity": np.ones(nodes),
        "times": every * np.arange(passes),
        "scores": rows,
        "usage": rows,
        "executors": np.ones((passes, nodes), dtype=np.int64),
        "open": np.ones((passes, nodes), dtype=bool),
        "locality": np.zeros(passes),
        "gated": np.zeros(passes, dtype=np.int64),
        "reasons": (),
        "refusals": np.zeros((passes, 0), dtype=np.int64),
    }
    return Trace(**{**known, **other})


def move(source: int, target: int, at: float, *, arrived: float | None = None, **other: Any) -> MoveRecord:
    known: dict[str, Any] = {
        "executor": f"simulation/e-{at:g}",
        "slot": 0,
        "application": "e",
        "source": f"node-{source}",
        "target": f"node-{target}",
        "decided_at": at,
        "hot_score": 80.0,
        "cold_score": 20.0,
        "hot_after": 70.0,
        "cold_after": 30.0,
        "load_cores": 1.0,
        "locality_delta_ratio": 0.0,
        "outcome": Outcome.HELPED,
        "left_at": at,
        "arrived_at": at if arrived is None else arrived,
    }
    return MoveRecord(**{**known, **other})


def stretch(
    loads: list[list[float]], *, capacity: float | list[float] = 10.0, others: list[float] | None = None
) -> Stretch:
    """`loads`: of the executors on each node."""
    nodes = len(loads)
    flat = [load for node in loads for load in node]
    return Stretch(
        until=0.0,
        loads=np.array(flat, dtype=float),
        homes=np.array([i for i, node in enumerate(loads) for _ in node], dtype=np.int64),
        movable=np.ones(len(flat), dtype=bool),
        others=np.array(others or [0.0] * nodes),
        capacity=np.resize(np.array(capacity, dtype=float), nodes),
        up=np.ones(nodes, dtype=bool),
    )
