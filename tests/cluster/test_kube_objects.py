"""Our own objects on the real API server: status, approval, the gating switch, events."""

from __future__ import annotations

from typing import Any

import pytest

from ballast.kube.client import Client
from ballast.kube.connection import Connection
from ballast.kube.errors import Conflict, Invalid, KubeError
from ballast.kube.events import EventRecorder, Notice, Regarding
from ballast.kube.kinds import EVENT, EXECUTOR_MOVE, GATE_SWITCH, NODE, SPARK_TOPOLOGY
from ballast.kube.objects import (
    Query,
    approve_move,
    delete_object,
    ensure_created,
    gate_switch,
    read_list,
    set_gate_switch,
    write_status,
)
from tests.cluster.crds.server import Server
from tests.lanes import AtOnce
from tests.testbed.testbed import Testbed

pytestmark = pytest.mark.cluster

NAMESPACE = "kube-objects"


@pytest.fixture(scope="module")
def client(control_plane: Testbed, crd_server: Server) -> Client:
    assert crd_server.url == control_plane.url
    control_plane.create_namespace(NAMESPACE)
    return Client(Connection.from_kubeconfig(control_plane.kubeconfig))


def topology(name: str) -> dict[str, Any]:
    return {
        "apiVersion": SPARK_TOPOLOGY.api_version,
        "kind": SPARK_TOPOLOGY.kind,
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"components": [{"name": "ingest"}]},
    }


def move(name: str) -> dict[str, Any]:
    return {
        "apiVersion": EXECUTOR_MOVE.api_version,
        "kind": EXECUTOR_MOVE.kind,
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "topologyName": "clicks",
            "executor": {"pod": "exec-1", "uid": "u"},
            "sourceNodeName": "n1",
            "targetNodeName": "n2",
        },
    }


def test_status_is_written_whole_and_only_on_change(client: Client) -> None:
    seen, created = ensure_created(client, SPARK_TOPOLOGY, topology("status"))
    assert created
    status = {"observedGeneration": 1, "policy": "streaming", "executors": {"running": 2, "gated": 1}}
    first = write_status(client, SPARK_TOPOLOGY, seen, status)
    assert first is not None
    assert write_status(client, SPARK_TOPOLOGY, first, first["status"]) is None
    second = write_status(client, SPARK_TOPOLOGY, first, {"observedGeneration": 1, "executors": {"running": 3}})
    assert second is not None
    assert "policy" not in second["status"]
    assert second["status"]["executors"]["running"] == 3
    assert second["metadata"]["generation"] == seen["metadata"]["generation"]


def test_status_is_never_written_over_what_was_not_seen(client: Client) -> None:
    seen, _ = ensure_created(client, SPARK_TOPOLOGY, topology("raced"))
    write_status(client, SPARK_TOPOLOGY, seen, {"observedGeneration": 1})
    with pytest.raises(Conflict):
        write_status(client, SPARK_TOPOLOGY, seen, {"observedGeneration": 2})


def test_creating_twice_takes_what_is_there(client: Client) -> None:
    first, created = ensure_created(client, EXECUTOR_MOVE, move("twice"))
    again, created_again = ensure_created(client, EXECUTOR_MOVE, move("twice"))
    assert (created, created_again) == (True, False)
    assert first["metadata"]["uid"] == again["metadata"]["uid"]


def test_a_move_is_approved_once_and_for_all(client: Client) -> None:
    seen, _ = ensure_created(client, EXECUTOR_MOVE, move("approved"))
    uid = seen["metadata"]["uid"]
    for _ in range(2):
        assert approve_move(client, namespace=NAMESPACE, name="approved", uid=uid)["spec"]["approved"] is True
    with pytest.raises(Invalid, match="approved can't be taken back"):
        client.patch(EXECUTOR_MOVE, "approved", {"spec": {"approved": False}}, namespace=NAMESPACE)


