"""What rests because of earlier moves."""

from dataclasses import replace
from typing import Any

import pytest

from ballast.model import CORDON, Move, MovePhase, MovesPolicy, Reason
from ballast.moves.rest import rest
from tests.builders import NOW, a_move


@pytest.mark.parametrize(
    ("outcomes", "paused"),
    [
        ([False, False, False], True),
        ([True, False, False], False),
        ([False, False, False, True], False),
        ([False, None, False], False),
        ([False, None, False, None, False], True),
        ([True, None, None, False, False], False),
        ([False, False], False),
    ],
)
def test_a_topology_pauses_after_moves_in_a_row_that_did_not_help(outcomes: list[bool | None], *, paused: bool) -> None:
    moves = [
        a_move(f"m{i}", helped=helped, ended_at=NOW - 1000 + i, started_at=NOW - 2000 + i)
        for i, helped in enumerate(outcomes)
    ]
    assert (rest(moves, MovesPolicy(), NOW).paused == {"team/clicks"}) is paused


def test_a_move_that_failed_on_its_way_counts_and_one_that_never_left_does_not() -> None:
    def outcomes(*phases: MovePhase) -> list[Move]:
        return [a_move(f"m{i}", phase=phase, helped=None, ended_at=NOW - 9 + i) for i, phase in enumerate(phases)]

    failed, refused = MovePhase.FAILED, MovePhase.REFUSED
    assert rest(outcomes(failed, refused, failed, failed), MovesPolicy(), NOW).paused == {"team/clicks"}
    assert rest(outcomes(refused, refused, refused), MovesPolicy(), NOW).paused == frozenset()


def test_no_pause_is_asked_for_by_a_count_of_zero() -> None:
    failed = [a_move(f"m{i}", phase=MovePhase.FAILED) for i in range(9)]
    assert rest(failed, MovesPolicy(pause_after_failures=0), NOW).paused == frozenset()


def test_only_a_paused_topology_has_an_objection() -> None:
    resting = rest([a_move(f"m{i}", helped=False) for i in range(3)], MovesPolicy(), NOW)
    assert resting.of_topology("team/clicks") == (Reason.PAUSED, "moves of team/clicks are paused")
    assert resting.of_topology("team/other") is None


@pytest.mark.parametrize("phase", [MovePhase.REFUSED, MovePhase.EXPIRED])
def test_an_executor_rests_until_its_move_may_be_suggested_again(phase: MovePhase) -> None:
    policy = MovesPolicy(cooldown_seconds=200.0, leave_timeout_seconds=120.0)
    refused = a_move(executor_uid="uid-e", phase=phase, ended_at=NOW - 150)
    words = f"its move m1 was {phase.lower()}; it rests 50 s more"
    assert rest([refused], policy, NOW).executors == {("team", "uid-e"): (Reason.COOLDOWN, words)}
    assert rest([refused], policy, NOW + 50).executors == {}


def test_a_namespace_rests_after_an_executor_of_it_could_not_be_evicted() -> None:
    """Otherwise each of its executors would have its turn, and keep those of others from being moved."""
    policy = MovesPolicy(cooldown_seconds=200.0, leave_timeout_seconds=120.0)
    blocked = a_move(executor_name="e-1", phase=MovePhase.REFUSED, ended_at=NOW - 150, blocked=True)
    words = "moves in team rest 50 s more: e-1 was kept from leaving"
    resting = rest([blocked], policy, NOW)
    assert resting.of_executor("team", "uid-other") == (Reason.COOLDOWN, words)
    assert resting.of_executor("others", "uid-other") is None
    assert rest([blocked], policy, NOW + 50).namespaces == {}
    assert rest([replace(blocked, blocked=False)], policy, NOW).namespaces == {}


def test_each_time_that_nothing_of_a_namespace_can_be_evicted_doubles_its_rest_until_an_executor_leaves() -> None:
    """Moves that are blocked together are one time."""
    policy = MovesPolicy(cooldown_seconds=200.0, leave_timeout_seconds=120.0)
    blocked = a_move(phase=MovePhase.REFUSED, blocked=True, helped=None)
    earlier, together, last = (replace(blocked, ended_at=NOW - ago) for ago in (900.0, 30.0, 0.0))
    assert rest([together, last], policy, NOW + 199.0).namespaces.keys() == {"team"}
    assert rest([together, last], policy, NOW + 200.0).namespaces == {}
    assert rest([earlier, together, last], policy, NOW + 399.0).namespaces.keys() == {"team"}
    assert rest([earlier, together, last], policy, NOW + 400.0).namespaces == {}
    left = a_move("left", left_at=NOW - 500.0)
    assert rest([earlier, left, together, last], policy, NOW + 200.0).namespaces == {}


