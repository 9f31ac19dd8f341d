from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from ballast.model import (
    DEFAULT_LEVELS,
    Attempts,
    Component,
    Constraints,
    Executor,
    Memory,
    MovePhase,
    Node,
    Phase,
    Pin,
    PlacementMode,
    PlacementPolicy,
    Reason,
    Requirement,
    Resources,
)
from ballast.planner.plan import plan
from ballast.planner.release import (
    MOST_KINDS,
    TURN_SECONDS,
    Releases,
    given_up,
    of_one_pass,
    patience_ends,
    releases,
    tried_lately,
    unschedulable,
)
from tests.builders import GIB, NOW, a_move, a_node, a_policy, a_snapshot, a_topology, an_executor, gated

ENFORCE = PlacementPolicy(mode=PlacementMode.ENFORCE)

SINCE = NOW - 20.0


def _names(executors: object) -> list[str]:
    return [e.name for e in executors]  # type: ignore[attr-defined]


def test_a_complete_set_goes_at_once() -> None:
    topology = a_topology(Component("ingest", expected=2))
    snapshot = a_snapshot(executors=(gated("e-1", since=NOW), gated("e-2", since=NOW)), topologies=(topology,))
    assert _names(releases(snapshot, ENFORCE, NOW).place) == ["e-1", "e-2"]


@pytest.mark.parametrize(
    ("first", "last", "goes"),
    [
        pytest.param(0.2, 0.2, False, id="younger than the debounce"),
        pytest.param(0.2, 0.0, False, id="with others that have just come"),
        pytest.param(0.3, 0.3, True, id="as old as the debounce"),
        pytest.param(0.3, 0.0, True, id="though others come"),
    ],
)
def test_the_first_executors_of_a_set_wait_a_moment_for_those_created_with_them(
    first: float, last: float, *, goes: bool
) -> None:
    snapshot = a_snapshot(executors=(gated("e-1", since=NOW - first), gated("e-2", since=NOW - last)))
    found = releases(snapshot, ENFORCE, NOW)
    assert bool(found.place) is goes
    assert len(found.holds) == (0 if goes else 2)


def test_a_hold_says_until_when() -> None:
    found = releases(a_snapshot(executors=(gated("e-1", since=NOW - 0.1),)), ENFORCE, NOW)
    assert [(h.reason, h.until) for h in found.holds] == [(Reason.WAITING_FOR_SET, NOW - 0.1 + 0.3)]


def test_those_created_together_are_waited_for_since_the_first_was_read() -> None:
    stamped = replace(gated("e-1", since=NOW - 1.0), first_read=NOW - 0.1)
    found = releases(a_snapshot(executors=(stamped,)), ENFORCE, NOW)
    assert [(h.reason, h.until) for h in found.holds] == [(Reason.WAITING_FOR_SET, NOW - 0.1 + 0.3)]


def test_the_gate_timeout_counts_since_the_creation_whenever_it_was_read() -> None:
    stamped = replace(gated("e-1", since=NOW - 1.0), first_read=NOW - 0.1)
    patient = replace(ENFORCE, debounce_seconds=4.0, gate_timeout_seconds=4.0)
    found = releases(a_snapshot(executors=(stamped,)), patient, NOW)
    assert [hold.until for hold in found.holds] == [NOW + 3.0]


def test_a_set_is_not_held_longer_than_the_gate_timeout_whatever_the_debounce() -> None:
    patient = replace(ENFORCE, debounce_seconds=20.0, gate_timeout_seconds=4.0)
    waiting = a_snapshot(executors=(gated("e-1", since=NOW - 3), gated("e-2", since=NOW)))
    assert {hold.until for hold in releases(waiting, patient, NOW).holds} == {NOW + 1}


def test_a_set_is_complete_by_what_its_executors_say() -> None:
    two = tuple(gated(f"e-{number}", since=NOW, expected=2) for number in range(2))
    assert _names(releases(a_snapshot(executors=two), ENFORCE, NOW).place) == ["e-0", "e-1"]
    assert not releases(a_snapshot(executors=two[:1]), ENFORCE, NOW).place


def test_latecomers_of_a_running_component_go_at_once() -> None:
    snapshot = a_snapshot(executors=(an_executor("e-1", node="a"), gated("e-9", since=NOW)))
    assert _names(releases(snapshot, ENFORCE, NOW).place) == ["e-9"]


