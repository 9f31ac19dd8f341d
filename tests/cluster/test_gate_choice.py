"""Which pods the policy holds: those that opted in, in either way, and no others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ballast.kube.kinds import GATE_SWITCH, POD
from ballast.kube.names import GATE
from tests.cluster.chart.installation import RELEASE, Installation
from tests.cluster.chart.objects import executor, gates_of

pytestmark = pytest.mark.cluster

OPEN = "gate-open"
"""A namespace that opted in."""
PLAIN = "gate-plain"
"""A namespace that says nothing."""
NAMED = {"ballast.dev/topology": "clicks"}
OUT = {"ballast.dev/gate": "disabled"}


@pytest.fixture(scope="module")
def gated(installed: Installation) -> Iterator[Installation]:
    """The chart, with the switch on in both namespaces, and both ways in at work."""
    installed.testbed.create_namespace(OPEN, labels={"ballast.dev/gate": "enabled"})
    installed.testbed.create_namespace(PLAIN)
    installed.switch(gating=True, namespaces=(OPEN, PLAIN))
    installed.await_gating(executor(), OPEN)
    installed.await_gating(executor(labels=NAMED), PLAIN)
    yield installed
    installed.remove_switch()


@pytest.mark.parametrize(
    ("namespace", "pod"),
    [
        pytest.param(OPEN, executor(), id="its namespace says so"),
        pytest.param(PLAIN, executor(labels=NAMED), id="it names a topology"),
        pytest.param(OPEN, executor(labels=NAMED), id="both, and it is held once"),
        pytest.param(OPEN, executor(labels={"ballast.dev/gate": "enabled"}), id="it says so itself as well"),
        pytest.param(OPEN, executor(schedulerName="default-scheduler"), id="the usual scheduler is named"),
        pytest.param(OPEN, executor(gates=[GATE]), id="its template has the gate already"),
    ],
)
def test_an_executor_that_opted_in_is_held(gated: Installation, namespace: str, pod: dict[str, Any]) -> None:
    assert gated.gates(pod, namespace) == [GATE]


@pytest.mark.parametrize(
    ("namespace", "pod"),
    [
        pytest.param(PLAIN, executor(), id="nobody opted in"),
        pytest.param(OPEN, executor(labels=OUT), id="out by label"),
        pytest.param(OPEN, executor(annotations=OUT), id="out by annotation"),
        pytest.param(PLAIN, executor(labels={**NAMED, **OUT}), id="out by label, though it names a topology"),
        pytest.param(OPEN, executor(role="driver"), id="a driver"),
        pytest.param(PLAIN, executor(role="driver", labels=NAMED), id="a driver that names a topology"),
        pytest.param(OPEN, executor(role=None), id="not of Spark"),
        pytest.param(PLAIN, executor(role=None, labels=NAMED), id="not of Spark, though it names a topology"),
        pytest.param(OPEN, executor(schedulerName="yunikorn"), id="another scheduler places it"),
    ],
)
def test_any_other_pod_is_left_alone(gated: Installation, namespace: str, pod: dict[str, Any]) -> None:
    assert gated.gates(pod, namespace) == []


def test_executors_of_a_scheduler_that_the_switch_names_are_gated(gated: Installation) -> None:
    """A profile of kube-scheduler, such as GKE's optimize-utilization."""
    pod = executor(schedulerName="optimize-utilization")
    assert gated.gates(pod, OPEN) == []
    before = gated.admin.read(GATE_SWITCH, RELEASE).body["spec"]["schedulerNames"]
    named = {"spec": {"schedulerNames": [*before, "optimize-utilization"]}}
    assert gated.admin.patch(GATE_SWITCH, RELEASE, named).ok
    gated.await_gating(pod, OPEN)
    assert gated.admin.patch(GATE_SWITCH, RELEASE, {"spec": {"schedulerNames": before}}).ok


def test_a_pod_with_a_node_of_its_own_is_left_alone(gated: Installation) -> None:
    """With a node and a gate it would be refused, and pod creation never fails because of Ballast."""
    assert gated.gates(executor(nodeName="n1"), OPEN) == []


def test_gates_of_others_are_kept(gated: Installation) -> None:
    foreign = ["kueue.x-k8s.io/admission", "example.com/quota"]
    assert gated.gates(executor(gates=foreign), OPEN) == [*foreign, GATE]
    assert gated.gates(executor(gates=[*foreign, GATE]), OPEN) == [*foreign, GATE]


def test_executors_that_kueue_queues_are_gated_too(gated: Installation) -> None:
    """Kueue gives both of its gates to every plain pod that it queues, also where it knows no topology."""
    kueue = ["kueue.x-k8s.io/admission", "kueue.x-k8s.io/topology"]
    assert gated.gates(executor(gates=kueue), OPEN) == [*kueue, GATE]


def test_nothing_but_the_gate_is_changed(gated: Installation) -> None:
    pod = executor(labels={"team": "ads"}, nodeSelector={"pool": "a"}, tolerations=[{"key": "spark"}])
    with_gate = gated.admin.create(POD, pod, namespace=OPEN, dry=True).body
    without = gated.admin.create(POD, executor(role="driver", **_spec(pod)), namespace=OPEN, dry=True).body
    assert gates_of(with_gate) == [GATE]
    del with_gate["spec"]["schedulingGates"]
    assert _settled(with_gate["spec"]) == _settled(without["spec"])
    assert with_gate["metadata"]["labels"]["team"] == "ads"


def _spec(pod: dict[str, Any]) -> dict[str, Any]:
    return {key: pod["spec"][key] for key in ("nodeSelector", "tolerations")}


def _settled(spec: dict[str, Any]) -> dict[str, Any]:
    """Without the token's volume, whose name is new each time."""
    containers = [{**each, "volumeMounts": None} for each in spec["containers"]]
    return {**spec, "containers": containers, "volumes": None}
