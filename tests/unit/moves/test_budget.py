from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from ballast.model import Budget, Executor, Move, MovePhase, MovesPolicy, Objection, Phase, Reason
from ballast.moves.budget import (
    ExecutorCounts,
    active,
    next_reset,
    node_objection,
    pool_budgets_left,
    pool_objection,
    topology_objection,
    used,
)
from ballast.moves.rest import rest, ways
from ballast.moves.rules import Rules, Way
from tests.builders import NOW, a_move, a_policy, an_executor

FREE = MovesPolicy(max_concurrent=2, max_concurrent_per_node=1, cooldown_seconds=0.0)
FLYING = a_move("flying", phase=MovePhase.LEAVING, ended_at=None)


def ruled(
    moves: list[Move],
    policy: MovesPolicy,
    now: float = NOW,
    counts: ExecutorCounts | None = None,
    *,
    by_hand: bool = False,
    **where: str,
) -> Objection | None:
    """By the rules that follow from other moves alone."""
    at = {"topology": "team/clicks", "source": "n1", "target": "n2", **where}
    rules = Rules(
        a_policy(moves=policy),
        moves,
        resting=rest(moves, policy, now),
        counts=counts or ExecutorCounts(),
        now=now,
        by_hand=by_hand,
    )
    return rules.of_others(
        Way("uid-new", at["topology"], at["source"], at["target"], None, None, locality_delta_ratio=0.0)
    )


def _why(moves: list[Move], policy: MovesPolicy, **where: Any) -> Reason | None:
    found = ruled(moves, policy, NOW, None, **where)
    return found[0] if found else None


@pytest.mark.parametrize(
    ("where", "reason"),
    [
        pytest.param({}, Reason.MAX_CONCURRENT, id="the same topology"),
        pytest.param({"topology": "team/other", "target": "cold"}, Reason.MAX_CONCURRENT, id="the same node"),
        pytest.param({"topology": "team/other", "source": "cold"}, Reason.MAX_CONCURRENT, id="from where one arrives"),
        pytest.param({"topology": "team/other"}, None, id="elsewhere"),
    ],
)
def test_moves_under_way_limit_further_ones(where: dict[str, str], reason: Reason | None) -> None:
    assert _why([FLYING], FREE, **where) is reason


def test_the_pool_limits_moves_of_all_topologies() -> None:
    elsewhere = a_move("other", topology="team/other", source="n8", target="n9", phase=MovePhase.LEAVING, ended_at=None)
    where = {"topology": "team/third"}
    assert _why([FLYING, elsewhere], FREE, **where) is Reason.MAX_CONCURRENT
    assert _why([elsewhere], FREE, **where) is None


def test_moves_of_another_policys_pool_use_up_nothing_of_this_one() -> None:
    begun = replace(FLYING, topology="team/other", source="n8", target="n9", elsewhere=True)
    ended = replace(begun, phase=MovePhase.SUCCEEDED, ended_at=NOW)
    policy = MovesPolicy(max_concurrent=1, cooldown_seconds=0.0, budgets=(Budget(1, per_seconds=3600.0, scope="Pool"),))
    for move in (begun, ended, replace(begun, by_hand=True), replace(ended, by_hand=True)):
        assert ruled([move], policy, by_hand=move.by_hand) is None
        assert ruled([replace(move, elsewhere=False)], policy, by_hand=move.by_hand) is not None


def test_a_proposed_move_counts_as_under_way() -> None:
    assert _why([a_move(phase=MovePhase.PROPOSED, ended_at=None)], FREE) is Reason.MAX_CONCURRENT


@pytest.mark.parametrize(
    ("ages", "reason"),
    [
        ([100], None),
        ([100, 150], Reason.COOLDOWN),
        ([100, 200], None),
        ([100, 150, 199], Reason.COOLDOWN),
    ],
)
def test_a_topology_rests_after_as_many_moves_as_may_be_under_way(ages: list[float], reason: Reason | None) -> None:
    policy = MovesPolicy(cooldown_seconds=200.0, max_concurrent_per_topology=2)
    moves = [a_move(f"m-{age}", source="n8", target="n9", ended_at=NOW - age) for age in ages]
    assert _why(moves, policy) is reason


