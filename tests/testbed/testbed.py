"""A whole cluster on one machine, and the hands to use it."""

import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import yaml

from tests.testbed import instance as instances
from tests.testbed import kubeconfig, kwok
from tests.testbed.apiserver import ApiServer
from tests.testbed.audit import FORBIDDEN, Request, end_of, requests_in
from tests.testbed.binaries import silent
from tests.testbed.errors import TestbedError
from tests.testbed.golang import Progress
from tests.testbed.helm import Helm
from tests.testbed.instance import Instance
from tests.testbed.kubectl import Kubectl
from tests.testbed.network import Crossed, crossed
from tests.testbed.nodes import IMAGES, NodeSpec, six_nodes
from tests.testbed.pki import KeyPair
from tests.testbed.process import REPOSITORY, Supervisor
from tests.testbed.prometheus import PrometheusFolder, ScrapeStyle, Target
from tests.testbed.startup import Recipe, Startup
from tests.testbed.teardown import tear_down, tear_down_abandoned
from tests.testbed.waiting import wait_until

TOKEN_SECONDS = 6 * 3600
KEPT_LOGS = REPOSITORY / "build" / "testbed"


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
        prometheus: bool = True,
        kwok: bool = False,
        images: Mapping[str, Mapping[str, Any]] = IMAGES,
        python_path: Sequence[Path] = (),
        node_grace_seconds: int = 50,
        apiserver_arguments: Sequence[str] = (),
        scheduler_arguments: Sequence[str] = (),
        scheduler_profiles: Sequence[Mapping[str, Any]] = (),
        scrape_interval_seconds: float = 2.0,
        scrape_style: ScrapeStyle = ScrapeStyle.KUBE_PROMETHEUS_STACK,
        scrape_jobs: Sequence[Mapping[str, Any]] = (),
        kubelet_options: Mapping[str, Any] | None = None,
        network: bool = False,
        rack_megabits: float = 100.0,
        zone_megabits: float | None = None,
    ) -> Self:
        """Start everything and return when it is ready; on failure, end what was started and raise.

        Without `nodes` there are six in two zones; without `kubelet` there are none. `kwok` serves fake
        nodes (see `add_fake_nodes`). `images` maps image names (or prefixes, ending in `*`) to what the
        kubelet runs for them, `python_path` is what pods' Python sees next to the environment's packages.
        `scheduler_profiles` are those of its configuration, the default one alone if there are none.
        A node is NotReady after `node_grace_seconds` without a heartbeat. `scrape_jobs` are added to
        Prometheus' configuration as they are, `kubelet_options` to the kubelet's (see its README). With
        `network` each node is its own network namespace, and every rack's link to the others carries
        `rack_megabits` per second; every zone's link `zone_megabits`, by default as much.
        """
        recipe = Recipe(
            nodes=nodes or six_nodes(),
            kubelet=kubelet,
            scheduler=scheduler,
            prometheus=prometheus,
            kwok=kwok,
            images=images,
            python_path=python_path,
            node_grace_seconds=node_grace_seconds,
            apiserver_arguments=apiserver_arguments,
            scheduler_arguments=scheduler_arguments,
            scheduler_profiles=scheduler_profiles,
            scrape_interval_seconds=scrape_interval_seconds,
            scrape_style=scrape_style,
            scrape_jobs=scrape_jobs,
            kubelet_options=kubelet_options or {},
            link_megabits=(rack_megabits, zone_megabits or rack_megabits) if network else None,
        )
        tear_down_abandoned(self.root)
        self._supervisor = Supervisor(instances.reserve(self.root))
        try:
            Startup(self._supervisor, recipe, self.progress).run()
        except BaseException as error:
            error.add_note(f"all logs of the testbed are in {self.keep_logs(KEPT_LOGS / 'failed-start')}")
            self.down()
            raise
        return self

    def keep_logs(self, folder: Path) -> Path:
        """Copy the logs of all parts into `folder`, in place of those of an earlier testbed."""
        shutil.rmtree(folder, ignore_errors=True)
        logs = self.instance.folder / "logs"
        if logs.exists():
            shutil.copytree(logs, folder)
        return folder

    def down(self) -> None:
        """Leave no process, cgroup, mount, network namespace or file."""
        if self._supervisor:
            supervisor, self._supervisor = self._supervisor, None
            tear_down(supervisor.instance)
            supervisor.reap()

    def detach(self) -> None:
        """Leave it running when this process ends; `attach` finds it again."""
        self.instance.manifest.record_detached()

    @classmethod
    def attach(cls, testbed_id: str | None = None, *, root: Path | None = None) -> Self:
        """The running testbed with that id, or the only one there is."""
        root = root or instances.default_root()
        running = instances.existing(root)
        found = [one for one in running if testbed_id in (None, one.id)]
        if len(found) != 1:
            ids = ", ".join(one.id for one in running) or "none"
            raise TestbedError(f"no single testbed matches {testbed_id or 'any'}; running: {ids}")
        return cls(root=root, _supervisor=Supervisor(found[0]))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.down()

    @contextmanager
    def without(self, *parts: str) -> Iterator[None]:
        """Kill those parts of the control plane (kube-apiserver, …), and start them again after the block, in turn.

        Returns when the API server is ready.
        """
        if self._supervisor is None:
            raise TestbedError("this testbed is not up: call up() first")
        with ExitStack() as killed:
            for part in reversed(parts):
                killed.enter_context(self._supervisor.without(part))
            yield
        wait_until(lambda: self.api.answers("/readyz"), what="the API server is ready again")

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
    def prometheus_url(self) -> str:
        return str(self._detail("prometheusUrl"))

    @property
    def ca(self) -> Path:
        """The authority of the API server's certificate."""
        return self.instance.folder / "pki" / "ca.crt"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's."""
        return self.instance.folder / "admin.kubeconfig"

    @property
    def node_addresses(self) -> dict[str, str]:
        """The address of each of the kubelet's nodes by its name, in their order."""
        return {str(node["name"]): str(node["address"]) for node in self._detail("nodes")}

    @property
    def node_namespaces(self) -> dict[str, str | None]:
        """The network namespace of each of the kubelet's nodes, when it was started with `network`."""
        return {str(node["name"]): node["netns"] for node in self._detail("nodes")}

    def crossed(self) -> Crossed:
        """What nodes have sent each other across racks and zones so far; started with `network`, else nothing."""
        return crossed(self.instance)

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

    def helm(self, *arguments: str) -> str:
        """The output of helm as the administrator; TestbedError when it fails."""
        helm = Helm(self.binary("helm"), self.kubeconfig, self.instance.folder / "helm")
        return helm.run(*arguments)

    def apply(self, *manifests: str | Path | Mapping[str, Any]) -> None:
        """Server-side apply of YAML texts, files and objects, as the administrator."""
        text = "\n---\n".join(_manifest_text(manifest) for manifest in manifests)
        self.kubectl_as(self.kubeconfig).apply(text)

    def await_definitions(self, *names: str) -> None:
        """Return when the kinds of these CustomResourceDefinitions (`PLURAL.GROUP`) can be used."""
        # kubectl takes a definition that has no conditions yet for a broken one, so it must wait for them first.
        for what in ("jsonpath={.status.conditions}", "condition=Established"):
            self.kubectl("wait", f"--for={what}", "--timeout=60s", *(f"crd/{name}" for name in names))

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
        token = self.token(namespace, name)
        text = kubeconfig.by_token(server=self.url, ca=self.ca, token=token, namespace=namespace)
        return kubeconfig.write_private(self.instance.folder / f"{namespace}-{name}.kubeconfig", text)

    def requests_of(self, namespace: str, service_account: str, *, since: int = 0) -> list[Request]:
        """What that ServiceAccount has asked of the API server so far, with what came of it.

        `since`: what `end_of_requests` was; the log of a long run takes seconds to read.
        """
        user = f"system:serviceaccount:{namespace}:{service_account}"
        found = requests_in(self._audit_log, since=since)
        return [request for request in found if request.user == user]

    def end_of_requests(self) -> int:
        return end_of(self._audit_log)

    @property
    def _audit_log(self) -> Path:
        return self.instance.folder / "audit.log"

    def forbidden_requests_of(self, namespace: str, service_account: str) -> list[Request]:
        """Those of its requests that it had no right to make; not those into a namespace that is being deleted."""
        refused = [each for each in self.requests_of(namespace, service_account) if each.status == FORBIDDEN]
        return [each for each in refused if "because it is being terminated" not in each.message]

    def set_targets(self, job: str, targets: Sequence[Target]) -> None:
        """Let Prometheus scrape these, instead of what it scraped for `job` before."""
        PrometheusFolder(self.instance.folder / "prometheus").set_targets(job, targets)

    def add_fake_nodes(self, specs: Sequence[NodeSpec]) -> None:
        """Nodes that exist in the API alone; needs `up(kwok=True)`. Returns when all are Ready."""
        kwok.add_fake_nodes(self.api, specs)

    def _detail(self, name: str) -> Any:
        details = self.instance.manifest.details()
        if name not in details:
            raise TestbedError(f"testbed {self.instance.id} has no {name}: it was started without, or not fully")
        return details[name]


def _manifest_text(manifest: str | Path | Mapping[str, Any]) -> str:
    if isinstance(manifest, Path):
        return manifest.read_text()
    return manifest if isinstance(manifest, str) else str(yaml.safe_dump(dict(manifest)))
