from __future__ import annotations

from typing import Any

import pytest

from ballast.kube import names
from ballast.kube.executors import SparkExecutor
from ballast.kube.pods import Pod, PodReader
from ballast.model import Phase
from tests.unit.kube.builders import (
    CREATED,
    CREATED_AT,
    FOREIGN_GATE,
    GATE,
    container,
    executor,
    expression,
    pinned_by_us,
    required,
)


def read(raw: dict[str, Any]) -> Pod:
    return PodReader().read(raw)


def facts(**changes: Any) -> SparkExecutor:
    found = read(executor(**changes)).executor
    assert found is not None
    return found


def test_an_executor_carries_what_spark_wrote_on_it() -> None:
    found = facts(number=7, application="spark-9", profile="2")
    assert (found.application, found.executor_id, found.resource_profile) == ("spark-9", "7", "2")


def test_times_are_seconds_since_the_epoch() -> None:
    started = {"name": "spark-kubernetes-executor", "state": {"running": {"startedAt": "2026-11-21T10:01:00Z"}}}
    raw = executor(node="node-1", status={"containerStatuses": [started]})
    assert read(raw).created_at == CREATED_AT
    assert facts(node="node-1", status={"containerStatuses": [started]}).running_since == CREATED_AT + 60


@pytest.mark.parametrize(
    ("command", "graceful"),
    [(["/opt/decom.sh"], True), (["bash", "/opt/spark/decom.sh"], True), (["/bin/sleep", "5"], False), ([], False)],
)
def test_graceful_means_that_stopping_begins_with_sparks_decommissioning(command: list[str], graceful: bool) -> None:
    hook: dict[str, Any] = {"lifecycle": {"preStop": {"exec": {"command": command}}}}
    assert facts(containers=[container(**hook)]).graceful is graceful
    assert facts(containers=[container("sidecar"), container(**hook)]).graceful is graceful


@pytest.mark.parametrize(
    ("changes", "direct"),
    [
        ({}, True),
        ({"owners": [{"kind": "Pod", "uid": "d", "controller": True}]}, True),
        ({"owners": [{"kind": "SparkApplication", "uid": "s"}]}, True),
        ({"owners": [{"kind": "StatefulSet", "uid": "s", "controller": True}]}, False),
        ({"owners": [{"kind": "ReplicaSet", "uid": "s", "controller": True}]}, False),
        ({"labels": {"spark-exec-id": "EXECID"}}, False),
        ({"name": "clicks-driver"}, False),
        ({"name": "clicks-exec-1-driver"}, False),
    ],
)
def test_executors_of_the_statefulset_and_deployment_allocators_are_told_apart(
    changes: dict[str, Any], direct: bool
) -> None:
    assert facts(**changes).allocator_direct is direct


@pytest.mark.parametrize(
    ("changes", "managed"),
    [
        ({}, False),
        ({"labels": {"kueue.x-k8s.io/queue-name": "main"}}, False),
        ({"finalizers": ["kueue.x-k8s.io/managed"]}, True),
        ({"gates": [FOREIGN_GATE, GATE]}, True),
    ],
)
def test_pods_that_kueue_queues_are_known_by_its_finalizer_or_gate_and_not_by_a_label(
    changes: dict[str, Any], managed: bool
) -> None:
    assert facts(**changes).kueue_managed is managed


@pytest.mark.parametrize("where", ["labels", "annotations"])
def test_one_opts_out_by_label_or_annotation(where: str) -> None:
    assert facts(**{where: {"ballast.dev/gate": "disabled"}}).opted_out
    assert not facts(**{where: {"ballast.dev/gate": "enabled"}}).opted_out


def test_cores_are_task_slots_else_the_cpu_request() -> None:
    slots = container(cpu="500m", env=[{"name": "TZ", "value": "2"}, {"name": "SPARK_EXECUTOR_CORES", "value": "4"}])
    assert facts(containers=[slots]).cores == 4.0
    assert facts(containers=[container(cpu="1500m")]).cores == 1.5
    sidecar = {"name": "istio-proxy", "env": [{"name": "SPARK_EXECUTOR_CORES", "value": "9"}]}
    assert facts(containers=[sidecar, slots]).cores == 4.0, "Spark's own container, wherever it stands"


def env(**values: str) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in values.items()]


SPARK = env(SPARK_EXECUTOR_ID="7", SPARK_APPLICATION_ID="spark-1", SPARK_EXECUTOR_CORES="4")
PROXY = container("istio-proxy", cpu="100m", env=env(PROXY_CONFIG="{}"))
LOGS = container("logs", cpu="50m", env=env(SPARK_APPLICATION_ID="spark-1"))