@pytest.mark.parametrize(
    ("executors", "flying", "allowed"),
    [(6, 0, True), (6, 1, False), (15, 1, True), (15, 2, False), (200, 29, True), (200, 30, False)],
)
def test_a_large_topology_may_have_more_moves_under_way(executors: int, flying: int, *, allowed: bool) -> None:
    policy = replace(FREE, max_concurrent=99, max_concurrent_per_node=99)
    under_way = [replace(FLYING, name=f"m-{number}", source="n8", target="n9") for number in range(flying)]
    found = ruled(under_way, policy, counts=ExecutorCounts(by_topology={"team/clicks": executors}))
    assert (found is None) is allowed


def test_a_topology_rests_until_fewer_moves_are_recent() -> None:
    policy = MovesPolicy(cooldown_seconds=200.0, max_concurrent_per_topology=2)
    moves = [a_move(f"m-{age}", source="n8", target="n9", ended_at=NOW - age) for age in (10, 100, 150)]
    assert ruled(moves, policy) == (Reason.COOLDOWN, "team/clicks rests 100 s more after a move")


def test_a_topology_rests_after_a_move() -> None:
    policy = MovesPolicy(cooldown_seconds=200.0)
    assert _why([a_move(ended_at=NOW - 100)], policy) is Reason.COOLDOWN
    assert _why([a_move(ended_at=NOW - 100)], policy, topology="team/other") is None
    assert _why([a_move(ended_at=NOW - 200)], policy) is None


@pytest.mark.parametrize(
    ("where", "reason"),
    [
        pytest.param({"source": "cold"}, Reason.COOLDOWN, id="the one that took gives none"),
        pytest.param({"target": "hot"}, Reason.COOLDOWN, id="the one that gave takes none"),
        pytest.param({"source": "hot"}, None, id="the one that gave may give"),
        pytest.param({"target": "cold"}, None, id="the one that took may take"),
    ],
)
def test_a_node_does_not_soon_do_the_opposite(where: dict[str, str], reason: Reason | None) -> None:
    policy = MovesPolicy(cooldown_seconds=200.0)
    assert _why([a_move(ended_at=NOW - 100)], policy, topology="team/other", **where) is reason


def test_a_refused_move_uses_up_nothing() -> None:
    refused = a_move(phase=MovePhase.REFUSED)
    policy = MovesPolicy(budgets=(Budget(moves=1, per_seconds=3600.0),))
    assert _why([refused], policy) is None


def test_a_budget_counts_moves_of_its_period() -> None:
    policy = MovesPolicy(cooldown_seconds=0.0, budgets=(Budget(moves=2, per_seconds=3600.0),))
    old = a_move("old", started_at=NOW - 3600, ended_at=NOW - 3500)
    assert _why([old, a_move("one")], policy) is None
    assert _why([a_move("one"), a_move("two")], policy) is Reason.BUDGET


def test_a_topology_budget_looks_at_its_own_topology() -> None:
    policy = MovesPolicy(cooldown_seconds=0.0, budgets=(Budget(moves=1, per_seconds=3600.0, scope="Topology"),))
    assert _why([a_move("one")], policy) is Reason.BUDGET
    assert _why([a_move("one", topology="team/other")], policy) is None


@pytest.mark.parametrize(
    ("scope", "counts"),
    [
        ("Pool", ExecutorCounts(pool=20)),
        ("Topology", ExecutorCounts(by_topology={"team/clicks": 20})),
        ("Node", ExecutorCounts(by_node={"hot": 20, "cold": 20})),
    ],
)
def test_a_budget_in_percent_grows_with_the_executors_that_it_is_counted_for(
    scope: str, counts: ExecutorCounts
) -> None:
    budget = Budget(moves=1, percent=10, per_seconds=3600.0, scope=scope)
    policy = MovesPolicy(cooldown_seconds=0.0, budgets=(budget,))
    assert ruled([a_move("one")], policy, counts=counts, source="hot", target="cold") is None
    found = ruled([a_move("one"), a_move("two")], policy, counts=counts, source="hot", target="cold")
    assert found is not None
    assert found[1].startswith("2 of 2 moves used")
    assert ruled([a_move("one")], policy, source="hot", target="cold") is not None