def test_the_clock_has_not_started_while_a_foreign_gate_holds_the_pod() -> None:
    waiting = gated("e-1", last_gate_since=None, gates=("kueue.x-k8s.io/admission", "kueue.x-k8s.io/topology"))
    found = releases(a_snapshot(executors=(waiting,)), ENFORCE, NOW + 10_000)
    assert not found.place
    assert [(h.reason, h.until) for h in found.holds] == [(Reason.FOREIGN_GATE, None)]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"scheduler": "volcano"}, Reason.FOREIGN_SCHEDULER),
        ({"gang": "annotation scheduling.k8s.io/group-name: clicks"}, Reason.GANG),
        ({"enforced": False}, Reason.NOT_ENFORCED),
    ],
)
def test_ballast_stands_aside_for_others(changes: dict[str, object], reason: Reason) -> None:
    executor = replace(gated("e-1"), **changes)  # type: ignore[arg-type]
    found = releases(a_snapshot(executors=(executor,)), ENFORCE, NOW)
    assert [(e.name, why) for e, why in found.unpinned] == [("e-1", reason)]


def test_executors_of_a_profile_that_the_policy_names_are_placed() -> None:
    executor = replace(gated("e-1"), scheduler="optimize-utilization")
    named = replace(ENFORCE, scheduler_names=("default-scheduler", "optimize-utilization"), debounce_seconds=0.0)
    found = releases(a_snapshot(executors=(executor,)), named, NOW + 100)
    assert (_names(found.place), found.unpinned) == (["e-1"], ())


@pytest.mark.parametrize("mode", [PlacementMode.DISABLED, PlacementMode.RECOMMEND])
def test_a_gate_found_where_placement_is_not_enforced_is_removed_at_once(mode: PlacementMode) -> None:
    found = releases(a_snapshot(executors=(gated("e-1"),)), PlacementPolicy(mode=mode), NOW)
    assert [why for _, why in found.unpinned] == [Reason.NOT_ENFORCED]


def test_a_second_application_of_the_topology_is_a_set_of_its_own() -> None:
    other = an_executor("x-1", component="sessions", application="spark-other", phase=Phase.RUNNING, node="a")
    found = releases(a_snapshot(executors=(other, gated("e-1", since=NOW))), ENFORCE, NOW)
    assert not found.place


LEAVING = a_move(phase=MovePhase.LEAVING, ended_at=None, application="spark-app", resource_profile="0")


def test_what_a_move_may_be_waiting_for_is_not_given_away() -> None:
    snapshot = a_snapshot(executors=(an_executor("e-1", node="a"), gated("e-9", since=NOW)), moves=(LEAVING,))
    found = releases(snapshot, ENFORCE, NOW)
    assert not found.place
    assert [(h.reason, h.until) for h in found.holds] == [(Reason.IN_FLIGHT, NOW + 10)]


def test_a_replacement_that_its_move_has_recognised_is_the_moves_own_business() -> None:
    arriving = replace(LEAVING, phase=MovePhase.ARRIVING, replacement_uid="uid-e-9")
    snapshot = a_snapshot(executors=(an_executor("e-1", node="a"), gated("e-9", since=NOW)), moves=(arriving,))
    found = releases(snapshot, ENFORCE, NOW)
    assert not found.place
    assert not found.holds


def test_a_move_whose_replacement_is_gone_waits_for_the_next_one() -> None:
    """Placed as any other, it could come back to the node that was left."""
    arriving = replace(LEAVING, phase=MovePhase.ARRIVING, replacement_uid="uid-e-8")
    snapshot = a_snapshot(executors=(an_executor("e-1", node="a"), gated("e-9", since=NOW)), moves=(arriving,))
    found = releases(snapshot, ENFORCE, NOW)
    assert not found.place
    assert [hold.reason for hold in found.holds] == [Reason.IN_FLIGHT]


@pytest.mark.parametrize("replacement", [None, "uid-e-9"])
def test_even_so_nobody_waits_beyond_the_gate_timeout(replacement: str | None) -> None:
    move = replace(LEAVING, phase=MovePhase.ARRIVING, replacement_uid=replacement)
    snapshot = a_snapshot(executors=(an_executor("e-1", node="a"), gated("e-9", since=NOW - 10)), moves=(move,))
    assert _names(releases(snapshot, ENFORCE, NOW).place) == ["e-9"]


def waiting(name: str = "e1", **changes: Any) -> Executor:
    """Pinned, and not schedulable for as long as it may be."""
    stuck = {"phase": Phase.PENDING, "node": None, "pinned": True, "unschedulable_since": SINCE}
    return an_executor(name, **{**stuck, **changes})


def found(
    *executors: Executor, nodes: Sequence[Node] = (), memory: Memory | None = None
) -> tuple[list[str], tuple[Attempts, ...]]:
    snapshot = a_snapshot(*nodes, executors=executors)
    deleted, after = unschedulable(snapshot, DEFAULT_LEVELS, memory or Memory(), NOW, unbound={})
    return [placement.executor for placement in deleted], after.attempts


