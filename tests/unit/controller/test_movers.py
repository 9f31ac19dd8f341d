"""Carrying moves forward: what is written before what, and what is left alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Event
from typing import Any

import pytest

from ballast.controller.cluster_objects import OpenMove, read_moves
from ballast.controller.deleted_moves import DeletedMoves
from ballast.controller.move_facts import facts
from ballast.kube.document import text
from ballast.kube.errors import Denied
from ballast.kube.pods import Pod
from ballast.kube.volumes import Volumes
from ballast.model import MovePhase
from ballast.moves import Facts
from ballast.moves.arriving import UNSCHEDULABLE_SECONDS
from ballast.tenancy.lane import Lane, Limits
from tests.apiserver import Answer, Asked, Watch
from tests.lanes import impatient
from tests.testbed.waiting import wait_until
from tests.unit.controller.stage import NOW, Stage, move, stage, streaming
from tests.unit.kube.builders import GATE, NOMINATED_BY_ANOTHER, NOMINATED_BY_US, driver, pod

JSON = dict[str, Any]
BUDGET = "Cannot evict pod as it would violate the pod's disruption budget."
EVICT = "POST pods/spark-1-exec-1/eviction"
WRITE = "PATCH executormoves/m1/status"
DELETE = "DELETE pods/spark-1-exec-4"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


@pytest.fixture
def pool() -> Iterator[Stage]:
    """Two executors on the hot node and one on the mild one; the first is to go from hot to cold."""
    with stage() as found:
        found.add(*(streaming(number, node="hot") for number in (1, 2)), streaming(3, node="mild"))
        found.order(move(1))
        yield found


def by_hand(number: int) -> JSON:
    found = move(number)
    del found["spec"]["reason"], found["spec"]["predicted"]
    return found


def test_every_state_is_on_record_before_the_executor_is_asked_to_go(pool: Stage) -> None:
    pool.run()
    assert pool.done() == [WRITE, WRITE, EVICT]
    assert pool.phase("m1") == ("Leaving", "Evicting")


def test_a_move_that_is_not_approved_waits_until_its_approval_expires(pool: Stage) -> None:
    pool.order(move(1, approved=False))
    wake_at = pool.run()
    assert pool.phase("m1") == ("Proposed", "AwaitingApproval")
    assert EVICT not in pool.done()
    assert wake_at == NOW - 10.0 + 3600.0


def test_of_two_that_may_not_leave_together_the_earlier_one_leaves(pool: Stage) -> None:
    pool.order(move(1), move(2))
    pool.run()
    assert pool.phase("m1") == ("Leaving", "Evicting")
    assert pool.phase("m2") == ("Approved", "MaxConcurrent")


def test_a_move_whose_departure_is_being_written_keeps_others_from_leaving(pool: Stage) -> None:
    """Its webhook is slow."""
    let = pool.keep_back(lambda asked: asked.route.endswith("m1/status") and asked.body["status"]["phase"] == "Leaving")
    pool.order(move(1), move(2))
    pool.restart(lane=impatient())
    wait_until(lambda: pool.run() and pool.phase("m2")[0], what="the other one is looked at")
    for _ in range(3):
        pool.run()
        pool.lane.drain(0.2)
    assert (pool.phase("m1")[0], pool.phase("m2")[0]) == ("Approved", "Approved")
    let.set()
    pool.lane.drain(60.0)


@pytest.mark.parametrize("name", ["m1", "m2"])
def test_a_move_by_hand_that_its_user_has_deleted_still_uses_up_what_may_be_moved_by_hand(
    pool: Stage, name: str
) -> None:
    """Otherwise a user could make and delete moves one after the other, beyond all budgets."""
    pool.spec = {"budgets": [{"scope": "Pool", "moves": 2, "per": "1h"}], "cooldown": "1m"}
    deleted = DeletedMoves()
    pool.order(by_hand(1))
    pool.run()
    deleted.look(pool.opened(), pool.now, policies={"streaming"})
    pool.server.remove("executormoves", "m1", "analytics")
    pool.gone(1)
    pool.now += 600.0
    pool.deleted = deleted.look([], pool.now - 300.0, policies={"streaming"})
    second = by_hand(2)
    second["metadata"] |= {"name": name, "creationTimestamp": text(pool.now)}
    pool.order(second)
    pool.run()
    assert pool.phase(name) == ("Refused", "Budget")


@pytest.mark.parametrize(
    ("executor", "spec", "reason"),
    [
        (streaming(1, node="hot"), {"mode": "Recommend"}, "MovesDisabled"),
        (streaming(1, node="hot"), {"minExecutorAge": "2h"}, "TooYoung"),
        (streaming(1, node="hot"), {"maxStateSize": "512"}, "LargeState"),
        (streaming(1, node="hot", labels={"ballast.dev/workload": "Batch"}), {}, "UnsuitedWorkload"),
        (streaming(1, node="hot", schedulerName="other"), {}, "ForeignScheduler"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_forbids_a_move_now_ends_it_before_anything_is_touched(
    pool: Stage, executor: dict[str, object], spec: dict[str, object], reason: str
) -> None:
    pool.spec = spec
    pool.add(executor)
    pool.run()
    assert pool.phase("m1") == ("Refused", reason)
    assert EVICT not in pool.done()


@pytest.mark.parametrize("field", ["uid", "pod"])
def test_a_move_whose_pod_name_and_uid_are_of_two_pods_is_refused(pool: Stage, field: str) -> None:
    """A tenant may create a move for its own pod, with the uid of a pod that it may not evict."""
    mixed, other = move(1), move(2)
    mixed["spec"]["executor"][field] = other["spec"]["executor"][field]
    pool.order(mixed)
    pool.run()
    assert pool.phase("m1") == ("Refused", "Misdescribed")
    assert pool.done() == [WRITE]


@pytest.mark.parametrize(
    ("named", "reason", "message"),
    [
        (pod("web-1", node="hot"), "NotOptedIn", "web-1 is no Spark executor: only those are moved"),
        (driver(node="hot"), "Driver", "spark-1-driver is a driver: drivers are never moved"),
    ],
    ids=["no executor", "a driver"],
)
def test_a_move_of_a_pod_that_is_no_executor_is_refused_with_what_it_is(
    pool: Stage, named: JSON, reason: str, message: str
) -> None:
    pool.add(named)
    asked = move(1)
    asked["spec"]["executor"] = {"pod": named["metadata"]["name"], "uid": named["metadata"]["uid"]}
    pool.order(asked)
    pool.run()
    assert pool.phase("m1") == ("Refused", reason)
    assert pool.moves["m1"]["status"]["message"] == message
    assert pool.done() == [WRITE]


@pytest.mark.parametrize("uid", ["uid-spark-1-exec-1", "uid-spark-1-driver", "uid-web-1", "uid-of-nothing"])
def test_a_move_in_another_namespace_than_its_pod_ends_in_words_that_do_not_show_whether_that_exists(
    pool: Stage, uid: str
) -> None:
    pool.add(driver(node="hot"), pod("web-1", node="hot"))
    elsewhere = move(1)
    elsewhere["metadata"]["namespace"] = "tenant"
    elsewhere["spec"]["executor"] = {"pod": "guessed", "uid": uid}
    pool.order(elsewhere)
    pool.run()
    assert pool.phase("m1") == ("Expired", "ExecutorGone")
    assert pool.moves["m1"]["status"]["message"] == "guessed went by itself; nothing was evicted"
    assert len(pool.server.writes) == len([each for each in pool.server.writes if "/tenant/" in each.path])


def test_an_eviction_carries_the_names_of_the_move_so_that_the_server_compares_them(pool: Stage) -> None:
    pool.run()
    (asked,) = (each for each in pool.server.writes if each.route.endswith("/eviction"))
    executor = pool.moves["m1"]["spec"]["executor"]
    assert asked.route.endswith(f"/namespaces/analytics/pods/{executor['pod']}/eviction")
    assert asked.body["deleteOptions"]["preconditions"] == {"uid": executor["uid"]}


def test_an_error_about_one_move_leaves_the_others_alone(
    pool: Stage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(each: OpenMove, *args: Any) -> Facts:
        if each.key == "analytics/m1":
            raise ZeroDivisionError
        return facts(each, *args)

    monkeypatch.setattr("ballast.controller.movers.facts", broken)
    pool.order(move(3, source="mild"))
    wake_at = pool.run()
    assert pool.phase("m1") == ("", "")
    assert pool.phase("m3") == ("Leaving", "Evicting")
    assert wake_at is not None
    assert wake_at <= pool.now + 30.0
    assert "move analytics/m1 was left as it is" in caplog.text


def test_an_eviction_that_a_budget_refuses_is_told_and_tried_again(pool: Stage) -> None:
    cause = {"reason": "DisruptionBudget", "message": "needs 3 healthy pods"}
    pool.server.refusals["/eviction"] = Answer(429, {"message": BUDGET, "details": {"causes": [cause]}})
    pool.run()
    pool.run()
    assert pool.phase("m1") == ("Leaving", "DisruptionBudget")
    said = pool.moves["m1"]["status"]["message"]
    assert "needs 3 healthy pods" in said
    assert "integer minAvailable" in said
    del pool.server.refusals["/eviction"]
    pool.run()
    assert pool.done().count(EVICT) == 3


def test_what_was_answered_about_a_deleted_move_is_not_told_of_a_later_one_of_the_same_name(pool: Stage) -> None:
    pool.server.refusals["/eviction"] = Answer(429, {"message": BUDGET})
    pool.run()
    pool.movers.keep([])
    del pool.server.refusals["/eviction"]
    pool.run()
    assert pool.phase("m1") == ("Leaving", "Evicting")


def test_what_was_answered_about_a_move_is_not_told_of_another_that_took_its_name_unseen(pool: Stage) -> None:
    cause = {"reason": "DisruptionBudget", "message": "needs 3 healthy pods"}
    pool.server.refusals["/eviction"] = Answer(429, {"message": BUDGET, "details": {"causes": [cause]}})
    pool.run()
    del pool.server.refusals["/eviction"]
    pool.order({**pool.moves["m1"], "metadata": {**pool.moves["m1"]["metadata"], "uid": "another"}})
    pool.run()
    assert pool.phase("m1") == ("Leaving", "Evicting")


def test_an_eviction_that_takes_long_is_not_waited_for_and_nothing_is_decided_before_its_answer(pool: Stage) -> None:
    """A webhook may take as long as it likes, and executors of others are gated meanwhile."""
    metadata, selector = {"name": "all", "namespace": "analytics"}, {"matchLabels": {"spark-role": "executor"}}
    budget = {"metadata": metadata, "spec": {"selector": selector}, "status": {"disruptionsAllowed": 0}}
    pool.server.put("poddisruptionbudgets", budget)
    let = pool.keep_back(lambda asked: asked.route.endswith("/eviction"))
    pool.restart(lane=impatient())
    wait_until(lambda: pool.run() and EVICT in pool.done(), what="it is to be evicted")
    pool.now += 3600.0
    assert pool.run() == pool.now + 1.0
    assert pool.done() == [WRITE, WRITE, EVICT]
    assert pool.phase("m1") == ("Leaving", "Evicting")
    let.set()
    wait_until(lambda: pool.run() != pool.now + 1.0, what="the answer is known")
    assert pool.phase("m1") == ("Leaving", "DisruptionBudget")


def test_a_status_that_takes_long_is_not_waited_for_and_nothing_is_decided_before_its_answer(pool: Stage) -> None:
    """A webhook may take as long as it likes for statuses, too."""
    let = pool.keep_back(lambda asked: asked.method == "PATCH" and "/executormoves/" in asked.path)
    pool.restart(lane=impatient())
    assert [pool.run() for _ in range(2)] == [pool.now + 1.0] * 2
    assert pool.moves["m1"].get("status") is None
    let.set()
    wait_until(lambda: pool.run() and pool.phase("m1")[0] == "Leaving", what="it goes on")


CONFLICT = Answer(409, {"reason": "Conflict", "message": "the object has been modified"})
IN_TROUBLE = Answer(503, {"reason": "ServiceUnavailable", "message": "etcd has no leader"})
DENIED = Answer(403, {"reason": "Forbidden", "message": "admission webhook names.example denied the request: no"})


def kept_back(pool: Stage, kept: Callable[[Asked], bool], *, refused: Answer | None = None) -> Event:
    """No patience for such requests, which are refused, or carried out, once the event is set."""
    let, by = Event(), pool.server.by

    def late(asked: Asked) -> Answer | Watch:
        if not kept(asked):
            return by(asked)
        assert let.wait(30), "this answer was waited for"
        return refused or by(asked)

    pool.server.by = late
    pool.restart(lane=impatient())
    return let


def entering(phase: str) -> Callable[[Asked], bool]:
    return lambda asked: asked.route.endswith("m1/status") and asked.body["status"].get("phase") == phase


def asked_for(pool: Stage, phase: str) -> bool:
    return any(entering(phase)(each) for each in pool.server.writes)


def counting(pool: Stage, phase: MovePhase) -> OpenMove:
    """The move once it counts so, before it is looked at again."""

    def so() -> OpenMove | None:
        pool.run()
        (found,) = pool.movers.as_they_count(pool.opened())
        return found if found.state.phase is phase else None

    return wait_until(so, what=f"it counts as {phase}")


def answered(pool: Stage) -> None:
    wait_until(lambda: not pool.lane.holds("move uid-m1", "analytics"), what="the answer comes")


def look(pool: Stage, found: OpenMove) -> float | None:
    """One walk over the move as it counted; when to look again. Whatever it asked for is answered."""
    again_at = pool.movers.run(pool.context([found]), [found])[1]
    answered(pool)
    return again_at


@pytest.mark.parametrize("refused", [CONFLICT, IN_TROUBLE, DENIED], ids=["conflict", "in trouble", "denied"])
def test_no_executor_is_evicted_for_an_intent_whose_write_fails_while_a_pass_plans(
    pool: Stage, refused: Answer
) -> None:
    let = kept_back(pool, entering("Leaving"), refused=refused)
    found = counting(pool, MovePhase.LEAVING)
    let.set()
    answered(pool)
    assert look(pool, found) == NOW + 1.0
    assert EVICT not in pool.done()
    assert pool.phase("m1")[0] == "Approved"


def test_no_executor_is_evicted_for_an_intent_that_is_dropped_because_another_leads(pool: Stage) -> None:
    pool.restart(lane=Lane(Limits(workers=0)))
    pool.order({**move(1), "status": {"phase": "Approved", "timings": {"approved": text(NOW)}}})
    found = counting(pool, MovePhase.LEAVING)
    pool.lane.forget()
    assert look(pool, found) == NOW + 1.0
    assert EVICT not in pool.done()
    (read,) = pool.movers.as_they_count(pool.opened())
    assert read.state.phase is MovePhase.LEAVING, "the last look may be older than what came of it"
    (read,) = pool.movers.as_they_count(pool.opened())
    assert read.state.phase is MovePhase.APPROVED


def test_a_move_is_carried_on_from_a_look_after_its_late_write(pool: Stage) -> None:
    let = kept_back(pool, entering("Leaving"))
    found = counting(pool, MovePhase.LEAVING)
    let.set()
    answered(pool)
    assert look(pool, found) == NOW + 1.0
    older = pool.movers.as_they_count([found])
    assert look(pool, older[0]) == NOW + 1.0, "this look may have been before the answer"
    assert EVICT not in pool.done()
    pool.run()
    answered(pool)
    assert pool.done()[-1] == EVICT


def test_no_executor_is_evicted_by_an_older_look_once_its_move_was_refused_late(pool: Stage) -> None:
    pool.server.refusals["/eviction"] = Answer(201)
    pool.run()
    (older,) = pool.opened()
    assert older.state.phase is MovePhase.LEAVING
    pool.spec = {"maxStateSize": "512"}
    let = kept_back(pool, entering("Refused"))
    wait_until(lambda: pool.run() and asked_for(pool, "Refused"), what="its refusal is being written")
    let.set()
    answered(pool)
    pool.spec = {}
    evictions = pool.done().count(EVICT)
    assert look(pool, older) == NOW + 1.0
    (counted,) = pool.movers.as_they_count([older])
    assert counted.state.withdrawn
    assert look(pool, counted) == NOW + 1.0
    assert pool.phase("m1") == ("Refused", "LargeState")
    assert pool.done().count(EVICT) == evictions


def test_a_late_refusal_of_a_write_is_told_and_followed_by_a_pause(
    pool: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    let = kept_back(pool, entering("Leaving"), refused=DENIED)
    counting(pool, MovePhase.LEAVING)
    let.set()
    answered(pool)
    pool.run()
    assert "move analytics/m1 was left as it is: patch executormoves/status analytics/m1: admission" in caplog.text
    asked = len(pool.done())
    assert pool.run() == NOW + 30.0
    assert pool.lane.rests("move uid-m1")
    assert len(pool.done()) == asked


def test_a_late_error_of_reading_pods_again_is_told_and_followed_by_a_pause(
    pool: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    let, asked = Event(), list[str]()

    def reread(_: str, application: str, __: str) -> list[Pod]:
        asked.append(application)
        assert let.wait(30), "this answer was waited for"
        raise Denied("list pods", "no", status=403)

    pool.restart(lane=impatient(), reread=reread)
    assert pool.run() == NOW + 1.0
    let.set()
    answered(pool)
    assert pool.run() == NOW + 30.0
    assert "move analytics/m1 was left as it is: list pods: no" in caplog.text
    assert asked == ["spark-1"], "it is not read again at once"


def test_an_eviction_that_fails_for_another_reason_is_not_laid_to_a_budget(pool: Stage) -> None:
    pool.server.refusals["/eviction"] = Answer(403, {"reason": "Forbidden", "message": "may not create pods/eviction"})
    pool.run()
    pool.run()
    assert pool.phase("m1") == ("Leaving", "NotEvicted")
    pool.now += 120.0
    pool.run()
    pool.run()
    assert pool.phase("m1") == ("Refused", "NotEvicted")
    said = pool.moves["m1"]["status"]["message"]
    assert said == "not evicted within 120 s: may not create pods/eviction"


def test_a_withdrawn_eviction_is_looked_at_once_more_before_the_move_ends(pool: Stage) -> None:
    """It may have been carried out although its pod was not seen to leave yet."""
    pool.server.refusals["/eviction"] = Answer(201)
    pool.run()
    pool.spec = {"maxStateSize": "512"}
    pool.run()
    assert pool.phase("m1") == ("Leaving", "LargeState")
    pool.run()
    assert pool.phase("m1") == ("Refused", "LargeState")
    assert pool.done().count(EVICT) == 1


def test_a_write_that_another_came_before_is_made_from_a_fresh_look(pool: Stage) -> None:
    pool.server.refusals["/m1/status"] = Answer(409, {"reason": "Conflict", "message": "the object has been modified"})
    assert pool.run() == pool.now + 1.0
    assert pool.phase("m1") == ("", "")
    pool.server.refusals.clear()
    pool.run()
    assert pool.phase("m1") == ("Leaving", "Evicting")


def test_the_replacement_is_recognised_and_sent_to_the_destination(pool: Stage) -> None:
    pool.spec = {"pin": "Node"}
    pool.run()
    pool.gone(1)
    pool.add(streaming(4, created=NOW, gates=[GATE]))
    pool.run()
    assert pool.phase("m1") == ("Arriving", "Placing")
    assert pool.moves["m1"]["status"]["replacement"]["pod"] == "spark-1-exec-4"
    sent = pool.server.writes[-1]
    assert sent.route.endswith("/pods/spark-1-exec-4")
    (values,) = [
        requirement["values"]
        for operation in sent.body
        if operation["path"].startswith("/spec/affinity")
        for term in operation["value"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
            "nodeSelectorTerms"
        ]
        for requirement in term["matchExpressions"]
    ]
    assert values == ["cold"]


NOMINATE, RELEASE = "PATCH pods/spark-1-exec-4/status", "PATCH pods/spark-1-exec-4"


def awaited(pool: Stage, **changes: Any) -> None:
    """The executor has left, and its replacement waits at its gate."""
    pool.run()
    pool.gone(1)
    pool.add(streaming(4, created=NOW, gates=[GATE], **changes))


def test_the_replacement_is_nominated_before_it_is_released(pool: Stage) -> None:
    awaited(pool)
    pool.run()
    assert pool.done()[-2:] == [NOMINATE, RELEASE]
    assert pool.pods["spark-1-exec-4"]["status"]["nominatedNodeName"] == "cold"
    version, affinity, gate = pool.server.writes[-1].body
    assert version["value"] == pool.versions("spark-1-exec-4")[-2], "the version that the nomination has made"
    node = affinity["value"]["nodeAffinity"]
    (term,) = node["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert [each["key"] for each in term["matchExpressions"]] == ["topology.kubernetes.io/zone"]
    preferred = node["preferredDuringSchedulingIgnoredDuringExecution"]
    assert [each["preference"]["matchExpressions"][0]["values"] for each in preferred] == [["a-1"], ["cold"]]
    assert gate["op"] == "remove"


@pytest.mark.parametrize("bound", [True, False])
def test_a_replacement_whose_volume_is_still_to_be_made_is_tied_to_no_zone(pool: Stage, *, bound: bool) -> None:
    claim = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    if bound:
        pool.volumes = Volumes(bound=frozenset({("analytics", "data")}))
    awaited(pool, volumes=[claim])
    pool.run()
    assert pool.done()[-2:] == [NOMINATE, RELEASE]
    _, affinity, _ = pool.server.writes[-1].body
    assert (REQUIRED in affinity["value"]["nodeAffinity"]) is bound


def test_a_replacement_that_requires_a_spread_over_zones_is_led_to_the_destination_and_tied_to_nothing(
    pool: Stage,
) -> None:
    zones = {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule"}
    awaited(pool, topologySpreadConstraints=[zones])
    pool.run()
    assert pool.done()[-2:] == [NOMINATE, RELEASE]
    node = pool.server.writes[-1].body[1]["value"]["nodeAffinity"]
    assert list(node) == ["preferredDuringSchedulingIgnoredDuringExecution"]


def test_after_a_crash_between_the_two_it_is_not_nominated_again(pool: Stage) -> None:
    awaited(pool, status={"nominatedNodeName": "cold"}, managed_fields=[NOMINATED_BY_US])
    pool.run()
    assert pool.done()[-1] == RELEASE
    assert NOMINATE not in pool.done()


def test_after_such_a_crash_it_is_released_without_its_nomination_if_its_destination_may_not_take_it_any_more(
    pool: Stage,
) -> None:
    nominated: JSON = {"status": {"nominatedNodeName": "cold"}, "managed_fields": [NOMINATED_BY_US]}
    awaited(pool, nodeSelector={"disk": "none-has-it"}, **nominated)
    pool.run()
    assert pool.done()[-2:] == [NOMINATE, RELEASE]
    assert "nominatedNodeName" not in pool.pods["spark-1-exec-4"]["status"]
    version, gate = pool.server.writes[-1].body
    assert (version["value"], gate["op"]) == (pool.versions("spark-1-exec-4")[-2], "remove")


def test_the_nomination_of_another_controller_stays_and_the_replacement_is_released_at_once(pool: Stage) -> None:
    awaited(pool, status={"nominatedNodeName": "elsewhere"}, managed_fields=[NOMINATED_BY_ANOTHER])
    pool.run()
    assert pool.done()[-1] == RELEASE
    assert pool.pods["spark-1-exec-4"]["status"]["nominatedNodeName"] == "elsewhere"


def test_a_nomination_that_the_server_refuses_holds_no_replacement_up(pool: Stage) -> None:
    pool.server.refusals["/pods/spark-1-exec-4/status"] = Answer(
        403, {"reason": "Forbidden", "message": "no such right"}
    )
    awaited(pool)
    pool.run()
    assert pool.done()[-2:] == [NOMINATE, RELEASE]


def test_a_replacement_that_has_changed_is_nominated_in_the_next_pass(pool: Stage) -> None:
    pool.server.refusals["/pods/spark-1-exec-4/status"] = Answer(
        409, {"reason": "Conflict", "message": "it was modified"}
    )
    awaited(pool)
    pool.run()
    assert pool.done()[-1] == NOMINATE
    pool.server.refusals.clear()
    pool.run()
    assert pool.done()[-2:] == [NOMINATE, RELEASE]


def test_a_nomination_that_came_to_nothing_is_cleared_so_that_an_autoscaler_sees_the_pod(pool: Stage) -> None:
    awaited(pool)
    pool.run()
    released = pool.pods["spark-1-exec-4"]
    since = {"lastTransitionTime": text(NOW), "status": "False", "reason": "Unschedulable", "type": "PodScheduled"}
    pool.add({**released, "status": {**released["status"], "conditions": [since]}})
    wake_at = pool.run()
    assert pool.done()[-1] != NOMINATE
    assert wake_at == NOW + 5.0
    pool.now += 5.0
    pool.run()
    assert pool.done()[-1] == NOMINATE
    assert "nominatedNodeName" not in pool.pods["spark-1-exec-4"]["status"]
    pool.run()
    assert pool.done().count(NOMINATE) == 2


def test_a_replacement_that_the_watch_has_not_told_of_yet_is_sent_to_its_destination_all_the_same(pool: Stage) -> None:
    pool.run()
    pool.gone(1)
    pool.add(streaming(4, created=NOW, gates=[GATE]))
    pool.watch_lags = True
    pool.run()
    assert pool.phase("m1") == ("Arriving", "Placing")
    assert pool.done()[-1] == "PATCH pods/spark-1-exec-4"


@pytest.mark.parametrize(
    "newcomer", [{"application": "spark-2"}, {"profile": "1"}], ids=["another application", "another resource profile"]
)
def test_a_newcomer_of_another_kind_is_no_replacement(pool: Stage, newcomer: JSON) -> None:
    pool.run()
    pool.gone(1)
    pool.add(streaming(4, created=NOW, gates=[GATE], **newcomer))
    pool.run()
    assert pool.phase("m1") == ("Arriving", "AwaitingReplacement")
    assert "replacement" not in pool.moves["m1"]["status"]


def test_a_replacement_whose_pin_is_refused_is_released_without_one(pool: Stage) -> None:
    pool.run()
    pool.gone(1)
    pool.add(streaming(4, created=NOW, gates=[GATE]))
    cause = {"field": "spec.affinity", "message": "not allowed"}
    refused = {"reason": "Invalid", "message": "spec.affinity: not allowed", "details": {"causes": [cause]}}
    pool.server.refusals["/pods/spark-1-exec-4"] = Answer(422, refused)
    pool.run()
    pool.server.refusals.clear()
    pool.run()
    assert [operation["path"] for operation in pool.server.writes[-1].body] == [
        "/metadata/resourceVersion",
        "/spec/schedulingGates/0",
    ]
    assert pool.pods["spark-1-exec-4"]["status"]["nominatedNodeName"] == "cold", "which still leads it there"


def test_a_replacement_that_cannot_be_scheduled_where_it_is_pinned_is_deleted_so_that_spark_creates_another(
    pool: Stage,
) -> None:
    pool.run()
    pool.gone(1)
    fields: JSON = {"f:spec": {"f:affinity": {"f:nodeAffinity": {f"f:{REQUIRED}": {}}}}}
    ours = {"manager": "ballast", "operation": "Update", "time": text(NOW), "fieldsV1": fields}
    since = {"lastTransitionTime": text(NOW), "status": "False", "reason": "Unschedulable", "type": "PodScheduled"}
    pool.add(streaming(4, created=NOW, managed_fields=[ours], status={"conditions": [since]}))
    version = pool.pods["spark-1-exec-4"]["metadata"]["resourceVersion"]
    pool.run()
    assert DELETE not in pool.done()
    pool.now += UNSCHEDULABLE_SECONDS
    pool.run()
    assert pool.phase("m1") == ("Arriving", "Discarding")
    assert pool.done()[-2:] == [WRITE, DELETE], "the intent is on record first"
    assert pool.server.writes[-1].body["preconditions"] == {"uid": "uid-spark-1-exec-4", "resourceVersion": version}


def test_a_replacement_that_waits_for_a_volume_on_its_node_is_not_deleted_although_it_was_refused_first(
    pool: Stage,
) -> None:
    pool.run()
    pool.gone(1)
    fields: JSON = {"f:spec": {"f:affinity": {"f:nodeAffinity": {f"f:{REQUIRED}": {}}}}}
    ours = {"manager": "ballast", "operation": "Update", "time": text(NOW), "fieldsV1": fields}
    since = {"lastTransitionTime": text(NOW), "status": "False", "reason": "Unschedulable", "type": "PodScheduled"}
    status = {"conditions": [since], "nominatedNodeName": "cold"}
    pool.add(streaming(4, created=NOW, managed_fields=[ours, NOMINATED_BY_ANOTHER], status=status))
    for _ in range(3):
        pool.run()
        pool.now += UNSCHEDULABLE_SECONDS
    assert pool.phase("m1") == ("Arriving", "Starting")


def test_a_replacement_that_the_operator_did_not_pin_is_never_deleted(pool: Stage) -> None:
    """Its owner required the place that has no room: another pod would be no better off."""
    pool.run()
    pool.gone(1)
    since = {"lastTransitionTime": text(NOW), "status": "False", "reason": "Unschedulable", "type": "PodScheduled"}
    pool.add(streaming(4, created=NOW, nodeSelector={"disk": "ssd"}, status={"conditions": [since]}))
    for _ in range(3):
        pool.run()
        pool.now += UNSCHEDULABLE_SECONDS
    assert DELETE not in pool.done()


def test_an_ended_move_is_kept_for_its_time_and_then_deleted(pool: Stage) -> None:
    pool.spec = {"mode": "Recommend", "ttlAfterFinished": "25h"}
    pool.run()
    assert pool.phase("m1")[0] == "Refused"
    pool.now += 24 * 3600
    pool.run()
    assert "m1" in pool.moves
    pool.now += 2 * 3600
    pool.run()
    assert pool.moves == {}


def test_of_moves_whose_policy_is_gone_those_that_ended_long_ago_are_deleted(pool: Stage) -> None:
    ended = {"phase": "Succeeded", "timings": {"ended": text(NOW)}}
    pool.order({**move(1), "status": ended}, move(2))

    def turned_away_after(hours: float) -> None:
        pool.now = NOW + 3600.0 * hours
        found = pool.opened()
        pool.movers.keep(found)
        pool.movers.turn_away(found)

    turned_away_after(1.0)
    assert (pool.phase("m1")[0], pool.phase("m2")) == ("Succeeded", ("Refused", "NoPolicy"))
    turned_away_after(25.5)
    assert set(pool.moves) == {"m2"}, "it was refused an hour later"


def rereading(pool: Stage, *, until: Event | None = None) -> list[tuple[str, str, str]]:
    """Pods are read again, as none; what is asked for. `until`: no answer comes before."""
    asked = list[tuple[str, str, str]]()

    def reread(namespace: str, application: str, name: str) -> list[Pod]:
        asked.append((namespace, application, name))
        if until is not None:
            assert until.wait(30), "this answer was waited for"
        return []

    pool.restart(lane=None if until is None else impatient(), reread=reread)
    return asked


def test_an_executor_that_the_server_no_longer_has_is_not_evicted_although_the_watch_shows_it(pool: Stage) -> None:
    asked = rereading(pool)
    pool.run()
    assert pool.phase("m1") == ("Expired", "ExecutorGone")
    assert EVICT not in pool.done()
    assert asked == [("analytics", "spark-1", "spark-1-exec-1")], "once, before the first step"


def test_pods_that_take_long_to_be_read_again_are_not_waited_for(pool: Stage) -> None:
    """An application may have hundreds of pods of a megabyte, and executors of others are gated meanwhile."""
    let = Event()
    asked = rereading(pool, until=let)
    wait_until(lambda: pool.run() == NOW + 1.0 and asked, what="they are asked for")
    assert pool.run() == NOW + 1.0
    assert (len(asked), pool.done()) == (1, []), "nothing is decided before the answer"
    let.set()
    wait_until(lambda: pool.run() is None, what="the answer is used")
    assert pool.phase("m1") == ("Expired", "ExecutorGone")
    assert len(asked) == 1


def test_an_answer_that_came_too_long_ago_is_not_used(pool: Stage) -> None:
    let = Event()
    asked = rereading(pool, until=let)
    pool.run()
    let.set()
    (found,), _ = read_moves((pool.moves["m1"],))
    wait_until(lambda: not pool.lane.holds(f"move {found.uid}", "analytics"), what="the answer comes")
    pool.now += 6.0
    wait_until(lambda: pool.run() is None, what="they are read again")
    assert len(asked) == 2


def test_an_executor_that_went_by_itself_needs_no_eviction(pool: Stage) -> None:
    pool.gone(1)
    assert pool.run() is None
    assert pool.phase("m1") == ("Expired", "ExecutorGone")
    assert EVICT not in pool.done()


def test_each_transition_is_an_event_of_the_move_and_of_the_executor(pool: Stage) -> None:
    pool.run()
    posted = [each.body for each in pool.server.writes if each.route.endswith("/events")]
    leaving = [
        (event["regarding"]["kind"], event["regarding"]["name"])
        for event in posted
        if event["note"].startswith("Leaving")
    ]
    assert leaving == [("ExecutorMove", "m1"), ("Pod", "spark-1-exec-1")]


def settling(*, hot: float, cold: float) -> JSON:
    """Long enough on the destination, having left when the two nodes had these scores."""
    times = {name: text(NOW - 600.0) for name in ("approved", "leaving", "arriving", "settling")}
    return {
        "phase": "Settling",
        "targetNodeName": "cold",
        "subject": {"application": "spark-1", "resourceProfile": "0", "executorId": "1"},
        "replacement": {"pod": "spark-1-exec-4", "uid": "uid-spark-1-exec-4", "node": "cold", "pinned": True},
        "measured": {"hotBefore": hot, "coldBefore": cold},
        "timings": times,
    }


@pytest.mark.parametrize(
    ("hot", "cold", "phase", "gain"),
    [(105.0, 10.0, "Succeeded", 25.0), (95.0, 10.0, "Failed", 15.0), (85.0, 20.0, "Failed", -5.0)],
)
def test_what_a_move_came_to_is_counted_and_its_measured_gain_is_told(
    pool: Stage, *, hot: float, cold: float, phase: str, gain: float
) -> None:
    pool.gone(1)
    pool.add(streaming(4, node="cold"))
    pool.order({**move(1), "status": settling(hot=hot, cold=cold)})
    pool.run()
    assert pool.phase("m1")[0] == phase
    assert pool.moves["m1"]["status"]["measured"]["gain"] == gain
    assert pool.metric("ballast_moves_total", phase=phase) == 1.0
    assert pool.metric("ballast_move_measured_gain_points") == gain


def test_what_it_brought_is_on_record_next_to_what_was_predicted(pool: Stage) -> None:
    pool.task_seconds = {"spark-1-exec-1": 3.0, "spark-1-exec-2": 1.5, "spark-1-exec-3": 1.5}
    pool.batch_p50_seconds, pool.batch_p95_seconds = 3.0, 4.0
    pool.run()
    pool.gone(1)
    pool.add(streaming(4, node="cold", created=NOW))
    pool.task_seconds["spark-1-exec-4"] = 1.2
    pool.batch_p50_seconds, pool.batch_p95_seconds = 2.0, 2.5
    pool.cpu |= {"hot": 0.6, "cold": 0.4}
    pool.run()
    assert pool.phase("m1") == ("Succeeded", "Helped")
    assert pool.moves["m1"]["status"]["measured"] == pytest.approx(
        {
            "hotBefore": 90.0,
            "coldBefore": 20.0,
            "slownessBefore": 2.0,
            "batchP50Before": 3.0,
            "batchP95Before": 4.0,
            "hotAfter": 60.0,
            "coldAfter": 40.0,
            "slownessAfter": 0.8,
            "batchP50After": 2.0,
            "batchP95After": 2.5,
            "gain": 50.0,
        }
    )
    assert pool.moves["m1"]["spec"]["predicted"] == {"hotAfter": "65", "coldAfter": "45"}


def test_a_move_counts_once_however_often_it_is_looked_at(pool: Stage) -> None:
    pool.gone(1)
    for _ in range(3):
        pool.run()
    assert pool.metric("ballast_moves_total", phase="Expired") == 1.0
    assert pool.metric("ballast_move_transitions_total", phase="Expired") == 1.0
    assert pool.metric("ballast_move_measured_gain_points") is None


@pytest.mark.parametrize(
    "replacement",
    [
        streaming(4, node="cold", created=NOW),
        streaming(4, node=None, created=NOW, gates=[GATE]),
        streaming(4, node="cold", created=NOW, leaving=True, terminationGracePeriodSeconds=60),
    ],
    ids=["bound", "gated", "leaving"],
)
def test_a_move_sees_its_pods_as_they_are(pool: Stage, replacement: JSON) -> None:
    pool.run()
    pool.gone(1)
    pool.add(replacement)
    moves = pool.opened()
    context = pool.context(moves)
    seen = facts(moves[0], context, {each.key: each for each in moves}, NOW)
    assert {each.uid for each in seen.newcomers} >= {replacement["metadata"]["uid"]}
    for each in seen.newcomers:
        there = context.pods[each.uid]
        for name in ("uid", "name", "phase", "created_at", "node", "deadline"):
            assert getattr(each, name) == getattr(there, name), name
        assert there.executor is not None
        for name in ("application", "resource_profile", "executor_id", "running_since", "unschedulable_since"):
            assert getattr(each, name) == getattr(there.executor, name), name


TOO_LARGE = Answer(500, {"kind": "Status", "message": "etcdserver: request is too large", "code": 500})


def test_a_move_whose_status_can_t_be_written_counts_as_ended(pool: Stage) -> None:
    """A user may make a move as long as etcd takes once it has begun: it kept a slot of the pool for good."""
    pool.run()
    assert pool.phase("m1") == ("Leaving", "Evicting")
    pool.gone(1)
    pool.server.refusals[WRITE.split()[1]] = TOO_LARGE
    found = pool.opened()
    assert pool.movers.as_they_count(found) == found
    pool.run()
    (counted,) = pool.movers.as_they_count(found)
    assert counted.state.phase is MovePhase.FAILED
    assert counted.state.timings.ended_at == pool.now
    pool.order(pool.moves["m1"])
    changed = pool.opened()
    assert pool.movers.as_they_count(changed) == changed
    assert pool.movers.as_they_count(found) == found


def test_a_move_whose_status_can_t_be_written_counts_as_ended_although_that_answer_came_late(pool: Stage) -> None:
    pool.run()
    pool.gone(1)
    let = kept_back(pool, entering("Arriving"), refused=TOO_LARGE)
    found = counting(pool, MovePhase.ARRIVING)
    let.set()
    answered(pool)
    look(pool, found)
    for _ in range(2):
        (counted,) = pool.movers.as_they_count(pool.opened())
        assert counted.state.phase is MovePhase.FAILED