def test_only_running_executors_count_for_budgets() -> None:
    """Otherwise budgets in percent would grow with executors that another gate holds for good, which cost nothing."""
    executors = (
        an_executor("a", topology="team/clicks", node="n1"),
        an_executor("b", topology="team/clicks", node=None, phase=Phase.GATED),
        an_executor("c", topology="team/clicks", node="n1", phase=Phase.LEAVING),
        an_executor("d", topology="team/clicks", node="n1", phase=Phase.ENDED),
    )
    assert ExecutorCounts.of(executors) == ExecutorCounts(1, {"team/clicks": 1}, {"n1": 1}, {"team": 1.0})


def test_a_scheduled_budget_of_nothing_forbids_moves_while_it_is_open() -> None:
    morning = Budget(moves=0, schedule="0 8 * * 1-5", time_zone="Europe/Berlin", duration_seconds=7200.0)
    friday = datetime(2026, 11, 20, 7, 30, tzinfo=UTC).timestamp()
    assert active(morning, friday)
    assert not active(morning, friday + 7200)
    assert not active(morning, datetime(2026, 11, 21, 7, 30, tzinfo=UTC).timestamp())


FRIDAY = datetime(2026, 11, 20, 7, 0, tzinfo=UTC).timestamp()
"""Eight o'clock in Berlin."""
MORNING = Budget(moves=1, schedule="0 8 * * 1-5", time_zone="Europe/Berlin", duration_seconds=7200.0)


@pytest.mark.parametrize(("started", "reason"), [(0.0, Reason.BUDGET), (-1.0, None)])
def test_a_scheduled_budget_counts_from_the_moment_it_opens(started: float, reason: Reason | None) -> None:
    policy = MovesPolicy(cooldown_seconds=0.0, budgets=(MORNING,))
    past = [a_move(started_at=FRIDAY + started, ended_at=FRIDAY + 1)]
    found = ruled(past, policy, FRIDAY + 1800)
    assert (found[0] if found else None) is reason
    if found:
        assert "1 of 1 moves used, in the pool while the window '0 8 * * 1-5' (Europe/Berlin) is open" in found[1]


def test_a_scheduled_budget_never_says_when_it_frees() -> None:
    assert next_reset(MORNING, [a_move()], NOW) is None


def test_a_budget_with_no_move_to_count_has_nothing_to_free() -> None:
    assert next_reset(Budget(moves=1, per_seconds=60.0), [a_move()], NOW) is None


def test_the_budget_says_what_is_used_and_when_it_frees() -> None:
    budget = Budget(moves=6, per_seconds=3600.0)
    moves = [a_move("one", started_at=NOW - 600), a_move("two", started_at=NOW - 60)]
    assert used(budget, moves, NOW) == 2
    assert next_reset(budget, moves, NOW) == NOW + 3000


def test_moves_that_wait_for_approval_limit_those_of_their_own_namespace_alone() -> None:
    policy = MovesPolicy(max_concurrent=2, max_concurrent_per_node=1)
    waiting = [a_move(f"m{i}", phase=MovePhase.PROPOSED, ended_at=None, unapproved=True) for i in range(2)]
    assert pool_objection(waiting, policy, ExecutorCounts(), NOW) is None
    assert node_objection(waiting, policy, ExecutorCounts(), node="hot", gives=True, now=NOW) is None
    namespaces = rest(waiting, policy, NOW).namespaces
    assert namespaces == {"team": (Reason.MAX_CONCURRENT, "2 moves in team wait for approval")}
    assert rest(waiting[1:], policy, NOW).namespaces == {}
    own = topology_objection(waiting, policy, ExecutorCounts(), topology="team/clicks", now=NOW)
    assert own is not None
    about_to_go = [replace(move, unapproved=False) for move in waiting]
    assert pool_objection(about_to_go, policy, ExecutorCounts(), NOW) is not None


def test_a_move_that_names_an_executor_of_another_namespace_keeps_it_from_nothing() -> None:
    policy = MovesPolicy(cooldown_seconds=200.0)
    theirs = a_move(namespace="other", topology="other/clicks", executor_uid="uid-new", source="n8", target="n9")
    expired = replace(theirs, phase=MovePhase.EXPIRED, ended_at=NOW - 10)
    assert ("team", "uid-new") not in rest([expired], policy, NOW).executors
    open_one = replace(theirs, phase=MovePhase.LEAVING, ended_at=None)
    assert _why([open_one], policy) is None
    assert _why([replace(open_one, namespace="team")], policy) is Reason.IN_FLIGHT


