"""One node: its object, its heartbeats, and which pods run on it."""

from __future__ import annotations

import asyncio
import logging
import platform
import shutil
import time
from datetime import UTC, datetime
from pathlib import Path

import aiohttp

from tests.testbed.kubelet import cgroups
from tests.testbed.kubelet.client import STRATEGIC, ApiError, Json, persist
from tests.testbed.kubelet.host import Host
from tests.testbed.kubelet.isolation import count
from tests.testbed.kubelet.status import timestamp
from tests.testbed.kubelet.traffic import Counters
from tests.testbed.kubelet.watch import Watcher
from tests.testbed.kubelet.worker import PodWorker

log = logging.getLogger(__name__)
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
LEASE_SECONDS = 40
STATUS_EVERY_HEARTBEATS = 30
DECLARED_FEATURES = ["ExtendWebSocketsToKubelet"]
"""Tells the API server to pass `kubectl exec` on as a WebSocket instead of translating it to SPDY."""


def machine_info(version: str) -> Json:
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return {
        "machineID": boot.replace("-", ""),
        "systemUUID": boot,
        "bootID": boot,
        "kernelVersion": platform.release(),
        "osImage": "processes of this machine",
        "containerRuntimeVersion": "process://1",
        "kubeletVersion": version,
        "kubeProxyVersion": "",
        "operatingSystem": "linux",
        "architecture": {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine()),
    }


def conditions(now: float, since: float) -> list[Json]:
    stamps = {"lastHeartbeatTime": timestamp(now), "lastTransitionTime": timestamp(since)}
    pressures = [
        {"type": f"{name}Pressure", "status": "False", "reason": f"KubeletHasSufficient{name}", **stamps}
        for name in ("Memory", "Disk", "PID")
    ]
    return [*pressures, {"type": "Ready", "status": "True", "reason": "KubeletReady", **stamps}]


def node_object(host: Host) -> Json:
    node = host.node
    labels = {
        "kubernetes.io/hostname": node.name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": machine_info(host.config.version)["architecture"],
    }
    taints = [taint.model_dump(exclude_none=True) for taint in node.taints]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": node.name, "labels": labels | node.labels},
        "spec": {"taints": taints} if taints else {},
    }


def node_status(host: Host, *, now: float, since: float) -> Json:
    node = host.node
    capacity = {"pods": "30", "ephemeral-storage": "50Gi", **node.capacity}
    return {
        "capacity": capacity,
        "allocatable": capacity,
        "addresses": [
            {"type": "InternalIP", "address": node.address},
            {"type": "Hostname", "address": node.name},
        ],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": node.port}},
        "nodeInfo": machine_info(host.config.version),
        "conditions": conditions(now, since),
        "declaredFeatures": DECLARED_FEATURES,
    }


