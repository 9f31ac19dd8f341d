"""An ExecutorMove as it was last read or written, and the state that it holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ballast.errors import BallastError
from ballast.kube import kinds
from ballast.model import Move
from ballast.moves import MoveState, record

JSON = dict[str, Any]


@dataclass(frozen=True, slots=True)
class OpenMove:
    raw: JSON
    state: MoveState

    @property
    def key(self) -> str:
        return self.state.orders.key

    def planned(self, points_per_core: Mapping[str, float]) -> Move:
        """As the planner reads it. `points_per_core`: of score, by node; nodes that are gone are absent."""
        return record.to_move(self.state, source_points_per_core=points_per_core.get(self.state.orders.source, 0.0))


def read_moves(raw: tuple[JSON, ...]) -> tuple[list[OpenMove], list[BallastError]]:
    """The moves that this version can read, and what is wrong with the others."""
    found: list[OpenMove] = []
    broken: list[BallastError] = []
    for item in raw:
        whole = {"apiVersion": kinds.EXECUTOR_MOVE.api_version, "kind": kinds.EXECUTOR_MOVE.kind, **item}
        try:
            found.append(OpenMove(whole, record.read(whole)))
        except BallastError as error:
            broken.append(error)
    return found, broken


def planner_moves(moves: Iterable[OpenMove], points_per_core: Mapping[str, float]) -> tuple[Move, ...]:
    """All of them as the planner reads them."""
    return tuple(each.planned(points_per_core) for each in moves)
