"""Moves that were deleted before their time. What they did goes on counting for budgets, cooldowns and rests.

A user may delete the moves of a namespace, and the operator's as soon as it has created them. Forgotten, the same
executor would be chosen in every pass, beyond all budgets, and no other tenant's would be moved.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import replace

from ballast.controller.cluster_objects import OpenMove, read_moves
from ballast.kube.document import JSON
from ballast.model import MovePhase
from ballast.moves import MoveState
from ballast.moves.state import MoveReason

_KEPT_SECONDS = 25 * 3600.0
"""As long as ended moves by default."""
_NOTHING_DONE = (MovePhase.PROPOSED, MovePhase.APPROVED, MovePhase.REFUSED, MovePhase.EXPIRED)


class DeletedMoves:
    """Known to this process alone: another leader begins without."""

    def __init__(self) -> None:
        self._seen: dict[str, OpenMove] = {}
        """Moves that go on counting when they are deleted, by uid, in their last known state."""
        self._kept: dict[str, OpenMove] = {}

    def created(self, raw: Iterable[JSON]) -> None:
        """Moves that were created since the last look; they may be gone before the next one."""
        self._seen |= {each.uid: each for each in read_moves(tuple(raw))[0]}

    def advanced(self, moves: Iterable[OpenMove]) -> None:
        """Moves after a pass: one whose executor the pass evicted may be deleted before the next look."""
        self._seen |= {each.uid: each for each in moves if _counts(each.state)}

    def look(self, moves: Iterable[OpenMove], now: float, *, policies: Container[str]) -> list[OpenMove]:
        """Those that were deleted, ended when that was seen. `moves`: all that there are now.

        `policies`: by name, all that there are now. What a policy was limited by goes with it.
        """
        there = {each.uid: each for each in moves}
        for uid in self._seen.keys() - there.keys():
            self._kept[uid] = _renamed(given_up(self._seen[uid], now))
        self._kept = {
            uid: each
            for uid, each in self._kept.items()
            if uid not in there
            and now - (each.state.timings.ended_at or now) < _KEPT_SECONDS
            and (not each.state.orders.policy or each.state.orders.policy in policies)
        }
        self._seen = {uid: each for uid, each in there.items() if _counts(each.state)}
        return list(self._kept.values())


def _counts(state: MoveState) -> bool:
    """One by hand that did nothing does not: a user may create and delete thousands."""
    return not (state.orders.by_hand and state.phase in _NOTHING_DONE)


def _renamed(each: OpenMove) -> OpenMove:
    """The move under a name that no object can have, so that a new move of the same name does not hide it."""
    orders = replace(each.state.orders, name=f"{each.state.orders.name} (deleted)")
    return OpenMove(each.raw, replace(each.state, orders=orders))


def given_up(each: OpenMove, now: float) -> OpenMove:
    """The move as it counts once nothing more can be written about it."""
    state = each.state
    if state.phase.ended:
        return each
    phase = MovePhase.REFUSED if state.phase in _NOTHING_DONE else MovePhase.FAILED
    timings = replace(state.timings, ended_at=now)
    return OpenMove(each.raw, replace(state, phase=phase, reason=MoveReason.NOT_EVICTED, timings=timings))