def tried(count: int, ago: float, component: str = "ingest") -> Attempts:
    return Attempts("team/clicks", component, count=count, last_at=NOW - ago)


def test_who_waits_too_long_where_it_was_tied_is_to_be_deleted_and_counted_once_a_component() -> None:
    deleted, attempts = found(waiting("e2"), waiting("e1"))
    assert deleted == ["team/e1", "team/e2"]
    assert attempts == (tried(1, 0.0),)


@pytest.mark.parametrize(
    ("changes", "at"),
    [
        ({}, NOW - 5 + 20),
        ({"lacks_room": False}, NOW - 5 + 10),
        ({"unschedulable_since": NOW - 20}, NOW - 20 + 120),
        ({"unschedulable_since": NOW - 120}, None),
        ({"unschedulable_since": None}, None),
        ({"pinned": False}, None),
    ],
)
def test_a_pass_comes_when_one_has_waited_as_long_as_it_may(changes: dict[str, Any], at: float | None) -> None:
    executors = (waiting(**{"unschedulable_since": NOW - 5, **changes}),)
    assert patience_ends(a_snapshot(executors=executors), NOW) == at
    decided, _ = plan(a_snapshot(executors=executors), a_policy(), Memory(), NOW)
    assert decided.wake_at == at


def test_it_is_deleted_with_a_reason() -> None:
    ((placement,), _) = unschedulable(a_snapshot(executors=(waiting(),)), DEFAULT_LEVELS, Memory(), NOW, unbound={})
    assert (placement.node, placement.pin, placement.reason) == (None, Pin.NONE, Reason.NO_ROOM)


@pytest.mark.parametrize(
    "changes",
    [
        {"pinned": False},
        {"enforced": False},
        {"phase": Phase.RUNNING},
        {"node": "n1"},
        {"unschedulable_since": None},
        {"unschedulable_since": SINCE + 1},
        {"room_kept": True},
    ],
)
def test_others_are_left_alone(changes: dict[str, Any]) -> None:
    assert found(waiting(**changes)) == ([], ())


@pytest.mark.parametrize(("seconds", "count"), [(10.0, 3), (9.0, 0)])
def test_where_not_room_is_missing_there_is_one_try_and_its_successors_are_tied_to_nothing(
    seconds: float, count: int
) -> None:
    """One user's volumes used up what nodes can attach: others' executors were sent there three times, 20 s each."""
    barred = waiting(unschedulable_since=NOW - seconds, lacks_room=False)
    deleted, attempts = found(barred)
    assert (deleted, attempts) == ((["team/e1"], (tried(count, 0.0),)) if count else ([], ()))
    assert bool(given_up(Memory(attempts=attempts), NOW)) == bool(count)
    assert found(replace(barred, lacks_room=True)) == ([], ())


def test_one_that_is_seen_again_on_its_way_out_is_the_same_attempt() -> None:
    assert found(waiting(), memory=Memory(attempts=(tried(1, 19.0),)))[1] == (tried(1, 19.0),)
    assert found(waiting(), memory=Memory(attempts=(tried(1, 20.0),)))[1] == (tried(2, 0.0),)


def test_attempts_of_long_ago_are_forgotten() -> None:
    memory = Memory(attempts=(tried(3, 900.0), tried(2, 899.0, "report")))
    assert found(memory=memory)[1] == (tried(2, 899.0, "report"),)
    assert found(waiting(), memory=memory)[1][0] == tried(1, 0.0)


def test_attempts_of_a_time_that_is_to_come_are_forgotten() -> None:
    """As a status may name any: a component would be given up until then."""
    memory = Memory(attempts=(tried(3, -3e10),))
    assert given_up(memory, NOW) == tried_lately(memory, NOW) == frozenset()
    assert found(memory=memory)[1] == ()


def test_after_three_attempts_a_component_is_given_up_for_a_while() -> None:
    memory = Memory(attempts=(tried(3, 899.0), tried(2, 0.0, "report")))
    assert given_up(memory, NOW) == {("team/clicks", "ingest")}
    assert given_up(replace(memory, attempts=(tried(4, 900.0),)), NOW) == frozenset()


ZONE = "topology.kubernetes.io/zone"
IN_A = Constraints(affinity_terms=((Requirement(ZONE, "In", ("a",)),),))


def provided(zone: str, *, full: bool, labels: Sequence[str] = ("karpenter.sh/nodepool",)) -> Node:
    """A node of a group that an autoscaler can enlarge."""
    known = {ZONE: zone, **dict.fromkeys(labels, "spark")}
    return a_node(f"{zone}-1", zone=zone, labels=known, requested=Resources(4.0, GIB, 1) if full else Resources())


