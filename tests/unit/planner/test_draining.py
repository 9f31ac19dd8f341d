"""Nodes that are about to go are emptied: of which executors, how fast, in what order and where to."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ballast.model import (
    CORDON,
    Component,
    ConditionReason,
    DrainPolicy,
    Executor,
    Memory,
    MetricsHealth,
    Move,
    MovePhase,
    MovesMode,
    MovesPolicy,
    Node,
    Notice,
    PlacementMode,
    PlacementPolicy,
    Plan,
    PlannedMove,
    Policy,
    Reason,
    Shuffle,
    Snapshot,
    Workload,
)
from ballast.moves.drain import RETRY_SECONDS, STAGE_DEPARTURES, STAGE_SECONDS, STREAMING_STAGE_SECONDS, DrainRules
from ballast.planner.explanation import explain
from ballast.planner.plan import plan
from tests.builders import NOW, a_move, a_node, a_policy, a_snapshot, a_topology, an_executor

BLIND = MetricsHealth(available=False, reason=ConditionReason.NOT_CONFIGURED)
SPOT = "aws-node-termination-handler/spot-itn"


def policy(drain: DrainPolicy | None = None, **moves: Any) -> Policy:
    settings = {"mode": MovesMode.ENFORCE, "drain": drain or DrainPolicy(), **moves}
    return a_policy(
        placement=PlacementPolicy(mode=PlacementMode.ENFORCE, max_executors_per_node_ratio=1.0),
        moves=MovesPolicy(**settings),
    )


def going(name: str, taint: str = CORDON, seconds: float | None = None, **changes: Any) -> Node:
    """A node that is about to go; `seconds`: its deadline, `since` only where that is known."""
    since = changes.pop("since", None)
    notice = Notice(taint, "it is cordoned", seconds, since)
    return a_node(name, schedulable=False, notice=notice, **changes)


def on(node: str, count: int, *, first: int = 0, **changes: Any) -> tuple[Executor, ...]:
    return tuple(an_executor(f"{node}-{first + i}", node=node, **changes) for i in range(count))


def decided(snapshot: Snapshot, settings: Policy | None = None) -> Plan:
    return plan(snapshot, settings or policy(), Memory(), snapshot.taken_at)[0]


def drained(snapshot: Snapshot, settings: Policy | None = None) -> list[PlannedMove]:
    return [move for move in decided(snapshot, settings).moves if move.taint]


def reasons(snapshot: Snapshot, settings: Policy | None = None) -> dict[str, Reason]:
    return {refusal.subject: refusal.reason for refusal in decided(snapshot, settings).refusals}


def test_an_executor_leaves_a_cordoned_node_without_metrics_or_hits() -> None:
    snapshot = a_snapshot(going("old"), a_node("new"), executors=on("old", 1), metrics=BLIND)
    (move,) = drained(snapshot)
    assert (move.source, move.target, move.taint, move.strategy, move.scored) == ("old", "new", CORDON, "Drain", False)


def test_where_metrics_are_fresh_the_move_has_its_scores() -> None:
    snapshot = a_snapshot(going("old", cpu=0.5), a_node("new", cpu=0.25), executors=on("old", 1, cpu=1.0))
    (move,) = drained(snapshot)
    assert (move.hot_score, move.cold_score, move.hot_after, move.cold_after) == (50.0, 25.0, 25.0, 50.0)


@pytest.mark.parametrize(
    ("drain", "moves"),
    [
        pytest.param(DrainPolicy(enabled=False), {}, id="switched off"),
        pytest.param(None, {"mode": MovesMode.DISABLED}, id="moves are disabled"),
    ],
)
def test_nothing_is_drained_where_the_policy_says_so(drain: DrainPolicy | None, moves: dict[str, Any]) -> None:
    assert not drained(a_snapshot(going("old"), a_node("new"), executors=on("old", 1)), policy(drain, **moves))


def test_a_node_whose_taint_is_not_to_be_drained_keeps_its_executors() -> None:
    old = going("old")
    stays = replace(old, notice=replace(old.notice, drains=False)) if old.notice else old
    assert not drained(a_snapshot(stays, a_node("new"), executors=on("old", 1)))


def test_nothing_goes_to_a_node_that_is_about_to_go_itself() -> None:
    """A zone's upgrade: its nodes leave together, and no executor moves twice."""
    nodes = (going("old-1"), going("old-2"), going("old-3"), a_node("far", zone="z2", cores=16.0))
    executors = (*on("old-1", 2), *on("old-2", 2), *on("old-3", 2))
    found = drained(a_snapshot(*nodes, executors=executors))
    assert found
    assert {move.target for move in found} == {"far"}
    assert len({move.uid for move in found}) == len(found)


