from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ballast.api import BalancingPolicy
from ballast.api.gate import GateSpec
from ballast.controller.switch import COMPARE_SECONDS, MOST_NAMESPACES, Switch, Wanted, wanted
from ballast.kube.document import text
from tests.apiserver import Answer, ApiServer, Asked, scripted, serving
from tests.unit.kube.builders import CREATED, CREATED_AT

JSON = dict[str, Any]
NAMESPACES = {"analytics": {"team": "a"}, "etl": {"team": "b"}, "web": {}}


def policy(mode: str, selector: Mapping[str, Any] | None = None) -> BalancingPolicy:
    spec: dict[str, Any] = {
        "nodeSelector": {"matchLabels": {"pool": "streaming"}},
        "placement": {"mode": mode},
        "namespaceSelector": selector or {},
    }
    return BalancingPolicy.parse(
        {
            "apiVersion": "ballast.dev/v1alpha1",
            "kind": "BalancingPolicy",
            "metadata": {"name": "streaming"},
            "spec": spec,
        }
    )


TEAM_A = {"matchLabels": {"team": "a"}}
TEAM_B = {"matchLabels": {"team": "b"}}


@pytest.mark.parametrize(
    ("policies", "expected"),
    [
        ([], Wanted(gating=False)),
        ([policy("Disabled"), policy("Recommend")], Wanted(gating=False)),
        ([policy("Enforce")], Wanted(gating=True, all_namespaces=True)),
        ([policy("Enforce", TEAM_A)], Wanted(gating=True, namespaces=("analytics",))),
        ([policy("Enforce", TEAM_A), policy("Enforce", TEAM_B)], Wanted(gating=True, namespaces=("analytics", "etl"))),
        ([policy("Enforce", TEAM_A), policy("Recommend")], Wanted(gating=True, namespaces=("analytics",))),
        ([policy("Enforce", {"matchLabels": {"team": "nobody"}})], Wanted(gating=False)),
    ],
)
def test_it_is_on_where_placement_is_enforced_and_nowhere_else(
    policies: list[BalancingPolicy], expected: Wanted
) -> None:
    assert wanted(policies, NAMESPACES) == expected


def test_it_names_the_schedulers_of_all_policies_that_enforce_placement() -> None:
    other = policy("Enforce", TEAM_B)
    placement = other.spec.placement.model_copy(update={"scheduler_names": ("my-scheduler",)})
    other = other.model_copy(update={"spec": other.spec.model_copy(update={"placement": placement})})
    assert wanted([policy("Enforce", TEAM_A), other], NAMESPACES).scheduler_names == (
        "default-scheduler",
        "my-scheduler",
    )


def test_it_names_no_more_namespaces_than_it_can_hold() -> None:
    many = {f"team-{number:04}": {"team": "a"} for number in range(MOST_NAMESPACES + 1)}
    found = wanted([policy("Enforce", TEAM_A)], many)
    assert len(found.namespaces) == MOST_NAMESPACES
    assert found.gating
    assert GateSpec.model_validate(found.spec()).namespaces == found.namespaces


class Time:
    now = CREATED_AT

    def __call__(self) -> float:
        return self.now


ON = Wanted(gating=True, all_namespaces=True)


def stored(want: Wanted, *, leader: str = "") -> Answer:
    said = {"leader": leader, "reason": "Leading"} if leader else {}
    metadata = {"name": "ballast", "resourceVersion": "5"}
    return Answer(body={"metadata": metadata, "spec": want.spec(), "status": said})


def test_it_is_written_when_it_changes_and_not_to_say_the_same_again(tmp_path: Path) -> None:
    off = Wanted(gating=False)
    with scripted(stored(off), stored(off), stored(ON), stored(ON, leader="one")) as script:
        switch = Switch(script.client(tmp_path), name="ballast", identity="one", clock=(time := Time()), monotonic=time)
        switch.keep(ON)
        assert [asked.path.split("?")[0].rsplit("/", 1)[-1] for asked in script.writes] == ["ballast", "status"]
        assert script.writes[1].body["status"]["leader"] == "one"
        time.now += COMPARE_SECONDS
        switch.keep(ON)
        assert len(script.writes) == 2
        switch.keep(off)
        assert script.writes[2].body["spec"] == {"gating": False, "allNamespaces": False}


