"""What becomes of a plan's moves: the objects that are created, and what the metrics say of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from ballast.api.topology import SparkTopology
from ballast.controller.actuator import Actuator
from ballast.controller.cluster_objects import Read
from ballast.controller.context import Context
from ballast.controller.move_object import move_name
from ballast.kube import actions
from ballast.kube.errors import Unavailable
from ballast.model import Displaced, Move, MovePhase, Pin, Placement, Plan, PlannedMove, Reason
from ballast.tenancy.lane import Lane
from tests.apiserver import Answer
from tests.builders import a_move
from tests.lanes import AtOnce, impatient
from tests.testbed.waiting import wait_until
from tests.unit.controller.stage import NOW, Stage, stage, streaming
from tests.unit.kube.builders import GATE, NOMINATED_BY_ANOTHER, NOMINATED_BY_US, driver

JSON = dict[str, Any]
MOVE = PlannedMove(
    executor="analytics/spark-1-exec-1",
    uid="uid-spark-1-exec-1",
    topology="analytics/spark-1",
    component="profile-0",
    source="hot",
    target="cold",
    strategy="AvgShedder",
    hot_score=90.0,
    cold_score=20.0,
    hot_after=65.0,
    cold_after=45.0,
    gain=50.0,
    hits=2,
    load_cores=0.5,
    slowness=1.8,
    pressure_ratio=0.25,
)


@pytest.fixture
def pool() -> Iterator[Stage]:
    with stage() as found:
        found.add(streaming(1, node="hot"))
        yield found


def ordered(pool: Stage, *, topology: str | None = None, moves: tuple[Move, ...] = ()) -> list[JSON]:
    """The ExecutorMoves that are created for the move; `topology`: the one SparkTopology there is."""
    actuator, context = acting(pool, topology=topology)
    context = replace(context, snapshot=replace(context.snapshot, moves=moves))
    actuator.create_moves(context, Plan(moves=(MOVE,)))
    return [asked.body for asked in pool.server.writes if asked.route.endswith("/executormoves")]


def acting(
    pool: Stage,
    *,
    topology: str | None = None,
    monotonic: Callable[[], float] = lambda: 0.0,
    lane: Lane | None = None,
) -> tuple[Actuator, Context]:
    actuator = Actuator(
        pool.server.client(),
        lane or AtOnce(monotonic=monotonic),
        events=pool.events,
        telemetry=pool.telemetry,
        clock=lambda: pool.now,
        monotonic=monotonic,
    )
    context = pool.context([])
    if topology is not None:
        context = replace(context, objects=replace(context.objects, topologies=(_read(topology),)))
    return actuator, context


def posted(pool: Stage) -> list[JSON]:
    return [asked.body for asked in pool.server.writes if asked.route.endswith("/events")]


def regarding(number: int) -> JSON:
    """As Events name the pod of an executor."""
    name = f"spark-1-exec-{number}"
    return {"apiVersion": "v1", "kind": "Pod", "namespace": "analytics", "name": name, "uid": f"uid-{name}"}


def placed(number: int, node: str) -> Placement:
    name = f"spark-1-exec-{number}"
    return Placement(f"analytics/{name}", f"uid-{name}", node, ("a", "a-1", node), Pin.ZONE)


def _read(name: str) -> Read[SparkTopology]:
    raw: JSON = {
        "apiVersion": "ballast.dev/v1alpha1",
        "kind": "SparkTopology",
        "metadata": {"name": name, "namespace": "analytics", "uid": f"uid-{name}"},
        "spec": {"components": [{"name": "ingest"}]},
    }
    return Read(raw, SparkTopology.parse(raw))


OURS = {"apiVersion": "ballast.dev/v1alpha1", "kind": "SparkTopology", "name": "spark-1", "uid": "uid-spark-1"}
DRIVER = {"apiVersion": "v1", "kind": "Pod", "name": "spark-1-driver", "uid": "uid-spark-1-driver"}


@pytest.mark.parametrize(
    ("topology", "in_cluster", "owners"),
    [
        pytest.param("spark-1", True, [OURS], id="the SparkTopology, if there is one"),
        pytest.param("another", True, [DRIVER], id="else the driver's pod"),
        pytest.param(None, False, [], id="else nobody, with a driver outside of the cluster"),
    ],
)
def test_a_move_belongs_to(pool: Stage, *, topology: str | None, in_cluster: bool, owners: list[JSON]) -> None:
    if in_cluster:
        pool.add(driver(), driver("spark-2"))
    (created,) = ordered(pool, topology=topology)
    assert created["metadata"]["ownerReferences"] == owners


@pytest.mark.parametrize(("mode", "approved"), [("Enforce", True), ("Approve", False)])
def test_a_move_is_created_as_its_mode_has_it_and_counted(pool: Stage, *, mode: str, approved: bool) -> None:
    pool.spec = {"mode": mode}
    (created,) = ordered(pool)
    assert created["spec"]["approved"] is approved
    assert (created["spec"]["sourceNodeName"], created["spec"]["targetNodeName"]) == ("hot", "cold")
    assert pool.metric("ballast_decisions_total", kind="move") == 1.0
    assert pool.metric("ballast_move_predicted_gain_points") == 50.0


@pytest.mark.parametrize(("mode", "words"), [("Enforce", "leaves now"), ("Approve", "waits for approval")])
def test_the_executors_event_tells_the_figures_that_its_move_was_decided_by(
    pool: Stage, *, mode: str, words: str
) -> None:
    pool.spec = {"mode": mode}
    ordered(pool)
    (event,) = posted(pool)
    assert (event["reason"], event["type"], event["regarding"]["name"]) == ("MoveDecided", "Normal", "spark-1-exec-1")
    assert event["note"] == (
        "hot at 90 and cold at 20 become 65 and 45; its tasks take 1.80 times as long as those of the fastest "
        f"quarter, something waits for CPU on its node 25% of the time; {words}"
    )


@pytest.mark.parametrize(
    ("topology", "subject"),
    [("spark-1", ("SparkTopology", "spark-1")), (None, ("Pod", "spark-1-driver"))],
    ids=["the SparkTopology", "else the driver"],
)
def test_one_event_about_a_topology_tells_how_many_executors_went_where(
    pool: Stage, *, topology: str | None, subject: tuple[str, str]
) -> None:
    pool.add(driver(), *(streaming(number, gates=[GATE]) for number in (2, 3, 4)))
    plan = Plan(placements=tuple(placed(number, node) for number, node in ((2, "cold"), (3, "mild"), (4, "cold"))))
    actuator, context = acting(pool, topology=topology)
    actuator.release(context, plan)
    (event,) = posted(pool)
    regarding = event["regarding"]
    assert (event["reason"], event["type"], (regarding["kind"], regarding["name"])) == ("Placed", "Normal", subject)
    assert event["note"] == "3 executors: 2 on cold, 1 on mild"


def test_an_executor_whose_affinity_is_refused_is_told_of_as_released_as_it_is(
    pool: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = actions.Released(Pin.NONE, Reason.AFFINITY_REFUSED)
    monkeypatch.setattr(actions, "release_many", lambda _client, _lane, orders, _levels: [refused] * len(orders))
    pool.add(driver(), *(streaming(number, gates=[GATE]) for number in (2, 3)))
    actuator, context = acting(pool)
    surplus = replace(placed(3, "cold"), node=None, location=(), pin=Pin.NONE)
    actuator.release(context, Plan(placements=(placed(2, "cold"), surplus)))
    (reason,) = actuator.take_as_is().values()
    assert reason is Reason.AFFINITY_REFUSED
    assert actuator.take_as_is() == {}


def sent(pool: Stage) -> list[str]:
    return [asked.route.split("/pods/")[1] for asked in pool.server.writes if "/pods/" in asked.path]


def written(pool: Stage, kind: str, result: str) -> float | None:
    """How many writes of this kind came to that, as the metric has it."""
    return pool.telemetry.registry.get_sample_value("ballast_api_writes_total", {"kind": kind, "result": result})


def nominating(pool: Stage, *numbers: int, monotonic: Callable[[], float] = lambda: 0.0) -> Actuator:
    """Ran for executors that are gated and to be nominated to node cold."""
    actuator, _ = acting(pool, monotonic=monotonic)
    nominate(pool, actuator, *numbers)
    return actuator


def nominate(pool: Stage, actuator: Actuator, *numbers: int) -> None:
    pool.add(driver(), *(streaming(number, gates=[GATE]) for number in numbers))
    placements = tuple(replace(placed(number, "cold"), nominated=True) for number in numbers)
    actuator.release(pool.context([]), Plan(placements=placements))


def test_the_room_of_a_whole_set_is_kept_before_any_executor_is_released(pool: Stage) -> None:
    nominating(pool, 2, 3)
    kept, released = sent(pool)[:2], sent(pool)[2:]
    assert sorted(kept) == ["spark-1-exec-2/status", "spark-1-exec-3/status"]
    assert sorted(released) == ["spark-1-exec-2", "spark-1-exec-3"]
    assert (written(pool, "nomination", "Nominated"), written(pool, "release", "Released")) == (2.0, 2.0)
    versions = {asked.place.name: asked.body[0]["value"] for asked in pool.server.writes if asked.route[-1] in "23"}
    nominated = {name: pool.versions(name)[-2] for name in released}
    assert versions == nominated, "the versions that the nominations have made"


def test_without_the_right_to_nominate_executors_are_released_all_the_same_and_it_is_not_tried_again_soon(
    pool: Stage,
) -> None:
    for number in (2, 3):
        pool.server.refusals[f"/pods/spark-1-exec-{number}/status"] = Answer(403, {"message": "no such right"})
    actuator = nominating(pool, 2, 3)
    assert sorted(sent(pool)[2:]) == ["spark-1-exec-2", "spark-1-exec-3"]
    before = len(sent(pool))
    nominate(pool, actuator, 4)
    assert sent(pool)[before:] == ["spark-1-exec-4"]


@pytest.mark.parametrize("stepped_seconds", [-86_400.0, 86_400.0])
def test_nominations_are_tried_again_after_half_a_minute_however_the_wall_clock_steps(
    pool: Stage, stepped_seconds: float
) -> None:
    passed = [0.0]
    pool.server.refusals["/pods/spark-1-exec-2/status"] = Answer(403, {"message": "no such right"})
    actuator = nominating(pool, 2, monotonic=lambda: passed[0])
    pool.now += stepped_seconds
    tried = []
    for number, passed[0] in ((3, 29.0), (4, 30.0)):
        nominate(pool, actuator, number)
        tried.append(f"spark-1-exec-{number}/status" in sent(pool))
    assert tried == [False, True]


def test_a_refusal_that_is_about_the_pods_keeps_no_later_set_from_being_nominated(pool: Stage) -> None:
    for number in (2, 3):
        answer = Answer(422, {"message": "no", "details": {"causes": [{"field": "status"}]}})
        pool.server.refusals[f"/pods/spark-1-exec-{number}/status"] = answer
    actuator = nominating(pool, 2, 3)
    before = len(sent(pool))
    nominate(pool, actuator, 4)
    assert sent(pool)[before:] == ["spark-1-exec-4/status", "spark-1-exec-4"]


@pytest.mark.parametrize(
    ("status", "managed", "nominated"),
    [
        pytest.param({"nominatedNodeName": "cold"}, [NOMINATED_BY_US], None, id="ours is cleared before any release"),
        pytest.param({"nominatedNodeName": "cold"}, [NOMINATED_BY_ANOTHER], "cold", id="another controller's stays"),
        pytest.param({}, [], None, id="without one there is nothing to clear"),
    ],
)
def test_of_an_executor_that_is_released_without_a_place(
    pool: Stage, *, status: JSON, managed: list[JSON], nominated: str | None
) -> None:
    """A crash before its release has left the nomination, and the room that it keeps is another's by now."""
    pool.add(driver(), streaming(2, gates=[GATE]), streaming(3, gates=[GATE], status=status, managed_fields=managed))
    actuator, context = acting(pool)
    surplus = replace(placed(3, "cold"), node=None, location=(), pin=Pin.NONE)
    actuator.release(context, Plan(placements=(surplus, placed(2, "cold"))))
    ours = managed == [NOMINATED_BY_US]
    cleared = ["spark-1-exec-3/status"] if ours else []
    assert sent(pool) == [*cleared, "spark-1-exec-2", "spark-1-exec-3"]
    assert pool.pods["spark-1-exec-3"]["status"].get("nominatedNodeName") == nominated
    assert written(pool, "nomination", "Cleared") == (1.0 if ours else None)
    assert written(pool, "nomination", "Changed") is None, "what has no nomination of ours is not asked about"
    assert written(pool, "release", "Released") == 2.0
    (asked,) = (asked for asked in pool.server.writes if asked.route.endswith("/spark-1-exec-3"))
    assert asked.body[0]["value"] == pool.versions("spark-1-exec-3")[-2], "the version after that"