def test_the_shortest_notice_comes_first_and_then_what_holds_most() -> None:
    nodes = (going("slow", seconds=600.0), going("spot", SPOT, 120.0, since=NOW - 60.0), a_node("new", cores=16.0))
    light, heavy = an_executor("light", node="spot"), an_executor("heavy", node="spot", state_bytes=1e9)
    late = an_executor("late", node="slow", state_bytes=1e12)
    at_once = policy(DrainPolicy(max_concurrent_ratio=1.0))
    found = drained(a_snapshot(*nodes, executors=(late, light, heavy)), at_once)
    assert [move.pod for move in found] == ["heavy", "light", "late"]
    assert [move.taint for move in found] == [SPOT, SPOT, CORDON]


@pytest.mark.parametrize(
    "old",
    [
        pytest.param(going("old", SPOT, 300.0), id="each takes half a minute, and there are five"),
        pytest.param(going("old"), id="a cordon, which is a guess"),
        pytest.param(going("old", since=NOW - 86_400.0), id="a cordon since yesterday"),
        pytest.param(going("old", SPOT, 120.0, since=NOW - 121.0), id="a deadline that is over"),
    ],
)
def test_one_at_a_time_leaves_an_application_of_few_executors_if_nothing_hurries(old: Node) -> None:
    snapshot = a_snapshot(old, a_node("new", cores=16.0), executors=on("old", 2))
    assert len(drained(snapshot)) == 1
    assert reasons(snapshot)["team/old-1"] is Reason.MAX_CONCURRENT


def test_a_short_notice_lets_more_leave_at_once_but_not_as_many_as_end_a_stage() -> None:
    snapshot = a_snapshot(going("old", SPOT, 30.0), a_node("new", cores=16.0), executors=on("old", 5))
    assert len(drained(snapshot)) == STAGE_DEPARTURES


def test_retained_departures_allow_more_at_once() -> None:
    keeps = Component("ingest", workload=Workload.STREAMING, retained_departures=100)
    snapshot = a_snapshot(
        going("old", SPOT, 30.0),
        a_node("new", cores=16.0),
        executors=on("old", 5),
        topologies=(a_topology(keeps),),
    )
    assert len(drained(snapshot)) == 5


def test_the_pool_has_a_budget_of_its_own_and_one_refusal_a_node_says_so() -> None:
    executors = tuple(replace(each, topology=f"team/{each.name}", application=each.name) for each in on("old", 4))
    topologies = tuple(replace(a_topology(), key=each.topology) for each in executors)
    snapshot = a_snapshot(going("old"), a_node("new", cores=16.0), executors=executors, topologies=topologies)
    settings = policy(DrainPolicy(max_concurrent=2))
    assert len(drained(snapshot, settings)) == 2
    (told,) = [each for each in decided(snapshot, settings).refusals if each.subject == "old"]
    assert told.reason is Reason.MAX_CONCURRENT
    assert told.detail.startswith("2 executors wait: 2 moves of drains are under way")


def test_the_budgets_of_leveling_do_not_limit_a_drain_and_a_drain_uses_none_of_them() -> None:
    drains = tuple(
        a_move(f"d-{i}", topology="team/other", phase=MovePhase.LEAVING, ended_at=None, taint=CORDON) for i in range(3)
    )
    snapshot = a_snapshot(going("old"), a_node("new"), executors=on("old", 1), moves=drains)
    assert len(drained(snapshot, policy(max_concurrent=1, max_concurrent_per_node=1))) == 1


