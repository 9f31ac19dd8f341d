"""Moves that are under way or proposed."""

from __future__ import annotations

from typing import Any

from rich.table import Table

from ballast.cli.output import duration, table
from ballast.cli.report.place import Naming, instant
from ballast.model import Move, Snapshot


def open_moves(snapshot: Snapshot, namespace: str | None = None) -> list[Move]:
    """The oldest first; of a namespace or of all."""
    found = [move for move in snapshot.moves if not move.phase.ended and namespace in (None, move.namespace)]
    return sorted(found, key=lambda move: (move.started_at, move.namespace, move.name))


def move_table(moves: list[Move], now: float, naming: Naming) -> Table:
    return table(
        ["namespace", "move", "executor", "from", "to", "phase", "helped", "age"],
        [
            [
                move.namespace,
                move.name,
                move.executor_name.rsplit("/", 1)[-1],
                naming.short(move.source),
                naming.short(move.target),
                move.phase.value,
                {None: "", True: "yes", False: "no"}[move.helped],
                duration(now - move.started_at),
            ]
            for move in moves
        ],
        right=["age"],
        cut=["namespace", "move", "executor", "from", "to"],
    )


def move_document(move: Move) -> dict[str, Any]:
    return {
        "namespace": move.namespace,
        "name": move.name,
        "topology": move.topology,
        "component": move.component,
        "executor": move.executor_name.rsplit("/", 1)[-1],
        "from": move.source,
        "to": move.target,
        "phase": move.phase.value,
        "started": instant(move.started_at),
        "ended": instant(move.ended_at),
        "helped": move.helped,
    }
