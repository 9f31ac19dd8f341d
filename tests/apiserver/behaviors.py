"""What clients of an API server rely on: each function holds against the fake one and against a real one."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any

import pytest

from ballast.kube.client import Client
from ballast.kube.document import parsed
from ballast.kube.errors import AlreadyExists, Conflict, Gone, Invalid, KubeError, NotFound, Unavailable
from ballast.kube.kinds import CONFIG_MAP, DISRUPTION_BUDGET, LEASE, POD, SPARK_TOPOLOGY, Kind
from ballast.kube.objects import Query, read_list
from ballast.kube.pods import PodReader

JSON = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Scene:
    """A namespace of its own on either server."""

    client: Client
    namespace: str

    def create(self, kind: Kind, name: str, **body: Any) -> JSON:
        metadata = {"name": name, **body.pop("metadata", {})}
        whole = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, **body}
        return self.client.create(kind, whole, namespace=self.namespace)

    def pod(self, name: str, *, labels: Mapping[str, str] | None = None, **spec: Any) -> JSON:
        container = {"name": "spark-kubernetes-executor", "image": "spark"}
        return self.create(POD, name, metadata={"labels": labels or {}}, spec={"containers": [container], **spec})

    def gated(self, name: str) -> JSON:
        return self.pod(name, schedulingGates=[{"name": "ballast.dev/placement"}, {"name": "kueue.x-k8s.io/admission"}])

    def running(self, name: str, **labels: str) -> JSON:
        self.pod(name, labels=labels, nodeName="nowhere")
        ready = [{"type": "Ready", "status": "True"}]
        return self.patch(POD, name, {"status": {"phase": "Running", "conditions": ready}}, subresource="status")

    def topology(self, name: str, **more: Any) -> JSON:
        return self.create(SPARK_TOPOLOGY, name, spec={"components": [{"name": "ingest"}]}, **more)

    def get(self, kind: Kind, name: str) -> JSON:
        return self.client.get(kind, name, namespace=self.namespace)

    def patch(self, kind: Kind, name: str, patch: Any, **options: Any) -> JSON:
        return self.client.patch(kind, name, patch, namespace=self.namespace, **options)

    def delete(self, kind: Kind, name: str, **preconditions: str) -> None:
        self.client.delete(kind, name, namespace=self.namespace, preconditions=preconditions)

    def evict(self, name: str, uid: str) -> None:
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": self.namespace},
            "deleteOptions": {"preconditions": {"uid": uid}},
        }
        self.client.act(POD, name, subresource="eviction", body=body, namespace=self.namespace)

    def names(self, kind: Kind, *, labels: str = "", fields: str = "", page: int = 500) -> list[str]:
        query = Query(kind, namespace=self.namespace, labels=labels, fields=fields, page=page)
        return read_list(self.client, query, lambda found: str(found["metadata"]["name"])).items

    def version(self) -> str:
        """The server's newest."""
        page = self.client.get_page(CONFIG_MAP, {}, namespace=self.namespace)
        return page.metadata.resource_version

    def watched(
        self, kind: Kind, version: str, *, count: int | None = None, seconds: int = 30, **parameters: str
    ) -> list[JSON]:
        """So many events, or every one until the server ends the watch."""
        asked = {"resourceVersion": version, "timeoutSeconds": str(seconds), **parameters}
        with self.client.stream(
            kind, asked, namespace=self.namespace, connect_seconds=10.0, read_seconds=90.0
        ) as stream:
            return [parsed(line) for line in islice(stream, count)]


Behavior = Callable[[Scene], None]
BEHAVIORS: list[Behavior] = []


def behavior(found: Behavior) -> Behavior:
    BEHAVIORS.append(found)
    return found


def _told(events: Sequence[JSON]) -> list[str]:
    return [f"{each['type']} {each['object']['metadata']['name']}" for each in events if each["type"] != "BOOKMARK"]


def _version(found: JSON) -> int:
    return int(found["metadata"]["resourceVersion"])


@behavior
def a_created_object_gets_a_uid_a_version_and_a_time(scene: Scene) -> None:
    first = scene.topology("a", status={"policy": "x"})
    again = scene.get(SPARK_TOPOLOGY, "a")
    assert first == again
    metadata = first["metadata"]
    assert metadata["uid"]
    assert metadata["creationTimestamp"].endswith("Z")
    assert (metadata["namespace"], metadata["generation"]) == (scene.namespace, 1)
    assert "policy" not in (first.get("status") or {}), "that is written by its subresource alone"
    assert _version(scene.topology("b")) > _version(first)


@behavior
def a_second_object_of_a_name_is_refused(scene: Scene) -> None:
    scene.topology("a")
    with pytest.raises(AlreadyExists):
        scene.topology("a")


