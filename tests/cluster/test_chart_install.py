"""The chart on the real API server, by the real helm: installed, changed, taken away."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from ballast.api.crd import KINDS
from ballast.kube.kinds import BALANCING_POLICY, EXECUTOR_MOVE, GATE_SWITCH, POD, SPARK_TOPOLOGY
from ballast.kube.names import GATE
from tests.cluster.chart.installation import CHART, NAMESPACE, PROBES, RELEASE, Installation
from tests.cluster.chart.objects import executor, gates_of, move
from tests.cluster.controller.ordered import CLICKS, HOT, WARM, stage, traveling
from tests.faults.invariants import watched
from tests.testbed.errors import TestbedError
from tests.testbed.waiting import wait_until
from tests.unit.cli.program import Ended, run

pytestmark = pytest.mark.cluster

EXAMPLE = CHART.parents[1] / "examples" / "balancingpolicy.yaml"


def deployment(installed: Installation) -> dict[str, Any]:
    found = installed.testbed.kubectl("get", "deployment", RELEASE, f"--namespace={NAMESPACE}", "--output=json")
    document: dict[str, Any] = json.loads(found)
    return document


def test_no_policy_has_a_mistake_that_the_server_can_see(installed: Installation) -> None:
    found = installed.testbed.kubectl("get", "validatingadmissionpolicies", "--output=json")
    ours = {
        policy["metadata"]["name"]: policy.get("status", {}).get("typeChecking")
        for policy in json.loads(found)["items"]
        if policy["metadata"]["name"].startswith(f"{RELEASE}-")
    }
    assert ours == {
        f"{RELEASE}-{name}": {} for name in ("patch", "nominate", "delete", "evict", "own", "switch", "move")
    }


def test_its_pods_are_let_into_a_restricted_namespace(installed: Installation) -> None:
    wanted = {"app.kubernetes.io/instance": RELEASE, "app.kubernetes.io/component": "operator"}

    def both() -> bool:
        found = [pod["metadata"] for pod in installed.admin.read(POD, namespace=NAMESPACE).body["items"]]
        # Those of an earlier installation stay where their nodes have no kubelet.
        return len([m for m in found if wanted.items() <= m["labels"].items() and "deletionTimestamp" not in m]) == 2

    wait_until(both, what="two replicas are created")


def test_the_jobs_of_the_chart_are_let_into_a_restricted_namespace(installed: Installation) -> None:
    rendered = installed.testbed.helm("template", RELEASE, str(CHART), f"--namespace={NAMESPACE}")
    jobs = [doc for doc in yaml.safe_load_all(rendered) if doc and doc["kind"] in {"Job", "CronJob"}]
    assert len(jobs) == 2
    for job in jobs:
        spec = job["spec"]["jobTemplate"]["spec"] if job["kind"] == "CronJob" else job["spec"]
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "of-the-job"}, "spec": spec["template"]["spec"]}
        answer = installed.admin.create(POD, pod, namespace=NAMESPACE, dry=True)
        assert answer.ok, answer.message
        job["metadata"]["name"] += "-twin"
        assert installed.testbed.kubectl("create", "--dry-run=server", "-f", "-", input_text=yaml.safe_dump(job))


@pytest.mark.soak
def test_an_upgrade_changes_what_was_asked_for(installed: Installation) -> None:
    installed.upgrade("--set=replicas=1")
    assert deployment(installed)["spec"]["replicas"] == 1
    installed.upgrade()
    assert deployment(installed)["spec"]["replicas"] == 2


def bring_definitions_up_to_date(installed: Installation) -> None:
    """As the chart's README says."""
    installed.testbed.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(CHART / "crds"))


def test_definitions_are_brought_up_to_date_by_hand(installed: Installation) -> None:
    crd = f"crd/{KINDS[0].crd_name}"
    installed.testbed.kubectl("patch", crd, "--type=json", '-p=[{"op": "remove", "path": "/spec/names/shortNames"}]')
    bring_definitions_up_to_date(installed)
    found = json.loads(installed.testbed.kubectl("get", crd, "--output=json"))
    assert found["spec"]["names"]["shortNames"] == list(KINDS[0].short_names)


def test_a_rollback_keeps_newer_definitions_and_what_users_wrote_by_them(installed: Installation) -> None:
    """With older definitions the next write of a status would drop the field for good, without a warning."""
    policy = yaml.safe_load(EXAMPLE.read_text())
    name = policy["metadata"]["name"]
    schema = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/ofTomorrow"
    newer = json.dumps([{"op": "add", "path": schema, "value": {"type": "string"}}])
    installed.testbed.kubectl("patch", f"crd/{BALANCING_POLICY.plural}.ballast.dev", "--type=json", f"-p={newer}")
    try:
        policy["spec"]["ofTomorrow"] = "kept"
        wait_until(lambda: knows_tomorrow(installed, policy), what="the newer definition is served")
        installed.upgrade("--set=replicas=1")
        installed.rollback()
        status = {"status": {"observedGeneration": 1}}
        assert installed.admin.patch(BALANCING_POLICY, name, status, subresource="status").ok
        installed.upgrade()
        assert installed.admin.read(BALANCING_POLICY, name).body["spec"]["ofTomorrow"] == "kept"
    finally:
        installed.testbed.kubectl("delete", "bpol", name, "--ignore-not-found")
        bring_definitions_up_to_date(installed)


