"""The switch rules over the gate, whatever happened to it, to the chart or to the definitions before."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from ballast.kube.kinds import CONFIG_MAP, GATE_SWITCH, POD
from ballast.kube.names import GATE
from tests.cluster.chart.installation import RELEASE, Installation
from tests.cluster.chart.objects import executor, gates_of
from tests.testbed.waiting import wait_until
from tests.unit.cli.program import run

pytestmark = pytest.mark.cluster

HERE = "switch-here"
THERE = "switch-there"


@pytest.fixture(scope="module")
def chart(installed: Installation) -> Iterator[Installation]:
    for name in (HERE, THERE):
        installed.testbed.create_namespace(name, labels={"ballast.dev/gate": "enabled"})
    yield installed
    installed.remove_switch()


@pytest.fixture(autouse=True)
def _on(chart: Installation) -> None:
    chart.switch(gating=True, namespaces=(HERE,))
    chart.await_gating(executor(), HERE)


def what_is_left(chart: Installation) -> tuple[int, dict[str, Any]]:
    """The exit code of `ballast uninstall --check`, and what it names: of all namespaces, so of other tests as well."""
    ended = run("uninstall", "--check", "-o", "json", "--kubeconfig", str(chart.testbed.kubeconfig))
    return ended.code, json.loads(ended.out)


def test_off_nobody_is_held_and_on_again_they_are(chart: Installation) -> None:
    chart.switch(gating=False, namespaces=(HERE,))
    chart.await_gating(executor(), HERE, gated=False)
    chart.switch(gating=True, namespaces=(HERE,))
    chart.await_gating(executor(), HERE)


def test_without_a_switch_nobody_is_held(chart: Installation) -> None:
    assert chart.admin.delete(GATE_SWITCH, RELEASE).ok
    chart.await_gating(executor(), HERE, gated=False)
    chart.switch(gating=True, namespaces=(HERE,))
    chart.await_gating(executor(), HERE)


def test_only_the_named_namespaces_are_held(chart: Installation) -> None:
    assert chart.gates(executor(), THERE) == []
    chart.switch(gating=True, namespaces=(THERE,))
    chart.await_gating(executor(), THERE)
    assert chart.gates(executor(), HERE) == []


def test_everywhere_means_everywhere_that_opted_in(chart: Installation) -> None:
    chart.switch(gating=True, everywhere=True)
    chart.await_gating(executor(), THERE)
    assert chart.gates(executor(), HERE) == [GATE]
    assert chart.gates(executor(), "default") == []


def test_a_switch_of_another_name_changes_nothing(chart: Installation) -> None:
    other = {"apiVersion": GATE_SWITCH.api_version, "kind": GATE_SWITCH.kind, "metadata": {"name": "somebody"}}
    assert chart.admin.create(GATE_SWITCH, {**other, "spec": {"gating": True, "allNamespaces": True}}).ok
    chart.switch(gating=False)
    chart.await_gating(executor(), HERE, gated=False)
    assert chart.gates(executor(), THERE) == []
    assert chart.admin.delete(GATE_SWITCH, "somebody").ok


@pytest.mark.soak
@pytest.mark.parametrize("before", [True, False])
def test_after_a_reinstall_the_switch_still_rules(chart: Installation, before: bool) -> None:
    """The API server is the same all along: it must not remember a switch of the policy that is gone."""
    if not before:
        chart.switch(gating=False)
        chart.await_gating(executor(), HERE, gated=False)
    chart.uninstall()
    chart.await_gating(executor(), HERE, gated=False)
    chart.switch(gating=False)
    chart.install()
    assert chart.gates(executor(), HERE) == []
    for gating in (True, False, True):
        chart.switch(gating=gating, namespaces=(HERE,))
        chart.await_gating(executor(), HERE, gated=gating)
    assert chart.admin.delete(GATE_SWITCH, RELEASE).ok
    chart.await_gating(executor(), HERE, gated=False)


@pytest.mark.soak
def test_a_gate_of_the_pods_template_is_told_from_one_that_admission_added(chart: Installation) -> None:
    """And an application whose released executors have lost theirs is known by its driver."""
    template = {"spec": {"schedulingGates": [{"name": GATE}]}}
    volume = {"name": "pod-template-volume", "configMap": {"name": "clicks-podspec"}}
    gated = {
        "of-admission": executor("of-admission", labels={"spark-app-selector": "plain"}),
        "of-template": executor("of-template", gates=[GATE], labels={"spark-app-selector": "notebook"}),
    }
    driver = executor("clicks-driver", role="driver", labels={"spark-app-selector": "clicks"}, volumes=[volume])
    for pod in (*gated.values(), driver):
        assert chart.admin.create(POD, pod, namespace=HERE).ok
    file = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "clicks-podspec"}}
    file |= {"data": {"podspec-configmap-key": yaml.safe_dump(template)}}
    assert chart.admin.create(CONFIG_MAP, file, namespace=HERE).ok
    try:
        code, found = what_is_left(chart)
    finally:
        for name in (*gated, "clicks-driver"):
            assert chart.admin.delete(POD, name, namespace=HERE).ok
    wait_until(
        lambda: HERE not in str(what_is_left(chart)),
        what="nothing of the namespace is named once they are gone",
        explain=lambda: str(what_is_left(chart)),
    )
    assert (code, found["safe"]) == (1, False)
    assert {f"{HERE}/clicks", f"{HERE}/notebook"} <= set(found["gatedByTemplate"])
    by_template = {pod["name"]: pod["byTemplate"] for pod in found["gatedPods"] if pod["namespace"] == HERE}
    assert by_template == {"of-admission": False, "of-template": True}
    assert f"{HERE}/plain" not in found["gatedByTemplate"]


@pytest.mark.soak
def test_a_gate_of_the_pods_template_needs_no_policy(chart: Installation) -> None:
    """As on a Kubernetes that has no such policies."""
    chart.upgrade("--set=gate.install=false")
    chart.await_gating(executor(), HERE, gated=False)
    created = chart.admin.create(POD, executor("of-a-template", gates=[GATE]), namespace=HERE)
    assert gates_of(created.body) == [GATE]
    with chart.operator() as ours:
        remove = [{"op": "remove", "path": "/spec/schedulingGates/0"}]
        assert ours.patch(POD, "of-a-template", remove, namespace=HERE).ok
    assert gates_of(chart.admin.read(POD, "of-a-template", namespace=HERE).body) == []
    assert chart.admin.delete(POD, "of-a-template", namespace=HERE).ok
    chart.upgrade()
    chart.await_gating(executor(), HERE)


@pytest.mark.soak
def test_pods_are_created_even_when_the_policy_is_broken(chart: Installation) -> None:
    """Without the switch's definition the policy can't work; afterwards it does again."""
    crd = "gateswitches.ballast.dev"
    chart.testbed.kubectl("delete", "crd", crd)
    chart.await_gating(executor(), HERE, gated=False)
    assert chart.gates(executor(labels={"ballast.dev/topology": "clicks"}), THERE) == []
    chart.upgrade()
    chart.await_definitions()
    wait_until(lambda: chart.admin.read(GATE_SWITCH).ok, what="switches are served again")
    chart.switch(gating=True, namespaces=(HERE,))
    chart.await_gating(executor(), HERE)