@pytest.mark.parametrize("name", ["spark-kubernetes-executor", "main"])
@pytest.mark.parametrize("at", [0, 1, 2])
def test_the_container_with_sparks_environment_is_the_executor_wherever_it_stands(name: str, at: int) -> None:
    containers = [PROXY, LOGS]
    containers.insert(at, container(name, env=SPARK))
    statuses = [
        {"name": "istio-proxy", "state": {"running": {"startedAt": "2026-11-21T10:00:10Z"}}},
        {"name": "logs", "state": {"terminated": {"exitCode": 137}}},
        {"name": name, "state": {"running": {"startedAt": "2026-11-21T10:01:00Z"}}},
    ]
    found = facts(node="node-1", containers=containers, status={"containerStatuses": statuses})
    assert (found.cores, found.running_since, found.exit_code) == (4.0, CREATED_AT + 60, None)


def test_where_no_container_can_be_told_to_be_sparks_nothing_is_said_of_it() -> None:
    statuses = [{"name": "istio-proxy", "state": {"terminated": {"exitCode": 1}}}]
    found = facts(node="node-1", containers=[PROXY, container("main")], status={"containerStatuses": statuses})
    assert (found.cores, found.exit_code) == (1.0, None)
    alone = facts(containers=[container("main", cpu="3")])
    assert alone.cores == 3.0


@pytest.mark.parametrize(("code", "failed"), [(52, True), (0, False)])
def test_an_executor_has_ended_when_its_own_container_has_although_a_sidecar_runs(code: int, *, failed: bool) -> None:
    statuses = [
        {"name": "istio-proxy", "state": {"running": {"startedAt": "2026-11-21T10:00:10Z"}}},
        {"name": "spark-kubernetes-executor", "state": {"terminated": {"exitCode": code}}},
    ]
    pod = read(executor(node="node-1", containers=[PROXY, container()], status={"containerStatuses": statuses}))
    assert (pod.phase, pod.failed, pod.ended) == (Phase.ENDED, failed, False)
    assert pod.requests.cpu_cores == pytest.approx(1.1), "the pod takes its room until the sidecar has ended"


@pytest.mark.parametrize(("value", "cores"), [("1", 1.0), ("1.5", 1.5), ("10000", 10_000.0), ("10001", 1.0)])
def test_task_slots_count_from_one_to_ten_thousand(value: str, cores: float) -> None:
    slots = container(cpu="2", env=[{"name": "SPARK_EXECUTOR_CORES", "value": value}])
    assert facts(containers=[slots]).cores == cores


@pytest.mark.parametrize("value", ["inf", "nan", "0", "-1", "1e-320", "1e308", "four", "", None])
def test_task_slots_that_no_executor_has_count_as_one(value: str | None) -> None:
    slots = container(cpu="2", env=[{"name": "SPARK_EXECUTOR_CORES", "value": value}])
    assert facts(containers=[slots]).cores == 1.0


def unschedulable(reason: str = "Unschedulable", status: str = "False") -> dict[str, Any]:
    at = "2026-11-21T10:00:30Z"
    return {
        "conditions": [
            {"type": "Initialized", "status": status, "reason": reason, "lastTransitionTime": CREATED},
            {"type": "PodScheduled", "status": status, "reason": reason, "lastTransitionTime": at},
        ],
    }


@pytest.mark.parametrize(
    ("words", "lacks_room"),
    [
        ("0/4 nodes are available: 2 Insufficient cpu, 2 Too many pods.", True),
        ("0/2 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint {a: b}. preemption: no", True),
        ("0/2 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match Pod's node affinity/selector.", True),
        ("0/4 nodes are available: 2 Insufficient cpu, 2 node(s) exceed max volume count. no new claims", False),
        ("0/4 nodes are available: 4 node(s) were unschedulable. preemption: not helpful", False),
        ('0/4 nodes are available: persistentvolumeclaim "none" not found. not found', False),
        ("0/4 nodes are available: 2 node(s) exceed max volume count. preemption: not helpful", False),
        ("", True),
    ],
)
def test_whether_it_is_for_lack_of_an_amount_that_kube_scheduler_finds_no_node(words: str, *, lacks_room: bool) -> None:
    status = unschedulable()
    status["conditions"][1]["message"] = words
    assert facts(status=status).lacks_room == lacks_room


def test_unschedulable_since_the_condition_says_so() -> None:
    assert facts(status=unschedulable()).unschedulable_since == CREATED_AT + 30
    assert facts(status=unschedulable("SchedulingGated")).unschedulable_since is None
    assert facts(status=unschedulable(status="True")).unschedulable_since is None


def test_unschedulable_not_before_we_released_it() -> None:
    late = facts(status=unschedulable(), managed_fields=[pinned_by_us("2026-11-21T10:05:00Z")])
    assert late.unschedulable_since == CREATED_AT + 300