def knows_tomorrow(installed: Installation, policy: dict[str, Any]) -> bool:
    installed.testbed.apply(policy)
    return "ofTomorrow" in installed.admin.read(BALANCING_POLICY, policy["metadata"]["name"]).body["spec"]


def test_two_tools_may_apply_what_the_chart_makes_without_a_conflict(installed: Installation) -> None:
    """Where a field is atomic and the API server fills in a default, even the same manifest would conflict."""
    testbed, release = installed.testbed, "twin"
    rendered = testbed.helm("template", release, str(CHART), f"--namespace={PROBES}", "--no-hooks", *EVERY_OBJECT)
    apply = ("apply", "--server-side", "-f", "-")
    testbed.kubectl(*apply, "--field-manager=one", input_text=rendered)
    try:
        assert testbed.kubectl(*apply, "--field-manager=two", input_text=rendered)
    finally:
        testbed.kubectl("delete", "-f", "-", "--wait=false", input_text=rendered)


EVERY_OBJECT = (
    "--set=networkPolicy.egress.enabled=true",
    "--set=dashboards.enabled=true",
    f"--set=evictionNamespaces={{{PROBES}}}",
)


@pytest.mark.soak
def test_definitions_and_resources_outlive_the_chart(installed: Installation) -> None:
    installed.testbed.apply(EXAMPLE)
    name = yaml.safe_load(EXAMPLE.read_text())["metadata"]["name"]
    installed.uninstall()
    assert installed.admin.read(BALANCING_POLICY, name).ok
    left = json.loads(installed.testbed.kubectl("get", "all,sa,role,rolebinding", f"-n={NAMESPACE}", "-o=json"))[
        "items"
    ]
    ours = [each["metadata"]["name"] for each in left if each["metadata"]["name"].startswith(RELEASE)]
    assert [name for name in ours if not name.startswith(f"{RELEASE}-")] == []
    assert installed.testbed.kubectl(
        "get", "validatingadmissionpolicy,mutatingadmissionpolicy,clusterrole,clusterrolebinding",
        f"--selector=app.kubernetes.io/instance={RELEASE}", "--output=name",
    ) == ""  # fmt: skip
    installed.install()
    assert installed.admin.read(BALANCING_POLICY, name).ok
    installed.testbed.kubectl("delete", "bpol", name)


@pytest.fixture
def as_the_hook(installed: Installation, tmp_path: Path) -> Callable[[], Ended]:
    """What the hook's pod does, with the account of the chart's Job: there is no kubelet to run it."""
    testbed, file = installed.testbed, tmp_path / "kubeconfig"
    server = {"server": testbed.url, "certificate-authority": str(testbed.ca)}
    config = {
        "clusters": [{"name": "here", "cluster": server}],
        "users": [{"name": "hook", "user": {"token": testbed.token(NAMESPACE, f"{RELEASE}-release")}}],
        "contexts": [{"name": "hook", "context": {"cluster": "here", "user": "hook", "namespace": NAMESPACE}}],
        "current-context": "hook",
    }
    file.write_text(yaml.safe_dump(config))
    rendered = testbed.helm("template", RELEASE, str(CHART), f"--namespace={NAMESPACE}", *HOOK)
    (container,) = yaml.safe_load(rendered)["spec"]["template"]["spec"]["containers"]
    return lambda: run(*container["args"], "--kubeconfig", str(file))


HOOK = ("--show-only=templates/uninstall.yaml",)
JOB = f"{RELEASE}-uninstall"


def switch(installed: Installation) -> tuple[bool, str | None]:
    found = installed.admin.read(GATE_SWITCH, RELEASE).body
    return found["spec"]["gating"], found.get("status", {}).get("reason")


@pytest.mark.soak
@pytest.mark.parametrize("how", [(), ("--server-side",)], ids=["client-side", "server-side"])
def test_the_uninstall_job_does_nothing_when_kubectl_applies_it_next_to_a_live_operator(
    installed: Installation, as_the_hook: Callable[[], Ended], how: tuple[str, ...]
) -> None:
    installed.switch(gating=True)
    rendered = installed.testbed.helm("template", RELEASE, str(CHART), f"--namespace={NAMESPACE}", *HOOK)
    installed.testbed.kubectl("apply", *how, "-f", "-", input_text=rendered)
    try:
        ended = as_the_hook()
    finally:
        installed.testbed.kubectl("delete", "job", JOB, f"--namespace={NAMESPACE}")
    assert (ended.code, ended.err) == (0, "")
    assert f"nothing was done: Helm did not create the Job {JOB}" in ended.out
    assert switch(installed) == (True, None)
    installed.remove_switch()


