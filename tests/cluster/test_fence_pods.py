"""What the operator's own accounts may do to pods, whatever else their roles would let them do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ballast.kube.kinds import POD
from ballast.kube.names import GATE
from tests.cluster.chart.caller import Answer, Caller, account
from tests.cluster.chart.installation import NAMESPACE, RELEASE, Installation
from tests.cluster.chart.objects import executor, gates_of, release

pytestmark = pytest.mark.cluster

JSON = dict[str, Any]

OPEN = "fence-open"
"""A namespace that opted in."""
PLAIN = "fence-plain"
"""A namespace that says nothing."""
FOREIGN = "example.com/forever"
PATCH, DELETE = f"{RELEASE}-patch", f"{RELEASE}-delete"
ZONE = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["a"]}
RACK = {"key": "topology.ballast.dev/rack", "operator": "In", "values": ["a1"]}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def affinity(**node: Any) -> JSON:
    return {"op": "add", "path": "/spec/affinity", "value": {"nodeAffinity": node}}


def add(path: str, value: Any) -> JSON:
    return {"op": "add", "path": path, "value": value}


@pytest.fixture(scope="module")
def chart(installed: Installation) -> Installation:
    installed.testbed.create_namespace(OPEN, labels={"ballast.dev/gate": "enabled"})
    installed.testbed.create_namespace(PLAIN)
    return installed


@pytest.fixture(scope="module")
def operator(chart: Installation) -> Iterator[Caller]:
    with chart.operator() as caller:
        yield caller


@pytest.fixture(scope="module")
def releaser(chart: Installation) -> Iterator[Caller]:
    """The account of the jobs that release."""
    with account(chart.testbed, NAMESPACE, f"{RELEASE}-release") as caller:
        yield caller


def created(chart: Installation, pod: JSON, namespace: str = OPEN) -> JSON:
    """`pod` under its own name. The foreign gate keeps it from being scheduled when ours is gone."""
    metadata = {**pod["metadata"], "generateName": "pod-"}
    metadata.pop("name")
    answer = chart.admin.create(POD, {**pod, "metadata": metadata}, namespace=namespace)
    assert answer.ok, answer
    return answer.body


def patched(caller: Caller, pod: JSON, *operations: JSON) -> Answer:
    metadata = pod["metadata"]
    return caller.patch(POD, metadata["name"], list(operations), namespace=metadata["namespace"])


WITH_TERM: JSON = {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [ZONE]}]}}}}
TERM = f"/spec/affinity/nodeAffinity/{REQUIRED}/nodeSelectorTerms/0/matchExpressions/-"


@pytest.mark.parametrize(
    ("spec", "more"),
    [
        pytest.param({}, [], id="as it is"),
        pytest.param({}, [affinity(**{REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [ZONE]}]}})], id="a zone"),
        pytest.param(
            {},
            [affinity(**{PREFERRED: [{"weight": 1, "preference": {"matchExpressions": [RACK]}}]})],
            id="a rack, if possible",
        ),
        pytest.param(WITH_TERM, [add(TERM, RACK)], id="a rack next to the zone of its own"),
    ],
)
def test_the_operator_lets_a_pod_go_to_its_place(
    chart: Installation, operator: Caller, spec: JSON, more: list[JSON]
) -> None:
    pod = created(chart, executor(gates=[GATE, FOREIGN], **spec))
    answer = patched(operator, pod, *release(pod, *more))
    assert answer.ok, answer.message
    assert gates_of(answer.body) == [FOREIGN]


METADATA = "Ballast changes no metadata of a pod"
SPEC = "Ballast changes a pod's node affinity and its own gate, and nothing else of its spec"
OWN = "Ballast removes its own gate and no other"
HELD = "Ballast may only patch pods that its gate ballast.dev/placement holds"
OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "mine", "uid": "1"}
FORBIDDEN = [
    pytest.param([add("/metadata/labels/team", "ads")], METADATA, id="a label"),
    pytest.param([add("/metadata/annotations", {"team": "ads"})], METADATA, id="an annotation"),
    pytest.param([add("/metadata/finalizers", ["ballast.dev/keep"])], METADATA, id="a finalizer"),
    pytest.param([add("/metadata/generateName", "other-")], METADATA, id="what its name was made of"),
    pytest.param([add("/metadata/ownerReferences", [OWNER])], METADATA, id="an owner"),
    pytest.param([add("/metadata/generateName", "other-")], METADATA, id="what its name was made of"),
    pytest.param([add("/spec/containers/0/image", "mine")], SPEC, id="the image"),
    pytest.param([add("/spec/tolerations/-", {"key": "pool", "operator": "Exists"})], SPEC, id="a toleration"),
    pytest.param([add("/spec/nodeSelector", {"pool": "a"})], SPEC, id="a node selector"),
    pytest.param([add("/spec/activeDeadlineSeconds", 1)], SPEC, id="a deadline"),
]


@pytest.mark.parametrize(("more", "words"), FORBIDDEN)
def test_it_changes_nothing_else_while_it_releases(
    chart: Installation, operator: Caller, releaser: Caller, more: list[JSON], words: str
) -> None:
    pod = created(chart, executor(gates=[GATE, FOREIGN]))
    for caller in (operator, releaser):
        answer = patched(caller, pod, *release(pod, *more))
        assert answer.refused_by(PATCH), answer
        assert words in answer.message


def test_gates_of_others_are_not_its_to_remove(chart: Installation, operator: Caller, releaser: Caller) -> None:
    pod = created(chart, executor(gates=[GATE, FOREIGN]))
    for caller in (operator, releaser):
        for remove in ("/spec/schedulingGates", "/spec/schedulingGates/1"):
            answer = patched(caller, pod, {"op": "remove", "path": remove})
            assert answer.refused_by(PATCH), answer
            assert OWN in answer.message


def test_a_pod_is_not_steered_while_it_stays_held(chart: Installation, operator: Caller) -> None:
    pod = created(chart, executor(gates=[GATE]))
    answer = patched(operator, pod, affinity(**{REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [ZONE]}]}}))
    assert answer.refused_by(PATCH), answer
    assert OWN in answer.message


@pytest.mark.parametrize("gates", [[], [FOREIGN]])
def test_a_pod_without_its_gate_is_not_its_to_patch(
    chart: Installation, operator: Caller, releaser: Caller, gates: list[str]
) -> None:
    pod = created(chart, executor(gates=gates))
    for caller in (operator, releaser):
        answer = patched(caller, pod, add("/metadata/labels/team", "ads"))
        assert answer.refused_by(PATCH), answer
        assert HELD in answer.message


def test_who_only_releases_writes_no_affinity(chart: Installation, operator: Caller, releaser: Caller) -> None:
    """With that of a zone that does not exist, the pod would never run."""
    for caller, may in ((operator, True), (releaser, False)):
        pod = created(chart, executor(gates=[GATE, FOREIGN]))
        answer = patched(
            caller, pod, *release(pod, affinity(**{REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [ZONE]}]}}))
        )
        assert answer.ok is may, answer
        assert answer.refused_by(PATCH) is not may, answer


def test_affinity_is_never_loosened(chart: Installation, operator: Caller) -> None:
    """The API server's own rule, on which the fence builds."""
    pod = created(chart, executor(gates=[GATE, FOREIGN], **WITH_TERM))
    answer = patched(operator, pod, *release(pod, {"op": "remove", "path": "/spec/affinity"}))
    assert answer.code == 422
    assert "nodeSelectorTerms" in answer.message


