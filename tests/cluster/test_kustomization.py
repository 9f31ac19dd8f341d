"""The kustomization at the top of the repository, applied by the real kubectl instead of helm."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ballast.kube.kinds import BALANCING_POLICY
from tests.charts.kustomization import FILE, ROOT
from tests.cluster.chart.installation import NAMESPACE, Installation
from tests.cluster.controller.pool import pool, required_labels, zones
from tests.cluster.controller.process import leader_of, switch
from tests.testbed.waiting import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.soak]


@pytest.fixture
def without_helm(installed: Installation) -> Iterator[Installation]:
    """Nothing of the chart but its definitions, and afterwards the chart again."""
    installed.uninstall()
    try:
        yield installed
    finally:
        installed.testbed.kubectl("delete", "--ignore-not-found", f"--filename={FILE}")
        installed.install()


def apply(installed: Installation) -> str:
    return installed.testbed.kubectl("apply", "--server-side", "--kustomize", str(ROOT))


def drift(installed: Installation) -> str:
    """What applying it would change."""
    kubectl = installed.testbed.kubectl_as(installed.testbed.kubeconfig)
    done = kubectl.run("diff", "--server-side", "--kustomize", str(ROOT), check=False)
    return done.stdout + done.stderr


def test_applied_again_next_to_a_live_operator_it_changes_nothing_and_nothing_acts(
    without_helm: Installation, tmp_path: Path
) -> None:
    apply(without_helm)
    without_helm.await_definitions()
    without_helm.await_policies()
    with pool(without_helm.testbed, "by-kubectl", zones()) as mine, leader_of(without_helm, tmp_path):
        mine.policy(interval="1s")
        mine.topology("clicks", {"name": "ingest", "executors": 2})
        wait_until(lambda: switch(without_helm)["gating"], what="the operator gates executors")
        asked = mine.executors(2, labels={"ballast.dev/topology": "clicks"})
        mine.await_released(asked)
        apply(without_helm)
        assert drift(without_helm) == ""
        assert "uninstall" not in without_helm.testbed.kubectl(
            "get", "jobs", f"--namespace={NAMESPACE}", "--output=name"
        )
        more = mine.executors(2, first=3, labels={"ballast.dev/topology": "clicks"})
        mine.await_released(more)
        assert all(required_labels(mine.pod(name)) for name in asked + more)
        assert switch(without_helm)["gating"]
        assert mine.read(BALANCING_POLICY)["status"]["observedGeneration"] == 1