class NodeAgent:
    """Keeps one node alive in the API and a worker for each of its pods."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.name = host.node.name
        self.workers: dict[str, PodWorker] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._since = time.time()
        self.traffic: Counters | None = None
        self._watcher = Watcher(host.client, "/api/v1/pods", self, query=f"fieldSelector=spec.nodeName%3D{self.name}")

    async def register(self) -> None:
        """Make the node's cgroup and object; afterwards it is Ready."""
        groups = self.host.cgroups
        groups.create(self.host.cgroup)
        folder = groups.unified(self.host.cgroup)
        if folder is not None and self.traffic is None and self.host.node.netns is None:
            self.traffic = count(folder)
        if self.host.node.cpu_quota_cores is not None:
            groups.set_quota(self.host.cgroup, self.host.node.cpu_quota_cores)
        await persist(f"registering {self.name}", self._write_object)
        await persist(f"lease of {self.name}", self._make_lease)
        await persist(f"status of {self.name}", self._write_status)

    async def _write_object(self) -> None:
        body = node_object(self.host)
        try:
            await self.host.client.post("/api/v1/nodes", body)
        except ApiError as error:
            if error.status != 409:
                raise
            labels = {"metadata": {"labels": body["metadata"]["labels"]}}
            await self.host.client.patch(f"/api/v1/nodes/{self.name}", labels)

    async def _write_status(self) -> None:
        body = {"status": node_status(self.host, now=time.time(), since=self._since)}
        await self.host.client.patch(f"/api/v1/nodes/{self.name}/status", body, content_type=STRATEGIC)

    def _lease_spec(self) -> Json:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        return {"holderIdentity": self.name, "leaseDurationSeconds": LEASE_SECONDS, "renewTime": now}

    async def _make_lease(self) -> None:
        metadata = {"name": self.name, "namespace": "kube-node-lease"}
        body: Json = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": metadata,
            "spec": self._lease_spec(),
        }
        try:
            await self.host.client.post(LEASES, body)
        except ApiError as error:
            if error.status == 404:  # the namespace comes a moment after the API server
                await asyncio.sleep(0.2)
                await self._make_lease()
            elif error.status == 409:
                await self._renew()
            else:
                raise

    async def _renew(self) -> None:
        await self.host.client.patch(f"{LEASES}/{self.name}", {"spec": self._lease_spec()})

    async def heartbeat(self) -> None:
        """Renew the lease for ever, and now and then the status."""
        beat = 0
        while True:
            await asyncio.sleep(self.host.config.heartbeat_seconds)
            beat += 1
            try:
                await self._renew()
                if beat % STATUS_EVERY_HEARTBEATS == 0:
                    await self._write_status()
            except ApiError as error:
                if error.status == 404:
                    await self.register()
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                log.info("%s: heartbeat: %s", self.name, error)

    async def watch(self) -> None:
        await self._watcher.run()

    async def adopt(self) -> None:
        """Once all pods are known: end what an earlier kubelet left of pods that no longer exist."""
        await self._watcher.listed.wait()
        prefix = self.host.config.state_dir / "pods"
        for folder in prefix.iterdir() if prefix.is_dir() else ():
            record = folder / "node"
            if record.exists() and record.read_text() == self.name and folder.name not in self.workers:
                await self._discard(folder)

    async def _discard(self, folder: Path) -> None:
        await cgroups.empty(self.host.cgroups, f"{self.host.cgroup}/pod{folder.name}")
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)

    # The watch's receiver.

    def changed(self, item: Json) -> None:
        uid = item["metadata"]["uid"]
        if uid in self.workers:
            self.workers[uid].update(item)
        elif not self._is_history(item):
            self._begin(item)

    def removed(self, item: Json) -> None:
        if worker := self.workers.get(item["metadata"]["uid"]):
            worker.gone()

    def _is_history(self, pod: Json) -> bool:
        """A pod that has ended and of which nothing is left here needs no worker until it is deleted."""
        ended = pod.get("status", {}).get("phase") in {"Succeeded", "Failed"}
        kept = (self.host.config.state_dir / "pods" / pod["metadata"]["uid"]).exists()
        return ended and not kept and "deletionTimestamp" not in pod["metadata"]

    def _begin(self, pod: Json) -> None:
        worker = PodWorker(pod, self.host)
        self.workers[worker.uid] = worker
        worker.update(pod)
        task = self._tasks[worker.uid] = asyncio.create_task(worker.run())
        task.add_done_callback(lambda done: self._ended(worker.uid, done))

    def _ended(self, uid: str, task: asyncio.Task[None]) -> None:
        self.workers.pop(uid, None)
        self.host.directory.pods_changed()
        self._tasks.pop(uid, None)
        if not task.cancelled() and (error := task.exception()):
            log.error("the worker of pod %s failed", uid, exc_info=error)

    def write_hosts(self) -> None:
        for worker in self.workers.values():
            worker.habitat.write_hosts()

    async def shut_down(self) -> None:
        """Stop all pods and remove the node's cgroup."""
        for worker in self.workers.values():
            worker.shut_down()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        self.host.cgroups.remove(self.host.cgroup)