def test_an_executor_that_is_under_way_gets_no_second_move() -> None:
    (executor,) = on("old", 1)
    under_way = a_move("m", executor_uid=executor.uid, source="old", phase=MovePhase.LEAVING, ended_at=None)
    assert not drained(a_snapshot(going("old"), a_node("new"), executors=(executor,), moves=(under_way,)))


@pytest.mark.parametrize(("ago", "again"), [(RETRY_SECONDS - 1.0, False), (RETRY_SECONDS + 1.0, True)])
def test_a_refused_drain_is_tried_again_after_a_while(ago: float, again: bool) -> None:
    (executor,) = on("old", 1)
    refused = a_move("m", executor_uid=executor.uid, phase=MovePhase.REFUSED, ended_at=NOW - ago, taint=CORDON)
    snapshot = a_snapshot(going("old"), a_node("new"), executors=(executor,), moves=(refused,))
    assert bool(drained(snapshot)) is again


@pytest.mark.parametrize("taint", [CORDON, SPOT])
def test_each_refusal_doubles_the_time_until_an_executor_is_asked_again(taint: str) -> None:
    (executor,) = on("old", 1)
    old = going("old", taint, None if taint == CORDON else 300.0)
    refused = tuple(
        a_move(f"m{i}", executor_uid=executor.uid, phase=MovePhase.REFUSED, ended_at=NOW - ago, taint=taint)
        for i, ago in enumerate((500.0, 1.5 * RETRY_SECONDS))
    )
    assert not drained(a_snapshot(old, a_node("new"), executors=(executor,), moves=refused))
    assert drained(a_snapshot(old, a_node("new"), executors=(executor,), moves=refused[1:]))


def departed(*, application: str = "spark-app", ago: float = 60.0) -> tuple[Move, ...]:
    """As many as may leave while one stage runs, each so many seconds after the other; whose executors are gone."""
    return tuple(
        a_move(f"d-{i}", application=application, left_at=NOW - ago * i, taint=CORDON) for i in range(STAGE_DEPARTURES)
    )


STREAM = Component("ingest", workload=Workload.STREAMING)


@pytest.mark.parametrize(
    ("component", "changes", "allowed"),
    [
        pytest.param(STREAM, {}, False, id="its batches are not measured"),
        pytest.param(STREAM, {"batch_p95_seconds": {"team/spark-app": 90.0}}, False, id="batches are long"),
        pytest.param(STREAM, {"batch_p95_seconds": {"team/spark-app": 10.0}}, True, id="batches are short"),
        pytest.param(replace(STREAM, retained_departures=100), {}, True, id="departures are retained"),
    ],
)
def test_a_fourth_departure_within_a_stage_ends_a_streaming_query_too(
    component: Component, changes: dict[str, Any], *, allowed: bool
) -> None:
    snapshot = a_snapshot(
        going("old"),
        a_node("new"),
        executors=on("old", 1),
        topologies=(a_topology(component),),
        moves=departed(),
        **changes,
    )
    assert bool(drained(snapshot)) is allowed
    assert (reasons(snapshot).get("team/old-0") is Reason.STAGE_ATTEMPTS) is not allowed
    assert drained(replace(snapshot, moves=departed(ago=STREAMING_STAGE_SECONDS)))
    assert drained(replace(snapshot, moves=departed(application="other")))


def test_departures_count_for_an_application_whatever_its_components() -> None:
    parts = (STREAM, replace(STREAM, name="join"))
    executors = (*on("old", 2), *on("old", 2, first=2, component="join"))
    old = going("old", SPOT, 30.0)
    snapshot = a_snapshot(old, a_node("new", cores=16.0), executors=executors, topologies=(a_topology(*parts),))
    assert len(drained(snapshot)) == STAGE_DEPARTURES