@pytest.mark.parametrize("reason", ["Leading", "Uninstalled"])
def test_it_is_turned_whatever_time_is_in_its_status(tmp_path: Path, reason: str) -> None:
    """The API server accepts the year 0, and the account of `ballast release` may write the switch's status."""
    found = stored(Wanted(gating=False), leader="another")
    found.body["status"] |= {"heartbeatTime": "0000-01-01T00:00:00Z", "reason": reason}
    with scripted(found) as script:
        switch = Switch(script.client(tmp_path), name="ballast", identity="one", clock=(time := Time()), monotonic=time)
        switch.keep(ON)
        assert script.writes[0].body["spec"]["gating"]


def test_it_is_read_only_now_and_then(tmp_path: Path) -> None:
    with scripted(stored(ON, leader="one")) as script:
        switch = Switch(script.client(tmp_path), name="ballast", identity="one", clock=(time := Time()), monotonic=time)
        switch.keep(ON)
        time.now += COMPARE_SECONDS - 1
        switch.keep(ON)
        assert len(script.asked) == 1
        time.now += 1
        switch.keep(ON)
        assert len(script.asked) == 2
        assert script.writes == []


def test_one_that_another_program_turned_is_turned_back(tmp_path: Path) -> None:
    with scripted(stored(ON, leader="one"), stored(Wanted(gating=False), leader="ballast-release")) as script:
        switch = Switch(script.client(tmp_path), name="ballast", identity="one", clock=(time := Time()), monotonic=time)
        switch.keep(ON)
        time.now += COMPARE_SECONDS
        switch.keep(ON)
        assert [asked.body["spec"]["gating"] for asked in script.writes if "spec" in asked.body] == [True]


def test_a_clock_that_is_set_back_does_not_end_the_comparing(tmp_path: Path) -> None:
    with scripted(stored(ON, leader="one")) as script:
        switch = Switch(script.client(tmp_path), name="ballast", identity="one", clock=(time := Time()), monotonic=time)
        switch.keep(ON)
        time.now -= 3600.0
        switch.keep(ON)
        assert len(script.asked) == 2


def test_after_another_replica_may_have_turned_it_it_is_read_at_once(tmp_path: Path) -> None:
    with scripted(stored(ON, leader="one"), stored(Wanted(gating=False), leader="two")) as script:
        switch = Switch(script.client(tmp_path), name="ballast", identity="one", clock=Time(), monotonic=Time())
        switch.keep(ON)
        switch.forget()
        switch.keep(ON)
        assert [asked.body["spec"]["gating"] for asked in script.writes if "spec" in asked.body] == [True]


def test_after_a_conflict_it_is_written_again(tmp_path: Path) -> None:
    with scripted(stored(ON), Answer(409, {"message": "changed"}), stored(ON)) as script:
        switch = Switch(script.client(tmp_path), name="ballast", identity="one", clock=Time(), monotonic=Time())
        switch.keep(Wanted(gating=False))
        switch.keep(Wanted(gating=False))
        assert [asked.body["spec"]["gating"] for asked in script.writes if "spec" in asked.body] == [False, False]


class Shared:
    """A switch that another replica takes a namespace out of, right after it is read for the first time."""

    def __init__(self) -> None:
        self.stored = stored(ON).body

    def __call__(self, asked: Asked) -> Answer:
        if asked.method == "GET":
            found, now = self.stored, text(CREATED_AT)
            if "refusals" not in found["status"]:
                rest = {"namespace": "analytics", "message": "no", "since": now, "until": text(CREATED_AT + 300.0)}
                self.stored = {**found, "status": {"refusals": [rest]}, "metadata": {"resourceVersion": "6"}}
            return Answer(body=found)
        if asked.body["metadata"]["resourceVersion"] != self.stored["metadata"]["resourceVersion"]:
            return Answer(409, {"message": "the object has been modified"})
        self.stored = {**self.stored, **{key: {**self.stored[key], **asked.body[key]} for key in asked.body}}
        self.stored["metadata"] = {"name": "ballast", "resourceVersion": f"{len(asked.body)}{CREATED_AT}"}
        return Answer(body=self.stored)


def test_what_another_replica_took_out_of_it_meanwhile_stays_out(tmp_path: Path) -> None:
    with scripted() as script:
        script.by = shared = Shared()
        switch = Switch(script.client(tmp_path), name="ballast", identity="one", clock=Time(), monotonic=Time())
        for _ in range(2):
            switch.keep(Wanted(gating=True, namespaces=("analytics", "web")))
    assert (shared.stored["spec"]["namespaces"], shared.stored["spec"]["restingNamespaces"]) == (["web"], ["analytics"])
    assert [each["namespace"] for each in shared.stored["status"]["refusals"]] == ["analytics"]