@pytest.mark.parametrize("code", [403, 409, 422, 500])
def test_it_is_released_although_its_nomination_can_not_be_cleared(pool: Stage, code: int) -> None:
    pool.add(
        driver(), streaming(3, gates=[GATE], status={"nominatedNodeName": "cold"}, managed_fields=[NOMINATED_BY_US])
    )
    pool.server.refusals["/pods/spark-1-exec-3/status"] = Answer(code, {"message": "no"})
    actuator, context = acting(pool)
    actuator.release(context, Plan(placements=(replace(placed(3, "cold"), node=None, location=(), pin=Pin.NONE),)))
    assert sent(pool)[-1] == "spark-1-exec-3"


def test_a_nomination_that_is_overdue_is_cleared(pool: Stage) -> None:
    pool.add(streaming(2, status={"nominatedNodeName": "cold"}, managed_fields=[NOMINATED_BY_US]))
    actuator, context = acting(pool)
    actuator.clear_nominations(context, Plan(overdue_nominations=("uid-spark-1-exec-2", "uid-gone")))
    assert sent(pool) == ["spark-1-exec-2/status"]
    assert "nominatedNodeName" not in pool.pods["spark-1-exec-2"]["status"]


def test_a_pass_does_not_wait_for_a_namespace_about_which_the_api_server_is_slow(pool: Stage) -> None:
    """A webhook may take as long as it likes for each deletion."""
    pool.add(*(streaming(number) for number in range(2, 40)))
    lane = impatient()
    actuator, context = acting(pool, lane=lane)
    let = pool.keep_back(lambda asked: asked.method == "DELETE")
    stranded = tuple(replace(placed(number, "cold"), detail="it finds no node") for number in range(2, 40))
    actuator.delete_stranded(context, Plan(replacements=stranded))
    assert len(pool.pods) == 39, "none is deleted yet"
    let.set()
    lane.drain(60.0)