def test_a_guess_is_not_hurried_by_the_deadline_of_another_node_and_comes_after_it() -> None:
    nodes = (going("cordoned", since=NOW - 86_400.0), going("spot", SPOT, 30.0), a_node("new", cores=16.0))
    snapshot = a_snapshot(*nodes, executors=(*on("cordoned", 4), *on("spot", 3)))
    assert [move.source for move in drained(snapshot)] == ["spot"] * 3
    retained = (a_topology(replace(STREAM, retained_departures=100)),)
    assert [move.source for move in drained(replace(snapshot, topologies=retained))] == ["spot"] * 3


def test_a_deadline_runs_down_from_when_the_taint_was_first_seen() -> None:
    """spot-itn has no time: its effect is NoSchedule."""
    snapshot = a_snapshot(going("old", SPOT, 120.0), a_node("new", cores=16.0), executors=on("old", 4))
    _, memory = plan(snapshot, policy(), Memory(), NOW)
    assert memory.notices == (("old", SPOT, NOW),)
    later = replace(snapshot, taken_at=NOW + 119.0)
    hurried, memory = plan(later, policy(), memory, NOW + 119.0)
    assert len(hurried.moves) == STAGE_DEPARTURES
    over = replace(snapshot, taken_at=NOW + 121.0)
    assert len(plan(over, policy(), memory, NOW + 121.0)[0].moves) == 1
    assert plan(a_snapshot(a_node("old")), policy(), memory, NOW)[1].notices == ()


def teams(*names: str, each: int, node: str = "old") -> dict[str, Any]:
    """Executors of several namespaces on a node, each of an application of its own."""
    executors = tuple(
        an_executor(f"{name}-{i}", namespace=name, topology=f"{name}/{i}", application=f"{name}-{i}", node=node)
        for name in names
        for i in range(each)
    )
    topologies = tuple(replace(a_topology(), key=e.topology, namespace=e.namespace) for e in executors)
    return {"executors": executors, "topologies": topologies}


def test_namespaces_have_their_drains_in_turn() -> None:
    snapshot = a_snapshot(going("old"), a_node("new", cores=16.0), **teams("a", "b", "c", each=4))
    found = drained(snapshot, policy(DrainPolicy(max_concurrent=5)))
    assert [move.namespace for move in found] == ["a", "b", "c", "a", "b"]


def test_a_namespace_gets_half_of_the_drains_unless_no_others_wait() -> None:
    nodes, settings = (going("old"), a_node("new", cores=32.0)), policy(DrainPolicy(max_concurrent=4))
    half = a_snapshot(*nodes, **teams("a", "b", each=4))
    stuck = [each for each in half.executors if each.namespace == "b"]
    ungraceful = tuple(replace(e, graceful=False) if e in stuck else e for e in half.executors)
    assert [m.namespace for m in drained(replace(half, executors=ungraceful), settings)] == ["a", "a"]
    assert len(drained(a_snapshot(*nodes, **teams("a", each=4)), settings)) == 4


def test_the_namespace_with_the_fewest_drains_is_the_next_one() -> None:
    lately = a_move("d", namespace="a", taint=CORDON, left_at=NOW - 60.0)
    snapshot = a_snapshot(going("old"), a_node("new", cores=16.0), **teams("a", "b", each=1), moves=(lately,))
    (move,) = drained(snapshot, policy(DrainPolicy(max_concurrent=1)))
    assert move.namespace == "b"


FLYING: dict[str, Any] = {"taint": CORDON, "ended_at": None, "helped": None, "namespace": "b", "topology": "b/x"}


