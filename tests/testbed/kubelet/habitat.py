"""What a pod has on this machine: an address, cgroups, volumes, a hosts file, and places for its containers."""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from pathlib import Path
from typing import Any

from tests.testbed.kubelet import cgroups, images, probes, quantity
from tests.testbed.kubelet.blueprint import Place, blueprint
from tests.testbed.kubelet.client import ApiError, Json, persist
from tests.testbed.kubelet.environment import ConfigError, PodFacts, references, resolve
from tests.testbed.kubelet.host import Host
from tests.testbed.kubelet.hosts import file_text
from tests.testbed.kubelet.isolation import count, isolate
from tests.testbed.kubelet.tokens import TokenSource
from tests.testbed.kubelet.traffic import Counters
from tests.testbed.kubelet.volumes import Objects, Volumes


class Habitat:
    """The surroundings of one pod, from `settle` to `clear`."""

    def __init__(self, pod: Json, host: Host) -> None:
        self.pod = pod
        self._host = host
        metadata = pod["metadata"]
        self._uid: str = metadata["uid"]
        self.folder: Path = host.config.state_dir / "pods" / self._uid
        self.cgroup = f"{host.cgroup}/pod{self._uid}"
        self.address = ""
        self.traffic: Counters | None = None
        self.present = False
        """Whether the pod has its address and folder here."""
        self._objects = Objects(host.client, metadata["namespace"])
        tokens = TokenSource(host.client, pod, clock=time.time)
        self._volumes = Volumes(folder=self.folder / "volumes", pod=pod, objects=self._objects, tokens=tokens)

    @property
    def _on_host_network(self) -> bool:
        return bool(self.pod["spec"].get("hostNetwork"))

    @property
    def log_folder(self) -> Path:
        metadata = self.pod["metadata"]
        name = f"{metadata['namespace']}_{metadata['name']}_{self._uid}"
        return self._host.config.state_dir / "logs" / name

    def log_file(self, container_name: str, attempt_number: int) -> Path:
        return self.log_folder / container_name / f"{attempt_number}.log"

    def containers_folder(self, name: str) -> Path:
        """Where the runs of a container are kept."""
        return self.folder / "containers" / name

    def settle(self) -> None:
        """Take an address, or the one from before a restart, and make cgroup, folders and hosts file."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.log_folder.mkdir(parents=True, exist_ok=True)
        self._claim_address()
        self._make_cgroup()
        self.write_hosts()

    def _claim_address(self) -> None:
        record = self.folder / "address"
        if self._on_host_network:
            self.address = self._host.node.address
        elif record.exists():
            self.address = record.read_text()
            self._host.addresses.reclaim(self.address)
        else:
            self.address = self._host.addresses.claim()
            record.write_text(self.address)
        (self.folder / "node").write_text(self._host.node.name)
        self.present = True

    def _make_cgroup(self) -> None:
        groups = self._host.cgroups
        groups.create(self.cgroup)
        specs = self.pod["spec"]["containers"]
        requests = [spec.get("resources", {}).get("requests", {}).get("cpu", "0") for spec in specs]
        groups.set_shares(self.cgroup, float(sum(quantity.parse(request) for request in requests)))
        folder = groups.unified(self.cgroup)
        if folder is not None and not self._on_host_network:
            host = self._host
            server = (host.config.api_server.host, host.config.api_server.port)
            isolate(folder, address=self.address, service=host.directory.api_server(), server=server)
            self.traffic = count(folder)

    async def make_volumes(self) -> None:
        """Raises ConfigError while something that they refer to is missing."""
        await self._volumes.prepare(self._facts())

    async def refresh_volumes(self) -> None:
        """Bring those from the API up to date."""
        await self._volumes.refresh(self._facts())

    async def clear(self) -> None:
        """Kill what still runs and leave nothing but the logs."""
        self.present = False
        await cgroups.empty(self._host.cgroups, self.cgroup)
        if self.traffic is not None:
            self.traffic.close()
            self.traffic = None
        if self.address and not self._on_host_network:
            self._host.addresses.release(self.address)
        shutil.rmtree(self.folder, ignore_errors=True)

    # What the pod's containers ask for.

    def _facts(self) -> PodFacts:
        node = self._host.node
        return PodFacts(self.pod, self.address, node.address, node.capacity)

    async def _facts_for(self, container: Json) -> PodFacts:
        found: dict[str, dict[str, Any]] = {"configmaps": {}, "secrets": {}}
        for collection, name in references(container):
            try:
                item = await persist(f"{collection} {name}", lambda c=collection, n=name: self._objects.get(c, n))
            except ApiError as error:
                raise ConfigError(f"{collection} {name}: {error}") from error
            if item is not None:
                found[collection][name] = item
        node = self._host.node
        return PodFacts(self.pod, self.address, node.address, node.capacity, found["configmaps"], found["secrets"])

    async def describe(self, container: Json, attempt_number: int) -> Json:
        """The launcher's description of a run, its cgroup made. Raises ConfigError."""
        image = images.find(container["image"], self._host.config.images)
        if image is None:
            raise ConfigError(f"image {container['image']!r} is not in the kubelet's table of images")
        server = self._host.config.api_server
        content = images.content(image, self._host.machine)
        base = {
            **content.environment,
            "KUBERNETES_SERVICE_HOST": server.host,
            "KUBERNETES_SERVICE_PORT": str(server.port),
            "KUBERNETES_SERVICE_PORT_HTTPS": str(server.port),
        }
        environment = resolve(container, await self._facts_for(container), image=base)
        if content.names_user:
            environment["SPARK_LOCAL_IP"] = self.address
        return blueprint(
            container,
            self.pod,
            content=content,
            environment=environment,
            place=self._place(container, attempt_number),
            machine=self._host.machine,
        )

    def _place(self, container: Json, attempt_number: int) -> Place:
        host, groups = self._host, self._host.cgroups
        name = self.container_cgroup(container["name"], attempt_number)
        groups.create(name)
        limits = container.get("resources", {}).get("limits", {})
        if "cpu" in limits:
            groups.set_quota(name, float(quantity.parse(limits["cpu"])))
        if "memory" in limits:
            groups.set_memory_limit(name, int(quantity.parse(limits["memory"])))
        log_file = self.log_file(container["name"], attempt_number)
        log_file.parent.mkdir(exist_ok=True)
        return Place(
            hosts_file=self.folder / "hosts",
            volumes=self._volumes.paths,
            shared_paths=host.config.shared_paths,
            cgroups=groups.entry_files(name),
            shim_cgroups=groups.entry_files(host.shim_cgroup),
            log=log_file,
            netns=f"/run/netns/{host.node.netns}" if host.node.netns else None,
        )

    def container_cgroup(self, name: str, attempt_number: int) -> str:
        return f"{self.cgroup}/{name}-{attempt_number}"

    def target(self, container: Json, execute: probes.Execute) -> probes.Target:
        ports = {p["name"]: p["containerPort"] for p in container.get("ports", []) if "name" in p}
        return probes.Target(self.address, ports, execute, self._host.session)

    def oom_killed(self, container_name: str, attempt_number: int) -> bool:
        return self._host.cgroups.oom_kills(self.container_cgroup(container_name, attempt_number)) > 0

    def discard(self, container_name: str, attempt_number: int) -> None:
        self._host.cgroups.remove(self.container_cgroup(container_name, attempt_number))

    def identifier(self, container_name: str, attempt_number: int) -> str:
        text = json.dumps([self._uid, container_name, attempt_number])
        return f"process://{hashlib.sha256(text.encode()).hexdigest()}"

    def write_hosts(self) -> None:
        """Bring the hosts file up to date, in place: it is mounted in running containers."""
        if not self.present:
            return
        lines = self._host.directory.lines(self.pod["metadata"]["namespace"])
        text = file_text(self.pod, self.address, lines)
        path = self.folder / "hosts"
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