def test_a_namesake_of_the_move_that_was_seen_is_not_approved(client: Client) -> None:
    ensure_created(client, EXECUTOR_MOVE, move("namesake"))
    with pytest.raises(Conflict):
        approve_move(client, namespace=NAMESPACE, name="namesake", uid="11111111-2222-3333-4444-555555555555")
    assert not client.get(EXECUTOR_MOVE, "namesake", namespace=NAMESPACE)["spec"].get("approved")


def test_exactly_the_object_that_was_seen_is_deleted(client: Client) -> None:
    seen, _ = ensure_created(client, EXECUTOR_MOVE, move("expired"))
    assert delete_object(client, EXECUTOR_MOVE, seen)
    assert not delete_object(client, EXECUTOR_MOVE, seen)
    ensure_created(client, EXECUTOR_MOVE, move("expired"))
    with pytest.raises(Conflict):
        delete_object(client, EXECUTOR_MOVE, seen)


def test_the_switch_is_created_set_and_left_alone_when_it_stands_right(client: Client) -> None:
    assert gate_switch(client, "test") is None
    on = {
        "gating": True,
        "allNamespaces": False,
        "namespaces": ["a", "b"],
        "restingNamespaces": [],
        "schedulerNames": ["default-scheduler"],
    }
    heard = {"leader": "replica-1", "reason": "Leading"}
    first = set_gate_switch(client, on, status=heard, name="test")
    assert (first["spec"], first["status"]["leader"]) == (on, "replica-1")
    same = set_gate_switch(client, on, status=first["status"], name="test")
    assert same["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    off = set_gate_switch(client, {**on, "gating": False}, name="test")
    assert off["spec"]["gating"] is False
    client.delete(GATE_SWITCH, "test")


class Clock:
    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


def test_the_same_event_again_becomes_a_series(client: Client) -> None:
    clock = Clock()
    errors: list[KubeError] = []
    recorder = EventRecorder(
        client, AtOnce(), instance="replica-1", clock=clock, on_error=errors.append, quiet_seconds=60
    )
    seen, _ = ensure_created(client, SPARK_TOPOLOGY, topology("told"))
    about = Regarding(SPARK_TOPOLOGY, "told", seen["metadata"]["uid"], NAMESPACE)
    on_node = Regarding(NODE, "n1", "n1")
    notice = Notice(about, "Placed", "Place", "6 executors in zone a", related=on_node)
    for _ in range(3):
        recorder.post(notice)
    assert [event.get("series") for event in events(client)] == [None]
    clock.now += 61
    recorder.post(notice)
    (event,) = events(client)
    assert (event["reason"], event["note"], event["type"]) == ("Placed", "6 executors in zone a", "Normal")
    assert event["series"]["count"] == 4
    recorder.post(Notice(about, "Placed", "Place", "x" * 2000, warning=True))
    assert len(events(client)) == 2
    assert errors == []


def events(client: Client) -> list[dict[str, Any]]:
    return read_list(client, Query(EVENT, NAMESPACE), dict).items


def test_an_event_on_something_cluster_wide_is_kept_in_default(client: Client) -> None:
    errors: list[KubeError] = []
    recorder = EventRecorder(client, AtOnce(), instance="replica-1", clock=Clock(), on_error=errors.append)
    recorder.post(Notice(Regarding(NODE, "node-x", "uid-x"), "Stale", "Level", "no metrics", warning=True))
    assert errors == []
    found = read_list(client, Query(EVENT, "default"), dict).items
    assert [e["note"] for e in found if e["regarding"].get("name") == "node-x"] == ["no metrics"]


def test_an_event_that_cannot_be_written_is_reported_and_nothing_else(client: Client) -> None:
    errors: list[KubeError] = []
    recorder = EventRecorder(client, AtOnce(), instance="replica-1", clock=Clock(), on_error=errors.append)
    recorder.post(Notice(Regarding(SPARK_TOPOLOGY, "x", "u", "no-such-namespace"), "Placed", "Place", "…"))
    assert len(errors) == 1
