from __future__ import annotations

import itertools
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from ballast.controller.cluster_objects import ClusterLister
from ballast.controller.gate_timeout import Fallback, GateTimeout, Places
from ballast.kube import actions
from ballast.kube.pods import PodReader
from ballast.model import Executor, Levels, Pin, Placement, Policy, Reason, Snapshot
from ballast.placement.fallback import fallback
from ballast.tenancy.lane import Lane
from tests.apiserver import Answer, ApiServer, Asked, Watch
from tests.lanes import AtOnce, impatient, patient
from tests.unit.kube.builders import (
    CREATED_AT,
    FOREIGN_GATE,
    GATE,
    NOMINATED_BY_ANOTHER,
    NOMINATED_BY_US,
    executor,
    node,
    required_values,
)

JSON = dict[str, Any]
LABELS = {"ballast.dev/topology": "clicks"}
POLICY: JSON = {
    "metadata": {"name": "streaming", "uid": "u", "resourceVersion": "1", "generation": 1},
    "spec": {"nodeSelector": {"matchLabels": {"pool": "streaming"}}, "placement": {"mode": "Enforce"}},
}
TOO_LARGE = "etcdserver: request is too large"


@pytest.fixture
def script() -> ApiServer:
    """A pool of two zones, of which only zone b has room for four executors, and the executors that are gated."""
    server = ApiServer()
    server.put("balancingpolicies", POLICY)
    server.put("nodes", node("a-1", allocatable={"cpu": "2", "memory": "8Gi", "pods": "110"}))
    server.put("nodes", *(node(f"b-{n}", labels={"topology.kubernetes.io/zone": "b"}) for n in (1, 2)))
    server.put("namespaces", {"metadata": {"name": "analytics", "labels": {"ballast.dev/gate": "enabled"}}})
    server.put("pods", *(executor(number, gates=[GATE], labels=LABELS) for number in range(4)))
    return server


def gates(
    script: ApiServer, *, now: float, places: Places | None = None, lane: Lane | None = None, **more: Any
) -> GateTimeout:
    client = script.client()
    reader = PodReader()
    return GateTimeout(
        client,
        lane or AtOnce(),
        gated=lambda: [reader.read(pod) for pod in script.all("pods")],
        places=places or Fallback(ClusterLister(client).look, clock=lambda: now),
        clock=lambda: now,
        **more,
    )


def zones(script: ApiServer) -> list[list[str]]:
    """The zones that each release requires."""
    found = []
    for asked in script.writes:
        [affinity] = [change["value"] for change in asked.body if change["path"] == "/spec/affinity"] or [{}]
        found.append(required_values(affinity))
    return found


def test_no_executor_is_released_before_the_longest_gate_timeout_is_over(script: ApiServer) -> None:
    assert gates(script, now=CREATED_AT + 11.0).run().placed == 0
    assert script.writes == []


def test_a_set_that_nothing_released_in_time_goes_to_one_zone_that_holds_all_of_it(script: ApiServer) -> None:
    found = gates(script, now=CREATED_AT + 12.0).run()
    assert (found.placed, found.bare, found.failed) == (4, 0, 0)
    assert [*found.by_policy["streaming"].values()] == [Reason.GATE_TIMEOUT] * 4
    assert zones(script) == [["b"]] * 4


def test_each_hold_that_ends_is_returned_with_the_policy_that_placed_the_executor(script: ApiServer) -> None:
    script.lists["pods"] += [
        executor(7, application="lone", namespace="lone", gates=[GATE]),
        executor(8, gates=[GATE], labels={"spark-role": "driver"}),
    ]
    found = gates(script, now=CREATED_AT + 16.0).run()
    assert sorted(found.holds) == [("", 16.0), *[("streaming", 16.0)] * 4]
    assert found.longest_gated_seconds == 0.0


@pytest.mark.parametrize(
    ("answer", "seconds"),
    [(Answer(503, {"message": "busy"}), 16.0), (Answer(404, {"message": "it is gone"}), 0.0)],
    ids=["refused", "gone"],
)
def test_executors_that_are_still_gated_count_and_those_that_are_gone_do_not(
    script: ApiServer, answer: Answer, seconds: float
) -> None:
    script.refusals["PATCH "] = answer
    found = gates(script, now=CREATED_AT + 16.0).run()
    assert (found.holds, found.longest_gated_seconds) == ((), seconds)


def test_when_no_place_can_be_worked_out_the_executors_are_released_as_they_are(
    script: ApiServer, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: frozenset[str]) -> dict[str, Any]:
        raise ValueError("a defect")

    found = gates(script, now=CREATED_AT + 12.0, places=fail).run()
    assert (found.placed, found.bare, found.failed) == (0, 4, 0)
    assert "no place could be worked out for 4 overdue executors" in caplog.text


