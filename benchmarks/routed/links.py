"""A Kafka and a Spark on nodes whose racks and zones have limited links; no Kubernetes is needed for it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark

from ballast.model import Anchor, Component, Memory, PlacementMode, PlacementPolicy, Stream, Workload
from ballast.planner.plan import plan
from tests import builders
from tests.spark.session import PATHS
from tests.testbed import instance as instances
from tests.testbed.kafka import Kafka, kafka
from tests.testbed.network import Network
from tests.testbed.nodes import NodeSpec, PlacedNode
from tests.testbed.teardown import tear_down
from tests.testbed.waiting import wait_until

RACK_MEGABITS, ZONE_MEGABITS = 80.0, 40.0
ZONES = ("a", "b", "c")
EXECUTORS = 3
_MASTER_PORT = 7077
_EXECUTOR_MIB = 600


def specs() -> list[NodeSpec]:
    """Two racks in each of three zones: the first has the zone's broker; each has room for all executors."""
    brokers = [NodeSpec(f"broker-{zone}", zone=zone, rack=f"{zone}1") for zone in ZONES]
    workers = [
        NodeSpec(f"{zone}{rack}-{number}", zone=zone, rack=f"{zone}{rack}")
        for zone in ZONES
        for rack in (1, 2)
        for number in range(1, EXECUTORS + 1)
    ]
    return [*brokers, *workers]


SPREAD = ("a2-1", "b1-1", "c2-1")
"""One in each zone, as kube-scheduler spreads them; it knows no racks."""


def placed() -> tuple[str, ...]:
    """Where Ballast puts the executors: it knows the brokers, and that records flow from them and to them."""
    workers = specs()[len(ZONES) :]
    nodes = [builders.a_node(spec.name, zone=spec.zone, rack=spec.rack, cores=1.0) for spec in workers]
    anchors = tuple(Anchor((zone, f"{zone}1", f"broker-{zone}"), 1 / len(ZONES)) for zone in ZONES)
    topology = builders.a_topology(
        Component("kafka", external=True, anchors=anchors),
        Component("job", Workload.STREAMING, expected=EXECUTORS),
        streams=(Stream("kafka", "job"), Stream("job", "kafka")),
    )
    executors = tuple(builders.gated(f"e-{number}", component="job") for number in range(1, EXECUTORS + 1))
    policy = builders.a_policy(placement=PlacementPolicy(mode=PlacementMode.ENFORCE))
    snapshot = builders.a_snapshot(*nodes, executors=executors, topologies=(topology,))
    decided, _ = plan(snapshot, policy, Memory(), builders.NOW)
    return tuple(sorted(each.node for each in decided.placements if each.node))


@dataclass(frozen=True, slots=True)
class Links:
    """The nodes by their names, and the brokers on three of them."""

    network: Network
    nodes: Mapping[str, PlacedNode]
    brokers: Kafka

    @contextmanager
    def spark(self, workers: Sequence[str], folder: Path) -> Iterator[str]:
        """The URL of a standalone master with one worker, and so one executor, on each of these nodes."""
        folder.mkdir(parents=True)
        home = Path(pyspark.__file__).parent
        own = {
            "SPARK_HOME": str(home),
            "SPARK_DAEMON_MEMORY": "160m",
            "SPARK_WORKER_DIR": str(folder / "work"),
            "PYTHONPATH": PATHS,
        }
        address = self.network.control_address
        launch = [str(home / "bin" / "spark-class")]
        master = [*launch, "org.apache.spark.deploy.master.Master", "--host", address, "--port", str(_MASTER_PORT)]
        url = f"spark://{address}:{_MASTER_PORT}"
        with ExitStack() as stack:
            log = folder / "master.log"
            stack.enter_context(_running([*master, "--webui-port", "0"], own, log))
            wait_until(lambda: "ALIVE" in log.read_text(), what="Spark's master", timeout_seconds=60)
            for name in workers:
                node = self.nodes[name]
                size = ["-c", "1", "-m", f"{_EXECUTOR_MIB}m", "--webui-port", "0"]
                there = ["ip", "netns", "exec", str(node.netns)]
                worker = [*launch, "org.apache.spark.deploy.worker.Worker", "--host", node.address, *size, url]
                place = {
                    "BALLAST_NODE": node.address,
                    "BALLAST_RACK": node.spec.rack,
                    "BALLAST_ZONE": node.spec.zone,
                }
                stack.enter_context(_running([*there, *worker], {**own, **place}, folder / f"{name}.log"))
            yield url


@contextmanager
def _running(command: Sequence[str], environment: Mapping[str, str], log: Path) -> Iterator[None]:
    with log.open("wb") as file:
        process = subprocess.Popen(command, env={**os.environ, **environment}, stdout=file, stderr=file)
    try:
        yield
    finally:
        process.terminate()
        process.wait(60)


@contextmanager
def links(folder: Path) -> Iterator[Links]:
    instance = instances.reserve(instances.default_root())
    try:
        network = Network(instance, RACK_MEGABITS, ZONE_MEGABITS)
        nodes = network.place(specs())
        network.create(nodes)
        by_name = {node.spec.name: node for node in nodes}
        seats = [by_name[f"broker-{zone}"] for zone in ZONES]
        with kafka(folder, racks=ZONES, nodes=seats) as brokers:
            yield Links(network, by_name, brokers)
    finally:
        tear_down(instance)