def test_what_turns_it_off_tries_again_when_another_replica_has_written_it(tmp_path: Path) -> None:
    with scripted() as script:
        script.by = shared = Shared()
        Switch(script.client(tmp_path), name="ballast", identity="one", clock=Time(), monotonic=Time()).off("Stopped")
    assert shared.stored["spec"]["gating"] is False
    assert [each["namespace"] for each in shared.stored["status"]["refusals"]] == ["analytics"]


@pytest.mark.parametrize(("since_seconds", "writes_it"), [(-60.0, True), (1.0, False)])
def test_a_switch_that_an_uninstallation_turned_off_stays_off(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, since_seconds: float, *, writes_it: bool
) -> None:
    """Unless that was before this process began: then Ballast was installed again."""
    gone = stored(Wanted(gating=False))
    gone.body["status"] = {"reason": "Uninstalled", "heartbeatTime": text(CREATED_AT + since_seconds)}
    with scripted(gone) as script:
        switch = Switch(script.client(tmp_path), name="ballast", identity="one", clock=Time(), monotonic=Time())
        for _ in range(3):
            switch.keep(ON)
        assert bool(script.writes) is writes_it
        assert switch.stays_off is not writes_it
    told = [record.getMessage() for record in caplog.records if "restart the Deployment" in record.getMessage()]
    assert len(told) == (0 if writes_it else 1)


@pytest.mark.parametrize(("created_seconds", "writes_it"), [(-120.0, False), (-30.0, True), (0.0, True)])
def test_one_that_was_turned_off_stays_off_for_a_container_that_is_started_again(
    tmp_path: Path, created_seconds: float, *, writes_it: bool
) -> None:
    """Unless its pod is a new one: then the Deployment was restarted."""
    gone = stored(Wanted(gating=False))
    gone.body["status"] = {"reason": "Uninstalled", "heartbeatTime": text(CREATED_AT - 60.0)}
    with scripted(gone) as script:
        switch = Switch(
            script.client(tmp_path),
            name="ballast",
            identity="one",
            clock=Time(),
            monotonic=Time(),
            pod_created_at=lambda: CREATED_AT + created_seconds,
        )
        switch.keep(ON)
        assert bool(script.writes) is writes_it


def test_a_time_in_the_far_future_keeps_no_switch_off(tmp_path: Path) -> None:
    """An account that may write it could keep it off for years otherwise, whatever is restarted."""
    gone = stored(Wanted(gating=False))
    gone.body["status"] = {"reason": "Uninstalled", "heartbeatTime": text(CREATED_AT + 3600.0)}
    with scripted(gone) as script:
        switch = Switch(script.client(tmp_path), name="ballast", identity="one", clock=Time(), monotonic=Time())
        switch.keep(ON)
        assert script.writes
        assert not switch.stays_off


@pytest.mark.parametrize("wrong_by_seconds", [3600.0, -3600.0])
def test_an_uninstallation_is_not_missed_by_a_clock_that_was_wrong_at_first(
    tmp_path: Path, wrong_by_seconds: float
) -> None:
    gone, time, since_start = stored(Wanted(gating=False)), Time(), Time()
    time.now = CREATED_AT + wrong_by_seconds
    with scripted(gone) as script:
        switch = Switch(script.client(tmp_path), name="ballast", identity="one", clock=time, monotonic=since_start)
        time.now, since_start.now = CREATED_AT + 20.0, since_start.now + 20.0
        gone.body["status"] = {"reason": "Uninstalled", "heartbeatTime": text(CREATED_AT - 60.0)}
        switch.keep(ON)
        assert script.writes, "that was before this process began"
        script.asked.clear()
        gone.body["status"] = {"reason": "Uninstalled", "heartbeatTime": text(CREATED_AT + 10.0)}
        switch.forget()
        switch.keep(ON)
        assert script.writes == []


def test_a_release_that_stands_aside_leaves_what_an_uninstallation_wrote(tmp_path: Path) -> None:
    gone = stored(Wanted(gating=False))
    gone.body["status"] = {"reason": "Uninstalled", "heartbeatTime": text(CREATED_AT + 1.0)}
    with scripted(gone) as script:
        Switch(script.client(tmp_path), name="ballast", identity="one", clock=Time(), monotonic=Time()).stand_aside()
        assert script.writes == []