@behavior
def an_object_that_is_not_there_is_named_in_the_refusal(scene: Scene) -> None:
    for ask in (
        lambda: scene.get(SPARK_TOPOLOGY, "a"),
        lambda: scene.patch(SPARK_TOPOLOGY, "a", {"spec": {}}),
        lambda: scene.delete(SPARK_TOPOLOGY, "a"),
        lambda: scene.evict("a", "u"),
    ):
        with pytest.raises(NotFound) as refused:
            ask()
        assert not refused.value.of_kind


@behavior
def a_list_is_in_order_of_names_whatever_its_pages(scene: Scene) -> None:
    for name in ("c", "a", "b", "aa"):
        scene.create(SPARK_TOPOLOGY, name, spec={"components": [{"name": "x"}]})
    for page in (1, 2, 3, 4, 500):
        assert scene.names(SPARK_TOPOLOGY, page=page) == ["a", "aa", "b", "c"]


@behavior
def later_pages_show_the_state_of_the_first_one(scene: Scene) -> None:
    for name in "abc":
        scene.topology(name)
    first = scene.client.get_page(SPARK_TOPOLOGY, {"limit": "1"}, namespace=scene.namespace)
    scene.delete(SPARK_TOPOLOGY, "b")
    scene.topology("d")
    more = {"limit": "5", "continue": first.metadata.continue_}
    rest = scene.client.get_page(SPARK_TOPOLOGY, more, namespace=scene.namespace)
    assert [json.loads(bytes(each))["metadata"]["name"] for each in rest.items or ()] == ["b", "c"]
    assert rest.metadata.resource_version == first.metadata.resource_version
    assert not rest.metadata.continue_


@behavior
def lists_are_selected_by_labels_and_fields(scene: Scene) -> None:
    gates = [{"name": "ballast.dev/placement"}]
    scene.pod("a", labels={"role": "driver", "app": "x"}, schedulingGates=gates)
    scene.pod("b", labels={"role": "executor", "app": "x"}, schedulingGates=gates)
    scene.pod("c", labels={"role": "executor", "app": "y"}, nodeName="nowhere")
    scene.pod("d", schedulingGates=gates)
    for labels, fields, names in (
        ("role", "", "abc"),
        ("!role", "", "d"),
        ("role=executor,app!=y", "", "b"),
        ("app!=x", "", "cd"),
        ("role in (driver,other)", "", "a"),
        ("role notin (driver), app==y", "", "c"),
        ("", "spec.nodeName=nowhere", "c"),
        ("role", "spec.nodeName!=nowhere", "ab"),
        ("", "metadata.name=d", "d"),
    ):
        assert scene.names(POD, labels=labels, fields=fields) == list(names), (labels, fields)


@behavior
def a_watch_brings_every_change_after_its_version_in_order(scene: Scene) -> None:
    first = scene.topology("a")
    scene.topology("b")
    scene.patch(SPARK_TOPOLOGY, "a", {"metadata": {"labels": {"x": "y"}}})
    scene.delete(SPARK_TOPOLOGY, "b")
    events = scene.watched(SPARK_TOPOLOGY, first["metadata"]["resourceVersion"], count=3)
    assert _told(events) == ["ADDED b", "MODIFIED a", "DELETED b"]
    versions = [_version(each["object"]) for each in events]
    assert versions == sorted({*versions}), "a deletion has a version of its own"


@behavior
def a_watch_from_no_version_begins_with_all_there_is(scene: Scene) -> None:
    scene.topology("b")
    scene.topology("a")
    assert sorted(_told(scene.watched(SPARK_TOPOLOGY, "0", count=2))) == ["ADDED a", "ADDED b"]


@behavior
def an_object_that_enters_or_leaves_a_selection_is_added_or_deleted_to_its_watch(scene: Scene) -> None:
    version = scene.version()
    scene.topology("a")
    for value in ("y", "y2", None):
        scene.patch(SPARK_TOPOLOGY, "a", {"metadata": {"labels": {"x": value}}})
    events = scene.watched(SPARK_TOPOLOGY, version, count=3, labelSelector="x")
    assert _told(events) == ["ADDED a", "MODIFIED a", "DELETED a"]


@behavior
def a_watch_without_news_ends_after_the_time_that_was_asked_for(scene: Scene) -> None:
    assert scene.watched(SPARK_TOPOLOGY, scene.version(), seconds=1, allowWatchBookmarks="true") == []


def a_silent_watch_brings_a_bookmark_within_75_seconds(scene: Scene) -> None:
    """A minute, on a real server: not in the table."""
    version = scene.version()
    (found,) = scene.watched(SPARK_TOPOLOGY, version, count=1, seconds=75, allowWatchBookmarks="true")
    assert found["type"] == "BOOKMARK"
    assert _version(found["object"]) >= int(version)


