"""One pod on one node, from its binding to its deletion."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import logging
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from tests.testbed.kubelet import cgroups, images, probes, quantity, status
from tests.testbed.kubelet.addresses import Addresses
from tests.testbed.kubelet.blueprint import Place, blueprint
from tests.testbed.kubelet.cgroups import Cgroups
from tests.testbed.kubelet.client import STRATEGIC, ApiError, Client, Json, persist
from tests.testbed.kubelet.config import KubeletConfig, NodeConfig
from tests.testbed.kubelet.container import Container
from tests.testbed.kubelet.environment import ConfigError, PodFacts, references, resolve
from tests.testbed.kubelet.events import Events
from tests.testbed.kubelet.hosts import Directory, PodEntry, file_text
from tests.testbed.kubelet.images import Machine
from tests.testbed.kubelet.isolation import count, isolate
from tests.testbed.kubelet.tokens import TokenSource
from tests.testbed.kubelet.traffic import Counters
from tests.testbed.kubelet.volumes import Objects, Volumes

log = logging.getLogger(__name__)
RETRY_SECONDS = 0.5
GONE_GRACE_SECONDS = 1


@dataclass(frozen=True, slots=True)
class Host:
    """The node that a pod runs on, and everything that its pods share."""

    config: KubeletConfig
    node: NodeConfig
    client: Client
    cgroups: Cgroups
    machine: Machine
    addresses: Addresses
    directory: Directory
    session: aiohttp.ClientSession
    events: Events

    @property
    def cgroup(self) -> str:
        return f"{self.config.cgroup_prefix}/{self.node.name}"

    @property
    def shim_cgroup(self) -> str:
        return f"{self.config.cgroup_prefix}/shims"


class PodWorker:
    """Runs one pod. `update` tells it the pod's latest state, `run` returns when nothing of it is left."""

    def __init__(self, pod: Json, host: Host) -> None:
        self.pod = pod
        self._host = host
        metadata = pod["metadata"]
        self.uid: str = metadata["uid"]
        self.path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
        self.folder = host.config.state_dir / "pods" / self.uid
        self.cgroup = f"{host.cgroup}/pod{self.uid}"
        self.address = ""
        self.traffic: Counters | None = None
        self.present = False
        """Whether the pod has its address and folder here: from its start until it has been cleaned up."""
        self.restart_policy: str = pod["spec"].get("restartPolicy", "Always")
        self.first_backoff_seconds = host.config.restart_backoff_seconds
        self._deletion = asyncio.Event()
        self._shutdown = asyncio.Event()
        self._dirty = asyncio.Event()
        self._gone = False
        self._final_phase: str | None = None
        self._written: Json = {}
        self._objects = Objects(host.client, metadata["namespace"])
        tokens = TokenSource(host.client, pod, clock=time.time)
        self._volumes = Volumes(folder=self.folder / "volumes", pod=pod, objects=self._objects, tokens=tokens)
        self.inits = [self._container(spec, is_init=True) for spec in pod["spec"].get("initContainers", [])]
        self.mains = [self._container(spec, is_init=False) for spec in pod["spec"]["containers"]]

    def _container(self, spec: Json, *, is_init: bool) -> Container:
        return Container(spec, self, self.folder / "containers" / spec["name"], is_init=is_init)

    @property
    def _on_host_network(self) -> bool:
        return bool(self.pod["spec"].get("hostNetwork"))

    @property
    def containers(self) -> list[Container]:
        return [*self.inits, *self.mains]

    @property
    def log_folder(self) -> Path:
        metadata = self.pod["metadata"]
        name = f"{metadata['namespace']}_{metadata['name']}_{self.uid}"
        return self._host.config.state_dir / "logs" / name

    def log_file(self, container_name: str, attempt_number: int) -> Path:
        return self.log_folder / container_name / f"{attempt_number}.log"

    @property
    def entry(self) -> PodEntry:
        """The pod as Services see it."""
        metadata, spec = self.pod["metadata"], self.pod["spec"]
        return PodEntry(
            namespace=metadata["namespace"],
            labels=metadata.get("labels", {}),
            address=self.address,
            ready=not self._deletion.is_set() and all(c.status.ready for c in self.mains),
            hostname=spec.get("hostname", ""),
            subdomain=spec.get("subdomain", ""),
        )

    # What the watch tells.

    def update(self, pod: Json) -> None:
        self.pod = pod
        if "deletionTimestamp" in pod["metadata"]:
            self._deletion.set()
        self.changed()

    def gone(self) -> None:
        """The object no longer exists: end at once."""
        self._gone = True
        self._deletion.set()

    def shut_down(self) -> None:
        """The kubelet ends: stop the pod, leave its object alone."""
        self._shutdown.set()
        self._deletion.set()

    # The pod's life.

    async def run(self) -> None:
        writer = asyncio.create_task(self._write_statuses())
        living = asyncio.create_task(self._live())
        deleted = asyncio.create_task(self._deletion.wait())
        try:
            await asyncio.wait({living, deleted}, return_when=asyncio.FIRST_COMPLETED)
            if living.done() and not deleted.done():
                self._report(living)
                await deleted
            await self._terminate(living)
        finally:
            writer.cancel()
            deleted.cancel()
            await self._clean()
        if not self._gone and not self._shutdown.is_set():
            await self._finish()

    async def _live(self) -> None:
        await self._prepare()
        refresher = asyncio.create_task(self._refresh())
        try:
            sidecars = await self._initialise()
            if self._deletion.is_set() or sidecars is None:
                return
            await asyncio.gather(*(container.run() for container in self.mains))
            await self._stop([c for c in self.inits if c.is_sidecar], 30)
            await asyncio.gather(*sidecars)
        finally:
            refresher.cancel()

    def _report(self, living: asyncio.Task[None]) -> None:
        """A pod that can't be run at all has failed, and says why."""
        if error := living.exception():
            log.error("%s: %s", self.path, error, exc_info=error)
            self.event("Failed", f"{type(error).__name__}: {error}", warning=True)
            self._final_phase = "Failed"
            self.changed()

    async def _prepare(self) -> None:
        """Address, cgroup, folders and volumes; waits for what the volumes refer to."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.log_folder.mkdir(parents=True, exist_ok=True)
        self._claim_address()
        self._make_cgroup()
        self.write_hosts()
        self.changed()
        while True:
            try:
                await persist(f"volumes of {self.path}", self._prepare_volumes)
            except (ConfigError, ApiError) as error:
                self.event("FailedMount", str(error), warning=True)
                await asyncio.sleep(RETRY_SECONDS)
            else:
                return

    async def _prepare_volumes(self) -> None:
        await self._volumes.prepare(self._facts())

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
        specs = [container.spec for container in self.mains]
        requests = [spec.get("resources", {}).get("requests", {}).get("cpu", "0") for spec in specs]
        groups.set_shares(self.cgroup, float(sum(quantity.parse(request) for request in requests)))
        folder = groups.unified(self.cgroup)
        if folder is not None and not self._on_host_network:
            host = self._host
            server = (host.config.api_server.host, host.config.api_server.port)
            isolate(folder, address=self.address, service=host.directory.api_server(), server=server)
            self.traffic = count(folder)

    async def _initialise(self) -> list[asyncio.Task[None]] | None:
        """Run the init containers one after the other; tasks of the sidecars, or None when one failed."""
        sidecars = []
        for container in self.inits:
            if container.is_sidecar:
                sidecars.append(asyncio.create_task(container.run()))
                await container.started.wait()
            else:
                await container.run()
                if not container.status.initialised:
                    return None
        return sidecars

    async def _refresh(self) -> None:
        while True:
            await asyncio.sleep(self._host.config.volume_refresh_seconds)
            try:
                await self._volumes.refresh(self._facts())
            except (ConfigError, ApiError, aiohttp.ClientError, OSError) as error:
                log.info("%s: refreshing volumes: %s", self.path, error)

    # Stopping.

    def _grace_seconds(self) -> float:
        if self._gone:
            return GONE_GRACE_SECONDS
        metadata, spec = self.pod["metadata"], self.pod["spec"]
        grace = metadata.get("deletionGracePeriodSeconds", spec.get("terminationGracePeriodSeconds", 30))
        return float(min(grace, 2) if self._shutdown.is_set() else max(grace, GONE_GRACE_SECONDS))

    async def _stop(self, containers: list[Container], grace_seconds: float) -> None:
        await asyncio.gather(*(container.stop(grace_seconds) for container in containers))

    async def _terminate(self, living: asyncio.Task[None]) -> None:
        grace, begun = self._grace_seconds(), time.monotonic()
        if not living.done():
            self.event("Killing", "Stopping the containers")
        sidecars = [container for container in self.inits if container.is_sidecar]
        await self._stop([c for c in self.containers if not c.is_sidecar], grace)
        for container in reversed(sidecars):
            await self._stop([container], max(2.0, grace - (time.monotonic() - begun)))
        if not living.done():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(living), 2)
        living.cancel()
        await asyncio.wait({living})

    async def _clean(self) -> None:
        self.present = False
        await cgroups.empty(self._host.cgroups, self.cgroup)
        if self.traffic is not None:
            self.traffic.close()
            self.traffic = None
        if self.address and not self._on_host_network:
            self._host.addresses.release(self.address)
        shutil.rmtree(self.folder, ignore_errors=True)

    async def _finish(self) -> None:
        """Tell the final status, then let the object go."""
        try:
            statuses = [container.status for container in self.containers]
            settled = status.phase(statuses, restart_policy="Never")
            self._final_phase = settled if settled in {"Succeeded", "Failed"} else "Failed"
            await persist(f"final status of {self.path}", self._write_status)
            body = {"gracePeriodSeconds": 0, "preconditions": {"uid": self.uid}}
            await persist(f"deleting {self.path}", lambda: self._host.client.delete(self.path, body))
        except ApiError as error:
            if error.status not in {404, 409}:
                log.warning("%s: %s", self.path, error)

    # Status.

    def changed(self) -> None:
        self._dirty.set()
        self._host.directory.pods_changed()

    async def _write_statuses(self) -> None:
        while True:
            await self._dirty.wait()
            self._dirty.clear()
            try:
                await persist(f"status of {self.path}", self._write_status)
            except ApiError as error:
                log.info("%s: %s", self.path, error)
                if error.status != 404:
                    await asyncio.sleep(RETRY_SECONDS)
                    self._dirty.set()

    async def _write_status(self) -> None:
        body = self.status_json()
        if body == self._written:
            return
        patch = {"metadata": {"uid": self.uid}, "status": body}
        await self._host.client.patch(f"{self.path}/status", patch, content_type=STRATEGIC)
        self._written = body

    def status_json(self) -> Json:
        """The status as it should be now."""
        statuses = [container.status for container in self.containers]
        phase = self._final_phase or status.phase(statuses, restart_policy=self.restart_policy)
        known = {c["type"]: c for c in self.pod.get("status", {}).get("conditions", [])}
        known |= {c["type"]: c for c in self._written.get("conditions", [])}
        gates = [
            known.get(gate["conditionType"], {}).get("status") == "True"
            for gate in self.pod["spec"].get("readinessGates", [])
        ]
        now = time.time()
        wanted = status.conditions(statuses, phase_now=phase, gates=gates)
        begun = self.pod.get("status", {}).get("startTime") or self._written.get("startTime")
        return {
            "phase": phase,
            "hostIP": self._host.node.address,
            "hostIPs": [{"ip": self._host.node.address}],
            "podIP": self.address or None,
            "podIPs": [{"ip": self.address}] if self.address else [],
            "startTime": begun or status.timestamp(now),
            "conditions": [status.condition_json(c, known.get(c.type), now) for c in wanted],
            "initContainerStatuses": [status.container_json(c.status) for c in self.inits],
            "containerStatuses": [status.container_json(c.status) for c in self.mains],
            "qosClass": self.pod.get("status", {}).get("qosClass"),
        }

    def event(self, reason: str, message: str, *, warning: bool = False) -> None:
        self._host.events.tell(self.pod, reason, message, warning=warning)

    # What containers ask for.

    def _facts(self) -> PodFacts:
        node = self._host.node
        return PodFacts(self.pod, self.address, node.address, node.capacity)

    async def _facts_for(self, container: Json) -> PodFacts:
        found: dict[str, dict[str, Any]] = {"configmaps": {}, "secrets": {}}
        for collection, name in references(container):
            item = await persist(f"{collection} {name}", lambda c=collection, n=name: self._objects.get(c, n))
            if item is not None:
                found[collection][name] = item
        node = self._host.node
        return PodFacts(self.pod, self.address, node.address, node.capacity, found["configmaps"], found["secrets"])

    async def describe(self, container: Json, attempt_number: int) -> Json:
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
        text = json.dumps([self.uid, container_name, attempt_number])
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
