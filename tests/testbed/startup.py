"""Starting the parts of a testbed in the order in which they need each other."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.testbed import kubelet_process
from tests.testbed.binaries import find_binaries, kwok_stages
from tests.testbed.controlplane import SERVICE_ADDRESS, ControlPlane, ControlPlaneSetup
from tests.testbed.golang import Progress
from tests.testbed.instance import Instance
from tests.testbed.kubectl import Kubectl
from tests.testbed.kubelet_process import KubeletSetup
from tests.testbed.kwok import KwokSetup
from tests.testbed.network import Network
from tests.testbed.nodes import NodeSpec, PlacedNode
from tests.testbed.pki import Pki, create_pki
from tests.testbed.process import Running, Supervisor
from tests.testbed.prometheus import PrometheusSetup, ScrapeStyle

MANIFESTS = Path(__file__).parent / "manifests"


@dataclass(frozen=True, slots=True)
class Recipe:
    """The parts of a testbed; see `Testbed.up` for the fields."""

    nodes: Sequence[NodeSpec]
    kubelet: bool
    scheduler: bool
    prometheus: bool
    kwok: bool
    images: Mapping[str, Mapping[str, Any]]
    python_path: Sequence[Path]
    node_grace_seconds: int
    apiserver_arguments: Sequence[str]
    scheduler_arguments: Sequence[str]
    scheduler_profiles: Sequence[Mapping[str, Any]]
    scrape_interval_seconds: float
    scrape_style: ScrapeStyle
    scrape_jobs: Sequence[Mapping[str, Any]]
    kubelet_options: Mapping[str, Any]
    link_megabits: tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class Startup:
    """One start of a recipe. What later processes need to know goes into the manifest's details."""

    supervisor: Supervisor
    recipe: Recipe
    progress: Progress

    @property
    def instance(self) -> Instance:
        return self.supervisor.instance

    @property
    def network(self) -> Network | None:
        megabits = self.recipe.link_megabits
        return Network(self.instance, *megabits) if megabits and self.recipe.kubelet else None

    @property
    def control_address(self) -> str:
        return self.network.control_address if self.network else self.instance.control_address

    def run(self) -> None:
        """Return when everything is ready."""
        binaries = find_binaries(progress=self.progress)
        nodes = self._placed_nodes()
        if self.network:
            self.network.create(nodes)
        pki = self._create_pki(nodes)
        self.progress(f"starting the control plane of testbed {self.instance.id}")
        plane = self._start_control_plane(binaries, pki)
        self._record(binaries, plane, nodes)
        kubelet = self._start_kubelet(binaries, pki, plane, nodes) if self.recipe.kubelet else None
        if self.recipe.kwok:
            self._start_kwok(binaries, plane)
        if self.recipe.prometheus:
            self.progress("starting Prometheus")
            self._start_prometheus(plane, nodes)
        if kubelet:
            self.progress(f"waiting for {len(nodes)} nodes")
            kubelet_process.await_ready(kubelet)

    def _placed_nodes(self) -> list[PlacedNode]:
        specs = self.recipe.nodes if self.recipe.kubelet else []
        if self.network:
            return self.network.place(specs)
        return [
            PlacedNode(spec, self.instance.node_address(index), self.instance.pod_network(index))
            for index, spec in enumerate(specs)
        ]

    def _create_pki(self, nodes: Sequence[PlacedNode]) -> Pki:
        return create_pki(
            self.instance.folder / "pki",
            control_hosts=[self.control_address, SERVICE_ADDRESS],
            node_hosts=[host for node in nodes for host in (node.address, node.spec.name)],
        )

    def _start_control_plane(self, binaries: Mapping[str, Path], pki: Pki) -> ControlPlane:
        return ControlPlaneSetup(
            supervisor=self.supervisor,
            binaries=binaries,
            pki=pki,
            address=self.control_address,
            scheduler=self.recipe.scheduler,
            node_grace_seconds=self.recipe.node_grace_seconds,
            apiserver_arguments=self.recipe.apiserver_arguments,
            scheduler_arguments=self.recipe.scheduler_arguments,
            scheduler_profiles=self.recipe.scheduler_profiles,
        ).start()

    def _record(self, binaries: Mapping[str, Path], plane: ControlPlane, nodes: Sequence[PlacedNode]) -> None:
        self.instance.manifest.record_details(
            {
                "url": plane.url,
                "binaries": {name: str(path) for name, path in binaries.items()},
                "nodes": [{"name": node.spec.name, "address": node.address, "netns": node.netns} for node in nodes],
            }
        )

    def _start_kubelet(
        self, binaries: Mapping[str, Path], pki: Pki, plane: ControlPlane, nodes: Sequence[PlacedNode]
    ) -> Running:
        kubectl = Kubectl(binaries["kubectl"], plane.admin_kubeconfig, self.instance.folder / "kubectl-cache")
        kubectl.apply((MANIFESTS / "kubelet.yaml").read_text())
        return KubeletSetup(
            supervisor=self.supervisor,
            plane=plane,
            pki=pki,
            nodes=nodes,
            images=self.recipe.images,
            python_path=self.recipe.python_path,
            options=self.recipe.kubelet_options,
        ).start()

    def _start_kwok(self, binaries: Mapping[str, Path], plane: ControlPlane) -> None:
        stages = kwok_stages(progress=self.progress)
        KwokSetup(self.supervisor, binaries["kwok"], stages, plane.admin_kubeconfig).start()

    def _start_prometheus(self, plane: ControlPlane, nodes: Sequence[PlacedNode]) -> None:
        setup = PrometheusSetup(
            supervisor=self.supervisor,
            address=self.control_address,
            nodes=nodes,
            scrape_interval_seconds=self.recipe.scrape_interval_seconds,
            style=self.recipe.scrape_style,
            extra_jobs=self.recipe.scrape_jobs,
        )
        self.instance.manifest.record_details({"prometheusUrl": setup.start()})
        self._start_pod_discovery(plane)

    def _start_pod_discovery(self, plane: ControlPlane) -> None:
        admin = plane.api.client
        options = {
            "url": plane.url,
            "ca": plane.api.ca,
            "certificate": admin.certificate,
            "key": admin.key,
            "folder": self.instance.folder / "prometheus",
        }
        self.supervisor.start_module(
            "pod-discovery",
            "tests.testbed.pod_discovery",
            *(f"--{name}={value}" for name, value in options.items()),
        )