def test_a_slow_namespace_is_not_waited_for_when_its_nominations_are_cleared(pool: Stage) -> None:
    """Executors of others are released after that."""
    theirs = range(2, 40)
    left: JSON = {"gates": [GATE], "status": {"nominatedNodeName": "cold"}, "managed_fields": [NOMINATED_BY_US]}
    pool.add(*(streaming(number, namespace="other", **left) for number in theirs), streaming(50, gates=[GATE]))
    lane = impatient()
    actuator, context = acting(pool, lane=lane)
    let = pool.keep_back(lambda asked: asked.route.endswith("/status"))
    surplus = [
        replace(placed(number, "cold"), executor=f"other/spark-1-exec-{number}", node=None, location=(), pin=Pin.NONE)
        for number in theirs
    ]
    actuator.release(context, Plan(placements=(*surplus, placed(50, "cold"))))
    wait_until(lambda: "spark-1-exec-50" in sent(pool), what="the other namespace's executor is released")
    let.set()
    lane.drain(60.0)


def test_one_event_about_a_topology_names_the_executors_that_found_no_room(pool: Stage) -> None:
    pool.add(driver())
    lost = tuple(Displaced(f"analytics/spark-1-exec-{n}", "analytics/spark-1", "cold", "mild") for n in (2, 3))
    actuator, context = acting(pool)
    actuator.report_displaced(context, Plan(displaced=lost))
    (event,) = posted(pool)
    assert (event["reason"], event["regarding"]["name"]) == ("Displaced", "spark-1-driver")
    assert event["note"] == (
        "2 executors found no room on their nodes: spark-1-exec-2 on mild instead of cold, "
        "spark-1-exec-3 on mild instead of cold"
    )


