"""What the nodes of a testbed are, and how the process kubelet is told."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ZONE_LABEL = "topology.kubernetes.io/zone"
RACK_LABEL = "topology.ballast.dev/rack"
HOSTNAME_LABEL = "kubernetes.io/hostname"
KUBELET_PORT = 10250
METRICS_PORT = 9100

IMAGES: Mapping[str, Mapping[str, Any]] = {
    "spark*": {"kind": "spark"},
    "apache/spark*": {"kind": "spark"},
    "busybox*": {"kind": "host"},
    "ballast*": {"kind": "command", "command": [str(Path(sys.prefix) / "bin" / "ballast")]},
}
"""What a pod's image runs. Ballast's own is the console script of this environment."""


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """A node: its place, what it offers to the scheduler, and how fast it really is.

    `cpu`, `memory` and `pods` are Kubernetes quantities. `cpu_quota_cores` limits all pods of the node
    together; None leaves them the whole machine.
    """

    name: str
    zone: str = "zone-a"
    rack: str = "rack-a1"
    cpu: str = "1"
    memory: str = "4Gi"
    pods: str = "30"
    cpu_quota_cores: float | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: Sequence[Mapping[str, str]] = ()

    @property
    def all_labels(self) -> dict[str, str]:
        """Labels of its own win over those that follow from its place."""
        place = {HOSTNAME_LABEL: self.name, ZONE_LABEL: self.zone, RACK_LABEL: self.rack}
        return {**place, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", **self.labels}

    @property
    def capacity(self) -> dict[str, str]:
        return {"cpu": self.cpu, "memory": self.memory, "pods": self.pods}


@dataclass(frozen=True, slots=True)
class PlacedNode:
    """A node with the addresses it got on this machine."""

    spec: NodeSpec
    address: str
    pod_network: str
    netns: str | None = None
    network_interface: str | None = None

    def to_config(self) -> dict[str, Any]:
        """Its entry in the kubelet's configuration."""
        return {
            "name": self.spec.name,
            "address": self.address,
            "podCidr": self.pod_network,
            "port": KUBELET_PORT,
            "metricsPort": METRICS_PORT,
            "labels": self.spec.all_labels,
            "taints": [dict(taint) for taint in self.spec.taints],
            "capacity": self.spec.capacity,
            "cpuQuotaCores": self.spec.cpu_quota_cores,
            "netns": self.netns,
            "networkInterface": self.network_interface,
        }


def six_nodes() -> list[NodeSpec]:
    """Two zones, three racks in each, a node in every rack."""
    return [
        NodeSpec(name=f"node-{zone}{rack}", zone=f"zone-{zone}", rack=f"rack-{zone}{rack}")
        for zone in "ab"
        for rack in (1, 2, 3)
    ]
