"""A namespace of the real API server, with pods and nodes that nobody runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ballast.kube.actions import Release
from ballast.kube.client import Client, Limits
from ballast.kube.connection import Connection
from ballast.kube.kinds import DISRUPTION_BUDGET, NODE, POD, Kind
from ballast.kube.names import GATE
from ballast.kube.pods import Pod, PodReader, held
from ballast.model import Location, Pin, Placement
from tests.testbed.testbed import Testbed
from tests.testbed.waiting import wait_until

JSON = dict[str, Any]

OUR_GATE = {"name": GATE}
TAINT = "ballast.test/nodes"
SERVED = Kind("v1", "ConfigMap", "configmaps")


@dataclass(frozen=True, slots=True)
class Cluster:
    testbed: Testbed
    client: Client
    namespace: str

    @classmethod
    def open(cls, testbed: Testbed, namespace: str) -> Cluster:
        testbed.create_namespace(namespace)
        return cls(testbed, Client(Connection.from_kubeconfig(testbed.kubeconfig)), namespace)

    def executor(self, name: str, *, gates: list[JSON] | None = None, **spec: Any) -> JSON:
        """A gated executor, created, that may run on this namespace's nodes alone; `spec` adds to the pod's."""
        labels = {"spark-role": "executor", "spark-app-selector": "spark-1", "spark-exec-id": "1", "set": "one"}
        body: JSON = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "labels": labels},
            "spec": {
                "containers": [{"name": "spark-kubernetes-executor", "image": "spark"}],
                "schedulingGates": [OUR_GATE] if gates is None else gates,
                "terminationGracePeriodSeconds": 0,
                "tolerations": [self._taint],
                **spec,
            },
        }
        return self.testbed.api.post(POD.path(namespace=self.namespace), body)

    def running(self, name: str, node: str) -> JSON:
        """An executor that a kubelet would call running and ready."""
        self.executor(name, gates=[], nodeName=node)
        conditions = [{"type": "Ready", "status": "True"}, {"type": "PodScheduled", "status": "True"}]
        status = {"phase": "Running", "conditions": conditions}
        return self.client.patch(POD, name, {"status": status}, namespace=self.namespace, subresource="status")

    def node(self, name: str, **labels: str) -> JSON:
        """A ready node, with room for a hundred executors and for no pods of other tests, such as the chart's."""
        body = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}},
            "spec": {"taints": [self._taint]},
        }
        self.client.create(NODE, body)
        room = {"cpu": "64", "memory": "256Gi", "pods": "100"}
        status = {"capacity": room, "allocatable": room, "conditions": [{"type": "Ready", "status": "True"}]}
        return self.client.patch(NODE, name, {"status": status}, subresource="status")

    @property
    def _taint(self) -> JSON:
        return {"key": TAINT, "value": self.namespace, "effect": "NoSchedule"}

    def takes_pods(self, node: str) -> bool:
        """Until its condition Ready has been seen, every node has another taint."""
        return bool(self.client.get(NODE, node)["spec"]["taints"] == [self._taint])

    def budget(self, name: str, *, min_available: int) -> JSON:
        spec = {"minAvailable": min_available, "selector": {"matchLabels": {"set": "one"}}}
        body = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name}, "spec": spec}
        self.client.create(DISRUPTION_BUDGET, body, namespace=self.namespace)
        return wait_until(lambda: self._counted(name), what=f"pods are counted for the budget {name}")

    def _counted(self, name: str) -> JSON:
        """The budget, once its controller has counted pods; empty before that."""
        budget = self.client.get(DISRUPTION_BUDGET, name, namespace=self.namespace)
        return budget if (budget.get("status") or {}).get("currentHealthy") else {}

    def read(self, name: str) -> JSON:
        return self.client.get(POD, name, namespace=self.namespace)

    def pod(self, name: str) -> Pod:
        return PodReader().read(self.read(name))

    def patch(self, name: str, patch: Any) -> JSON:
        return self.client.patch(POD, name, patch, namespace=self.namespace)

    def delete(self, name: str) -> None:
        self.client.delete(POD, name, namespace=self.namespace)

    def bound(self, name: str) -> str:
        """The node that the scheduler binds the pod to."""
        return str(wait_until(lambda: self.read(name)["spec"].get("nodeName"), what=f"{name} is bound"))

    @staticmethod
    def order(
        pod: JSON, pin: Pin = Pin.ZONE, *, node: str | None = "n1", location: Location = ("a", None, "n1")
    ) -> Release:
        kept = held(pod)
        assert kept is not None
        metadata = pod["metadata"]
        placement = Placement(f"{metadata['namespace']}/{metadata['name']}", metadata["uid"], node, location, pin)
        return Release(metadata["namespace"], metadata["name"], metadata["uid"], kept, placement)


def client_with_token(testbed: Testbed, folder: Path, *, namespace: str, account: str = "default") -> Client:
    """A client inside a pod, as it were: with that ServiceAccount's token and no rights but its own."""
    (folder / "token").write_text(testbed.token(namespace, account))
    (folder / "ca.crt").write_bytes(testbed.ca.read_bytes())
    (folder / "namespace").write_text(namespace)
    host, _, port = testbed.url.removeprefix("https://").rpartition(":")
    environ = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
    return Client(Connection.from_pod(environ, service_account=folder), Limits(connections=4))
