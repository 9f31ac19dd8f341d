"""Starting the process kubelet: its configuration, and waiting until all nodes are Ready."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.testbed.controlplane import ControlPlane
from tests.testbed.nodes import PlacedNode
from tests.testbed.pki import Pki
from tests.testbed.process import Running, Supervisor
from tests.testbed.teardown import KUBELET

READY_TIMEOUT_SECONDS = 60.0
READY_LINE = "ready"


@dataclass(frozen=True, slots=True)
class KubeletSetup:
    """What the kubelet is told."""

    supervisor: Supervisor
    plane: ControlPlane
    pki: Pki
    nodes: Sequence[PlacedNode]
    images: Mapping[str, Mapping[str, Any]]
    python_path: Sequence[Path]
    options: Mapping[str, Any]

    def start(self) -> Running:
        """The kubelet, not yet ready."""
        folder = self.supervisor.instance.folder
        (folder / "kubelet").mkdir(mode=0o755, exist_ok=True)
        config = folder / "kubelet.json"
        config.write_text(json.dumps(self.config(), indent=2))
        return self.supervisor.start_module(KUBELET, "tests.testbed.kubelet", f"--config={config}")

    def config(self) -> dict[str, Any]:
        instance = self.supervisor.instance
        server = urlsplit(self.plane.url)
        ca = str(self.pki.cluster_ca.files.certificate)
        return {
            "kubeconfig": str(self.plane.kubelet_kubeconfig),
            "instance": instance.id,
            "stateDir": str(instance.folder / "kubelet"),
            "cgroupPrefix": instance.cgroup_prefix,
            "pythonPath": [str(path) for path in self.python_path],
            "clientCaFile": str(self.pki.kubelet_client_ca.files.certificate),
            "servingCert": str(self.pki.kubelet_serving.certificate),
            "servingKey": str(self.pki.kubelet_serving.key),
            "apiServer": {"host": server.hostname, "port": server.port, "caFile": ca},
            "images": {name: dict(kind) for name, kind in self.images.items()},
            "nodes": [node.to_config() for node in self.nodes],
            **self.options,
        }


def await_ready(kubelet: Running) -> None:
    """Until it has said that all its nodes are registered and Ready."""
    kubelet.wait_for(
        lambda: READY_LINE in kubelet.part.log.read_text().splitlines(),
        what="all nodes Ready",
        timeout_seconds=READY_TIMEOUT_SECONDS,
    )
