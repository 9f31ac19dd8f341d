"""The chart installs and the operator places on API servers that behave as older versions of Kubernetes.

API server and scheduler emulate the version (--emulated-version): kinds, fields and features as they were.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.chart.installation import installation
from tests.cluster.controller.pool import ZONE_LABEL, pool, required_labels, zones
from tests.cluster.controller.process import leader_of
from tests.testbed.fixtures import SESSION_SECONDS
from tests.testbed.testbed import Testbed

pytestmark = pytest.mark.cluster


@pytest.mark.parametrize(
    ("version", "gate"),
    [
        ("1.34", False),
        pytest.param("1.35", False, marks=pytest.mark.soak),
        pytest.param("1.36", True, marks=pytest.mark.soak),
    ],
)
def test_a_set_is_placed_in_one_zone(version: str, gate: bool, tmp_path: Path) -> None:
    emulated = [f"--emulated-version={version}"]
    cluster = Testbed(progress=print).up(
        kubelet=False,
        prometheus=False,
        kwok=True,
        node_grace_seconds=SESSION_SECONDS,
        apiserver_arguments=emulated,
        scheduler_arguments=emulated,
    )
    with cluster, installation(cluster, gate=gate) as installed, leader_of(installed, tmp_path):
        kinds = {each["kind"] for each in cluster.api.get("/apis/admissionregistration.k8s.io/v1")["resources"]}
        assert ("MutatingAdmissionPolicy" in kinds) is gate
        with pool(cluster, "versions", zones()) as mine:
            mine.policy()
            placed = mine.executors(3)
            mine.await_released(placed)
            (zone,) = {tuple(required_labels(mine.pod(name))[ZONE_LABEL]) for name in placed}
            assert {node[0] for node in mine.nodes_of(placed)} == set(zone)
            assert all(not mine.gated(name) for name in placed)
