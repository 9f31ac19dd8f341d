"""The second look, right before an executor leaves: everything that may have changed since the first, and what a move
that somebody made by hand never had looked at."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ballast.model import (
    CORDON,
    Budget,
    ComponentLimit,
    ConditionReason,
    Constraints,
    Demand,
    Executor,
    Memory,
    MetricsHealth,
    Move,
    MovePhase,
    MovesMode,
    MovesPolicy,
    Node,
    Notice,
    Phase,
    PlacementMode,
    PlacementPolicy,
    Policy,
    Reason,
    Refusal,
    Requirement,
    Resources,
    Snapshot,
    Taint,
)
from ballast.moves.revalidation import proposal, revalidate
from ballast.moves.score import measured
from ballast.planner import strategy_state
from tests.builders import NOW, a_move, a_node, a_policy, a_snapshot, a_topology, an_executor

POLICY = a_policy(
    placement=PlacementPolicy(mode=PlacementMode.ENFORCE, max_executors_per_node_ratio=0.5),
    moves=MovesPolicy(mode=MovesMode.ENFORCE, max_concurrent_per_node=1, saturation_score=100.0),
)
NODES = (
    a_node("hot", cores=2.0, cpu=0.95),
    a_node("cold", cores=2.0, cpu=0.20),
    a_node("mild", cores=2.0, cpu=0.30),
)
MOVER = an_executor("e-1", node="hot", cpu=0.5, task_seconds=3.0)
OTHERS = tuple(an_executor(f"e-{i}", node="mild", cpu=0.5, task_seconds=1.0) for i in (2, 3, 4))
MOVE = a_move("m", executor_uid=MOVER.uid, phase=MovePhase.APPROVED, ended_at=None, helped=None, started_at=NOW - 5)


def pool(*nodes: Node, mover: Executor = MOVER, **changes: Any) -> Snapshot:
    settings = {"executors": (mover, *OTHERS), "moves": (MOVE,), **changes}
    return a_snapshot(*(nodes or NODES), **settings)


def look(
    snapshot: Snapshot, move: Move = MOVE, policy: Policy = POLICY, *, tolerance_points: float = 0.0
) -> tuple[Refusal | None, str | None]:
    candidates = strategy_state.candidates(snapshot, policy, Memory(), now=snapshot.taken_at)
    scores = measured(snapshot, policy).by_node
    found = revalidate(
        snapshot,
        policy,
        move,
        candidates=candidates,
        measured=scores,
        now=NOW,
        tolerance_points=tolerance_points,
    )
    return found.refusal, found.destination


def why(snapshot: Snapshot, move: Move = MOVE, policy: Policy = POLICY) -> tuple[Reason | None, str]:
    refusal, destination = look(snapshot, move, policy)
    assert destination is None
    return (refusal.reason, refusal.detail) if refusal else (None, "")


def node(name: str, **changes: Any) -> tuple[Node, ...]:
    """All nodes, one of them changed."""
    return tuple(replace(n, **changes) if n.name == name else n for n in NODES)


def test_where_nothing_has_changed_it_goes_on() -> None:
    assert look(pool()) == (None, None)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"enforced": False}, Reason.NOT_OPTED_IN),
        ({"graceful": False}, Reason.NO_DECOMMISSIONING),
        ({"kueue_managed": True}, Reason.KUEUE_MANAGED),
        ({"running_since": NOW - 10}, Reason.TOO_YOUNG),
        ({"allocator_direct": False}, Reason.UNSUPPORTED_ALLOCATOR),
        ({"usage": replace(MOVER.usage, state_bytes=2.0**40)}, Reason.LARGE_STATE),  # type: ignore[type-var]
        ({"usage": replace(MOVER.usage, state_bytes=None)}, Reason.UNKNOWN_STATE),  # type: ignore[type-var]
        ({"usage": replace(MOVER.usage, task_seconds=1.0)}, Reason.NOTHING_TO_GAIN),  # type: ignore[type-var]
    ],
)
def test_an_executor_that_may_not_move_any_more_stays(changes: dict[str, Any], reason: Reason) -> None:
    assert why(pool(mover=replace(MOVER, **changes)))[0] is reason


def test_an_executor_goes_elsewhere_when_its_application_has_become_as_slow_at_its_destination() -> None:
    slow, fast = an_executor("e-5", node="cold", cpu=0.1, task_seconds=3.0), replace(OTHERS[0], node="mild")
    policy = replace(POLICY, placement=replace(POLICY.placement, max_executors_per_node_ratio=1.0))
    assert look(pool(executors=(MOVER, slow, fast)), policy=policy) == (None, "mild")
    reason, words = why(pool(NODES[0], NODES[1], executors=(MOVER, slow, fast)), policy=policy)
    assert reason is Reason.NOTHING_TO_GAIN
    assert words.startswith("100% of the seconds per task of the destination's executors")
    assert words.endswith("no other cold node can")


@pytest.mark.parametrize(
    ("hot", "saturation"),
    [
        pytest.param(a_node("hot", cores=2.0, cpu=0.95, pressure=0.3), 100.0, id="pressure"),
        pytest.param(a_node("hot", cores=2.0, cpu=0.95), 95.0, id="saturation"),
    ],
)
def test_other_evidence_than_slowness_lets_a_move_go_on(hot: Node, saturation: float) -> None:
    alike = replace(MOVER, usage=replace(MOVER.usage, task_seconds=1.0))  # type: ignore[type-var]
    policy = replace(POLICY, moves=replace(POLICY.moves, saturation_score=saturation))
    assert look(pool(hot, *NODES[1:], mover=alike), policy=policy) == (None, None)


TO_COLD = Constraints(affinity_terms=((Requirement("metadata.name", "In", ("cold",), on_field=True),),))


@pytest.mark.parametrize("ours", [True, False])
def test_a_place_that_a_pod_will_take_which_is_not_bound_yet_is_taken(*, ours: bool) -> None:
    requests = Resources(1.5)
    released = an_executor(
        "e-9", component="sink", phase=Phase.PENDING, node=None, created_at=NOW, requests=requests, constraints=TO_COLD
    )
    waiting = {"executors": (MOVER, *OTHERS, released)} if ours else {"pending": (Demand(requests, TO_COLD),)}
    assert why(pool(**waiting))[0] is Reason.NO_ROOM


def test_a_replacement_that_is_not_bound_yet_counts_towards_the_share_of_its_moves_target() -> None:
    one_a_node = replace(POLICY, placement=replace(POLICY.placement, limits=(ComponentLimit("ingest", 1),)))
    released = an_executor("e-9", phase=Phase.PENDING, node=None, created_at=NOW)
    other = a_move("other", phase=MovePhase.ARRIVING, ended_at=None, replacement_uid=released.uid)
    freely = replace(POLICY.moves, max_concurrent_per_topology=9, max_concurrent_per_node=9, cooldown_seconds=0.0)
    seen = pool(executors=(MOVER, OTHERS[0], released), moves=(MOVE, other))
    assert why(seen, policy=replace(one_a_node, moves=freely))[0] is Reason.SPREAD_LIMIT


def test_an_executor_of_an_unknown_workload_stays() -> None:
    unknown = a_topology(replace(a_topology().components[0], workload=None))
    assert why(pool(topologies=(unknown,)))[0] is Reason.UNKNOWN_WORKLOAD


def test_an_executor_that_the_policy_does_not_steer_stays() -> None:
    reason, words = why(pool(executors=OTHERS))
    assert reason is Reason.NOT_OPTED_IN
    assert "namespaceSelector" in words


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"source": "mild"}, "it is on hot, not on mild"),
        ({"topology": "team/other"}, "it belongs to topology team/clicks, not to team/other"),
        ({"component": "sessions"}, "it belongs to component ingest, not to sessions"),
    ],
)
def test_a_move_that_says_what_is_not_so_is_refused(changes: dict[str, Any], words: str) -> None:
    assert why(pool(), replace(MOVE, **changes)) == (Reason.MISDESCRIBED, words)


def test_a_move_from_outside_of_the_pool_is_refused() -> None:
    reason, words = why(pool(*NODES[1:]))
    assert (reason, words) == (Reason.MISDESCRIBED, "hot does not belong to the pool of policy streaming")


def test_who_made_it_by_hand_need_not_name_the_component() -> None:
    assert look(pool(), replace(MOVE, component="")) == (None, None)


@pytest.mark.parametrize("mode", [PlacementMode.DISABLED, PlacementMode.RECOMMEND])
def test_nobody_leaves_where_replacements_are_not_held(mode: PlacementMode) -> None:
    reason, words = why(pool(), policy=replace(POLICY, placement=replace(POLICY.placement, mode=mode)))
    assert reason is Reason.NOT_ENFORCED
    assert "placement.mode: Enforce" in words


@pytest.mark.parametrize("by_hand", [False, True])
def test_no_executor_leaves_where_releases_are_refused_because_its_replacement_is_not_gated(*, by_hand: bool) -> None:
    closed = pool(ungated_namespaces={MOVER.namespace: "the API server refuses releases"})
    expected = (Reason.NOT_ENFORCED, "its replacement would not be gated: the API server refuses releases")
    assert why(closed, replace(MOVE, by_hand=by_hand)) == expected


def test_without_metrics_it_waits() -> None:
    """Its status names no pods of others, as the message about the pool may."""
    blind = MetricsHealth(available=False, reason=ConditionReason.UNREACHABLE, message="no answer about web/driver")
    assert why(pool(metrics=blind)) == (
        Reason.NO_METRICS,
        f"Unreachable: see MetricsAvailable of policy {POLICY.name}",
    )
    unset = MetricsHealth(available=False, reason=ConditionReason.NOT_CONFIGURED, message="prometheus is not set")
    assert why(pool(metrics=unset)) == (Reason.NO_METRICS, "NotConfigured: prometheus is not set")


@pytest.mark.parametrize("name", ["hot", "cold"])
def test_a_node_without_figures_takes_part_in_nothing(name: str) -> None:
    words = f"{name} has no fresh metrics, so it takes part in no move"
    assert why(pool(*node(name, usage=None))) == (Reason.STALE_METRICS, words)


@pytest.mark.parametrize(
    ("hot", "reason"),
    [(0.95, None), (0.71, None), (0.69, Reason.OVERSHOOT), (0.40, Reason.OVERSHOOT), (0.10, Reason.OVERSHOOT)],
)
def test_a_gap_that_has_closed_since_moves_nothing(hot: float, reason: Reason | None) -> None:
    """It takes 25 points along: at 70 and 20 both end at 45."""
    assert why(pool(a_node("hot", cores=2.0, cpu=hot), *NODES[1:]))[0] is reason


@pytest.mark.parametrize(("hot", "reason"), [(0.66, None), (0.64, Reason.OVERSHOOT)])
def test_a_tolerance_lets_a_move_overshoot_by_what_scores_have_drifted(hot: float, reason: Reason | None) -> None:
    seen = pool(a_node("hot", cores=2.0, cpu=hot), *NODES[1:])
    assert look(seen)[0] is not None
    refusal, _ = look(seen, tolerance_points=5.0)
    assert (refusal.reason if refusal else None) is reason


def test_a_move_that_would_change_next_to_nothing_is_not_made() -> None:
    idle = tuple(replace(e, usage=replace(e.usage, cpu_cores=0.01)) for e in (MOVER, *OTHERS) if e.usage)
    assert why(pool(executors=idle))[0] is Reason.MIN_GAIN


def test_its_own_load_is_not_counted_twice() -> None:
    """The ledger sees the move under way, and would find the gap closed by the move itself."""
    assert look(pool(), replace(MOVE, load_cores=0.5)) == (None, None)


def test_what_others_bring_to_the_destination_counts() -> None:
    other = replace(MOVE, name="o", executor_uid="x", source="far", topology="team/o", load_cores=1.2)
    free = replace(POLICY, moves=replace(POLICY.moves, max_concurrent_per_node=9, max_concurrent=9, cooldown_seconds=0))
    assert why(pool(moves=(MOVE, replace(other, started_at=NOW - 60))), policy=free)[0] is Reason.OVERSHOOT


def test_a_move_farther_from_the_others_is_refused() -> None:
    away = a_node("cold", zone="z2", rack="r9", cores=2.0, cpu=0.20)
    assert why(pool(NODES[0], away, NODES[2]))[0] is Reason.LOCALITY_LOSS


FLYING = a_move(
    "f", executor_uid="x", topology="team/o", phase=MovePhase.LEAVING, ended_at=None, source="n8", target="n9"
)


@pytest.mark.parametrize(
    ("others", "moves", "reason"),
    [
        pytest.param(
            (replace(FLYING, executor_uid=MOVER.uid),),
            {"max_concurrent": 9},
            Reason.IN_FLIGHT,
            id="a second move of it",
        ),
        pytest.param(
            (replace(FLYING, source="cold", target="hot", phase=MovePhase.SETTLING),),
            {"max_concurrent": 9, "max_concurrent_per_node": 9},
            Reason.REVERSE,
            id="the way back",
        ),
        pytest.param((FLYING,), {"max_concurrent": 1}, Reason.MAX_CONCURRENT, id="as many as may be under way"),
        pytest.param((a_move(topology="team/o", source="n9", target="hot"),), {}, Reason.COOLDOWN, id="its node rests"),
        pytest.param(
            (a_move(source="n8", target="n9", topology="team/o"),),
            {"budgets": (Budget(moves=1, per_seconds=3600.0),)},
            Reason.BUDGET,
            id="the pool's budget",
        ),
        pytest.param(
            tuple(a_move(f"m{i}", helped=False, started_at=NOW - 9000, ended_at=NOW - 8000) for i in range(3)),
            {},
            Reason.PAUSED,
            id="its topology is paused",
        ),
    ],
)
def test_what_other_moves_forbid_is_forbidden_now_too(
    others: tuple[Move, ...], moves: dict[str, Any], reason: Reason
) -> None:
    policy = replace(POLICY, moves=replace(POLICY.moves, **moves))
    assert why(pool(moves=(MOVE, *others)), policy=policy)[0] is reason


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        pytest.param({"phase": MovePhase.LEAVING}, Reason.MAX_CONCURRENT, id="one that is leaving"),
        pytest.param({"phase": MovePhase.PROPOSED}, None, id="one that is only proposed"),
        pytest.param({"started_at": NOW - 6}, Reason.MAX_CONCURRENT, id="one approved before it"),
        pytest.param({"started_at": NOW - 4}, None, id="one approved after it"),
        pytest.param({"name": "a"}, Reason.MAX_CONCURRENT, id="at the same moment, first by name"),
        pytest.param({"name": "z"}, None, id="at the same moment, later by name"),
    ],
)
def test_of_approved_moves_the_earliest_goes_first(other: dict[str, Any], reason: Reason | None) -> None:
    policy = replace(POLICY, moves=replace(POLICY.moves, max_concurrent=1))
    approved = replace(FLYING, phase=MovePhase.APPROVED, started_at=MOVE.started_at)
    assert why(pool(moves=(MOVE, replace(approved, **other))), policy=policy)[0] is reason


@pytest.mark.parametrize(
    "changes",
    [
        {"schedulable": False},
        {"ready": False},
        {"leaving": "the cluster autoscaler is removing it"},
        {"taints": (Taint("gpu", "", "NoSchedule"),)},
        {"requested": Resources(1.5, 0.0, 1)},
    ],
)
def test_a_destination_that_takes_it_no_more_gives_way_to_the_next_coldest(changes: dict[str, Any]) -> None:
    wide = replace(POLICY, placement=replace(POLICY.placement, max_executors_per_node_ratio=1.0))
    assert look(pool(*node("cold", **changes)), policy=wide) == (None, "mild")


def test_a_destination_that_has_left_the_pool_gives_way_too() -> None:
    hot, cold, mild = NODES
    assert look(pool(hot, cold, mild), replace(MOVE, target="gone")) == (None, "cold")


def test_a_volume_that_cannot_go_along_keeps_it() -> None:
    here = ((Requirement("kubernetes.io/hostname", "In", ("hot",)),),)
    bound = replace(MOVER, constraints=Constraints(volume_terms=(here,)))
    reason, words = why(pool(mover=bound))
    assert (reason, words) == (Reason.VOLUME_PINNED, "cold can't take it, and no other cold node can")


def test_without_any_room_left_it_stays() -> None:
    full = tuple(replace(n, requested=n.allocatable) if n.name != "hot" else n for n in NODES)
    assert why(pool(*full))[0] is Reason.NO_ROOM


def test_an_alternative_must_be_worth_it_too() -> None:
    nodes = (NODES[0], replace(NODES[1], schedulable=False), a_node("mild", cores=2.0, cpu=0.66))
    assert why(pool(*nodes))[0] is Reason.NODE_UNAVAILABLE


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(a_move("o", topology="team/o", source="mild", target="n9", ended_at=NOW - 60), id="it rests"),
        pytest.param(replace(FLYING, target="mild"), id="a move to it is under way"),
    ],
)
def test_an_alternative_that_other_moves_forbid_gives_way_to_the_next(other: Move) -> None:
    nodes = (*node("cold", schedulable=False), a_node("third", cores=2.0, cpu=0.40))
    wide = replace(POLICY, placement=replace(POLICY.placement, max_executors_per_node_ratio=1.0))
    assert look(pool(*nodes, moves=(MOVE, other)), policy=wide) == (None, "third")
    leaving = replace(MOVE, phase=MovePhase.LEAVING, target="third")
    assert look(pool(*nodes, moves=(leaving, other)), leaving, policy=wide) == (None, None)
    assert why(pool(*nodes[:3], moves=(MOVE, other)), policy=wide)[0] is Reason.NODE_UNAVAILABLE


def test_each_zone_keeps_to_its_share() -> None:
    away = a_node("cold", zone="z2", rack="r9", cores=2.0, cpu=0.20)
    there = a_node("there", zone="z2", rack="r8", cores=2.0, cpu=0.50)
    spread = replace(
        POLICY,
        placement=replace(POLICY.placement, max_executors_per_zone_ratio=0.5),
        moves=replace(POLICY.moves, max_locality_loss=9.0),
    )
    crew = (MOVER, OTHERS[0], *(replace(e, node="there") for e in OTHERS[1:]))
    assert why(pool(NODES[0], away, there, executors=crew), policy=spread)[0] is Reason.SPREAD_LIMIT
    fewer = (MOVER, *OTHERS[:2], replace(OTHERS[2], node="there"))
    wide = replace(spread, placement=replace(spread.placement, max_executors_per_node_ratio=1.0))
    assert look(pool(NODES[0], away, there, NODES[2], executors=fewer), policy=wide) == (None, None)


class TestReplacement:
    """While it waits at the gate for its pin."""

    def arriving(self, *nodes: Node) -> tuple[Refusal | None, str | None]:
        gated = replace(MOVER, name="e-9", uid="uid-e-9", node=None, phase=Phase.GATED, running_since=None)
        move = replace(MOVE, phase=MovePhase.ARRIVING, replacement_uid=gated.uid)
        return look(pool(*nodes, mover=gated, moves=(move,)), move)

    def test_it_goes_where_the_executor_was_sent(self) -> None:
        assert self.arriving() == (None, None)

    def test_it_goes_to_the_next_coldest_when_that_is_full(self) -> None:
        assert self.arriving(
            NODES[0], *node("cold", requested=Resources(2.0, 0.0, 2))[1:2], a_node("third", cpu=0.4)
        ) == (
            None,
            "third",
        )

    def test_the_share_of_a_node_is_that_of_the_set_with_it(self) -> None:
        """One of four has left: two a node are allowed, as when it was decided."""
        there = tuple(replace(e, node="cold") for e in OTHERS[:1])
        gated = replace(MOVER, name="e-9", uid="uid-e-9", node=None, phase=Phase.GATED, running_since=None)
        move = replace(MOVE, phase=MovePhase.ARRIVING, replacement_uid=gated.uid)
        assert look(pool(executors=(gated, *there, *OTHERS[1:]), moves=(move,)), move) == (None, None)

    def test_it_goes_to_any_colder_node_since_the_load_has_left_the_source(self) -> None:
        full = node("cold", requested=Resources(2.0, 0.0, 2))[1]
        warm = a_node("warm", cores=2.0, cpu=0.94)
        assert self.arriving(NODES[0], full, warm) == (None, "warm")

    def test_even_to_a_node_that_rests_since_it_must_go_somewhere(self) -> None:
        gated = replace(MOVER, name="e-9", uid="uid-e-9", node=None, phase=Phase.GATED, running_since=None)
        move = replace(MOVE, phase=MovePhase.ARRIVING, replacement_uid=gated.uid)
        rest = a_move("o", topology="team/o", source="third", target="n9", ended_at=NOW - 60)
        nodes = (*node("cold", schedulable=False)[:2], a_node("third", cores=2.0, cpu=0.40))
        assert look(pool(*nodes, mover=gated, moves=(move, rest)), move) == (None, "third")

    def test_without_any_room_it_is_not_sent(self) -> None:
        full = tuple(replace(n, requested=n.allocatable) for n in NODES[1:])
        refusal, destination = self.arriving(NODES[0], *full)
        assert destination is None
        assert refusal is not None
        assert refusal.reason is Reason.NO_ROOM

    def test_one_that_has_not_been_recognised_is_not_judged(self) -> None:
        assert look(pool(), replace(MOVE, phase=MovePhase.ARRIVING)) == (None, None)


# A drain: its node is about to go, and metrics, gains and leveling's budgets are no matter.

LEAVES = Notice(CORDON, "it is cordoned", 300.0)
DRAIN = replace(MOVE, taint=CORDON)
EMPTIED = node("hot", schedulable=False, notice=LEAVES)
BLIND = MetricsHealth(available=False, reason=ConditionReason.UNREACHABLE)


def test_a_drain_goes_on_without_metrics() -> None:
    assert look(pool(*EMPTIED, moves=(DRAIN,), metrics=BLIND), DRAIN) == (None, None)


def test_a_drain_ends_where_its_node_stays_after_all() -> None:
    reason, words = why(pool(moves=(DRAIN,)), DRAIN)
    assert (reason, words) == (Reason.NODE_STAYS, "hot has no taint any more by which it is about to go")


def test_a_proposal_to_drain_ends_where_its_node_stays_and_all_else_waits_for_its_approval() -> None:
    proposed = replace(DRAIN, phase=MovePhase.PROPOSED, unapproved=True)
    ended = proposal(pool(moves=(proposed,)), POLICY, proposed, NOW).refusal
    assert ended is not None
    assert (ended.subject, ended.reason) == (proposed.executor_name, Reason.NODE_STAYS)
    assert proposal(pool(*EMPTIED, moves=(proposed,)), POLICY, proposed, NOW).refusal is None
    assert proposal(pool(), POLICY, replace(proposed, taint=""), NOW).refusal is None


def test_a_drain_goes_elsewhere_once_its_destination_is_about_to_go_too() -> None:
    both = tuple(replace(n, schedulable=False, notice=LEAVES) if n.name in ("hot", "cold") else n for n in NODES)
    assert look(pool(*both, moves=(DRAIN,), metrics=BLIND), DRAIN) == (None, "mild")


def test_a_drain_without_a_destination_is_refused_with_the_reason() -> None:
    shut = tuple(replace(n, schedulable=False, notice=LEAVES) for n in NODES)
    reason, words = why(pool(*shut, moves=(DRAIN,)), DRAIN)
    assert (reason, words) == (Reason.NODE_UNAVAILABLE, "cold can't take it, and no other node can")


def test_a_drain_of_an_executor_that_is_elsewhere_is_refused() -> None:
    moved = replace(MOVER, node="mild")
    assert why(pool(*EMPTIED, mover=moved, moves=(DRAIN,)), DRAIN)[0] is Reason.MISDESCRIBED
