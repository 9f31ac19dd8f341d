"""What mutating webhooks do to executors at their creation is seen, and said (the real API server, and a webhook)."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from ballast.kube import names
from ballast.kube.kinds import BALANCING_POLICY, NAMESPACE
from tests.cluster.chart.installation import Installation
from tests.cluster.controller.pool import Pool, gates_of, pool, zones
from tests.cluster.controller.process import leader_of
from tests.faults.webhook import mutating
from tests.testbed.waiting import wait_until

pytestmark = pytest.mark.cluster

STRIPS = [{"op": "remove", "path": "/spec/schedulingGates"}]
"""As a webhook does that knows pods of an older Kubernetes (piraeus-operator#1025)."""
OPTS_IN = [{"op": "add", "path": "/metadata/labels/ballast.dev~1topology", "value": "clicks"}]
"""As Kyverno and spark-operator label pods: after the gate's policy was asked."""


def test_executors_that_a_webhook_keeps_from_the_gate_run_and_the_policy_says_so(
    installed: Installation, tmp_path: Path
) -> None:
    strips, labels = tmp_path / "strips", tmp_path / "labels"
    for folder in (strips, labels):
        folder.mkdir()
    with (
        pool(installed.testbed, "stripped", zones()) as stripped,
        pool(installed.testbed, "labeled-late", zones()) as late,
        leader_of(installed, tmp_path),
    ):
        late.admin.patch(NAMESPACE, late.name, {"metadata": {"labels": {names.GATE_CHOICE: None}}})
        stripped.policy()
        late.policy()
        stripped.await_gating()
        with (
            mutating(stripped, strips, STRIPS),
            mutating(late, labels, OPTS_IN),
        ):
            for mine in (stripped, late):
                # The operator judges those that come once the switch surely gates.
                told = wait_until(_one_more(mine), what="the condition", timeout_seconds=60.0, poll_seconds=2.0)
                assert "a mutating webhook drops gates, or adds the label that opts in after the gate's policy" in told
                assert not any(names.GATE in gates_of(pod) for pod in mine.pods())
                assert mine.nodes_of([pod["metadata"]["name"] for pod in mine.pods()]).total() > 0


def _one_more(mine: Pool) -> Callable[[], str | None]:
    """Creates an executor, and returns what the policy says of those that came without the gate."""
    numbers = count(1)

    def told() -> str | None:
        mine.executor(next(numbers), gates=(), cpu="50m")
        found = mine.condition(BALANCING_POLICY, "ExecutorsPlaced")
        return found["message"] if found is not None and found["reason"] == "GateMissing" else None

    return told