@pytest.mark.parametrize(
    "changes", [{"phase": MovePhase.REFUSED, "blocked": True}, {"unreplaced": True}], ids=["blocked", "unreplaced"]
)
def test_drains_show_as_well_as_other_moves_that_a_namespace_should_rest(changes: dict[str, Any]) -> None:
    drain = a_move(taint=CORDON, helped=None, ended_at=NOW, **changes)
    assert rest([drain], MovesPolicy(), NOW).namespaces.keys() == {"team"}
    assert rest([drain], MovesPolicy(), NOW).executors == {}


@pytest.mark.parametrize(("at_once", "most"), [(1, 3), (6, 6)])
@pytest.mark.parametrize("phase", [MovePhase.REFUSED, MovePhase.EXPIRED])
def test_a_namespace_rests_in_which_many_moves_come_to_nothing_before_they_begin(
    phase: MovePhase, at_once: int, most: int
) -> None:
    """Its user may delete each executor whose move is created, and create another one."""
    policy = MovesPolicy(cooldown_seconds=200.0, leave_timeout_seconds=120.0, max_concurrent=at_once)
    moves = [a_move(f"m{i}", executor_uid=f"uid-{i}", phase=phase, ended_at=NOW - 150 + i) for i in range(most)]
    found = rest(moves, policy, NOW)
    words = f"moves in team rest 50 s more: {most} of them were lately refused or expired"
    assert found.of_executor("team", "uid-new") == (Reason.COOLDOWN, words)
    assert found.of_executor("others", "uid-new") is None
    assert rest(moves, policy, NOW + 50).namespaces == {}
    assert rest(moves[1:], policy, NOW).namespaces == {}
    assert rest([replace(move, by_hand=True) for move in moves], policy, NOW).namespaces == {}
    assert rest([replace(move, elsewhere=True) for move in moves], policy, NOW).namespaces == {}


def test_a_namespace_rests_in_which_moves_can_t_be_created() -> None:
    resting = rest([], MovesPolicy(), NOW, closed_namespaces={"team": "exceeded quota"})
    assert resting.of_executor("team", "uid-e") == (Reason.COOLDOWN, "moves in team rest: exceeded quota")


@pytest.mark.parametrize(
    ("failed", "succeeded", "since", "rests"),
    [
        (1, 0, 99.0, True),
        (1, 0, 100.0, False),
        (1, 1, 0.0, False),
        (3, 0, 399.0, True),
        (3, 0, 400.0, False),
        (3, 2, 99.0, True),
        (3, 2, 100.0, False),
        (90, 0, 12_799.0, True),
        (90, 0, 12_800.0, False),
    ],
)
def test_a_namespace_rests_the_longer_the_more_of_its_moves_come_to_nothing(
    failed: int, succeeded: int, since: float, *, rests: bool
) -> None:
    """Each by other pods, of other topologies, so that neither executors nor topologies rest for all of them."""
    policy = MovesPolicy(cooldown_seconds=100.0)
    moves = [
        *(a_move(f"f{i}", topology=f"team/f{i}", phase=MovePhase.FAILED, helped=None) for i in range(failed)),
        *(a_move(f"s{i}", topology=f"team/s{i}") for i in range(succeeded)),
    ]
    ended = [replace(move, ended_at=NOW - since) for move in moves]
    assert bool(rest(ended, policy, NOW).namespaces) is rests


def test_a_namespace_rests_in_which_executors_that_moved_have_no_replacements() -> None:
    """A quota or LimitRange may let none be created: one move after the other would take its executors."""
    moves = [a_move(f"m{i}", topology=f"team/t{i}", helped=None, unreplaced=True, ended_at=NOW) for i in range(2)]
    policy = MovesPolicy(cooldown_seconds=100.0)
    assert rest(moves, policy, NOW + 199.0).namespaces.keys() == {"team"}
    assert rest([*moves, a_move("good")], policy, NOW + 99.0).namespaces.keys() == {"team"}
    assert rest([*moves, a_move("good"), a_move("better")], policy, NOW).namespaces == {}


def test_moves_by_hand_and_those_of_other_pools_let_no_namespace_rest_longer_or_shorter() -> None:
    failed = a_move(phase=MovePhase.FAILED, helped=None, ended_at=NOW)
    by_hand = [a_move(f"h{i}", by_hand=True) for i in range(9)]
    assert rest([failed, *by_hand], MovesPolicy(), NOW).namespaces.keys() == {"team"}
    for other in (replace(failed, by_hand=True), replace(failed, elsewhere=True)):
        assert rest([other], MovesPolicy(), NOW).namespaces == {}
