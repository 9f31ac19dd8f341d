"""One pod on one node, from its binding to its deletion."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time

import aiohttp

from tests.testbed.kubelet import status
from tests.testbed.kubelet.client import STRATEGIC, ApiError, Json, persist
from tests.testbed.kubelet.container import Container
from tests.testbed.kubelet.environment import ConfigError
from tests.testbed.kubelet.habitat import Habitat
from tests.testbed.kubelet.host import Host
from tests.testbed.kubelet.hosts import PodEntry

log = logging.getLogger(__name__)
RETRY_SECONDS = 0.5
GONE_GRACE_SECONDS = 1


class PodWorker:
    """Runs one pod. `update` tells it the pod's latest state, `run` returns when nothing of it is left."""

    def __init__(self, pod: Json, host: Host) -> None:
        self.pod = pod
        self._host = host
        metadata = pod["metadata"]
        self.uid: str = metadata["uid"]
        self.path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
        self.habitat = Habitat(pod, host)
        self.restart_policy: str = pod["spec"].get("restartPolicy", "Always")
        self.first_backoff_seconds = host.config.restart_backoff_seconds
        self._deletion = asyncio.Event()
        self._shutdown = asyncio.Event()
        self._dirty = asyncio.Event()
        self._gone = False
        self._final_phase: str | None = None
        self._written: Json = {}
        self.inits = [self._container(spec, is_init=True) for spec in pod["spec"].get("initContainers", [])]
        self.mains = [self._container(spec, is_init=False) for spec in pod["spec"]["containers"]]

    def _container(self, spec: Json, *, is_init: bool) -> Container:
        return Container(spec, self, self.habitat, is_init=is_init)

    @property
    def containers(self) -> list[Container]:
        return [*self.inits, *self.mains]

    @property
    def entry(self) -> PodEntry:
        """The pod as Services see it."""
        metadata, spec = self.pod["metadata"], self.pod["spec"]
        return PodEntry(
            namespace=metadata["namespace"],
            labels=metadata.get("labels", {}),
            address=self.habitat.address,
            ready=not self._deletion.is_set() and all(c.status.ready for c in self.mains),
            hostname=spec.get("hostname", ""),
            subdomain=spec.get("subdomain", ""),
        )

    # What the watch tells.

    def update(self, pod: Json) -> None:
        self.pod = self.habitat.pod = pod
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
            await self.habitat.clear()
        if not self._gone and not self._shutdown.is_set():
            await self._finish()

    async def _live(self) -> None:
        await self._prepare()
        refresher = asyncio.create_task(self._refresh())
        try:
            sidecars = await self._initialize()
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
        """Make the pod's surroundings; wait for what its volumes refer to."""
        self.habitat.settle()
        self.changed()
        while True:
            try:
                await persist(f"volumes of {self.path}", self.habitat.make_volumes)
            except (ConfigError, ApiError) as error:
                self.event("FailedMount", str(error), warning=True)
                await asyncio.sleep(RETRY_SECONDS)
            else:
                return

    async def _initialize(self) -> list[asyncio.Task[None]] | None:
        """Run the init containers one after the other; tasks of the sidecars, or None when one failed."""
        sidecars = []
        for container in self.inits:
            if container.is_sidecar:
                sidecars.append(asyncio.create_task(container.run()))
                await container.started.wait()
            else:
                await container.run()
                if not container.status.initialized:
                    return None
        return sidecars

    async def _refresh(self) -> None:
        while True:
            await asyncio.sleep(self._host.config.volume_refresh_seconds)
            try:
                await self.habitat.refresh_volumes()
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
            "podIP": self.habitat.address or None,
            "podIPs": [{"ip": self.habitat.address}] if self.habitat.address else [],
            "startTime": begun or status.timestamp(now),
            "conditions": [status.condition_json(c, known.get(c.type), now) for c in wanted],
            "initContainerStatuses": [status.container_json(c.status) for c in self.inits],
            "containerStatuses": [status.container_json(c.status) for c in self.mains],
            "qosClass": self.pod.get("status", {}).get("qosClass"),
        }

    def event(self, reason: str, message: str, *, warning: bool = False) -> None:
        self._host.events.tell(self.pod, reason, message, warning=warning)