def by_hand(*names: str, **changes: Any) -> list[Move]:
    """Of one tenant, all of its own executors."""
    return [
        replace(a_move(name, topology="tenant/own", source=f"s-{name}", target=f"t-{name}", **changes), by_hand=True)
        for name in names
    ]


UNDER_WAY: dict[str, Any] = {"phase": MovePhase.LEAVING, "ended_at": None}
MANY = MovesPolicy(max_concurrent=4, max_concurrent_per_topology=4, cooldown_seconds=0.0)


def test_moves_by_hand_get_half_of_those_under_way_at_once_and_the_strategy_the_rest() -> None:
    moves = by_hand("a", "b", **UNDER_WAY)
    refused = ruled(moves, MANY, by_hand=True, topology="tenant/own")
    assert refused is not None
    assert refused[0] is Reason.MAX_CONCURRENT
    assert "half of moves.maxConcurrent 4" in refused[1]
    assert ruled(moves, MANY) is None
    assert ruled(moves[:1], MANY, by_hand=True, topology="tenant/own") is None


def test_moves_by_hand_get_half_of_the_pools_budget_and_the_strategy_the_rest() -> None:
    policy = replace(MANY, budgets=(Budget(moves=4, per_seconds=3600.0, scope="Pool"),))
    moves = by_hand("a", "b", phase=MovePhase.SUCCEEDED)
    refused = ruled(moves, policy, by_hand=True)
    assert refused is not None
    assert refused[0] is Reason.BUDGET
    assert "2 of 2 moves used, by hand" in refused[1]
    assert ruled(moves, policy) is None


def of_tenant(count: int, **changes: Any) -> list[Move]:
    """Of the strategy, each of another application and between other nodes: only their namespace is the same."""
    return [
        replace(move, namespace="tenant", topology=f"tenant/{move.name}", by_hand=False)
        for move in by_hand(*(f"spark-{number}" for number in range(count)), **changes)
    ]


ODDS = [
    pytest.param(1.0, 1.0, 3, id="half of the pool's executors"),
    pytest.param(1.0, 9.0, 3, id="a few of them"),
    pytest.param(3.0, 1.0, 5, id="three of four"),
    pytest.param(99.0, 1.0, 6, id="almost all"),
    pytest.param(1.0, 0.0, 6, id="all"),
]


@pytest.mark.parametrize(("own", "others", "part"), ODDS)
def test_applications_of_ever_new_names_leave_others_a_part_of_the_pools_budget(
    own: float, others: float, part: int
) -> None:
    policy = replace(MANY, max_concurrent=99, budgets=(Budget(moves=6, per_seconds=3600.0, scope="Pool"),))
    counts = ExecutorCounts(cores_by_namespace={"tenant": own, "team": others})
    assert ruled(of_tenant(part - 1), policy, counts=counts, topology="tenant/next") is None
    refused = ruled(of_tenant(part), policy, counts=counts, topology="tenant/next")
    assert refused is not None
    assert refused[0] is Reason.BUDGET
    assert refused[1].startswith(f"{part} of {part} moves used")
    assert (ruled(of_tenant(part), policy, counts=counts) is None) is (part < 6)


@pytest.mark.parametrize(("own", "others", "part"), ODDS)
def test_moves_under_way_in_one_namespace_leave_others_a_part(own: float, others: float, part: int) -> None:
    policy = replace(MANY, max_concurrent=6)
    counts = ExecutorCounts(cores_by_namespace={"tenant": own, "team": others})
    assert ruled(of_tenant(part - 1, **UNDER_WAY), policy, counts=counts, topology="tenant/next") is None
    refused = ruled(of_tenant(part, **UNDER_WAY), policy, counts=counts, topology="tenant/next")
    assert refused is not None
    assert refused[0] is Reason.MAX_CONCURRENT
    assert (ruled(of_tenant(part, **UNDER_WAY), policy, counts=counts) is None) is (part < 6)


def of(namespace: str, count: int, **changes: Any) -> list[Move]:
    """Each of another application, and between other nodes."""
    return [
        replace(
            move,
            namespace=namespace,
            topology=f"{namespace}/{move.name}",
            source=f"{namespace}-{move.source}",
            target=f"{namespace}-{move.target}",
        )
        for move in of_tenant(count, **changes)
    ]


