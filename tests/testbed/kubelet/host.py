"""A node as its pods see it."""

from __future__ import annotations

from dataclasses import dataclass

import aiohttp

from tests.testbed.kubelet.addresses import Addresses
from tests.testbed.kubelet.cgroups import Cgroups
from tests.testbed.kubelet.client import Client
from tests.testbed.kubelet.config import KubeletConfig, NodeConfig
from tests.testbed.kubelet.events import Events
from tests.testbed.kubelet.hosts import Directory
from tests.testbed.kubelet.images import Machine


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
