"""No executor stays gated where a policy of the cluster acts on updates of pods: its namespace leaves the gate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ballast.kube.kinds import BALANCING_POLICY, GATE_SWITCH, POD, Kind
from tests.cluster.chart.installation import RELEASE, Installation
from tests.cluster.controller.pool import Pool, pool, required_labels, zones
from tests.cluster.controller.process import leader_of, release, replica
from tests.testbed.waiting import wait_until

pytestmark = pytest.mark.cluster

JSON = dict[str, Any]
GROUP = "admissionregistration.k8s.io"
DENY: JSON = {"validations": [{"expression": "false", "message": "pods are not updated here"}]}
NO_AFFINITY = "!has(object.spec.affinity) && object.metadata.?labels['probe'].orValue('') != 'true'"
"""It refuses the label of the probe, too, by which the test sees that the policy is at work."""
FIELD = "Object{spec: Object.spec{subdomain: 'seen'}}"
ANNOTATION = "Object{metadata: Object.metadata{annotations: {'example.com/seen': 'yes'}}}"


def mutation(expression: str) -> JSON:
    patch = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}
    return {"mutations": [patch], "reinvocationPolicy": "Never"}


@contextmanager
def acting_on_updates(installed: Installation, mine: Pool, policy: Mapping[str, Any]) -> Iterator[None]:
    """An admission policy of the test's namespace, from when it is at work."""
    prefix = "Mutating" if "mutations" in policy else "Validating"
    kinds = [
        Kind(f"{GROUP}/v1", f"{prefix}AdmissionPolicy{tail}", f"{prefix.lower()}admission{plural}", False)
        for tail, plural in (("", "policies"), ("Binding", "policybindings"))
    ]
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["pods"]}
    chosen = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": mine.name}}, "resourceRules": [rule]}
    specs: list[JSON] = [
        {"failurePolicy": "Fail", "matchConstraints": chosen, **policy},
        {"policyName": mine.name, **({} if "mutations" in policy else {"validationActions": ["Deny"]})},
    ]
    probe = mine.executor(99, application="probe", role="probe", gates=[{"name": "example.com/probe"}])
    try:
        for kind, spec in zip(kinds, specs, strict=True):
            body = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": mine.name}, "spec": spec}
            mine.admin.create(kind, body)
        wait_until(lambda: _acts_on(installed, mine, probe["metadata"]["name"]), what="the policy is at work")
        yield
    finally:
        for kind in kinds:
            mine.admin.delete(kind, mine.name)
        mine.delete(POD, probe["metadata"]["name"])


def _acts_on(installed: Installation, mine: Pool, probe: str) -> bool:
    """Whether an update is refused, or has more in it than was asked for."""
    asked = {"metadata": {"labels": {"probe": "true"}}}
    answer = installed.admin.patch(POD, probe, asked, namespace=mine.name, dry=True)
    if not answer.ok:
        return True
    before = mine.pod(probe)
    return bool(answer.body["spec"] != before["spec"] or answer.body["metadata"].get("annotations"))


@pytest.mark.parametrize(
    ("name", "policy", "quoted"),
    [
        ("denied", DENY, "pods are not updated here"),
        ("field", mutation(FIELD), "pod updates may not change fields"),
        ("annotated", mutation(ANNOTATION), "Ballast changes no metadata of a pod"),
    ],
)
def test_executors_whose_release_is_refused_are_replaced_by_ones_that_nothing_gates(
    installed: Installation, tmp_path: Path, name: str, policy: JSON, quoted: str
) -> None:
    space = f"refused-{name}"
    with (
        pool(installed.testbed, space, zones()) as mine,
        leader_of(installed, tmp_path, refused_in=space) as leader,
    ):
        mine.policy()
        mine.await_gating()
        with acting_on_updates(installed, mine, policy):
            stuck = mine.executors(2, gates=())
            assert all(mine.gated(each) for each in stuck)
            wait_until(
                lambda: leader.metric(f'ballast_gated_executors{{policy="{mine.name}"}}') == len(stuck),
                what="the executors are counted as gated",
            )
            await_deleted(mine, stuck)
            # As Spark's driver does, again and again, and each runs.
            for number in (10, 20):
                others = mine.executors(2, first=number, gates=())
                assert not any(mine.gated(each) for each in others)
                assert mine.nodes_of(others).total() == 2
            found = wait_until(lambda: refused(mine), what="the policy's condition")
            assert quoted in found["message"], found
            assert mine.name in [each["namespace"] for each in switch(mine)["status"]["refusals"]]


@pytest.mark.soak
def test_executors_whose_affinity_alone_is_refused_are_released_as_they_are(
    installed: Installation, tmp_path: Path
) -> None:
    """As GKE Autopilot refuses node affinity to host names: the namespace stays gated, since releases succeed."""
    with (
        pool(installed.testbed, "refused-affinity", zones()) as mine,
        leader_of(installed, tmp_path, refused_in="refused-affinity"),
    ):
        mine.policy()
        mine.await_gating()
        with acting_on_updates(
            installed, mine, {"validations": [{"expression": NO_AFFINITY, "message": "no affinity"}]}
        ):
            pods = mine.executors(2, gates=())
            assert mine.nodes_of(pods).total() == 2
            assert all(required_labels(mine.pod(name)) == {} for name in pods)
            found = wait_until(
                lambda: mine.condition(BALANCING_POLICY, "ExecutorsPlaced"), what="the policy's condition"
            )
            assert found["reason"] == "ReleasedAsIs", found
            assert "AffinityRefused" in found["message"], found
            assert mine.gated(mine.executors(1, first=3)[0])


def test_without_an_operator_the_job_of_the_chart_does_the_same(installed: Installation, tmp_path: Path) -> None:
    plane = installed.testbed
    with pool(plane, "refused-job", zones()) as mine, replica(plane, "killed", tmp_path) as last:
        mine.policy()
        mine.await_gating()
        with acting_on_updates(installed, mine, DENY):
            stuck = mine.executors(2, gates=())
            last.kill()
            assert all(mine.gated(each) for each in stuck)
            said = "deleted 2 whose release is refused"
            wait_until(lambda: said in release(plane, "--stale"), what="the lease goes stale", timeout_seconds=120)
        await_deleted(mine, stuck)


def await_deleted(mine: Pool, pods: Sequence[str]) -> None:
    wait_until(
        lambda: not {pod["metadata"]["name"] for pod in mine.pods()} & set(pods),
        what="the executors are deleted",
        timeout_seconds=120.0,
    )


def refused(mine: Pool) -> JSON | None:
    found = mine.condition(BALANCING_POLICY, "Gating")
    return found if found is not None and found["reason"] == "ReleaseRefused" else None


def switch(mine: Pool) -> JSON:
    return mine.read(GATE_SWITCH, RELEASE)