@pytest.mark.parametrize(
    ("shares", "moves", "allowed"),
    [
        pytest.param({"a": 0, "b": 0, "team": 9}, {"a": 3}, False, id="both have hardly any executors"),
        pytest.param({"a": 0, "b": 0, "team": 9}, {"a": 2}, True, id="three moves are half of six"),
        pytest.param(
            {"a": 4, "b": 4, "team": 2}, {"a": 3, "b": 2}, False, id="a third one leaves a fifth of the pool one"
        ),
        pytest.param({"a": 4, "b": 4, "team": 2}, {"a": 3, "b": 1}, True, id="within its share"),
        pytest.param({"a": 1, "b": 1, "c": 1, "d": 1}, {"a": 1, "c": 1, "d": 2}, True, id="all have moved"),
    ],
)
def test_namespaces_leave_others_a_part_together_too(
    shares: dict[str, int], moves: dict[str, int], *, allowed: bool
) -> None:
    """A user with two namespaces had all of the pool's moves, half of them in each."""
    counts = ExecutorCounts(cores_by_namespace={name: float(share) for name, share in shares.items()})
    budgets = (Budget(moves=6, per_seconds=3600.0, scope="Pool"),)
    for policy, more in (
        (replace(MANY, max_concurrent=6), UNDER_WAY),
        (replace(MANY, max_concurrent=99, budgets=budgets), {}),
    ):
        begun = [move for name, count in moves.items() for move in of(name, count, **more)]
        assert (ruled(begun, policy, counts=counts, topology="b/next") is None) is allowed
        if "team" in shares:
            assert ruled(begun, policy, counts=counts) is None


def test_of_two_moves_two_small_namespaces_have_one() -> None:
    counts = ExecutorCounts(cores_by_namespace={"a": 1.0, "b": 1.0, "team": 9.0})
    policy = replace(MANY, budgets=(Budget(moves=2, per_seconds=3600.0, scope="Pool"),))
    refused = ruled(of("a", 1), policy, counts=counts, topology="b/next")
    assert refused is not None
    assert refused[0] is Reason.BUDGET
    assert "half of what is left for others, per 3600 s, moves.budgets[0]" in refused[1]
    assert ruled([], policy, counts=counts, topology="b/next") is None


def test_where_one_move_is_allowed_any_namespace_may_have_it() -> None:
    one = replace(MANY, max_concurrent=1, budgets=(Budget(moves=1, per_seconds=60.0, scope="Pool"),))
    counts = ExecutorCounts(cores_by_namespace={"tenant": 1.0, "team": 9.0})
    assert ruled([], one, counts=counts, topology="tenant/next") is None


@pytest.mark.parametrize(
    "executor",
    [
        pytest.param(an_executor("w", node=None, phase=Phase.GATED), id="gated"),
        pytest.param(an_executor("w", node="no-such-node", phase=Phase.PENDING), id="bound by its author"),
    ],
)
def test_executors_that_do_not_run_add_nothing_to_what_their_namespace_may_move(executor: Executor) -> None:
    """A pod may be bound to a node that does not exist, with any requests: so one namespace had all moves."""
    waiting = [replace(executor, uid=f"w-{number}") for number in range(9)]
    running = [an_executor("a", node="n1"), an_executor("b", node="n1", namespace="other", topology="other/b")]
    assert ExecutorCounts.of([*waiting, *running]).share("team") == 0.5


def test_a_policy_that_allows_one_move_allows_one_by_hand() -> None:
    one = MovesPolicy(
        max_concurrent=1, cooldown_seconds=0.0, budgets=(Budget(moves=1, per_seconds=60.0, scope="Pool"),)
    )
    assert ruled([], one, by_hand=True) is None