@behavior
def a_watch_from_a_version_that_is_forgotten_is_refused_in_its_stream(scene: Scene) -> None:
    scene.topology("a")
    with pytest.raises(Gone, match="too old resource version"):
        scene.watched(SPARK_TOPOLOGY, "1")


@behavior
def a_merge_patch_merges_maps_replaces_lists_and_removes_by_null(scene: Scene) -> None:
    scene.topology("a", metadata={"labels": {"keep": "1", "drop": "2"}})
    components = [{"name": "x"}, {"name": "y"}]
    patch = {"metadata": {"labels": {"drop": None, "new": "3", "none": None}}, "spec": {"components": components}}
    found = scene.patch(SPARK_TOPOLOGY, "a", patch)
    assert found["metadata"]["labels"] == {"keep": "1", "new": "3"}
    assert [each["name"] for each in found["spec"]["components"]] == ["x", "y"]
    assert found["metadata"]["generation"] == 2


@behavior
def a_patch_that_changes_nothing_makes_no_version(scene: Scene) -> None:
    scene.topology("a")
    first = scene.patch(SPARK_TOPOLOGY, "a", {"metadata": {"labels": {"x": "y"}}})
    assert scene.patch(SPARK_TOPOLOGY, "a", {"metadata": {"labels": {"x": "y"}}}) == first


@behavior
def a_write_with_another_version_or_uid_is_refused(scene: Scene) -> None:
    seen = scene.topology("a")["metadata"]
    guarded = {"metadata": {"resourceVersion": seen["resourceVersion"]}}
    now = scene.patch(SPARK_TOPOLOGY, "a", {**guarded, "spec": {"components": [{"name": "other"}]}})
    with pytest.raises(Conflict):
        scene.patch(SPARK_TOPOLOGY, "a", {**guarded, "spec": {"components": [{"name": "third"}]}})
    with pytest.raises(Conflict):
        scene.patch(SPARK_TOPOLOGY, "a", {**guarded, "status": {"policy": "x"}}, subresource="status")
    with pytest.raises(Invalid) as refused:
        scene.patch(SPARK_TOPOLOGY, "a", {"metadata": {"uid": "another"}})
    assert {each["field"] for each in refused.value.causes} == {"metadata.uid"}
    assert scene.get(SPARK_TOPOLOGY, "a") == now


@behavior
def a_status_is_written_by_its_subresource_alone_and_nothing_else_by_it(scene: Scene) -> None:
    first = scene.topology("a")
    both = {"spec": {"components": [{"name": "other"}]}, "status": {"policy": "x", "observedGeneration": 1}}
    by_status = scene.patch(SPARK_TOPOLOGY, "a", both, subresource="status")
    assert (by_status["spec"], by_status["status"]["policy"]) == (first["spec"], "x")
    assert by_status["metadata"]["generation"] == 1
    whole = scene.patch(SPARK_TOPOLOGY, "a", {**both, "status": {"policy": "y"}})
    assert ([each["name"] for each in whole["spec"]["components"]], whole["status"]["policy"]) == (["other"], "x")
    assert whole["metadata"]["generation"] == 2
    replaced = {**whole, "status": {}}
    assert scene.client.replace(SPARK_TOPOLOGY, "a", replaced, namespace=scene.namespace)["status"]["policy"] == "x"


@behavior
def an_object_is_replaced_at_the_version_that_was_read(scene: Scene) -> None:
    spec = {"holderIdentity": "one", "leaseDurationSeconds": 15}
    seen = scene.create(LEASE, "a", spec=spec)
    taken = {**seen, "spec": {**spec, "holderIdentity": "two"}}
    now = scene.client.replace(LEASE, "a", taken, namespace=scene.namespace)
    assert now["spec"]["holderIdentity"] == "two"
    with pytest.raises(Conflict):
        scene.client.replace(LEASE, "a", taken, namespace=scene.namespace)
    del taken["metadata"]["resourceVersion"]
    with pytest.raises(Invalid):
        scene.client.replace(LEASE, "a", taken, namespace=scene.namespace)