def test_others_patch_pods_as_before(chart: Installation) -> None:
    pod = created(chart, executor(gates=[GATE, FOREIGN]))
    assert patched(chart.admin, pod, add("/metadata/labels/team", "ads")).ok


def status(caller: Caller, pod: JSON, *operations: JSON) -> Answer:
    metadata = pod["metadata"]
    patch = list(operations)
    return caller.patch(POD, metadata["name"], patch, namespace=metadata["namespace"], subresource="status")


def nominated(chart: Installation, pod: JSON, node: str = "n1") -> JSON:
    assert status(chart.admin, pod, add(NOMINATED, node)).ok
    return pod


NOMINATED = "/status/nominatedNodeName"
CLEAR = {"op": "remove", "path": NOMINATED}
NOMINATE = f"{RELEASE}-nominate"
ALONE = "Ballast changes a pod's nominated node, and nothing else of its status"
NOT_HELD = "Ballast nominates only pods that its gate ballast.dev/placement holds"


def test_a_pod_that_its_gate_holds_is_nominated_and_the_nomination_is_changed_and_cleared(
    chart: Installation, operator: Caller
) -> None:
    pod = created(chart, executor(gates=[GATE, FOREIGN]))
    for change, node in ((add(NOMINATED, "n1"), "n1"), (add(NOMINATED, "n2"), "n2"), (CLEAR, None)):
        answer = status(operator, pod, change)
        assert answer.ok, answer.message
        assert answer.body["status"].get("nominatedNodeName") == node


@pytest.mark.parametrize("role", ["executor", None], ids=["an executor", "relabeled by its author"])
def test_a_nomination_is_cleared_once_the_pod_is_released(
    chart: Installation, operator: Caller, role: str | None
) -> None:
    pod = nominated(chart, created(chart, executor(gates=[FOREIGN], role=role)))
    answer = status(operator, pod, CLEAR)
    assert answer.ok, answer.message
    assert "nominatedNodeName" not in answer.body["status"]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        pytest.param([add("/status/phase", "Failed")], ALONE, id="the phase"),
        pytest.param([add("/status/podIP", "10.0.0.1")], ALONE, id="an address"),
        pytest.param([{"op": "replace", "path": "/status/conditions", "value": []}], ALONE, id="the conditions"),
        pytest.param([add("/status/reason", "Evicted")], ALONE, id="a reason"),
        pytest.param([{"op": "remove", "path": "/status/conditions"}], ALONE, id="less than it was"),
        pytest.param([add("/metadata/labels/team", "ads")], METADATA, id="a label"),
        pytest.param([add("/metadata/annotations", {"team": "ads"})], METADATA, id="an annotation"),
        pytest.param([add("/metadata/finalizers", ["ballast.dev/keep"])], METADATA, id="a finalizer"),
    ],
)
def test_nothing_else_of_the_status_is_its_to_change(
    chart: Installation, operator: Caller, more: list[JSON], words: str
) -> None:
    pod = created(chart, executor(gates=[GATE]))
    for operations in (more, [add(NOMINATED, "n1"), *more]):
        answer = status(operator, pod, *operations)
        assert answer.refused_by(NOMINATE), answer
        assert words in answer.message


