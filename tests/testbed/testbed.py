"""A whole cluster on one machine, and the hands to use it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import yaml

from tests.testbed import instance as instances
from tests.testbed import kubeconfig, kubelet_process
from tests.testbed.apiserver import ApiServer
from tests.testbed.binaries import find_binaries, silent
from tests.testbed.controlplane import ControlPlane, ControlPlaneSetup
from tests.testbed.errors import TestbedError
from tests.testbed.golang import Progress
from tests.testbed.instance import Instance
from tests.testbed.kubectl import Kubectl
from tests.testbed.nodes import IMAGES, NodeSpec, PlacedNode, six_nodes
from tests.testbed.pki import KeyPair, Pki, create_pki
from tests.testbed.process import Supervisor
from tests.testbed.teardown import tear_down, tear_down_abandoned

MANIFESTS = Path(__file__).parent / "manifests"
TOKEN_SECONDS = 6 * 3600


@dataclass(slots=True)
class Testbed:
    """`with Testbed().up(...) as testbed:` starts a cluster and ends it wholly.

    All parts run as processes of this machine; `down` may be called at any time and twice.
    """

    __test__ = False

    root: Path = field(default_factory=instances.default_root)
    progress: Progress = silent
    _supervisor: Supervisor | None = None

    def up(
        self,
        *,
        nodes: Sequence[NodeSpec] | None = None,
        kubelet: bool = True,
        scheduler: bool = True,
        images: Mapping[str, Mapping[str, Any]] = IMAGES,
        python_path: Sequence[Path] = (),
        node_grace_seconds: int = 50,
        apiserver_arguments: Sequence[str] = (),
    ) -> Self:
        """Start everything and return when it is ready; on failure, end what was started and raise.

        Without `nodes` there are six in two zones; without `kubelet` there are none.
        """
        binaries = find_binaries(progress=self.progress)
        tear_down_abandoned(self.root)
        self._supervisor = supervisor = Supervisor(instances.reserve(self.root))
        try:
            placed = _place(supervisor.instance, nodes or six_nodes()) if kubelet else []
            pki = _pki(supervisor.instance, placed)
            plane = ControlPlaneSetup(
                supervisor=supervisor,
                binaries=binaries,
                pki=pki,
                address=supervisor.instance.control_address,
                scheduler=scheduler,
                node_grace_seconds=node_grace_seconds,
                apiserver_arguments=apiserver_arguments,
            ).start()
            self._record(binaries, plane, placed)
            if kubelet:
                self._start_kubelet(pki, plane, placed, images=images, python_path=python_path)
        except BaseException:
            self.down()
            raise
        return self

    def down(self) -> None:
        """Leave no process, cgroup, mount, network namespace or file."""
        if self._supervisor:
            supervisor, self._supervisor = self._supervisor, None
            tear_down(supervisor.instance)
            supervisor.reap()

    def detach(self) -> None:
        """Leave it running when this process ends; `attach` and `down` find it by its id."""
        self.instance.manifest.record_detached()

    @classmethod
    def attach(cls, testbed_id: str | None = None, *, root: Path | None = None) -> Self:
        """The running testbed with that id, or the only one there is."""
        root = root or instances.default_root()
        found = [one for one in instances.existing(root) if testbed_id in (None, one.id)]
        if len(found) != 1:
            ids = ", ".join(one.id for one in instances.existing(root)) or "none"
            raise TestbedError(f"no single testbed matches {testbed_id or 'any'}: running are {ids}")
        return cls(root=root, _supervisor=Supervisor(found[0]))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.down()

    @property
    def instance(self) -> Instance:
        if self._supervisor is None:
            raise TestbedError("this testbed is not up: call up() first")
        return self._supervisor.instance

    @property
    def url(self) -> str:
        """The API server's."""
        return str(self._detail("url"))

    @property
    def ca(self) -> Path:
        """The authority of the API server's certificate."""
        return self.instance.folder / "pki" / "ca.crt"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's."""
        return self.instance.folder / "admin.kubeconfig"

    @property
    def node_names(self) -> list[str]:
        return [str(node["name"]) for node in self._detail("nodes")]

    @property
    def node_addresses(self) -> dict[str, str]:
        return {str(node["name"]): str(node["address"]) for node in self._detail("nodes")}

    @property
    def api(self) -> ApiServer:
        """The API server as the administrator."""
        folder = self.instance.folder / "pki"
        return ApiServer(self.url, self.ca, KeyPair(folder / "admin.crt", folder / "admin.key"))

    def binary(self, name: str) -> Path:
        """The path of kubectl, helm and the others that this testbed uses."""
        return Path(self._detail("binaries")[name])

    def kubectl(self, *arguments: str, input_text: str | None = None) -> str:
        """The output of kubectl as the administrator; TestbedError when it fails."""
        return self.kubectl_as(self.kubeconfig).run(*arguments, input_text=input_text).stdout

    def kubectl_as(self, config: Path) -> Kubectl:
        """kubectl as whoever `config` is."""
        return Kubectl(self.binary("kubectl"), config, self.instance.folder / "kubectl-cache")

    def apply(self, *manifests: str | Path | Mapping[str, Any]) -> None:
        """Server-side apply of YAML texts, files and objects, as the administrator."""
        text = "\n---\n".join(_manifest_text(manifest) for manifest in manifests)
        self.kubectl_as(self.kubeconfig).apply(text)

    def create_namespace(self, name: str, *, labels: Mapping[str, str] | None = None) -> str:
        """`name`, once the namespace and its default ServiceAccount are there."""
        metadata = {"name": name, "labels": dict(labels or {})}
        self.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        self.kubectl("wait", "--for=create", "serviceaccount/default", f"--namespace={name}", "--timeout=30s")
        return name

    def token(
        self,
        namespace: str,
        service_account: str,
        *,
        audiences: Iterable[str] = (),
        seconds: int = TOKEN_SECONDS,
    ) -> str:
        """A fresh token of the ServiceAccount, from the API server's TokenRequest."""
        spec = {"expirationSeconds": seconds, "audiences": list(audiences)}
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{service_account}/token"
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        return str(self.api.post(path, request)["status"]["token"])

    def service_account_kubeconfig(self, namespace: str, name: str) -> Path:
        """A kubeconfig with a fresh token of the ServiceAccount: exactly its rights, no more."""
        text = kubeconfig.by_token(server=self.url, ca=self.ca, token=self.token(namespace, name), namespace=namespace)
        return kubeconfig.write_private(self.instance.folder / f"{namespace}-{name}.kubeconfig", text)

    def _record(self, binaries: Mapping[str, Path], plane: ControlPlane, placed: Sequence[PlacedNode]) -> None:
        nodes = [{"name": node.spec.name, "address": node.address} for node in placed]
        paths = {name: str(path) for name, path in binaries.items()}
        self.instance.manifest.record_details({"url": plane.url, "binaries": paths, "nodes": nodes})

    def _start_kubelet(
        self,
        pki: Pki,
        plane: ControlPlane,
        placed: Sequence[PlacedNode],
        *,
        images: Mapping[str, Mapping[str, Any]],
        python_path: Sequence[Path],
    ) -> None:
        assert self._supervisor
        self.apply(MANIFESTS / "kubelet.yaml")
        kubelet = kubelet_process.KubeletSetup(
            supervisor=self._supervisor,
            plane=plane,
            pki=pki,
            nodes=placed,
            images=images,
            python_path=python_path,
            network=None,
        ).start()
        kubelet_process.await_ready(kubelet)

    def _detail(self, name: str) -> Any:
        details = self.instance.manifest.details()
        if name not in details:
            raise TestbedError(f"testbed {self.instance.id} has no {name}: it is not (or not yet) fully up")
        return details[name]


def _place(instance: Instance, nodes: Sequence[NodeSpec]) -> list[PlacedNode]:
    return [
        PlacedNode(spec, instance.node_address(index), instance.pod_network(index)) for index, spec in enumerate(nodes)
    ]


def _pki(instance: Instance, placed: Sequence[PlacedNode]) -> Pki:
    addresses = [address for node in placed for address in (node.address, node.spec.name)]
    return create_pki(
        instance.folder / "pki",
        control_hosts=[instance.control_address, "10.96.0.1"],
        node_hosts=addresses,
    )


def _manifest_text(manifest: str | Path | Mapping[str, Any]) -> str:
    if isinstance(manifest, Path):
        return manifest.read_text()
    return manifest if isinstance(manifest, str) else str(yaml.safe_dump(dict(manifest)))