@behavior
def a_json_patch_is_done_whole_or_not_at_all(scene: Scene) -> None:
    pod = scene.gated("a")
    guards = [{"op": "test", "path": f"/metadata/{field}", "value": pod["metadata"][field]}
              for field in ("uid", "resourceVersion")]  # fmt: skip
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["a"]}]}
    ]}}}  # fmt: skip
    operations = [
        *guards,
        {"op": "test", "path": "/spec/schedulingGates/0/name", "value": "ballast.dev/placement"},
        {"op": "add", "path": "/spec/affinity", "value": affinity},
        {"op": "remove", "path": "/spec/schedulingGates/0"},
    ]
    for broken in (
        {"op": "test", "path": "/metadata/uid", "value": "another"},
        {"op": "test", "path": "/metadata/annotations/none", "value": "x"},
        {"op": "remove", "path": "/status/nominatedNodeName"},
        {"op": "add", "path": "/spec/none/there", "value": "x"},
        {"op": "remove", "path": "/spec/schedulingGates/7"},
    ):
        with pytest.raises(Invalid) as refused:
            scene.patch(POD, "a", [*operations, broken])
        assert refused.value.causes == ()
    assert scene.get(POD, "a")["spec"] == pod["spec"]
    now = scene.patch(POD, "a", operations)
    assert now["spec"]["affinity"] == affinity
    assert [each["name"] for each in now["spec"]["schedulingGates"]] == ["kueue.x-k8s.io/admission"]
    with pytest.raises(Invalid):
        scene.patch(POD, "a", operations)


@behavior
def it_is_known_which_manager_nominated_and_pinned_a_pod(scene: Scene) -> None:
    scene.gated("a")
    scene.patch(POD, "a", [{"op": "add", "path": "/status/nominatedNodeName", "value": "n1"}], subresource="status")
    read = PodReader().read(scene.get(POD, "a"))
    assert read.nomination is not None
    assert (read.nomination.node, read.nomination.ours) == ("n1", True)
    scene.patch(POD, "a", [{"op": "remove", "path": "/status/nominatedNodeName"}], subresource="status")
    cleared = scene.get(POD, "a")
    assert PodReader().read(cleared).nomination is None
    assert not [each for each in cleared["metadata"]["managedFields"] if "nominatedNodeName" in json.dumps(each)]


@behavior
def an_answer_may_be_the_metadata_alone(scene: Scene) -> None:
    scene.topology("a", metadata={"labels": {"x": "y"}})
    page = scene.client.get_page(SPARK_TOPOLOGY, {}, namespace=scene.namespace, metadata_only=True)
    (found,) = (json.loads(bytes(each)) for each in page.items or ())
    assert found["metadata"]["labels"] == {"x": "y"}
    assert "spec" not in found


@behavior
def a_deletion_heeds_its_preconditions(scene: Scene) -> None:
    seen = scene.topology("a")["metadata"]
    with pytest.raises(Conflict, match="UID"):
        scene.delete(SPARK_TOPOLOGY, "a", uid="another")
    scene.patch(SPARK_TOPOLOGY, "a", {"metadata": {"labels": {"x": "y"}}})
    with pytest.raises(Conflict) as refused:
        scene.delete(SPARK_TOPOLOGY, "a", uid=seen["uid"], resourceVersion=seen["resourceVersion"])
    assert "UID" not in refused.value.message
    scene.delete(SPARK_TOPOLOGY, "a", uid=seen["uid"])
    assert scene.names(SPARK_TOPOLOGY) == []


@behavior
def a_pod_without_a_node_is_gone_at_once_and_one_with_a_node_when_its_kubelet_says_so(scene: Scene) -> None:
    scene.gated("free")
    scene.running("bound")
    scene.delete(POD, "free")
    scene.delete(POD, "bound")
    assert scene.names(POD) == ["bound"]
    leaving = scene.get(POD, "bound")["metadata"]["deletionTimestamp"]
    scene.delete(POD, "bound")
    assert scene.get(POD, "bound")["metadata"]["deletionTimestamp"] == leaving


@behavior
def an_eviction_heeds_the_uid_and_disruption_budgets(scene: Scene) -> None:
    uid = scene.running("a", set="one")["metadata"]["uid"]
    with pytest.raises(Conflict, match="UID"):
        scene.evict("a", "another")
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"set": "one"}}}
    budget = scene.create(DISRUPTION_BUDGET, "one", spec=spec)
    counted = {
        "observedGeneration": budget["metadata"].get("generation", 1),
        "disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1,
    }  # fmt: skip
    with suppress(KubeError):  # the disruption controller may be quicker
        scene.patch(DISRUPTION_BUDGET, "one", {"status": counted}, subresource="status")
    with pytest.raises(Unavailable) as refused:
        scene.evict("a", uid)
    assert refused.value.status == 429
    assert [each["reason"] for each in refused.value.causes] == ["DisruptionBudget"]
    scene.delete(DISRUPTION_BUDGET, "one")
    scene.evict("a", uid)
    assert "deletionTimestamp" in scene.get(POD, "a")["metadata"]
    scene.evict("a", uid)