@pytest.mark.soak
def test_the_uninstall_job_turns_the_switch_off_when_helm_runs_it(
    installed: Installation, as_the_hook: Callable[[], Ended]
) -> None:
    installed.switch(gating=True)
    with pytest.raises(TestbedError):  # the Job can't end without a kubelet
        installed.testbed.helm("uninstall", RELEASE, f"--namespace={NAMESPACE}", "--timeout=5s")
    assert deployment(installed)["metadata"].get("deletionTimestamp") is None
    template = {"name": "pod-template-volume", "configMap": {"name": "clicks-podspec"}}
    driver = executor("clicks-driver", role="driver", labels={"spark-app-selector": "clicks"}, volumes=[template])
    assert installed.admin.create(POD, driver, namespace=PROBES).ok
    assert installed.admin.create(POD, executor("waiting", gates=[GATE]), namespace=PROBES).ok
    assert installed.admin.create(EXECUTOR_MOVE, move("open", pod="waiting", approved=True), namespace=PROBES).ok
    ended = as_the_hook()
    assert gates_of(installed.admin.read(POD, "waiting", namespace=PROBES).body) == []
    assert "finalizers" not in installed.admin.read(EXECUTOR_MOVE, "open", namespace=PROBES).body["metadata"]
    for kind, name in ((POD, "waiting"), (EXECUTOR_MOVE, "open")):
        assert installed.admin.delete(kind, name, namespace=PROBES).ok
    assert installed.admin.delete(POD, "clicks-driver", namespace=PROBES).ok
    assert ended.code == 0
    assert "Warning: The executors of these applications have a pod template that you may not read" in ended.err
    assert f"{PROBES}/clicks" in ended.err
    assert switch(installed) == (False, "Uninstalled")
    installed.testbed.kubectl("delete", "job", JOB, f"--namespace={NAMESPACE}")
    installed.uninstall()
    installed.install()


@pytest.mark.soak
def test_an_uninstallation_with_a_set_at_its_gates_and_a_move_under_way_leaves_nothing_gated(
    installed: Installation, as_the_hook: Callable[[], Ended]
) -> None:
    with stage(installed, "taken-away") as on, watched(installed.testbed, on.mine.name) as witness:
        on.ask("asked", on.executor(HOT))
        on.ask("proposed", on.executor(WARM), approved=False)
        on.until(lambda: traveling(on, "asked"), "it leaves")
        waiting = on.mine.executors(2, application="waiting", labels=CLICKS)
        assert any(gates_of(pod) for pod in on.driver.pods()), "the replacement is released already"
        with witness.outage():
            with pytest.raises(TestbedError):  # the Job can't end without a kubelet
                installed.testbed.helm("uninstall", RELEASE, f"--namespace={NAMESPACE}", "--timeout=5s")
            assert as_the_hook().code == 0
        installed.testbed.kubectl("delete", "job", JOB, f"--namespace={NAMESPACE}")
        installed.uninstall()
        assert not any(map(on.mine.gated, waiting))
        on.driver.await_running()
        assert [pod["status"]["phase"] for pod in on.driver.pods()] == ["Running", "Running"]
        for kind, name in ((EXECUTOR_MOVE, "asked"), (EXECUTOR_MOVE, "proposed"), (SPARK_TOPOLOGY, "clicks")):
            assert "finalizers" not in on.mine.read(kind, name)["metadata"]
        assert "finalizers" not in on.mine.read(BALANCING_POLICY)["metadata"]
    installed.install()


@pytest.mark.parametrize(
    ("setting", "complaint"),
    [
        ("replicas=6", "at '/replicas': maximum: got 6, want 5"),
        ("replica=2", "additional properties 'replica' not allowed"),
        ("evictionNamespaces={Team_A}", "at '/evictionNamespaces/0': 'Team_A' does not match pattern"),
        ("staleRelease.schedule=hourly", "at '/staleRelease/schedule': 'hourly' does not match pattern"),
        ("lease.durationSeconds=600", "at '/lease/durationSeconds': maximum: got 600, want 60"),
        ("logging.level=loud", "at '/logging/level': value must be one of 'debug', 'info', 'warning', 'error'"),
        ("image.repository=", "at '/image/repository': minLength: got 0, want 1"),
        ("prometheus.secrets={Not a name}", "at '/prometheus/secrets/0': 'Not a name' does not match pattern"),
        ("metrics.scrapeNamespaces={*}", "at '/metrics/scrapeNamespaces/0': '*' does not match pattern"),
        ("metrics.port=80", "at '/metrics/port': minimum: got 80, want"),
    ],
)
def test_a_wrong_value_is_refused_before_anything_changes(
    installed: Installation, setting: str, complaint: str
) -> None:
    before = deployment(installed)["metadata"]["generation"]
    with pytest.raises(TestbedError) as refused:
        installed.upgrade(f"--set={setting}")
    assert complaint in str(refused.value)
    assert deployment(installed)["metadata"]["generation"] == before
