"""Racks and zones that cost something: every node a network namespace, with limited links between them.

All nodes are in one network. A node hangs on its rack's bridge by a pair of virtual interfaces, each rack's bridge on
its zone's, and each zone's on a core bridge, both directions of these links being limited. The machine itself, with
the control plane and Prometheus, is on the core bridge; what nodes exchange with it is neither limited nor counted.
"""

import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.testbed.errors import TestbedError
from tests.testbed.instance import FIRST_SUBNET, Instance
from tests.testbed.nodes import NodeSpec, PlacedNode

INTERFACE = "eth0"
QUEUE_SECONDS = 0.1
SMALLEST_QUEUE_BYTES = 256_000
BURST_SECONDS = 0.01
SMALLEST_BURST_BYTES = 16_000
BETWEEN_NODES, WITH_THE_MACHINE = "1:10", "1:20"
"""Classes of traffic on each limited link."""
UNLIMITED_MEGABITS = 10_000.0
_SENT = re.compile(rf"class htb {BETWEEN_NODES} .*?Sent (\d+) bytes", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Crossed:
    """Bytes that nodes have sent to each other so far, of which some also crossed zones."""

    racks_bytes: int
    zones_bytes: int

    def since(self, earlier: "Crossed") -> "Crossed":
        return Crossed(self.racks_bytes - earlier.racks_bytes, self.zones_bytes - earlier.zones_bytes)


@dataclass(frozen=True, slots=True)
class Link:
    """From a rack or zone upwards: `up` and `down` are its ends, `lower` and `upper` the bridges that they are on."""

    up: str
    down: str
    lower: str
    upper: str
    megabits: float

    def add(self) -> list[str]:
        """For ip."""
        return [
            f"link add {self.up} type veth peer name {self.down}",
            f"link set {self.up} master {self.lower} up",
            f"link set {self.down} master {self.upper} up",
        ]

    def limit(self, machine: str) -> list[str]:
        """For tc: an interface's queue limits what goes out of it, so each end limits one direction."""
        return [*self._limited(self.up, f"dst {machine}"), *self._limited(self.down, f"src {machine}")]

    def _limited(self, device: str, machine: str) -> Iterator[str]:
        burst = max(SMALLEST_BURST_BYTES, _bytes(self.megabits, BURST_SECONDS))
        queue = max(SMALLEST_QUEUE_BYTES, _bytes(self.megabits, QUEUE_SECONDS))
        free = _bytes(UNLIMITED_MEGABITS, BURST_SECONDS)
        yield f"qdisc add dev {device} root handle 1: htb default 10"
        yield f"class add dev {device} parent 1: classid {BETWEEN_NODES} htb rate {self.megabits}mbit burst {burst}"
        yield f"qdisc add dev {device} parent {BETWEEN_NODES} bfifo limit {queue}"
        yield (
            f"class add dev {device} parent 1: classid {WITH_THE_MACHINE} "
            f"htb rate {UNLIMITED_MEGABITS}mbit burst {free} quantum {SMALLEST_BURST_BYTES}"
        )
        yield f"filter add dev {device} parent 1: protocol ip u32 match ip {machine}/32 flowid {WITH_THE_MACHINE}"


def _bytes(megabits: float, seconds: float) -> int:
    return int(megabits * 1e6 / 8 * seconds)


@dataclass(frozen=True, slots=True)
class Network:
    """The topology of one testbed: what each rack's and each zone's link carries each way, per second."""

    instance: Instance
    rack_megabits: float
    zone_megabits: float

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
        zones = list(dict.fromkeys(node.spec.zone for node in nodes))
        racks = list(dict.fromkeys((node.spec.zone, node.spec.rack) for node in nodes))
        uplinks = [self._zone_link(index) for index in range(len(zones))]
        uplinks += [self._rack_link(index, zone=zones.index(zone)) for index, (zone, _) in enumerate(racks)]
        _batch(["ip"], [*self._core(), *(line for link in uplinks for line in _bridge(link.lower))])
        _batch(["ip"], [line for link in uplinks for line in link.add()])
        _batch(["tc"], [line for link in uplinks for line in link.limit(self.control_address)])
        for node in nodes:
            self._attach(node, rack=racks.index((node.spec.zone, node.spec.rack)))

    def _core(self) -> list[str]:
        core = self._name("core")
        return [*_bridge(core), f"addr add {self.control_address}/16 dev {core}"]

    def _zone_link(self, index: int) -> Link:
        zone = self._name(f"z{index}")
        return Link(f"{zone}u", f"{zone}d", lower=zone, upper=self._name("core"), megabits=self.zone_megabits)

    def _rack_link(self, index: int, *, zone: int) -> Link:
        rack = self._name(f"r{index}")
        return Link(f"{rack}u", f"{rack}d", lower=rack, upper=self._name(f"z{zone}"), megabits=self.rack_megabits)

    def _attach(self, node: PlacedNode, *, rack: int) -> None:
        outer = f"{node.netns}"
        _batch(
            ["ip"],
            [
                f"netns add {node.netns}",
                f"link add {outer} type veth peer name {INTERFACE} netns {node.netns}",
                f"link set {outer} master {self._name(f'r{rack}')} up",
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


def crossed(instance: Instance) -> Crossed:
    """What has left racks and zones, as the upper ends of their links have counted it."""
    return Crossed(_sent(instance, "r"), _sent(instance, "z"))


def _sent(instance: Instance, kind: str) -> int:
    links = Path("/sys/class/net").glob(f"{instance.link_prefix}{kind}*u")
    found = (re.search(_SENT, _classes(link.name)) for link in links)
    return sum(int(match[1]) for match in found if match)


def _classes(device: str) -> str:
    command = ["tc", "-s", "class", "show", "dev", device]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _bridge(name: str) -> list[str]:
    return [f"link add {name} type bridge", f"link set {name} up"]


def _batch(command: Sequence[str], lines: Sequence[str]) -> None:
    """Run all lines in one call of ip or tc; TestbedError with its own words at the first that fails."""
    done = subprocess.run(
        [*command, "-batch", "-"], input="\n".join(lines) + "\n", capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise TestbedError(f"{' '.join(command)} refused the network (root and veth are needed): {done.stderr.strip()}")
