"""Crossing racks and zones takes time where links are limited, and is counted. Staying in the rack isn't."""

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from tests.testbed import instance as instances
from tests.testbed.instance import Instance
from tests.testbed.network import Crossed, Network, crossed
from tests.testbed.nodes import NodeSpec, PlacedNode
from tests.testbed.teardown import tear_down
from tests.testbed.testbed import Testbed
from tests.testbed.traces import traces_of

pytestmark = pytest.mark.soak

RACK_MEGABITS, ZONE_MEGABITS = 40.0, 20.0
SENT_BYTES = 8_000_000
NODES = [
    NodeSpec("one", rack="r1"),
    NodeSpec("beside", rack="r1"),
    NodeSpec("far", rack="r2"),
    NodeSpec("away", zone="zone-b", rack="r3"),
]

RECEIVE = """
import socket, sys, time
with socket.create_server((sys.argv[1], 7000)) as server:
    print("listening", flush=True)
    connection, _ = server.accept()
    first, size = None, 0
    while data := connection.recv(1 << 16):
        first = first or time.monotonic()
        size += len(data)
    print(size * 8 / 1e6 / (time.monotonic() - first))
"""
SEND = """
import socket, sys
with socket.create_connection((sys.argv[1], 7000)) as connection:
    connection.sendall(bytes(int(sys.argv[2])))
"""

ASK = """
import json, os, ssl, urllib.request
trusted = ssl.create_default_context(cafile="/var/run/secrets/kubernetes.io/serviceaccount/ca.crt")
server = os.environ["KUBERNETES_SERVICE_HOST"] + ":" + os.environ["KUBERNETES_SERVICE_PORT"]
print(json.load(urllib.request.urlopen(f"https://{server}/version", context=trusted))["gitVersion"])
"""


@pytest.fixture
def network() -> Iterator[Network]:
    instance = instances.reserve(instances.default_root())
    yield Network(instance, RACK_MEGABITS, ZONE_MEGABITS)
    tear_down(instance)


@pytest.fixture
def placed(network: Network) -> Sequence[PlacedNode]:
    nodes = network.place(NODES)
    network.create(nodes)
    return nodes


def megabits_per_second(sender: PlacedNode, receiver: PlacedNode, *, address: str) -> float:
    with inside(receiver, RECEIVE, address) as receiving:
        assert receiving.stdout
        assert receiving.stdout.readline() == "listening\n"
        with inside(sender, SEND, address, str(SENT_BYTES)) as sending:
            assert sending.wait() == 0
        return float(receiving.stdout.readline())


def inside(node: PlacedNode, script: str, *arguments: str) -> "subprocess.Popen[str]":
    """On the machine itself when the node has no namespace."""
    there = ["ip", "netns", "exec", node.netns] if node.netns else []
    return subprocess.Popen([*there, sys.executable, "-c", script, *arguments], stdout=subprocess.PIPE, text=True)


def carried(network: Network, sender: PlacedNode, receiver: PlacedNode) -> Crossed:
    """How many times, about, the bytes that one sends to the other have crossed racks and zones."""
    before = crossed(network.instance)
    megabits_per_second(sender, receiver, address=receiver.address)
    found = crossed(network.instance).since(before)
    return Crossed(round(found.racks_bytes / SENT_BYTES), round(found.zones_bytes / SENT_BYTES))


def test_crossing_racks_is_limited_and_staying_is_not(placed: Sequence[PlacedNode]) -> None:
    one, beside, far, away = placed

    assert megabits_per_second(one, beside, address=beside.address) > 5 * RACK_MEGABITS
    assert RACK_MEGABITS * 0.5 < megabits_per_second(one, far, address=far.address) < RACK_MEGABITS * 1.5
    assert ZONE_MEGABITS * 0.5 < megabits_per_second(one, away, address=away.address) < ZONE_MEGABITS * 1.5


def test_what_crosses_is_counted_once(network: Network, placed: Sequence[PlacedNode]) -> None:
    one, beside, far, away = placed

    assert carried(network, one, beside) == Crossed(0, 0)
    assert carried(network, one, far) == Crossed(1, 0)
    assert carried(network, one, away) == Crossed(1, 1)


def test_what_the_machine_sends_and_gets_is_neither_limited_nor_counted(
    network: Network, placed: Sequence[PlacedNode]
) -> None:
    machine = replace(placed[0], netns="", address=network.control_address)
    before = crossed(network.instance)

    assert megabits_per_second(machine, placed[-1], address=placed[-1].address) > 5 * RACK_MEGABITS
    assert megabits_per_second(placed[-1], machine, address=machine.address) > 5 * RACK_MEGABITS
    assert crossed(network.instance).since(before).zones_bytes < SENT_BYTES / 100


def test_a_pod_is_reached_at_any_address_of_its_node(placed: Sequence[PlacedNode]) -> None:
    one, beside, *_ = placed
    pod_address = beside.address.removesuffix(".1") + ".77"

    assert megabits_per_second(one, beside, address=pod_address) > 0


def test_pods_run_in_the_network_and_reach_the_api_server() -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "asking", "namespace": "default"},
        "spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "main", "image": "busybox", "command": ["python3", "-c", ASK]}],
        },
    }
    with Testbed().up(nodes=NODES[:1], prometheus=False, network=True) as testbed:
        instance = testbed.instance
        testbed.apply(pod)
        testbed.kubectl("wait", "pod/asking", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=30s")

        server = json.loads(testbed.kubectl("get", "--raw", "/version"))
        assert testbed.kubectl("logs", "asking").strip() == server["gitVersion"]

    assert traces_of(instance) == []


def test_nothing_of_it_stays(network: Network, placed: Sequence[PlacedNode]) -> None:
    instance: Instance = network.instance
    assert {line.split()[0] for line in traces_of(instance)} >= {"netns", "link"}

    tear_down(instance)

    assert traces_of(instance) == []