def test_pinned_is_what_we_required_not_what_its_owner_did() -> None:
    assert facts(managed_fields=[pinned_by_us("2026-11-21T10:05:00Z")]).pinned_at == CREATED_AT + 300
    assert facts(managed_fields=[pinned_by_us("2026-11-21T10:05:00Z", "preferredDuring")]).pinned_at is None
    assert facts(affinity=required({"matchExpressions": [expression("zone", "a")]})).pinned_at is None


APART = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": names.HOST}]}}


NEAR = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]}}


RATHER = {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1}]}}


def spread(over: str, otherwise: str = "DoNotSchedule") -> list[dict[str, Any]]:
    return [{"maxSkew": 1, "topologyKey": over, "whenUnsatisfiable": otherwise}]


@pytest.mark.parametrize(
    ("spec", "required"),
    [
        ({"affinity": APART}, True),
        ({"affinity": NEAR}, True),
        ({"affinity": RATHER}, False),
        ({"topologySpreadConstraints": spread("topology.kubernetes.io/zone")}, True),
        ({"topologySpreadConstraints": spread("topology.kubernetes.io/zone", "ScheduleAnyway")}, False),
        ({"topologySpreadConstraints": spread(names.HOST)}, False),
        ({"topologySpreadConstraints": None, "affinity": {"podAffinity": None}}, False),
    ],
)
def test_whether_other_pods_decide_about_its_node(spec: dict[str, Any], required: bool) -> None:
    found = read(executor(**spec)).executor
    assert found is not None
    assert found.by_other_pods == required


PREFERRED_BY_US = {
    "manager": names.FIELD_MANAGER,
    "time": "2026-11-29T10:00:00Z",
    "fieldsV1": {
        "f:spec": {"f:affinity": {"f:nodeAffinity": {".": {}, "f:preferredDuringSchedulingIgnoredDuringExecution": {}}}}
    },
}


def test_an_executor_whose_place_ballast_only_prefers_is_placed_and_not_pinned() -> None:
    found = facts(managed_fields=[PREFERRED_BY_US])
    assert (found.placed, found.pinned_at) == (True, None)
    assert not facts(managed_fields=[{**PREFERRED_BY_US, "manager": "spark"}]).placed


def test_soft_spreads_and_soft_anti_affinity_are_read_by_their_keys() -> None:
    term = {"weight": 1, "podAffinityTerm": {"topologyKey": "rack", "labelSelector": {}}}
    apart = {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}
    soft = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
    hard = {"maxSkew": 1, "topologyKey": "row", "whenUnsatisfiable": "DoNotSchedule"}
    hosts = {**soft, "topologyKey": names.HOST}
    found = facts(affinity=apart, topologySpreadConstraints=[soft, hard, hosts])
    assert found.soft_spread_keys == ("rack", "zone")


@pytest.mark.parametrize(
    ("text", "expected"),
    [("100", 100), ("1", 1), ("0", None), ("-3", None), ("many", None), ("1e3", None), ("", None), ("1234567", None)],
)
def test_it_says_how_many_its_application_is_going_to_have(text: str, expected: int | None) -> None:
    said = {names.EXECUTORS: text}
    assert facts(labels=said).expected == facts(annotations=said).expected == expected


@pytest.mark.parametrize(
    ("changes", "gang"),
    [
        (
            {"annotations": {"scheduling.k8s.io/group-name": "clicks"}},
            "annotation scheduling.k8s.io/group-name: clicks",
        ),
        (
            {"annotations": {"yunikorn.apache.org/task-group-name": "workers"}},
            "annotation yunikorn.apache.org/task-group-name: workers",
        ),
        (
            {"annotations": {"yunikorn.apache.org/task-groups": '[{"name": "workers", "minMember": 3}]'}},
            "annotation yunikorn.apache.org/task-groups",
        ),
        ({"labels": {"scheduling.x-k8s.io/pod-group": "clicks"}}, "label scheduling.x-k8s.io/pod-group: clicks"),
        ({"schedulingGroup": {"podGroupName": "clicks"}}, "field spec.schedulingGroup"),
        ({"workloadRef": {"name": "clicks", "podGroup": "workers"}}, "field spec.workloadRef"),
        # Volcano gives each pod that names none a group of one member.
        ({"annotations": {"scheduling.k8s.io/group-name": "podgroup-4f5210d9-3cba-4a59-b61c-1b243f464708"}}, ""),
        ({"annotations": {"scheduling.volcano.sh/group-name": "podgroup-4f5210d9"}}, ""),
        # What others name so is their own.
        (
            {"labels": {"scheduling.x-k8s.io/pod-group": "podgroup-clicks"}},
            "label scheduling.x-k8s.io/pod-group: podgroup-clicks",
        ),
        ({"labels": {"kueue.x-k8s.io/pod-group-name": "clicks"}}, ""),
        ({}, ""),
    ],
)
def test_a_member_of_a_gang_is_told_by_what_names_the_gang(changes: dict[str, Any], gang: str) -> None:
    assert facts(**changes).gang == gang