@pytest.mark.parametrize(
    ("took", "cooldown", "ago", "reason"),
    [
        pytest.param(600.0, 60.0, 599.0, Reason.MAX_CONCURRENT, id="as long as it took"),
        pytest.param(600.0, 60.0, 600.0, None, id="no longer"),
        pytest.param(10.0, 60.0, 59.0, Reason.MAX_CONCURRENT, id="or for a cooldown"),
        pytest.param(10.0, 60.0, 60.0, None, id="and no longer"),
    ],
)
def test_where_one_move_at_a_time_is_allowed_others_have_their_turn_after_one_by_hand(
    took: float, cooldown: float, ago: float, reason: Reason | None
) -> None:
    """A pod's grace period can make each move last minutes. A user who made one after another stopped leveling."""
    one = MovesPolicy(max_concurrent=1, max_concurrent_per_node=4, cooldown_seconds=cooldown)
    past = by_hand("a", phase=MovePhase.FAILED, started_at=NOW - ago - took, ended_at=NOW - ago)
    found = ruled(past, one, by_hand=True)
    assert (found[0] if found else None) is reason
    assert ruled(past, one) is None
    assert ruled(past, replace(one, max_concurrent=2), by_hand=True) is None
    assert ruled([replace(each, phase=MovePhase.REFUSED) for each in past], one, by_hand=True) is None


@pytest.mark.parametrize(("most", "reason"), [(1, Reason.MAX_CONCURRENT), (2, None)])
def test_so_they_have_at_a_node_where_one_is_allowed(most: int, reason: Reason | None) -> None:
    policy = MovesPolicy(max_concurrent=4, max_concurrent_per_node=most, cooldown_seconds=60.0)
    past = [replace(each, source="hot") for each in by_hand("a", phase=MovePhase.FAILED, ended_at=NOW - 50.0)]

    def asked(*, by_hand: bool) -> Reason | None:
        found = node_objection(past, policy, ExecutorCounts(), node="hot", gives=True, now=NOW, by_hand=by_hand)
        return None if found is None else found[0]

    assert (asked(by_hand=True), asked(by_hand=False)) == (reason, None)


HOUR = Budget(moves=1, per_seconds=3600.0, scope="Pool")


@pytest.mark.parametrize(
    ("budget", "now", "ago", "reason"),
    [
        pytest.param(HOUR, NOW, 7100.0, Reason.BUDGET, id="in the hour before"),
        pytest.param(HOUR, NOW, 7300.0, None, id="two hours ago"),
        pytest.param(replace(HOUR, moves=2), NOW, 3700.0, None, id="a budget of two"),
        pytest.param(MORNING, FRIDAY + 60.0, 24 * 3600.0, Reason.BUDGET, id="on the morning before"),
        pytest.param(MORNING, FRIDAY + 60.0, 48 * 3600.0, None, id="on the one before that"),
    ],
)
def test_of_a_budget_of_one_move_every_other_one_is_for_moves_by_hand(
    budget: Budget, now: float, ago: float, reason: Reason | None
) -> None:
    policy = replace(MANY, budgets=(budget,))
    past = by_hand("a", phase=MovePhase.SUCCEEDED, started_at=now - ago, ended_at=now - ago)
    found = ruled(past, policy, now, by_hand=True)
    assert (found[0] if found else None) is reason
    assert found is None or "1 of 1 moves used, by hand, which get half of the pool's, in 2 periods, " in found[1]
    assert ruled(past, policy, now) is None


def test_the_strategys_own_moves_use_up_nothing_of_what_is_for_moves_by_hand() -> None:
    others = [a_move(f"m{n}", topology=f"team/{n}", source=f"s{n}", target=f"t{n}", **UNDER_WAY) for n in range(3)]
    assert ruled(others, MANY, by_hand=True) is None


@pytest.mark.parametrize(
    ("outcome", "counts"),
    [
        pytest.param({"left_at": None}, False, id="its executor never went"),
        pytest.param({"left_at": NOW - 50}, True, id="it went, and no other came"),
        pytest.param({"left_at": None, "blocked": True}, True, id="it was deleted, and its executor may have gone"),
    ],
)
def test_an_executor_that_does_not_go_uses_up_no_moves_of_others(outcome: dict[str, Any], *, counts: bool) -> None:
    budget = Budget(1, per_seconds=3600.0)
    stayed = a_move(topology="bad/one", phase=MovePhase.FAILED, helped=None, **outcome)
    policy = MovesPolicy(budgets=(budget,), cooldown_seconds=0.0)
    assert _why([stayed], policy, topology="team/other") is (Reason.BUDGET if counts else None)
    own = MovesPolicy(budgets=(replace(budget, scope="Topology"),), cooldown_seconds=0.0)
    assert _why([stayed], own, topology="bad/one") is Reason.BUDGET


