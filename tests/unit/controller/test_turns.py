"""Junk floods: moves and topologies that a user creates by the thousand delay neither gates nor other namespaces."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ballast.controller.cluster_objects import OpenMove, read_moves
from ballast.controller.turns import (
    AGAIN_SECONDS,
    LEAST_STATUSES,
    MOST,
    MOST_SECONDS,
    MOST_WHILE_GATED,
    MoveTurns,
    StatusTurns,
)
from tests.unit.controller.stage import NOW, Stage, move, stage, streaming

JSON = dict[str, Any]


def waiting(namespace: str, number: int, **status: Any) -> JSON:
    found = move(1)
    found["metadata"] |= {"namespace": namespace, "name": f"m{number:04}", "uid": f"{namespace}-{number}"}
    return {**found, "status": status} if status else found


def opened(*raws: JSON) -> list[OpenMove]:
    found, broken = read_moves(raws)
    assert not broken
    return found


def taken(turns: MoveTurns, moves: list[OpenMove]) -> list[str]:
    turns.begin(moves)
    return [each.key for each in turns.order(moves) if turns.comes(each)]


JUNK = opened(*(waiting("junk", number) for number in range(1500)))


def test_a_flood_in_one_namespace_does_not_keep_another_namespaces_move_from_its_turn() -> None:
    mine = opened(waiting("mine", 0))
    first = taken(MoveTurns(), [*JUNK, *mine])
    assert len(first) == MOST
    assert "mine/m0000" in first[:2]


def test_every_move_has_its_turn_although_each_reconcile_looks_at_a_few() -> None:
    turns, found = MoveTurns(), list[str]()
    for _ in range(len(JUNK) // MOST):
        found += taken(turns, JUNK)
    assert sorted(found) == sorted(each.key for each in JUNK)


def test_many_namespaces_with_a_flood_each_take_turns() -> None:
    flood = opened(*(waiting(f"ns{space}", number) for space in range(3 * MOST) for number in range(3)))
    turns = MoveTurns()
    served = {key.split("/")[0] for _ in range(3) for key in taken(turns, flood)}
    assert len(served) == 3 * MOST


def test_a_move_under_way_always_has_its_turn() -> None:
    leaving = opened(*(waiting("mine", number, phase="Leaving") for number in range(2 * MOST)))
    found = taken(MoveTurns(), [*JUNK, *leaving])
    assert len(found) == 3 * MOST
    assert found[: 2 * MOST] == [each.key for each in leaving]


def test_a_move_that_a_user_approves_does_not_wait_behind_those_that_were_looked_at() -> None:
    moves = opened(*(waiting("mine", number) for number in range(3 * MOST)))
    turns = MoveTurns()
    for _ in range(3):
        taken(turns, moves)
    moves[0].raw["metadata"]["generation"] += 1
    assert taken(turns, moves)[0] == "mine/m0000"


def test_moves_that_had_no_turn_are_looked_at_at_once_the_first_time_and_later_again() -> None:
    turns, moves = MoveTurns(), JUNK[: 2 * MOST]
    taken(turns, moves)
    assert turns.again_at(NOW) == NOW
    taken(turns, moves)
    assert turns.again_at(NOW) == NOW + AGAIN_SECONDS
    taken(turns, moves[:MOST])
    assert turns.again_at(NOW) is None


def test_a_server_that_is_slow_leaves_less_to_a_reconcile() -> None:
    turns = MoveTurns()
    turns.begin(JUNK)
    found = 0
    for each in turns.order(JUNK):
        found += turns.comes(each)
        turns.spent(MOST_SECONDS / 4 if found <= 4 else 0.0)
    assert found == 4


@pytest.fixture
def pool() -> Iterator[Stage]:
    with stage() as found:
        found.add(streaming(1, node="hot"), streaming(3, node="mild"))
        yield found


def test_a_reconcile_ends_few_junk_moves_and_says_when_to_go_on(pool: Stage) -> None:
    for number in range(2, 2 + 3 * MOST):
        pool.order(move(number))
    pool.begin()
    assert pool.run() == NOW
    assert len(pool.done()) == MOST
    assert sum(pool.phase(name)[0] == "Expired" for name in pool.moves) == MOST


def test_a_reconcile_deletes_few_of_those_that_ended(pool: Stage) -> None:
    for number in range(2, 2 + 2 * MOST):
        timings = {"ended": "2020-01-01T00:00:00Z"}
        pool.order({**move(number), "status": {"phase": "Refused", "reason": "TooYoung", "timings": timings}})
    pool.begin()
    assert pool.run() == NOW + AGAIN_SECONDS
    assert len(pool.moves) == MOST


def test_moves_that_are_being_deleted_take_no_turn_of_those_that_ended(pool: Stage) -> None:
    timings = {"ended": "2020-01-01T00:00:00Z"}
    for number in range(2, 2 + 2 * MOST):
        ended = {**move(number), "status": {"phase": "Refused", "reason": "TooYoung", "timings": timings}}
        if number < 2 + MOST:
            ended["metadata"] |= {"deletionTimestamp": "2020-01-02T00:00:00Z", "finalizers": ["example.com/kept"]}
        pool.order(ended)
    pool.begin()
    assert pool.run() is None
    assert sorted(pool.moves) == sorted(f"m{number}" for number in range(2, 2 + MOST))


def test_while_executors_are_gated_fewer_moves_have_their_turn() -> None:
    turns = MoveTurns()
    turns.begin(JUNK, gated=True)
    assert len([each for each in turns.order(JUNK) if turns.comes(each)]) == MOST_WHILE_GATED
    assert turns.again_at(NOW) == NOW


def test_when_executors_are_to_be_released_one_move_has_its_turn_and_the_others_wait() -> None:
    turns = MoveTurns()
    turns.begin(JUNK)
    turns.hurry()
    assert len([each for each in turns.order(JUNK) if turns.comes(each)]) == 1
    assert turns.again_at(NOW) == NOW


def test_a_reconcile_looks_at_one_move_when_executors_are_to_be_released(pool: Stage) -> None:
    pool.order(*(move(number) for number in range(10, 13)))
    pool.begin()
    found = pool.opened()
    pool.movers.run(pool.context(found), found, release_due=lambda: True)
    assert len(pool.done()) == 1


MANY = [f"junk/t{number}" for number in range(5)]


def test_all_statuses_have_their_turn_as_long_as_no_executor_is_to_be_released() -> None:
    turns = StatusTurns()
    assert set(turns.take(MANY, lambda: False)) == set(MANY)
    assert turns.postponed == frozenset()


def test_once_executors_are_to_be_released_few_statuses_have_their_turn_and_the_others_come_next() -> None:
    turns = StatusTurns()
    first = list(turns.take(MANY, lambda: True))
    assert (len(first), turns.postponed) == (LEAST_STATUSES, frozenset(MANY) - set(first))
    assert list(turns.take(MANY, lambda: False))[-1:] == first


def test_a_status_of_each_namespace_has_its_turn() -> None:
    turns = StatusTurns()
    taken = [next(turns.take([*MANY, "web/t0"], lambda: True)) for _ in range(3)]
    assert taken == ["junk/t0", "web/t0", "junk/t1"]


def test_topologies_that_are_gone_are_forgotten() -> None:
    turns = StatusTurns()
    list(turns.take([*MANY, "web/t0"], lambda: False))
    turns.begin({"web/t0"})
    assert len(turns) == 2