def test_executors_without_a_topology_or_a_driver_in_the_cluster_bring_no_event(
    pool: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "ballast.journal")
    actuator, context = acting(pool)
    lost = (Displaced("analytics/spark-1-exec-2", "analytics/spark-1", "cold", "mild"),)
    actuator.report_displaced(context, Plan(displaced=lost))
    assert posted(pool) == []
    assert "1 executors of analytics/spark-1 are not on the nodes chosen for them" in caplog.text


def test_a_pod_that_was_bound_before_it_could_be_deleted_stays_and_nothing_is_told(pool: Stage) -> None:
    actuator, context = acting(pool)
    actuator.delete_stranded(context, Plan(replacements=(placed(1, "cold"),)))
    assert pool.server.writes == []


def test_a_gated_driver_is_released_and_its_event_says_that_only_executors_are_placed(pool: Stage) -> None:
    pool.add(driver(node=None, gates=[GATE]))
    actuator, _ = acting(pool)
    actuator.release_strays(pool.read_pods()[-1:], {})
    assert sent(pool) == ["spark-1-driver"]
    assert [event["note"] for event in posted(pool)] == ["only executors are placed"]


def test_a_server_in_trouble_ends_the_creation_of_moves_and_no_move_is_told_of_as_refused(pool: Stage) -> None:
    pool.server.refusals["/executormoves"] = Answer(503, {"message": "etcd is away"})
    with pytest.raises(Unavailable, match="etcd is away"):
        ordered(pool)
    assert posted(pool) == []


