"""Nodes and pods that exist in the API alone, by the thousand: kwok plays their kubelets."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.testbed.apiserver import ApiServer
from tests.testbed.nodes import NodeSpec
from tests.testbed.process import Supervisor
from tests.testbed.waiting import wait_until

MANAGED = {"kwok.x-k8s.io/node": "fake"}
POD_NETWORK = "10.128.0.0/9"
LEASE_SECONDS = 40
READY_TIMEOUT_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class KwokSetup:
    """What it takes to start kwok; it manages the nodes of `fake_node` and no others."""

    supervisor: Supervisor
    binary: Path
    stages: Path
    kubeconfig: Path

    def start(self) -> None:
        selector = ",".join(f"{name}={value}" for name, value in MANAGED.items())
        self.supervisor.start(
            "kwok",
            [
                self.binary,
                f"--kubeconfig={self.kubeconfig}",
                f"--config={self.stages}",
                f"--manage-nodes-with-annotation-selector={selector}",
                f"--node-lease-duration-seconds={LEASE_SECONDS}",
                f"--cidr={POD_NETWORK}",
            ],
        )


def fake_node(spec: NodeSpec) -> dict[str, Any]:
    """The Node object; kwok makes it Ready."""
    metadata = {"name": spec.name, "labels": spec.all_labels, "annotations": MANAGED}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": metadata,
        "spec": {"taints": [dict(taint) for taint in spec.taints]},
        "status": {"capacity": spec.capacity, "allocatable": spec.capacity},
    }


def add_fake_nodes(api: ApiServer, specs: Sequence[NodeSpec]) -> None:
    """Create the nodes and wait until kwok has made all of them Ready."""
    api.post_all("/api/v1/nodes", [fake_node(spec) for spec in specs])
    names = {spec.name for spec in specs}
    wait_until(
        lambda: names <= ready_nodes(api),
        what=f"{len(names)} fake nodes Ready",
        timeout_seconds=READY_TIMEOUT_SECONDS,
        poll_seconds=0.5,
    )


def ready_nodes(api: ApiServer) -> set[str]:
    """The names of all nodes whose condition Ready is True and that carry no taint for being unready."""
    return {node["metadata"]["name"] for node in api.get("/api/v1/nodes")["items"] if _is_ready(node)}


def _is_ready(node: dict[str, Any]) -> bool:
    conditions = {each["type"]: each["status"] for each in node["status"].get("conditions", [])}
    taints = {taint["key"] for taint in node["spec"].get("taints", [])}
    return conditions.get("Ready") == "True" and "node.kubernetes.io/not-ready" not in taints
