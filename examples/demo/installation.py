"""Ballast, installed as users install it: the real helm, the chart, and its Deployment's pods on a node."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

from tests.testbed.errors import TestbedError
from tests.testbed.testbed import Testbed
from tests.testbed.waiting import wait_until

CHART = Path(__file__).parents[2] / "charts" / "ballast"
RELEASE = "ballast"
NAMESPACE = "ballast-system"
METRICS_PORT = 9464
_ROLLOUT_SECONDS = 180
_GATING_SECONDS = 60.0


def install(
    testbed: Testbed, *, node_selector: Mapping[str, str], tolerations: Sequence[Mapping[str, str]] = ()
) -> None:
    """Install the chart, and return when the operator's replicas are ready.

    Its namespace lets only restricted pods in; its pods are scraped by the testbed's Prometheus.
    """
    testbed.create_namespace(NAMESPACE, labels={"pod-security.kubernetes.io/enforce": "restricted"})
    scrape = {"prometheus.io/scrape": "true", "prometheus.io/port": str(METRICS_PORT)}
    values = {
        "nodeSelector": dict(node_selector),
        "tolerations": [dict(each) for each in tolerations],
        "podAnnotations": scrape,
        "logging": {"format": "text"},
    }
    _values(testbed).write_text(yaml.safe_dump(values))
    upgrade(testbed)


def upgrade(testbed: Testbed) -> None:
    """Bring back whatever of the installation is missing, with the values that it was installed with."""
    where, waiting = f"--namespace={NAMESPACE}", ("--wait", f"--timeout={_ROLLOUT_SECONDS}s")
    testbed.helm("upgrade", "--install", RELEASE, str(CHART), where, f"--values={_values(testbed)}", *waiting)


def _values(testbed: Testbed) -> Path:
    return testbed.instance.folder / "ballast-values.yaml"


def await_gating(testbed: Testbed, namespace: str, *, labels: Mapping[str, str]) -> None:
    """Return when an executor with these labels would be held for placement."""
    path = f"/api/v1/namespaces/{namespace}/pods?dryRun=All"
    probe = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"generateName": "probe-", "labels": {"spark-role": "executor", **labels}},
        "spec": {"containers": [{"name": "executor", "image": "pause"}]},
    }

    def gated() -> bool:
        try:
            return bool(testbed.api.post(path, probe)["spec"].get("schedulingGates"))
        except TestbedError:
            return False

    wait_until(gated, what=f"executors in {namespace} are held for placement", timeout_seconds=_GATING_SECONDS)


def keep_logs(testbed: Testbed, folder: Path) -> None:
    """Copy the logs of the testbed's parts, and below `pods` those of all containers, in place of earlier ones."""
    testbed.keep_logs(folder)
    pods = testbed.instance.folder / "kubelet" / "logs"
    if pods.exists():
        shutil.copytree(pods, folder / "pods", dirs_exist_ok=True)