@pytest.mark.parametrize(
    "answer",
    [
        Answer(503, {"message": 'admission webhook "no.example" denied the request: later'}),
        Answer(500, {"message": 'Internal error occurred: failed calling webhook "no.example": connection refused'}),
    ],
    ids=["it chooses the status", "it can't be asked"],
)
def test_a_webhook_in_one_namespace_ends_no_pass(pool: Stage, answer: Answer) -> None:
    pool.server.refusals["/executormoves"] = answer
    actuator, context = acting(pool)
    actuator.create_moves(context, Plan(moves=(MOVE,)))
    assert set(actuator.closed_namespaces()) == {"analytics"}


def test_who_was_let_go_by_somebody_else_is_neither_told_nor_counted(pool: Stage) -> None:
    """Somebody's patch came first: the test of ours fails, and the pod as it is now has no gate any more."""
    pool.add(driver(), streaming(2, gates=[GATE]))
    actuator, context = acting(pool)
    pool.add(streaming(2))
    actuator.release(context, Plan(placements=(placed(2, "cold"),)))
    actuator.release_strays(list(context.pods.values()), {})
    assert posted(pool) == []
    assert pool.metric("ballast_decisions_total", kind="release") is None
    assert pool.metric("ballast_gate_hold_seconds_count") is None


@pytest.mark.parametrize("status", [403, 404, 422])
def test_a_move_that_its_namespace_does_not_take_is_told_and_hinders_nobody(pool: Stage, status: int) -> None:
    pool.server.refusals["/executormoves"] = Answer(status, {"message": "exceeded quota: moves"})
    assert len(ordered(pool)) == 1
    (event,) = posted(pool)
    assert (event["reason"], event["type"]) == ("MoveNotCreated", "Warning")
    assert event["regarding"] == regarding(1)
    assert "exceeded quota: moves" in event["note"]


def test_a_pass_does_not_wait_for_a_move_whose_namespace_is_slow_and_chooses_no_other_of_it(pool: Stage) -> None:
    lane = impatient()
    actuator, context = acting(pool, lane=lane)
    let = pool.keep_back(lambda asked: "/analytics/executormoves" in asked.path)
    other = replace(MOVE, executor="other/spark-2-exec-1", topology="other/spark-2")
    actuator.create_moves(context, Plan(moves=(MOVE, other)))
    wait_until(lambda: pool.moves, what="the other namespace's move is created")
    assert [each["metadata"]["namespace"] for each in pool.moves.values()] == ["other"]
    assert "may be slow" in actuator.closed_namespaces()["analytics"]
    let.set()
    lane.drain(60.0)


