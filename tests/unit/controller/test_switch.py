from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ballast.api import BalancingPolicy
from ballast.controller.switch import HEARTBEAT_SECONDS, StaleGates, Switch, Wanted, lease_is_stale, wanted
from ballast.kube.actions import Released
from ballast.kube.timestamp import text
from ballast.model import Reason
from tests.unit.kube.builders import CREATED_AT, GATE, driver, executor
from tests.unit.kube.scripted import Answer, Asked, Scripted, scripted

NAMESPACES = {"analytics": {"team": "a"}, "etl": {"team": "b"}, "web": {}}
AS_IT_IS = Released(reason=Reason.GATE_TIMEOUT)
FOREIGN = {"name": "example.com/quota"}


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
        ([policy("Off"), policy("Recommend")], Wanted(gating=False)),
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


class Time:
    now = CREATED_AT

    def __call__(self) -> float:
        return self.now


ON = Wanted(gating=True, all_namespaces=True)


def stored(want: Wanted) -> Answer:
    return Answer(body={"metadata": {"name": "ballast", "resourceVersion": "5"}, "spec": want.spec()})


def writes(script: Scripted) -> list[Asked]:
    return [asked for asked in script.asked if asked.method != "GET"]


def test_it_is_written_when_it_changes_and_now_and_then_as_a_sign_of_life(tmp_path: Path) -> None:
    time = Time()
    with scripted(stored(ON)) as script:
        switch = Switch(script.client(tmp_path), name="ballast", identity="one", clock=time)
        switch.keep(ON)
        assert [asked.path.split("?")[0].rsplit("/", 1)[-1] for asked in writes(script)] == ["status"]
        assert writes(script)[0].body["status"]["leader"] == "one"
        time.now += HEARTBEAT_SECONDS - 1
        switch.keep(ON)
        assert len(writes(script)) == 1
        time.now += 1
        switch.keep(ON)
        assert len(writes(script)) == 2
        switch.keep(Wanted(gating=False))
        assert writes(script)[2].body["spec"] == {"gating": False, "allNamespaces": False}


def test_after_a_conflict_it_is_written_anew(tmp_path: Path) -> None:
    with scripted(stored(ON), stored(ON), Answer(409, {"message": "changed"}), stored(ON)) as script:
        switch = Switch(script.client(tmp_path), name="ballast", identity="one", clock=Time())
        switch.keep(Wanted(gating=False))
        switch.keep(Wanted(gating=False))
        assert [asked.body["spec"]["gating"] for asked in writes(script) if "spec" in asked.body] == [False, False]


@pytest.mark.parametrize(("since_seconds", "writes_it"), [(-60.0, True), (1.0, False)])
def test_a_switch_that_an_uninstallation_turned_off_stays_off(
    tmp_path: Path, since_seconds: float, *, writes_it: bool
) -> None:
    """Unless that was before this process began: then Ballast was installed again."""
    gone = stored(Wanted(gating=False))
    gone.body["status"] = {"reason": "Uninstalled", "heartbeatTime": text(CREATED_AT + since_seconds)}
    with scripted(gone) as script:
        Switch(script.client(tmp_path), name="ballast", identity="one", clock=Time()).keep(ON)
        assert bool(writes(script)) is writes_it


def test_where_there_is_no_switch_there_is_nothing_to_turn_off(tmp_path: Path) -> None:
    with scripted(Answer(404, {"message": "not found"})) as script:
        Switch(script.client(tmp_path), name="ballast", identity="one", clock=Time()).off("Stopped")
        assert writes(script) == []


def stale_gates(script: Scripted, folder: Path, *, waited_seconds: float) -> StaleGates:
    time = Time()
    time.now = CREATED_AT + waited_seconds
    return StaleGates(script.client(folder), clock=time)


def listed(*pods: dict[str, Any]) -> Answer:
    return Answer(body={"metadata": {}, "items": list(pods)})


@pytest.mark.parametrize(("waited_seconds", "released"), [(11.0, 0), (12.0, 1)])
def test_executors_are_released_once_they_have_waited_too_long(
    tmp_path: Path, waited_seconds: float, released: int
) -> None:
    with scripted(listed(executor(gates=[GATE])), Answer()) as script:
        gates = stale_gates(script, tmp_path, waited_seconds=waited_seconds)
        assert gates.release(older_than_seconds=11.5) == [AS_IT_IS] * released
        assert len(writes(script)) == released


def test_whom_others_hold_too_has_not_waited_for_us(tmp_path: Path) -> None:
    with scripted(listed(executor(gates=[FOREIGN, GATE])), Answer()) as script:
        assert stale_gates(script, tmp_path, waited_seconds=60).release(older_than_seconds=0.0) == []


def test_whoever_is_no_executor_does_not_wait_at_all(tmp_path: Path) -> None:
    with scripted(listed(driver(node=None, gates=[GATE])), Answer()) as script:
        assert stale_gates(script, tmp_path, waited_seconds=0).release(older_than_seconds=11.5) == [AS_IT_IS]


def test_all_means_also_those_whom_others_hold_but_not_their_gates(tmp_path: Path) -> None:
    with scripted(listed(executor(gates=[FOREIGN, GATE])), Answer()) as script:
        assert stale_gates(script, tmp_path, waited_seconds=0).release_all() == [AS_IT_IS]
        assert writes(script)[0].body[-1] == {"op": "remove", "path": "/spec/schedulingGates/1"}


def test_who_is_on_its_way_out_is_not_touched(tmp_path: Path) -> None:
    with scripted(listed(executor(gates=[GATE], leaving=True)), Answer()) as script:
        assert stale_gates(script, tmp_path, waited_seconds=60).release_all() == []


def lease(**spec: Any) -> Answer:
    return Answer(body={"metadata": {"name": "ballast"}, "spec": spec})


@pytest.mark.parametrize(
    ("answer", "stale"),
    [
        (Answer(404, {"message": "not found"}), True),
        (lease(holderIdentity="one", leaseDurationSeconds=6, renewTime="2026-11-21T10:00:00.000000Z"), False),
        (lease(holderIdentity="one", leaseDurationSeconds=6, renewTime="2026-11-21T09:59:49.000000Z"), True),
        (lease(holderIdentity="", leaseDurationSeconds=1, renewTime="2026-11-21T10:00:00.000000Z"), True),
        (lease(holderIdentity="one", leaseDurationSeconds=6), True),
    ],
)
def test_a_lease_is_stale_when_nobody_renewed_it_in_time(tmp_path: Path, answer: Answer, *, stale: bool) -> None:
    with scripted(answer) as script:
        found = lease_is_stale(
            script.client(tmp_path), namespace="ballast-system", name="ballast", now=CREATED_AT, grace_seconds=4.0
        )
        assert found is stale