@pytest.mark.parametrize(
    ("pod", "change"),
    [
        pytest.param(executor(gates=[FOREIGN]), add(NOMINATED, "n2"), id="released: another node"),
        pytest.param(executor(gates=[FOREIGN], role="driver"), add(NOMINATED, "n2"), id="a driver"),
    ],
)
def test_a_pod_without_its_gate_is_not_its_to_nominate(
    chart: Installation, operator: Caller, pod: JSON, change: JSON
) -> None:
    answer = status(operator, nominated(chart, created(chart, pod)), change)
    assert answer.refused_by(NOMINATE), answer
    assert NOT_HELD in answer.message


def test_a_bound_pod_has_no_nomination(chart: Installation, operator: Caller) -> None:
    """The API server's own rule."""
    answer = status(operator, created(chart, executor(nodeName="n1")), add(NOMINATED, "n2"))
    assert answer.code == 422
    assert "already bound to a node" in answer.message


def test_the_releasing_account_nominates_nothing(chart: Installation, releaser: Caller) -> None:
    pod = created(chart, executor(gates=[GATE]))
    assert status(releaser, pod, add(NOMINATED, "n1")).code == 403


NAMED = {"ballast.dev/topology": "clicks"}
OUT = {"ballast.dev/gate": "disabled"}
OPTED_IN = "Ballast deletes only executors that opted in"


@pytest.mark.parametrize(
    ("namespace", "pod"),
    [
        pytest.param(OPEN, executor(gates=[FOREIGN]), id="its namespace opted in"),
        pytest.param(PLAIN, executor(gates=[FOREIGN], labels=NAMED), id="it names a topology"),
    ],
)
def test_an_unscheduled_executor_that_opted_in_is_deleted(
    chart: Installation, operator: Caller, namespace: str, pod: JSON
) -> None:
    name = created(chart, pod, namespace)["metadata"]["name"]
    answer = operator.delete(POD, name, namespace=namespace)
    assert answer.ok, answer.message
    assert chart.admin.read(POD, name, namespace=namespace).code == 404


@pytest.mark.parametrize(
    ("namespace", "pod", "words"),
    [
        pytest.param(PLAIN, executor(gates=[FOREIGN]), OPTED_IN, id="nobody opted in"),
        pytest.param(OPEN, executor(gates=[FOREIGN], role="driver"), OPTED_IN, id="a driver"),
        pytest.param(OPEN, executor(gates=[FOREIGN], role=None), OPTED_IN, id="not of Spark"),
        pytest.param(OPEN, executor(gates=[FOREIGN], labels=OUT), OPTED_IN, id="out by label"),
        pytest.param(OPEN, executor(gates=[FOREIGN], annotations=OUT), OPTED_IN, id="out by annotation"),
        pytest.param(PLAIN, executor(gates=[FOREIGN], labels={**NAMED, **OUT}), OPTED_IN, id="out, though named"),
        pytest.param(OPEN, executor(nodeName="n1"), "only pods that are not scheduled yet", id="on a node"),
        pytest.param(PLAIN, executor(nodeName="n1", labels=NAMED), "not scheduled yet", id="on a node, and named"),
    ],
)
def test_no_other_pod_is_its_to_delete(
    chart: Installation, operator: Caller, namespace: str, pod: JSON, words: str
) -> None:
    name = created(chart, pod, namespace)["metadata"]["name"]
    answer = operator.delete(POD, name, namespace=namespace)
    assert answer.refused_by(DELETE), answer
    assert words in answer.message
    assert chart.admin.delete(POD, name, namespace=namespace).ok


@pytest.mark.parametrize(
    ("pod", "code"),
    [
        pytest.param(executor(gates=[GATE]), 200, id="an executor that never ran, whose release is refused"),
        pytest.param(executor(gates=[GATE], role="driver"), 403, id="a driver"),
        pytest.param(executor(gates=[GATE], labels=OUT), 403, id="out by label"),
        pytest.param(executor(nodeName="n1"), 403, id="on a node"),
    ],
)
def test_the_releasing_account_deletes_what_the_operator_may(
    chart: Installation, releaser: Caller, pod: JSON, code: int
) -> None:
    name = created(chart, pod)["metadata"]["name"]
    assert releaser.delete(POD, name, namespace=OPEN).code == code
    assert chart.admin.delete(POD, name, namespace=OPEN).code in (200, 404)