def test_executors_of_other_namespaces_have_places_where_those_of_one_make_it_fail(
    script: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(snapshot: Snapshot, policy: Policy, *, gated: Sequence[Executor]) -> list[Placement]:
        if any(each.namespace == "broken" for each in gated):
            raise ValueError("a defect")
        return fallback(snapshot, policy, gated=gated)

    monkeypatch.setattr("ballast.controller.gate_timeout.fallback", fails)
    script.lists["namespaces"] += [{"metadata": {"name": "broken", "labels": {"ballast.dev/gate": "enabled"}}}]
    script.lists["pods"] += [executor(9, application="x", namespace="broken", gates=[GATE])]
    found = gates(script, now=CREATED_AT + 12.0).run()
    assert (found.placed, found.bare, found.failed) == (4, 1, 0)


def test_of_very_many_applications_so_many_have_a_place_that_it_takes_a_moment_and_each_namespace_some(
    script: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ballast.planner.release.MOST_KINDS", 8)
    script.lists["namespaces"] += [{"metadata": {"name": "aaa", "labels": {"ballast.dev/gate": "enabled"}}}]
    script.lists["pods"] += [executor(0, application=f"a{n}", namespace="aaa", gates=[GATE]) for n in range(20)]
    found = gates(script, now=CREATED_AT + 12.0).run()
    # Each of the other user's applications counts as two, and so do the four executors of our topology.
    assert (found.placed, found.bare, found.failed) == (4 + 3, 17, 0)


def test_a_pod_that_is_no_executor_is_released_at_once(script: ApiServer) -> None:
    shared = executor(1, gates=[GATE], labels={"spark-role": "driver"})
    script.lists["pods"] = [shared]
    assert gates(script, now=CREATED_AT, places=lambda _: {}).run().bare == 1


FENCED = (
    "pods \"x\" is forbidden: ValidatingAdmissionPolicy 'ballast-patch' with binding 'ballast-patch' denied request: "
    "Ballast changes no metadata of a pod"
)
REFUSED = 'admission webhook "no.example" denied the request: no'
FIELD_ADDED = {"message": "Pod is invalid", "details": {"causes": [{"field": "spec", "message": "Forbidden"}]}}
NO_RIGHT = 'pods "x" is forbidden: User "system:serviceaccount:s:ballast" cannot patch resource "pods" in API group ""'
GATED_BY_TEMPLATE = -3600.0
"""The namespace has rested for as long when the pods are created."""


@pytest.mark.parametrize(
    ("answer", "resting_since", "deleted"),
    [
        (Answer(403, {"message": FENCED}), 12.0, 4),
        (Answer(400, {"message": REFUSED}), 12.0, 4),
        (Answer(422, FIELD_ADDED), 12.0, 4),
        (Answer(500, {"message": TOO_LARGE}), 12.0, 4),
        (Answer(400, {"message": REFUSED}), None, 0),
        (Answer(400, {"message": REFUSED}), GATED_BY_TEMPLATE, 0),
        (Answer(403, {"message": NO_RIGHT}), 12.0, 0),
        (Answer(503, {"message": "busy"}), 12.0, 0),
    ],
    ids=[
        "Ballast's own fence",
        "a webhook",
        "a field that was added",
        "as long as etcd takes",
        "the switch can't be written",
        "the gate is of a template",
        "a right is missing",
        "the API server is busy",
    ],
)
def test_executors_whose_release_is_refused_are_replaced_once_nothing_gates_their_successors(
    script: ApiServer, answer: Answer, resting_since: float | None, deleted: int
) -> None:
    script.refusals["PATCH "] = answer

    def rest(refused: Mapping[str, str]) -> dict[str, float]:
        return {} if resting_since is None else dict.fromkeys(refused, CREATED_AT + resting_since)

    assert gates(script, now=CREATED_AT + 12.0, places=lambda _: {}, rest=rest).run().failed == 4
    # A request whose connection broke is sent again.
    assert len({asked.path for asked in script.writes if asked.method == "DELETE"}) == deleted


@pytest.mark.parametrize("answer", [Answer(400, {"message": REFUSED}), Answer(500, {"message": TOO_LARGE})])
def test_a_process_that_ends_deletes_no_executor_after_a_first_refusal(script: ApiServer, answer: Answer) -> None:
    """An executor of two seconds was deleted for one refusal of a webhook that was just starting."""
    script.refusals["PATCH "] = answer

    def rest(refused: Mapping[str, str]) -> dict[str, float]:
        return dict.fromkeys(refused, CREATED_AT)

    timeout = gates(script, now=CREATED_AT + 2.0, places=lambda _: {}, rest=rest)
    deleted = []
    for replace in (False, True):
        timeout.release_all(replace=replace)
        deleted.append(len({asked.path for asked in script.writes if asked.method == "DELETE"}))
    assert deleted == [0, 4]


def test_a_refusal_that_comes_late_counts_the_next_time(script: ApiServer) -> None:
    """A webhook may take ten seconds for each refusal."""
    reader = PodReader()
    pods = [reader.read(pod) for pod in script.all("pods")]
    first, second, patches = threading.Event(), threading.Event(), itertools.count()

    def answers(asked: Asked) -> Answer | Watch:
        if asked.method == "PATCH":
            (first if next(patches) < len(pods) else second).wait()
            return Answer(400, {"message": REFUSED})
        return script.respond(asked)

    script.by = answers
    rested: list[set[str]] = []

    def rest(refused: Mapping[str, str]) -> dict[str, float]:
        rested.append(set(refused))
        return dict.fromkeys(refused, CREATED_AT)

    lane = impatient()
    timeout = GateTimeout(
        script.client(),
        lane,
        gated=lambda: pods,
        places=lambda _: {},
        clock=lambda: CREATED_AT + 12.0,
        rest=rest,
    )
    try:
        assert timeout.run().failed == 0
        first.set()
        lane.drain(60.0)
        assert timeout.run().failed == 4
        lane.drain(60.0)
    finally:
        second.set()
    assert rested == [{"analytics"}]
    assert len({asked.path for asked in script.writes if asked.method == "DELETE"}) == 4


@pytest.mark.parametrize("stepped_seconds", [0.0, -5.0], ids=["", "the wall clock stepped backwards"])
def test_a_pod_that_can_not_be_released_as_it_is_is_tried_once_a_minute(
    script: ApiServer, stepped_seconds: float
) -> None:
    """Hundreds of them, as long as etcd takes, kept the API server from anything else: the lease was lost."""
    script.refusals["PATCH "] = Answer(500, {"message": TOO_LARGE})
    reader, passed, asked_for = PodReader(), [0.0], list[int]()

    def places(uids: frozenset[str]) -> dict[str, Any]:
        asked_for.append(len(uids))
        return {}

    timeout = GateTimeout(
        script.client(),
        AtOnce(monotonic=lambda: passed[0]),
        gated=lambda: [reader.read(pod) for pod in script.all("pods")],
        places=places,
        clock=lambda: CREATED_AT + 20.0 + passed[0] + (stepped_seconds if passed[0] else 0.0),
    )
    failed, gated_seconds = [], []
    for passed[0] in (0.0, 15.0, 45.0, 60.0):
        found = timeout.run()
        failed.append(found.failed)
        gated_seconds.append(found.longest_gated_seconds)
    assert failed == [4, 0, 0, 4]
    later = [20.0 + seconds + stepped_seconds for seconds in (15.0, 45.0, 60.0)]
    assert gated_seconds == [20.0, *later], "those that are not tried are overdue all the same"
    assert len(script.writes) == 8
    assert asked_for == [4, 4], "places are worked out only for those that are tried"


def refused_to_a_pass(script: ApiServer, lane: Lane) -> None:
    """A pass of the leader has tried all executors, and tries none again for a minute."""
    script.refusals["PATCH "] = Answer(500, {"message": TOO_LARGE})
    reader = PodReader()
    pods = [reader.read(pod) for pod in script.all("pods")]
    orders = [
        order
        for pod in pods
        if (order := actions.order(pod, Placement(pod.key, pod.uid, None, (), Pin.NONE))) is not None
    ]
    outcomes = actions.release_many(script.client(), lane, orders, Levels(()))
    assert [isinstance(each, actions.Refused) for each in outcomes] == [True] * 4
    assert actions.due(lane, orders) == []


@pytest.mark.parametrize("at_end", [False, True], ids=["after the gate timeout", "before the process ends"])
def test_an_executor_is_released_although_a_pass_was_refused_and_rests(script: ApiServer, *, at_end: bool) -> None:
    lane = AtOnce()
    refused_to_a_pass(script, lane)
    del script.refusals["PATCH "]
    timeout = gates(script, now=CREATED_AT + 12.0, lane=lane)
    assert (timeout.release_all(replace=False) if at_end else timeout.run()).placed == 4


@pytest.mark.parametrize("at_end", [False, True], ids=["after the gate timeout", "before the process ends"])
def test_an_executor_that_a_pass_could_not_release_as_it_is_is_replaced(script: ApiServer, *, at_end: bool) -> None:
    lane = AtOnce()
    refused_to_a_pass(script, lane)
    timeout = gates(
        script,
        now=CREATED_AT + 12.0,
        lane=lane,
        places=lambda _: {},
        rest=lambda found: dict.fromkeys(found, CREATED_AT),
    )
    assert (timeout.release_all(replace=True) if at_end else timeout.run()).failed == 4
    assert len({asked.path for asked in script.writes if asked.method == "DELETE"}) == 4


def test_before_a_process_ends_those_without_a_place_do_not_wait_for_the_slowest_that_has_one(
    script: ApiServer,
) -> None:
    """Each webhook may take half a minute, and the process is ended after that."""
    script.put("pods", executor(7, application="lone", namespace="lone", gates=[GATE]))
    bare, kept_waiting = threading.Event(), list[str]()

    def answers(asked: Asked) -> Answer | Watch:
        if asked.method == "PATCH" and "/lone/" in asked.path:
            bare.set()
        elif asked.method == "PATCH" and not bare.wait(20.0):
            kept_waiting.append(asked.path)
        return script.respond(asked)

    script.by = answers
    found = gates(script, now=CREATED_AT + 1.0, lane=patient()).release_all(replace=False)
    assert (found.placed, found.bare) == (4, 1)
    assert kept_waiting == []


def test_before_a_process_ends_late_deletions_are_waited_for(
    script: ApiServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    script.refusals["PATCH "] = Answer(400, {"message": REFUSED})
    lane = impatient()

    def answers(asked: Asked) -> Answer | Watch:
        if asked.method == "DELETE":
            # A webhook takes so long, several times what makes a request late.
            threading.Event().wait(0.3)
        return script.respond(asked)

    script.by = answers
    timeout = gates(
        script,
        now=CREATED_AT + 2.0,
        lane=lane,
        places=lambda _: {},
        rest=lambda found: dict.fromkeys(found, CREATED_AT),
    )
    timeout.release_all(replace=True)
    assert caplog.text.count("Deleted") == 4


def test_a_process_that_fails_releases_everything_that_is_gated(script: ApiServer) -> None:
    found = gates(script, now=CREATED_AT + 1.0).release_all(replace=True)
    assert found.placed == 4
    assert zones(script) == [["b"]] * 4


def test_an_executor_that_another_controller_gates_as_well_is_released_without_a_place(script: ApiServer) -> None:
    """Kueue chooses the nodes of a pod that it admits: a zone that Ballast requires may be another one."""
    script.put("pods", executor(0, gates=[FOREIGN_GATE, GATE], labels=LABELS))
    found = gates(script, now=CREATED_AT + 1.0).release_all(replace=True)
    assert (found.placed, found.bare) == (3, 1)
    assert sorted(zones(script)) == [[], ["b"], ["b"], ["b"]]


@pytest.mark.parametrize("allowed", [True, False], ids=["it may be cleared", "the API server refuses that"])
def test_a_nomination_that_a_crash_has_left_is_cleared_before_the_release(script: ApiServer, *, allowed: bool) -> None:
    """Karpenter provides no node for a nominated pod, and the node may be in another zone."""
    theirs = executor(1, gates=[GATE], managed_fields=[NOMINATED_BY_ANOTHER])
    ours = executor(2, gates=[GATE], managed_fields=[NOMINATED_BY_US])
    for each in (theirs, ours):
        each["status"]["nominatedNodeName"] = "a-1"
    script.lists["pods"] = [theirs, ours]
    if not allowed:
        script.refusals["/status"] = Answer(403, {"message": "no"})
    read = script.one("pods", "spark-1-exec-2", "analytics")["metadata"]["resourceVersion"]
    assert gates(script, now=CREATED_AT + 12.0).run().placed == 2
    of_ours = [asked for asked in script.writes if "/spark-1-exec-2" in asked.path]
    assert [asked.path.split("?")[0].rpartition("/")[2] for asked in of_ours] == ["status", "spark-1-exec-2"]
    assert of_ours[0].body[-1] == {"op": "remove", "path": "/status/nominatedNodeName"}
    assert (expected(of_ours[1], "/metadata/resourceVersion") == read) is not allowed
    assert len(script.writes) == 3, "the nomination of another controller is left alone"


def expected(asked: Asked, path: str) -> object:
    """What a patch expects there."""
    (found,) = (each["value"] for each in asked.body if (each["op"], each["path"]) == ("test", path))
    return found


def test_an_executor_that_no_policy_may_place_is_released_as_it_is(script: ApiServer) -> None:
    script.lists["balancingpolicies"] = []
    found = gates(script, now=CREATED_AT + 12.0).run()
    assert (found.placed, found.bare) == (0, 4)


def test_a_policy_that_cannot_be_followed_places_nothing(script: ApiServer) -> None:
    budget = {"moves": 0, "duration": "2h", "schedule": "0 8 * * *", "timeZone": "Mars/Olympus"}
    broken = {**POLICY, "spec": {**POLICY["spec"], "moves": {"budgets": [budget]}}}
    script.lists["balancingpolicies"] = [broken]
    found = gates(script, now=CREATED_AT + 12.0).run()
    assert (found.placed, found.bare) == (0, 4)