@pytest.mark.parametrize(
    ("changes", "allowed"),
    [
        pytest.param({"phase": MovePhase.APPROVED}, False, id="approved"),
        pytest.param({"phase": MovePhase.LEAVING}, False, id="leaving"),
        pytest.param({"phase": MovePhase.PROPOSED, "unapproved": True}, True, id="nobody approves it"),
        pytest.param({"phase": MovePhase.LEAVING, "blocked": True}, True, id="a disruption budget blocks it"),
        pytest.param({"phase": MovePhase.ARRIVING, "left_at": NOW}, True, id="its executor has gone"),
        pytest.param({"phase": MovePhase.LEAVING, "elsewhere": True}, True, id="it is of another pool"),
    ],
)
def test_the_pools_budget_counts_executors_that_are_about_to_leave(changes: dict[str, Any], *, allowed: bool) -> None:
    others = tuple(a_move(f"m{i}", **{**FLYING, **changes}) for i in range(10))
    snapshot = a_snapshot(going("old"), a_node("new"), executors=on("old", 1), moves=others)
    assert bool(drained(snapshot)) is allowed


@pytest.mark.parametrize(("old", "allowed"), [(going("old"), False), (going("old", SPOT, 120.0), True)])
def test_only_before_a_deadline_an_application_does_not_wait_for_replacements(old: Node, *, allowed: bool) -> None:
    arriving = a_move(
        "m", phase=MovePhase.ARRIVING, application="spark-app", left_at=NOW - 5.0, ended_at=None, taint=CORDON
    )
    assert bool(drained(a_snapshot(old, a_node("new"), executors=on("old", 1), moves=(arriving,)))) is allowed


@pytest.mark.parametrize(
    "hindrance",
    [
        pytest.param({"helped": None, "unreplaced": True, "left_at": NOW - 200.0}, id="no replacement came"),
        pytest.param({"phase": MovePhase.REFUSED, "blocked": True}, id="its eviction was refused"),
    ],
)
def test_a_namespace_rests_after_drains_that_came_to_nothing_except_before_a_deadline(
    hindrance: dict[str, Any],
) -> None:
    earlier = a_move("m", taint=CORDON, ended_at=NOW - 60.0, **{"helped": None, **hindrance})
    guess = a_snapshot(going("old"), a_node("new"), executors=on("old", 1), moves=(earlier,))
    assert reasons(guess)["team/old-0"] is Reason.COOLDOWN
    assert not drained(guess)
    assert drained(replace(guess, nodes=(going("old", SPOT, 120.0), a_node("new"))))


def test_nothing_is_asked_to_leave_a_node_that_is_not_ready() -> None:
    dead = going("old", SPOT, 120.0, ready=False)
    assert not drained(a_snapshot(dead, a_node("new"), executors=on("old", 1)))
    found = DrainRules(a_snapshot(dead), policy(), NOW).of_node("old")
    assert found == (Reason.NODE_UNAVAILABLE, "old is not ready: nothing on it can leave gracefully")


BATCH: dict[str, Any] = {"name": "ingest", "workload": Workload.BATCH}


@pytest.mark.parametrize(
    ("component", "reason"),
    [
        pytest.param(Component(**BATCH), Reason.SHUFFLE_LOST, id="nothing says what becomes of its shuffle"),
        pytest.param(Component(**BATCH, shuffle=Shuffle.LOCAL), Reason.SHUFFLE_LOST, id="lost"),
        pytest.param(Component(**BATCH, shuffle=Shuffle.MIGRATED), None, id="migrated"),
        pytest.param(Component(**BATCH, shuffle=Shuffle.REMOTE), None, id="held by a service"),
        pytest.param(Component("ingest"), Reason.UNKNOWN_WORKLOAD, id="no workload is declared"),
        pytest.param(
            Component("ingest", workload=Workload.REAL_TIME, shuffle=Shuffle.REMOTE),
            Reason.UNSUITED_WORKLOAD,
            id="a query in real-time mode (Spark 4.1) would end",
        ),
    ],
)
def test_a_batch_executor_leaves_if_its_shuffle_files_survive(component: Component, reason: Reason | None) -> None:
    snapshot = a_snapshot(
        going("old"), a_node("new"), executors=on("old", 1), topologies=(a_topology(component),), metrics=BLIND
    )
    assert reasons(snapshot).get("team/old-0") is reason
    assert bool(drained(snapshot)) is (reason is None)