def test_moves_rest_for_a_cooldown_in_a_namespace_that_does_not_take_one(pool: Stage) -> None:
    now = [100.0]
    pool.server.refusals["/executormoves"] = Answer(403, {"message": "exceeded quota: moves"})
    actuator, context = acting(pool, monotonic=lambda: now[0])
    actuator.create_moves(context, Plan(moves=(MOVE,)))
    (why,) = actuator.closed_namespaces().values()
    assert "exceeded quota: moves" in why
    now[0] += context.policy.moves.cooldown_seconds
    assert actuator.closed_namespaces() == {}


def test_a_move_that_came_to_nothing_may_come_again_and_one_that_is_open_may_not(pool: Stage) -> None:
    names = []
    for phases in ((), (MovePhase.LEAVING,), (MovePhase.REFUSED,), (MovePhase.REFUSED, MovePhase.EXPIRED)):
        pool.server.asked.clear()
        pool.server.lists["executormoves"] = []
        moves = tuple(
            a_move(
                f"m{i}",
                namespace=MOVE.namespace,
                executor_uid=MOVE.uid,
                phase=phase,
                ended_at=NOW + i if phase.ended else None,
            )
            for i, phase in enumerate(phases)
        )
        (created,) = ordered(pool, moves=moves)
        names.append(created["metadata"]["name"])
    assert names[0] == names[1]
    assert len(set(names)) == 3


TTL_SECONDS, AGAIN_SECONDS = 24 * 3600.0, 4200.0


def test_no_name_comes_again_while_the_move_that_had_it_is_kept() -> None:
    """Nobody approves for three days: every move expires and is deleted a day later."""
    kept: dict[str, Move] = {}
    for number in range(int(3 * TTL_SECONDS / AGAIN_SECONDS)):
        now = NOW + number * AGAIN_SECONDS
        kept = {name: move for name, move in kept.items() if now - (move.ended_at or 0.0) < TTL_SECONDS}
        name = move_name(MOVE, kept.values())
        assert name not in kept, f"after {(now - NOW) / 3600:.1f} h"
        kept[name] = a_move(
            name, namespace=MOVE.namespace, executor_uid=MOVE.uid, phase=MovePhase.EXPIRED, ended_at=now + 3600.0
        )


@pytest.mark.parametrize(
    ("phase", "other", "in_the_way"),
    [
        pytest.param("Expired", {}, True, id="ended"),
        pytest.param("Approved", {}, False, id="open"),
        pytest.param(None, {}, False, id="new"),
        pytest.param(None, {"policyName": "another"}, True, id="another policy's"),
        pytest.param(None, {"executor": {"pod": "spark-1-exec-9", "uid": "uid-9"}}, True, id="another executor's"),
        pytest.param(None, {"targetNodeName": "mild"}, True, id="to another node"),
        pytest.param(None, {"reason": {"strategy": "Manual"}}, True, id="by hand"),
        pytest.param(None, {"reason": None}, True, id="by hand, without a reason"),
    ],
)
def test_a_move_of_that_name_that_is_there_is_not_counted_and_told_of_if_it_is_in_the_way(
    pool: Stage, *, phase: str | None, other: JSON, in_the_way: bool
) -> None:
    """A user may create it: the same executor would be chosen in each pass, and no others."""
    (made,) = ordered(pool)
    pool.order({**made, "spec": {**made["spec"], **other}, **({"status": {"phase": phase}} if phase else {})})
    actuator, context = acting(pool)
    actuator.create_moves(context, Plan(moves=(MOVE,)))
    assert [event["reason"] for event in posted(pool)] == ["MoveDecided", *["MoveNotCreated"] * in_the_way]
    assert set(actuator.closed_namespaces()) == ({"analytics"} if in_the_way else set())
    assert pool.metric("ballast_decisions_total", kind="move") == 1.0, "the first"


def test_a_recommendation_creates_nothing_and_is_counted_as_one(pool: Stage) -> None:
    pool.spec = {"mode": "Recommend"}
    assert ordered(pool) == []
    assert pool.metric("ballast_decisions_total", kind="recommendation") == 1.0
    assert pool.metric("ballast_decisions_total", kind="move") is None
    assert pool.metric("ballast_move_predicted_gain_points") == 50.0
