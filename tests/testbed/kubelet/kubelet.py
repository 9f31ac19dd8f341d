"""The process kubelet as a whole: all nodes of a configuration in one event loop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any

import aiohttp

from tests.testbed.kubelet import cgroups
from tests.testbed.kubelet.addresses import Addresses, range_around
from tests.testbed.kubelet.cgroups import Cgroups
from tests.testbed.kubelet.client import Client, load_kubeconfig
from tests.testbed.kubelet.config import KubeletConfig, NodeConfig
from tests.testbed.kubelet.events import Events
from tests.testbed.kubelet.host import Host
from tests.testbed.kubelet.hosts import Directory, PodEntry
from tests.testbed.kubelet.images import Machine, survey
from tests.testbed.kubelet.node import NodeAgent
from tests.testbed.kubelet.server import NodeServer
from tests.testbed.kubelet.watch import Watcher

log = logging.getLogger(__name__)
NODES_WEIGHT_CORES = 4.0
"""Against the machine's other sessions, each of which weighs one: the nodes are several machines, not one process."""
HOSTS_SETTLE_SECONDS = 0.05


class Kubelet:
    """Serves the nodes of one configuration until told to stop."""

    def __init__(self, config: KubeletConfig, client: Client, session: aiohttp.ClientSession) -> None:
        self._config = config
        self._client = client
        self._session = session
        self._cgroups: Cgroups = cgroups.detect(Path("/proc/self/mounts").read_text())
        self._machine: Machine = survey(config)
        self._hosts_stale = asyncio.Event()
        self._directory = Directory(self._pods, self._hosts_stale.set)
        self._ranges: dict[str, Addresses] = {}
        self._failed = asyncio.Event()
        self._servers: list[NodeServer] = []
        self._background: set[asyncio.Task[Any]] = set()
        self.agents = [NodeAgent(self._host(node)) for node in config.nodes]

    def _host(self, node: NodeConfig) -> Host:
        cidr = node.pod_cidr or range_around(node.address)
        if cidr not in self._ranges:
            self._ranges[cidr] = Addresses(cidr, reserved=[n.address for n in self._config.nodes])
        return Host(
            config=self._config,
            node=node,
            client=self._client,
            cgroups=self._cgroups,
            machine=self._machine,
            addresses=self._ranges[cidr],
            directory=self._directory,
            session=self._session,
            events=Events(self._client, node.name),
        )

    def _pods(self) -> Iterator[PodEntry]:
        for agent in self.agents:
            for worker in agent.workers.values():
                if worker.habitat.present:
                    yield worker.entry

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._settled)

    def _settled(self, task: asyncio.Task[Any]) -> None:
        self._background.discard(task)
        if not task.cancelled() and (error := task.exception()):
            log.error("the kubelet can't go on", exc_info=error)
            self._failed.set()

    async def start(self) -> None:
        """Register all nodes and take up their pods."""
        self._cgroups.create(f"{self._config.cgroup_prefix}/shims")
        self._cgroups.set_shares(self._config.cgroup_prefix.partition("/")[0], NODES_WEIGHT_CORES)
        services = Watcher(self._client, "/api/v1/services", self._directory)
        self._spawn(services.run())
        self._spawn(self._keep_hosts())
        await asyncio.gather(services.listed.wait(), *(agent.register() for agent in self.agents))
        for agent in self.agents:
            await self._serve(agent)
            self._spawn(agent.watch())
            self._spawn(agent.heartbeat())
            self._spawn(agent.host.events.run())
        await asyncio.gather(*(agent.adopt() for agent in self.agents))

    async def _serve(self, agent: NodeAgent) -> None:
        server = NodeServer(agent)
        await server.start()
        self._servers.append(server)

    async def _keep_hosts(self) -> None:
        while True:
            await self._hosts_stale.wait()
            await asyncio.sleep(HOSTS_SETTLE_SECONDS)
            self._hosts_stale.clear()
            for agent in self.agents:
                agent.write_hosts()

    async def failed(self) -> None:
        """Wait for a part to fail."""
        await self._failed.wait()

    async def stop(self) -> None:
        """Stop all pods and leave nothing behind."""
        for task in list(self._background):
            task.cancel()
        await asyncio.gather(*(agent.shut_down() for agent in self.agents))
        await asyncio.gather(*(server.stop() for server in self._servers))
        await cgroups.empty(self._cgroups, self._config.cgroup_prefix)


async def serve(config: KubeletConfig) -> int:
    """Run until SIGTERM or SIGINT; the process's exit code."""
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    client = Client(load_kubeconfig(config.kubeconfig))
    async with aiohttp.ClientSession() as session, contextlib.aclosing(client):
        kubelet = Kubelet(config, client, session)
        async with contextlib.AsyncExitStack() as stack:
            stack.push_async_callback(kubelet.stop)
            starting = asyncio.create_task(kubelet.start())
            waiting = [asyncio.create_task(stop.wait()), asyncio.create_task(kubelet.failed())]
            await asyncio.wait({starting, *waiting}, return_when=asyncio.FIRST_COMPLETED)
            if starting.done():
                starting.result()
                print("ready", flush=True)
                await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for task in (starting, *waiting):
                task.cancel()
        return 0 if stop.is_set() else 1