def test_where_there_is_no_switch_there_is_nothing_to_turn_off(tmp_path: Path) -> None:
    with scripted(Answer(404, {"message": "not found"})) as script:
        Switch(script.client(tmp_path), name="ballast", identity="one", clock=Time(), monotonic=Time()).off("Stopped")
        assert script.writes == []


@pytest.mark.parametrize("since_seconds", [-60.0, 1.0], ids=["before it began", "since"])
@pytest.mark.parametrize("reason", ["Stopped", "LeaseStale"])
def test_what_turns_it_off_leaves_what_an_uninstallation_wrote(
    tmp_path: Path, since_seconds: float, reason: str
) -> None:
    """The job that releases executors begins after it, and the operator may come back."""
    gone = stored(Wanted(gating=False))
    gone.body["status"] = {"reason": "Uninstalled", "heartbeatTime": text(CREATED_AT + since_seconds)}
    with scripted(gone) as script:
        Switch(script.client(tmp_path), name="ballast", identity="one", clock=Time(), monotonic=Time()).off(reason)
        assert script.writes == []


def test_an_uninstallation_says_that_it_turned_off_what_another_one_had(tmp_path: Path) -> None:
    """An operator that began in between has seen nothing of the first one."""
    gone = stored(Wanted(gating=False))
    gone.body["status"] = {"reason": "Uninstalled", "heartbeatTime": text(CREATED_AT - 60.0)}
    with scripted(gone) as script:
        switch = Switch(script.client(tmp_path), name="ballast", identity="one", clock=Time(), monotonic=Time())
        switch.off("Uninstalled")
        assert script.writes


DENIED = "admission webhook gatekeeper denied the request"


@contextmanager
def resting(
    tmp_path: Path, *, spec: JSON | None = None, status: JSON | None = None
) -> Iterator[tuple[ApiServer, Switch]]:
    """A switch that gates in two namespaces, at CREATED_AT."""
    whole = {"gating": True, "allNamespaces": False, "namespaces": ["analytics", "etl"], **(spec or {})}
    server = ApiServer()
    server.put("gateswitches", {"metadata": {"name": "ballast"}, "spec": whole, "status": status or {}})
    with serving(server) as script:
        client = script.client(tmp_path)
        yield server, Switch(client, name="ballast", identity="one", clock=Time(), monotonic=Time())


def test_a_namespace_whose_releases_are_refused_is_taken_out_and_the_refusal_is_on_record(tmp_path: Path) -> None:
    with resting(tmp_path) as (server, switch):
        assert switch.rest({"etl": DENIED}) == {"etl": CREATED_AT}
        (written,) = server.all("gateswitches")
    assert (written["spec"]["namespaces"], written["spec"]["restingNamespaces"]) == (["analytics"], ["etl"])
    (refusal,) = written["status"]["refusals"]
    assert (refusal["namespace"], refusal["message"]) == ("etl", DENIED)
    assert list(switch.rests) == ["etl"]
    assert switch.gates("etl") == frozenset()


def test_a_rest_that_lasts_is_neither_begun_again_nor_written(tmp_path: Path) -> None:
    with resting(tmp_path) as (server, switch):
        switch.rest({"etl": DENIED})
        before = server.all("gateswitches")
        assert switch.rest({"etl": "another answer"}) == {"etl": CREATED_AT}
        assert server.all("gateswitches") == before


def test_where_the_switch_is_off_executors_are_not_gated_since_it_was_turned(tmp_path: Path) -> None:
    status = {"heartbeatTime": CREATED, "reason": "Stopped"}
    with resting(tmp_path, spec={"gating": False}, status=status) as (server, switch):
        assert switch.rest({"etl": DENIED}) == {"etl": CREATED_AT}
        assert server.writes == []


@pytest.mark.parametrize("there", [True, False])
def test_what_can_not_be_written_is_no_rest(tmp_path: Path, *, there: bool) -> None:
    with resting(tmp_path) as (server, switch):
        if there:
            server.refusals["PATCH /gateswitches/ballast/status"] = Answer(403, {"message": "no"})
        else:
            server.lists["gateswitches"] = []
        assert switch.rest({"etl": DENIED}) == {}
        assert switch.rests == {}