def test_executors_that_do_not_go_use_up_what_may_be_moved_by_hand() -> None:
    """Otherwise a user would evict such executors by hand, one after the other, each in a slot of the pool."""
    policy = replace(MANY, budgets=(Budget(moves=4, per_seconds=3600.0, scope="Pool"),))
    stayed = [replace(move, left_at=None, helped=None) for move in by_hand("a", "b", phase=MovePhase.FAILED)]
    refused = ruled(stayed, policy, by_hand=True)
    assert refused is not None
    assert refused[0] is Reason.BUDGET
    assert ruled(stayed[:1], policy, by_hand=True) is None
    assert ruled(stayed, policy) is None


@pytest.mark.parametrize("gives", [True, False], ids=["onto a hot node", "from a cold node"])
def test_a_node_rests_after_a_move_by_hand_for_such_moves_alone(*, gives: bool) -> None:
    """A user's move onto the hot node of others kept their executors there for a cooldown."""
    policy = MovesPolicy(cooldown_seconds=600.0, max_concurrent_per_node=9, budgets=())
    (done,) = by_hand("m", phase=MovePhase.SUCCEEDED, ended_at=NOW - 10.0)
    node = done.target if gives else done.source

    def asked(move: Move, *, by_hand: bool) -> Reason | None:
        found = node_objection([move], policy, ExecutorCounts(), node=node, gives=gives, now=NOW, by_hand=by_hand)
        return None if found is None else found[0]

    assert asked(done, by_hand=False) is None
    assert asked(done, by_hand=True) is Reason.COOLDOWN
    assert asked(replace(done, by_hand=False), by_hand=False) is Reason.COOLDOWN


def test_moves_by_hand_forbid_the_way_back_for_such_moves_alone() -> None:
    policy = MovesPolicy(cooldown_seconds=600.0)
    (done,) = by_hand("m", phase=MovePhase.SUCCEEDED, ended_at=NOW - 10.0)
    assert ways([done], policy, NOW) == frozenset()
    assert ways([done], policy, NOW, by_hand=True) == {(done.source, done.target)}
    assert ways([replace(done, by_hand=False)], policy, NOW) == {(done.source, done.target)}


def test_moves_by_hand_get_half_of_what_may_be_moved_at_a_node_and_the_strategy_the_rest() -> None:
    """Others have executors on that node, too."""
    budget = Budget(moves=4, per_seconds=3600.0, scope="Node")
    policy = MovesPolicy(cooldown_seconds=0.0, max_concurrent_per_node=4, budgets=(budget,))

    def asked(moves: list[Move], *, by_hand: bool) -> Reason | None:
        found = node_objection(moves, policy, ExecutorCounts(), node="hot", gives=True, now=NOW, by_hand=by_hand)
        return None if found is None else found[0]

    flying = [replace(move, source="hot") for move in by_hand("a", "b", **UNDER_WAY)]
    done = [replace(move, source="hot") for move in by_hand("a", "b", phase=MovePhase.SUCCEEDED)]
    assert (asked(flying, by_hand=True), asked(flying, by_hand=False)) == (Reason.MAX_CONCURRENT, None)
    assert (asked(done, by_hand=True), asked(done, by_hand=False)) == (Reason.BUDGET, None)
    assert (asked(flying[:1], by_hand=True), asked(done[:1], by_hand=True)) == (None, None)


def test_what_budgets_of_the_whole_pool_leave_is_told_by_their_place() -> None:
    daily = Budget(moves=3, per_seconds=86400.0)
    elsewhere = Budget(moves=1, per_seconds=86400.0, scope="Topology")
    spent = Budget(moves=1, percent=5, per_seconds=3600.0)
    policy = MovesPolicy(budgets=(daily, elsewhere, spent))
    moves = [FLYING, a_move("m2", started_at=NOW - 7200.0, ended_at=NOW - 7000.0, elsewhere=True)]
    assert pool_budgets_left(moves, policy, ExecutorCounts(pool=10), NOW) == {"0": 2, "2": 0}
    assert pool_budgets_left([], policy, ExecutorCounts(pool=60), NOW) == {"0": 3, "2": 3}