def without_node(seconds: float) -> Executor:
    return waiting(constraints=IN_A, unschedulable_since=NOW - seconds)


FULL, ROOMY = provided("a", full=True), provided("b", full=False)


@pytest.mark.parametrize(
    ("seconds", "nodes", "deleted"),
    [
        pytest.param(119.0, [FULL], False, id="an autoscaler has time to provide a node"),
        pytest.param(120.0, [FULL], True, id="but not for ever"),
        pytest.param(20.0, [FULL, ROOMY], True, id="another zone has room"),
        pytest.param(20.0, [FULL, provided("b", full=True)], False, id="the other zone has none"),
        pytest.param(119.0, [provided("a", full=False)], False, id="its node has just come"),
        pytest.param(20.0, [provided("a", full=True, labels=())], True, id="no autoscaler provides nodes there"),
        pytest.param(20.0, [provided("b", full=True)], True, id="nor does it in its zone"),
        pytest.param(19.0, [ROOMY], False, id="as long as any"),
    ],
)
def test_an_executor_that_an_autoscaler_can_help_is_deleted_later(
    seconds: float, nodes: list[Node], *, deleted: bool
) -> None:
    assert found(without_node(seconds), nodes=nodes)[0] == (["team/e1"] if deleted else [])


def test_it_waits_so_long_only_once() -> None:
    assert found(without_node(20.0), nodes=[FULL], memory=Memory(attempts=(tried(1, 899.0),)))[0] == ["team/e1"]


def test_a_component_has_been_tried_lately_for_a_while() -> None:
    memory = Memory(attempts=(tried(1, 899.0), tried(3, 900.0, "report")))
    assert tried_lately(memory, NOW) == {("team/clicks", "ingest")}


def _of_application(name: str, *, since: float = NOW - 5, kinds: int = 1) -> tuple[Executor, ...]:
    """Gated executors of an application without a SparkTopology, `namespace/name`, each of another size."""
    namespace = name.partition("/")[0]
    return tuple(
        replace(
            gated(f"e-{number}", since=since, topology=name, requests=Resources(1.0 + number, GIB, 1)),
            namespace=namespace,
            uid=f"{name}-{number}",
        )
        for number in range(kinds)
    )


def _of_one_pass(*applications: tuple[Executor, ...]) -> Releases:
    return of_one_pass(Releases(sum(applications, ()), (), ()), ENFORCE, NOW)


def _placed(found: Releases) -> set[str]:
    return {executor.topology for executor in found.place}


MANY = [_of_application(f"many/{number:04}") for number in range(MOST_KINDS)]


def test_as_many_as_one_pass_may_place_are_placed_and_the_others_are_held_for_a_moment() -> None:
    few = MANY[: MOST_KINDS // 2]
    assert not _of_one_pass(*few).holds
    found = _of_one_pass(*MANY)
    assert {(hold.reason, hold.until) for hold in found.holds} == {(Reason.WAITING_FOR_TURN, NOW + TURN_SECONDS)}
    assert len(found.place) + len(found.holds) == len(MANY)
    assert MOST_KINDS // 2 <= len(found.place) <= MOST_KINDS // 2 + 1


def test_each_namespace_has_as_much_of_a_pass() -> None:
    own = [_of_application(f"own/{number}") for number in range(20)]
    others = [_of_application(f"other-{number:02}/huge", kinds=40) for number in range(20)]
    assert {executor.topology for each in own for executor in each} <= _placed(_of_one_pass(*MANY, *others, *own))


def test_in_a_namespace_the_application_that_has_waited_longest_comes_first() -> None:
    old = _of_application("many/zz", since=NOW - 9)
    assert "many/zz" in _placed(_of_one_pass(*MANY, old))


def test_the_application_that_has_waited_longest_of_all_is_placed_whatever_its_size() -> None:
    huge = _of_application("team/huge", since=NOW - 9, kinds=2 * MOST_KINDS)
    own = _of_application("own/a")
    assert _placed(_of_one_pass(*MANY, huge, own)) >= {"team/huge", "own/a"}


def test_what_can_not_be_released_does_not_come_first_for_good() -> None:
    stuck = _of_application("team/stuck", since=NOW - 60, kinds=2 * MOST_KINDS)
    assert "team/stuck" not in _placed(_of_one_pass(*MANY, stuck))


def test_an_application_that_is_alone_is_placed_whatever_its_size_and_age() -> None:
    for since in (NOW - 5, NOW - 60):
        huge = _of_application("team/huge", since=since, kinds=2 * MOST_KINDS)
        assert not _of_one_pass(huge).holds
    assert len(_placed(_of_one_pass(huge, _of_application("many/huge", since=NOW - 60, kinds=3 * MOST_KINDS)))) == 1