@pytest.mark.parametrize(
    ("component", "allowed"),
    [
        pytest.param(Component(**BATCH, shuffle=Shuffle.MIGRATED), False, id="the fourth would end the stage"),
        pytest.param(Component(**BATCH, shuffle=Shuffle.MIGRATED, retained_departures=100), True, id="retained"),
        pytest.param(Component(**BATCH, shuffle=Shuffle.REMOTE), True, id="fetched from a service"),
    ],
)
def test_no_more_than_three_leave_a_batch_job_within_a_stage(component: Component, allowed: bool) -> None:
    gone = departed()
    snapshot = a_snapshot(
        going("old"),
        a_node("new"),
        executors=on("old", 1),
        topologies=(a_topology(component),),
        moves=gone,
        metrics=BLIND,
    )
    assert bool(drained(snapshot)) is allowed
    assert (reasons(snapshot).get("team/old-0") is Reason.STAGE_ATTEMPTS) is not allowed
    later = replace(snapshot, moves=tuple(replace(each, left_at=NOW - STAGE_SECONDS) for each in gone))
    assert len(drained(later)) == 1


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        pytest.param({"graceful": False}, Reason.NO_DECOMMISSIONING, id="it would be killed"),
        pytest.param({"labeled": False}, Reason.NOT_OPTED_IN, id="its replacement might not be held"),
        pytest.param({"kueue_managed": True}, Reason.KUEUE_MANAGED, id="its replacement would queue"),
    ],
)
def test_what_could_not_be_replaced_gracefully_stays(changes: dict[str, Any], reason: Reason) -> None:
    snapshot = a_snapshot(going("old"), a_node("new"), executors=on("old", 1, **changes))
    assert reasons(snapshot)["team/old-0"] is reason
    assert not drained(snapshot)


def test_a_young_executor_with_much_state_leaves_all_the_same() -> None:
    young = on("old", 1, running_since=NOW - 1.0, state_bytes=1e15)
    assert len(drained(a_snapshot(going("old"), a_node("new"), executors=young))) == 1


def test_limits_on_executors_per_node_give_way_where_nothing_else_is_left() -> None:
    crowded = replace(policy().placement, max_executors_per_node_ratio=0.25)
    settings = replace(policy(), placement=crowded)
    executors = (*on("old", 1), *on("new", 3))
    assert [
        move.target
        for move in drained(a_snapshot(going("old"), a_node("new", cores=8.0), executors=executors), settings)
    ]
    beside = (going("old"), a_node("new", cores=8.0), a_node("second", zone="z2"))
    (move,) = drained(a_snapshot(*beside, executors=executors), settings)
    assert move.target == "second"


def test_where_no_node_has_room_the_reason_is_given() -> None:
    full = a_node("new", cores=0.5)
    assert reasons(a_snapshot(going("old"), full, executors=on("old", 1)))["team/old-0"] is Reason.NO_DESTINATION


def test_a_near_node_is_preferred_unless_it_is_hot() -> None:
    nodes = (going("old", cpu=0.2), a_node("far", zone="z2", cpu=0.1), a_node("near", cpu=0.3))
    executors = (*on("old", 1, cpu=0.4), an_executor("e-1", node="near", cpu=0.4))
    (move,) = drained(a_snapshot(*nodes, executors=executors))
    assert move.target == "near"
    hot = (nodes[0], nodes[1], a_node("near", cpu=0.95))
    (move,) = drained(a_snapshot(*hot, executors=executors))
    assert move.target == "far"


def test_explain_tells_that_the_node_goes_and_where_the_executor_goes() -> None:
    snapshot = a_snapshot(going("old"), a_node("new"), executors=on("old", 1), metrics=BLIND)
    found = explain(snapshot, policy(), Memory(), NOW, executor="team/old-0")
    assert found.verdict == f"moves to new: old is about to go ({CORDON})"
    assert found.objections == ()
