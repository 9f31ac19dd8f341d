"""Racks that cost something: every node a network namespace, with limited links between the racks.

All nodes are in one network. A node hangs on its rack's bridge by a pair of virtual interfaces, and each
rack's bridge on a core bridge by another pair, whose both directions are limited. The machine itself, with
the control plane and Prometheus, is on the core bridge.
"""

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from tests.testbed.errors import TestbedError
from tests.testbed.instance import FIRST_SUBNET, Instance
from tests.testbed.nodes import NodeSpec, PlacedNode

INTERFACE = "eth0"
LATENCY_MILLISECONDS = 100
BURST_SECONDS = 0.01
SMALLEST_BURST_BYTES = 16_000


@dataclass(frozen=True, slots=True)
class Network:
    """The topology of one testbed; each rack's uplink carries `rack_megabits` per second each way."""

    instance: Instance
    rack_megabits: float

    @property
    def control_address(self) -> str:
        """The machine's own address in the nodes' network."""
        return f"{self._prefix}.0.1"

    @property
    def _prefix(self) -> str:
        return f"10.{FIRST_SUBNET + self.instance.number}"

    def place(self, specs: Sequence[NodeSpec]) -> list[PlacedNode]:
        """Every node's addresses and the name of its namespace."""
        return [
            PlacedNode(
                spec=spec,
                address=f"{self._prefix}.{index + 1}.1",
                pod_network=f"{self._prefix}.{index + 1}.0/24",
                netns=self._name(f"n{index + 1}"),
                network_interface=INTERFACE,
            )
            for index, spec in enumerate(specs)
        ]

    def create(self, nodes: Sequence[PlacedNode]) -> None:
        """Make the bridges, namespaces and limits; tearing the testbed down removes them."""
        racks = list(dict.fromkeys((node.spec.zone, node.spec.rack) for node in nodes))
        _batch(["ip"], [*self._core(), *(line for index in range(len(racks)) for line in self._rack(index))])
        _batch(["tc"], [line for index in range(len(racks)) for line in self._limits(index)])
        for node in nodes:
            self._attach(node, rack=racks.index((node.spec.zone, node.spec.rack)))

    def _core(self) -> list[str]:
        core = self._name("core")
        return [
            f"link add {core} type bridge",
            f"addr add {self.control_address}/16 dev {core}",
            f"link set {core} up",
        ]

    def _rack(self, index: int) -> list[str]:
        bridge, up, down = self._rack_links(index)
        return [
            f"link add {bridge} type bridge",
            f"link set {bridge} up",
            f"link add {up} type veth peer name {down}",
            f"link set {up} master {bridge} up",
            f"link set {down} master {self._name('core')} up",
        ]

    def _limits(self, index: int) -> list[str]:
        _, up, down = self._rack_links(index)
        burst = max(SMALLEST_BURST_BYTES, int(self.rack_megabits * 1e6 / 8 * BURST_SECONDS))
        limit = f"rate {self.rack_megabits}mbit burst {burst} latency {LATENCY_MILLISECONDS}ms"
        return [f"qdisc add dev {device} root tbf {limit}" for device in (up, down)]

    def _rack_links(self, index: int) -> tuple[str, str, str]:
        return self._name(f"r{index}"), self._name(f"r{index}u"), self._name(f"r{index}d")

    def _attach(self, node: PlacedNode, *, rack: int) -> None:
        bridge, _, _ = self._rack_links(rack)
        outer = f"{node.netns}"
        _batch(
            ["ip"],
            [
                f"netns add {node.netns}",
                f"link add {outer} type veth peer name {INTERFACE} netns {node.netns}",
                f"link set {outer} master {bridge} up",
            ],
        )
        _batch(
            ["ip", "-netns", f"{node.netns}"],
            [
                "link set lo up",
                f"addr add {node.address}/16 dev {INTERFACE}",
                f"link set {INTERFACE} up",
                # every address of its pods is the node's, without one being added for each pod
                f"route add local {node.pod_network} dev lo",
            ],
        )

    def _name(self, suffix: str) -> str:
        return f"{self.instance.link_prefix}{suffix}"


def _batch(command: Sequence[str], lines: Sequence[str]) -> None:
    """Run all lines in one call of ip or tc; TestbedError with its own words at the first that fails."""
    done = subprocess.run(
        [*command, "-batch", "-"], input="\n".join(lines) + "\n", capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise TestbedError(f"{' '.join(command)} refused the network (root and veth are needed): {done.stderr.strip()}")
