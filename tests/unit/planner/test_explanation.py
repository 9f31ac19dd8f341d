"""Why an executor is where it is, and why it stays or goes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ballast.model import (
    DEFAULT_LEVELS,
    Anchor,
    AvgShedderPolicy,
    Component,
    ConditionReason,
    Constraints,
    Executor,
    Memory,
    MetricsHealth,
    Move,
    MovePhase,
    MovesMode,
    MovesPolicy,
    Phase,
    PlacementMode,
    PlacementPolicy,
    Policy,
    Requirement,
    Resources,
    Scope,
    Separation,
    SheddingPolicy,
    Snapshot,
    Stream,
)
from ballast.planner.explanation import EndKind, Explanation, UnknownExecutorError, ends, explain
from tests.builders import GIB, NOW, a_move, a_node, a_policy, a_snapshot, a_topology, an_executor, gated

NODES = (a_node("hot", cpu=0.95), a_node("cold", cpu=0.1), a_node("mild", cpu=0.4, rack="r2"))


def told(executor: Executor, *others: Executor, policy: Policy | None = None, **changes: Any) -> Explanation:
    memory = changes.pop("memory", Memory())
    snapshot = a_snapshot(*NODES, executors=(executor, *others))
    return explain(replace(snapshot, **changes), policy or a_policy(), memory, NOW, executor=executor.key)


def busy(name: str = "e1", **changes: Any) -> Executor:
    return an_executor(name, **{"node": "hot", "cpu": 0.9, **changes})


def test_one_that_is_unknown_is_refused() -> None:
    with pytest.raises(UnknownExecutorError, match="team/e1: no executor of that name in the namespaces of policy"):
        explain(a_snapshot(*NODES), a_policy(), Memory(), NOW, executor="team/e1")


@pytest.mark.parametrize(
    ("executor", "words"),
    [
        (busy(), "kube-scheduler chose its node; Ballast required none"),
        (busy(enforced=False), "has not opted in"),
        (busy(pinned=True), "Ballast chose its place and tied it there"),
        (gated("e1"), "Ballast's gate holds it"),
        (busy(node=None, phase=Phase.PENDING), "its scheduler has not bound it"),
        (replace(busy(), node="elsewhere"), "elsewhere does not belong to the policy's pool"),
    ],
)
def test_its_grounds_say_who_chose_the_place(executor: Executor, words: str) -> None:
    assert words in " / ".join(told(executor).grounds)


@pytest.mark.parametrize(
    ("executor", "words"),
    [
        (gated("e1", since=NOW - 0.1), "it is gated for a moment, for others that are created with it (WaitingForSet)"),
        (
            gated("e1", last_gate_since=None, gates=("kueue.x-k8s.io/admission",)),
            "it waits for the gates of others: kueue.x-k8s.io/admission",
        ),
        (busy(scheduler="volcano"), "its scheduler is volcano"),
    ],
)
def test_its_grounds_say_why_it_is_not_placed(executor: Executor, words: str) -> None:
    enforcing = a_policy(placement=replace(a_policy().placement, mode=PlacementMode.ENFORCE))
    assert words in " / ".join(told(executor, policy=enforcing).grounds)


def test_an_executor_of_another_scheduler_is_promised_no_place() -> None:
    assert told(busy()).destination is not None
    assert told(busy(scheduler="volcano")).destination is None
    assert told(busy(gang="field spec.schedulingGroup")).destination is None


def test_a_replacement_says_which_move_brought_it() -> None:
    came = a_move("m7", replacement_uid="uid-e1", source="cold", target="hot")
    found = told(busy(), moves=(came, a_move("m8", component="other")))
    assert found.grounds[0] == "it came in place of team/m7 by move m7, from cold"
    assert [move.name for move in found.past] == ["m7"]


def test_a_place_to_which_it_would_return_is_told() -> None:
    memory = Memory(placements=(("team/clicks", "ingest", (("hot", 1),)),))
    assert "hot is one of the nodes to which executors of ingest return (sticky)" in told(busy(), memory=memory).grounds


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"topologies": (a_topology(),), "metrics": MetricsHealth(reason=ConditionReason.UNREACHABLE)}, "NoMetrics"),
        ({"moves": (a_move("m1", executor_uid="uid-e1", ended_at=NOW - 1, source="mild"),)}, "WaitingForHits"),
    ],
)
def test_reasons_of_the_pool_and_of_its_node_speak_against_a_move(changes: dict[str, Any], reason: str) -> None:
    found = told(busy(), **changes)
    assert found.verdict == "stays"
    assert reason in dict(found.objections)


def test_moves_that_are_off_are_the_reason() -> None:
    off = a_policy(moves=replace(a_policy().moves, mode=MovesMode.DISABLED))
    assert "MovesDisabled" in dict(told(busy(), policy=off).objections)


def test_one_on_a_cold_node_needs_no_other_reason() -> None:
    found = told(an_executor("e1", node="cold", cpu=0.1))
    assert found.objections == (("Balanced", "cold is not the hot end of any pair"),)


def test_what_speaks_against_moving_it_is_told_in_full() -> None:
    found = told(busy(running_since=NOW - 1, graceful=False))
    assert list(dict(found.objections))[:2] == ["NoDecommissioning", "TooYoung"]


def test_its_own_tie_is_no_reason_against_another_node() -> None:
    tied = Constraints(affinity_terms=((Requirement("kubernetes.io/hostname", "In", ("hot",)),),))
    bound = {each.node: each.reason for each in told(busy(constraints=tied)).alternatives}
    freed = {each.node: each.reason for each in told(busy(constraints=tied, pinned=True)).alternatives}
    assert bound == {"hot": None, "cold": "NotAdmitted", "mild": "NotAdmitted"}
    assert freed == {"hot": None, "cold": None, "mild": None}


def test_nodes_come_in_the_order_in_which_they_would_do() -> None:
    full = a_node("full", cpu=0.05, requested=Resources(4, GIB, 1))
    snapshot: Snapshot = a_snapshot(full, *NODES, executors=(busy(),))
    found = explain(snapshot, a_policy(), Memory(), NOW, executor="team/e1")
    assert [(each.node, each.reason) for each in found.alternatives] == [
        ("hot", None),
        ("cold", None),
        ("mild", None),
        ("full", "NoRoom"),
    ]


def test_a_node_that_would_become_the_hotter_one_is_no_destination() -> None:
    nodes = (a_node("hot", cpu=0.95, cores=8.0), a_node("small", cpu=0.5, cores=1.0))
    found = explain(a_snapshot(*nodes, executors=(busy(),)), a_policy(), Memory(), NOW, executor="team/e1")
    assert {each.node: each.reason for each in found.alternatives} == {"hot": None, "small": "Overshoot"}


@pytest.mark.parametrize(
    ("move", "reason", "words"),
    [
        (a_move(topology="team/o", source="cold", target="n9"), "Cooldown", "cold rests 500 s more after a move"),
        (
            a_move(topology="team/o", source="n9", phase=MovePhase.LEAVING, ended_at=None),
            "MaxConcurrent",
            "1 moves from or to cold are under way, moves.maxConcurrentPerNode is 1",
        ),
    ],
)
def test_a_node_that_other_moves_keep_busy_is_no_destination(move: Move, reason: str, words: str) -> None:
    one_each = a_policy(moves=MovesPolicy(max_concurrent_per_node=1))
    alternatives = told(busy(), policy=one_each, moves=(move,)).alternatives
    found = {each.node: (each.reason, each.detail) for each in alternatives}
    assert found == {"hot": (None, ""), "cold": (reason, words), "mild": (None, "")}


def test_a_node_to_which_a_move_would_gain_next_to_nothing_is_no_destination() -> None:
    found = {each.node: (each.reason, each.detail) for each in told(busy(cpu=0.05)).alternatives}
    words = "the gap to {} would narrow by 2.5 points, minGain is 5"
    assert found == {
        "hot": (None, ""),
        "cold": ("MinGain", words.format("cold")),
        "mild": ("MinGain", words.format("mild")),
    }


def test_dearer_traffic_than_the_policy_allows_is_no_destination() -> None:
    nodes = (a_node("hot", cpu=0.95), a_node("mate", cpu=0.5), a_node("far", cpu=0.1, zone="z2"))
    mates = [an_executor(f"e{i}", node="mate", cpu=0.9) for i in (2, 3)]
    found = explain(a_snapshot(*nodes, executors=(busy(), *mates)), a_policy(), Memory(), NOW, executor="team/e1")
    far = next(each for each in found.alternatives if each.node == "far")
    assert far.reason == "LocalityLoss"
    assert far.locality_delta_ratio > 0.1


@pytest.mark.parametrize(
    ("requested", "words"),
    [
        (Resources(3.5), "0.50 cores are free, 1.00 are asked for"),
        (Resources(5.0), "0.00 cores are free, 1.00 are asked for"),
        (Resources(0.0, 15.5 * GIB), "0.5 GiB are free, 1.0 are asked for"),
        (Resources(pods=110.0), "it holds as many pods as it may"),
    ],
)
def test_a_node_without_room_says_what_is_short(requested: Resources, words: str) -> None:
    full = a_node("full", cpu=0.05, requested=requested)
    snapshot = a_snapshot(full, *NODES, executors=(busy(),))
    found = explain(snapshot, a_policy(), Memory(), NOW, executor="team/e1")
    assert {each.node: each.detail for each in found.alternatives}["full"] == words


def test_a_device_that_is_short_is_something_else() -> None:
    found = told(busy(requests=Resources(1.0, GIB, 1.0, (("nvidia.com/gpu", 1.0),))))
    assert {each.detail for each in found.alternatives if not each.here} == {
        "something else that it asks for is not free"
    }


def test_spread_and_separation_are_told_in_words() -> None:
    apart = a_topology(Component("ingest"), Component("standby"), separate=(Separation(("ingest", "standby")),))
    others = (*(busy(f"e{i}", node="cold") for i in (2, 3)), busy("s1", node="mild", component="standby"))
    found = {each.node: each for each in told(busy(), *others, topologies=(apart,)).alternatives}
    assert (found["cold"].reason, found["cold"].detail) == (
        "SpreadLimit",
        "it holds as many executors of ingest as the policy allows",
    )
    assert (found["mild"].reason, found["mild"].detail) == ("Separated", "it holds a component that must be kept apart")


def test_a_node_without_figures_takes_part_in_no_move() -> None:
    found = explain(
        a_snapshot(a_node("blind"), *NODES, executors=(busy(),)), a_policy(), Memory(), NOW, executor="team/e1"
    )
    blind = next(each for each in found.alternatives if each.node == "blind")
    assert (blind.score, blind.score_after, blind.reason) == (None, None, "StaleMetrics")


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        (MovesMode.RECOMMEND, "would move to cold (the policy only recommends): the gap narrows by "),
        (MovesMode.APPROVE, "is proposed to move to cold: the gap narrows by "),
        (MovesMode.ENFORCE, "moves to cold: the gap narrows by "),
    ],
)
def test_one_that_moves_is_told_where_to_and_nothing_speaks_against_it(mode: MovesMode, words: str) -> None:
    policy = a_policy(
        window_seconds=30.0,
        shedding=SheddingPolicy(avg_shedder=AvgShedderPolicy(low_hits=1, high_hits=1)),
        placement=PlacementPolicy(mode=PlacementMode.ENFORCE),
        moves=MovesPolicy(mode=mode),
    )
    found = told(busy(), policy=policy)
    assert found.verdict.startswith(words)
    assert found.objections == ()


PLACING = a_policy(placement=PlacementPolicy(mode=PlacementMode.ENFORCE))


def test_one_that_waits_with_others_is_held() -> None:
    expecting = a_topology(Component("ingest", expected=4))
    assert (
        told(gated("e1", since=NOW - 0.1), policy=PLACING, topologies=(expecting,)).verdict == "is held (WaitingForSet)"
    )


def test_one_that_no_node_takes_is_released_to_wherever_it_may_go() -> None:
    big = gated("e1", since=NOW - 11, requests=Resources(64.0, GIB, 1))
    assert told(big, policy=PLACING).verdict == "is released to any node that kube-scheduler finds (PoolFull)"


def test_one_that_no_node_takes_waits_in_its_zone_where_an_autoscaler_provides_nodes() -> None:
    nodes = (a_node("n1", zone="z1", cores=0.5, labels={"karpenter.sh/nodepool": "spark"}),)
    verdict = told(gated("e1"), policy=PLACING, nodes=nodes).verdict
    assert verdict == "is released to a node that an autoscaler provides in z1 (PoolFull)"


def test_the_places_of_other_components_are_no_grounds() -> None:
    memory = Memory(placements=(("team/clicks", "report", (("hot", 1),)), ("team/clicks", "ingest", (("cold", 1),))))
    assert not any("(sticky)" in words for words in told(busy(), memory=memory).grounds)


def test_one_that_waits_is_told_where_it_goes_and_no_moves() -> None:
    found = told(gated("e1"))
    assert found.verdict.startswith(("is released to", "is held"))
    assert found.alternatives == ()
    assert found.destination is not None


def test_pressure_on_the_node_is_told_and_is_evidence() -> None:
    warm = (a_node("hot", cpu=0.85, pressure=0.1), *NODES[1:])
    calm = (a_node("hot", cpu=0.85, pressure=0.02), *NODES[1:])
    assert told(busy(), nodes=warm).pressure_ratio == 0.1
    assert not _without_gain(told(busy(), nodes=warm))
    assert _without_gain(told(busy(), nodes=calm)) == [
        "seconds per task unknown; node pressure 2% (minPressurePercent 10); score 85 below saturationScore 90"
    ]


def test_a_destination_where_its_application_is_as_slow_is_no_alternative() -> None:
    nodes = (a_node("hot", cpu=0.85), *NODES[1:])
    slow, fast = busy("e2", node="cold", cpu=0.1, task_seconds=3.0), busy("e3", node="mild", cpu=0.1, task_seconds=1.0)
    wide = replace(a_policy().placement, max_executors_per_node_ratio=1.0)
    found = told(busy(task_seconds=3.0), slow, fast, nodes=nodes, policy=a_policy(placement=wide))
    assert not _without_gain(found)
    assert {each.node: each.reason for each in found.alternatives if each.node != "hot"} == {
        "cold": "NothingToGain",
        "mild": None,
    }
    assert next(each.detail for each in found.alternatives if each.node == "cold").startswith(
        "100% of the seconds per task of the destination's executors (minSlownessPercent 120)"
    )


def _without_gain(found: Explanation) -> list[str]:
    return [words for reason, words in found.objections if reason == "NothingToGain"]


ENDS_NODES = (a_node("n1"), a_node("n2"), a_node("n3", rack="r2"), a_node("n4", zone="z2", rack="r4"))


def test_peers_are_counted_by_the_nearest_scope_that_holds_both() -> None:
    here = an_executor("e0", node="n1")
    others = [an_executor(f"e{i}", node=f"n{i}") for i in (1, 2, 3, 4)]
    (own,) = ends(here, a_snapshot(*ENDS_NODES, executors=(here, *others)), DEFAULT_LEVELS)
    assert (own.name, own.kind) == ("ingest", EndKind.COMPONENT)
    assert own.distance == (0 + 1 + 3 + 10) / 4
    assert own.scopes == ((Scope.NODE, 0.25), (Scope.RACK, 0.25), (Scope.ZONE, 0.25), (Scope.CLUSTER, 0.25))


def test_external_ends_count_by_their_share_and_the_driver_comes_last() -> None:
    kafka = Component(
        "kafka", external=True, anchors=(Anchor(("z1", "r1", "n1"), 0.8), Anchor(("z2", None, None), 0.2))
    )
    driver = Anchor(("z1", "r2", "n3"), 1.0)
    topology = a_topology(kafka, Component("ingest"), streams=(Stream("kafka", "ingest"),), driver=driver)
    here = an_executor("e0", node="n1")
    found = ends(here, a_snapshot(*ENDS_NODES, executors=(here,), topologies=(topology,)), DEFAULT_LEVELS)
    assert [(end.name, end.kind, end.distance) for end in found] == [
        ("kafka", EndKind.EXTERNAL, 2.0),
        ("driver", EndKind.DRIVER, 3.0),
    ]


def test_a_component_with_no_stream_between_is_no_end() -> None:
    topology = a_topology(Component("ingest"), Component("report"))
    here, other = an_executor("e0", node="n1"), an_executor("r0", node="n2", component="report")
    assert ends(here, a_snapshot(*ENDS_NODES, executors=(here, other), topologies=(topology,)), DEFAULT_LEVELS) == ()


def test_one_that_is_nowhere_has_no_distances() -> None:
    here = an_executor("e0", node=None, phase=Phase.PENDING)
    other = an_executor("e1", node="n1")
    assert ends(here, a_snapshot(*ENDS_NODES, executors=(here, other)), DEFAULT_LEVELS) == ()


def test_a_stream_to_a_component_that_runs_nowhere_and_stands_nowhere_is_no_end() -> None:
    topology = a_topology(Component("ingest"), Component("report"), streams=(Stream("ingest", "report"),))
    here = an_executor("e0", node="n1")
    assert ends(here, a_snapshot(*ENDS_NODES, executors=(here,), topologies=(topology,)), DEFAULT_LEVELS) == ()


def test_executors_of_other_topologies_and_those_that_leave_are_no_peers() -> None:
    here = an_executor("e0", node="n1")
    others = (an_executor("s1", node="n1", topology="team/spark-7"), an_executor("e1", node="n1", phase=Phase.LEAVING))
    assert ends(here, a_snapshot(*ENDS_NODES, executors=(here, *others)), DEFAULT_LEVELS) == ()
