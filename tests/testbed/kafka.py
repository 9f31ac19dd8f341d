"""A real Kafka: brokers that are their own KRaft quorum, from jars of Maven Central that are kept in the cache."""

import hashlib
import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaError

from tests.testbed.binaries import TOOLS_FOLDER, cache_folder
from tests.testbed.errors import TestbedError, log_tail
from tests.testbed.golang import locked
from tests.testbed.instance import free_port
from tests.testbed.nodes import PlacedNode
from tests.testbed.waiting import wait_until

_ADDRESS = "127.0.0.1"
_BROKER_PORT, _CONTROLLER_PORT = 9092, 9093
_STARTS_FAST = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"


def jars(name: str) -> Path:
    """The folder of the jars that `tools/NAME/pom.xml` lists. Raises TestbedError if Maven can't fetch them."""
    pom = TOOLS_FOLDER / name / "pom.xml"
    place = cache_folder() / "jars" / f"{name}-{hashlib.sha256(pom.read_bytes()).hexdigest()[:10]}"
    with locked(place.with_suffix(".lock")):
        if not place.exists():
            if shutil.which("mvn") is None:
                raise TestbedError("there is no mvn on PATH: run scripts/setup.sh")
            partial = place.with_suffix(".partial")
            shutil.rmtree(partial, ignore_errors=True)
            command = ["mvn", "-q", "-B", "-f", str(pom), "dependency:copy-dependencies"]
            done = subprocess.run(
                [*command, f"-DoutputDirectory={partial}"], capture_output=True, text=True, check=False
            )
            if done.returncode:
                raise TestbedError(f"Maven could not fetch what {pom} lists:\n{done.stdout.strip()[-2000:]}")
            partial.rename(place)
    return place


@dataclass(frozen=True, slots=True)
class Kafka:
    bootstrap: str
    racks: Mapping[int, str]
    """Of each broker, by its id."""


@dataclass(frozen=True, slots=True)
class Seat:
    """Where a broker runs and listens: in a network namespace, if it has one."""

    address: str
    broker: int
    controller: int
    netns: str | None = None

    @property
    def entry(self) -> list[str]:
        """What its command begins with."""
        return ["ip", "netns", "exec", self.netns] if self.netns else []


@contextmanager
def kafka(folder: Path, *, racks: Sequence[str], nodes: Sequence[PlacedNode] = ()) -> Iterator[Kafka]:
    """One broker for each rack, all of them ready; they end with the block. On loopback, or each on one of `nodes`."""
    classpath = f"{jars('kafka')}/*"
    seats = dict(enumerate(_on_nodes(nodes) if nodes else _on_loopback(len(racks)), start=1))
    voters = ",".join(f"{number}@{seat.address}:{seat.controller}" for number, seat in seats.items())
    with ExitStack() as stack:
        for (number, seat), rack in zip(seats.items(), racks, strict=True):
            settings = folder / f"broker-{number}.properties"
            log_folder = folder / f"broker-{number}"
            settings.write_text(_settings(number, rack=rack, seat=seat, voters=voters, logs=log_folder))
            tool = ["kafka.tools.StorageTool", "format", "-t", _CLUSTER_ID, "-c", str(settings)]
            command = ["java", "-Xmx64m", *_STARTS_FAST, "-cp", classpath, *tool]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            stack.enter_context(_running(settings, classpath, seat))
        bootstrap = ",".join(f"{seat.address}:{seat.broker}" for seat in seats.values())
        _wait_for(bootstrap, brokers=len(seats), log=folder / "broker-1.log")
        yield Kafka(bootstrap, dict(zip(seats, racks, strict=True)))


def _on_loopback(count: int) -> list[Seat]:
    return [Seat(_ADDRESS, free_port(_ADDRESS), free_port(_ADDRESS)) for _ in range(count)]


def _on_nodes(nodes: Sequence[PlacedNode]) -> list[Seat]:
    return [Seat(node.address, _BROKER_PORT, _CONTROLLER_PORT, node.netns) for node in nodes]


@contextmanager
def _running(settings: Path, classpath: str, seat: Seat) -> Iterator[None]:
    with settings.with_suffix(".log").open("wb") as log:
        command = [*seat.entry, "java", "-Xmx256m", *_STARTS_FAST, "-cp", classpath, "kafka.Kafka", str(settings)]
        broker = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield
    finally:
        # What it has written is thrown away: an orderly end would only take longer.
        broker.kill()
        broker.wait()


def _wait_for(bootstrap: str, *, brokers: int, log: Path) -> None:
    def all_there() -> bool:
        try:
            # Its client leaves the sockets of refused connections open.
            for address in bootstrap.split(","):
                host, port = address.split(":")
                socket.create_connection((host, int(port)), timeout=5).close()
            with KafkaAdminClient(bootstrap_servers=bootstrap, request_timeout_ms=5000) as admin:
                return len(admin.describe_cluster()["brokers"]) == brokers
        except (OSError, KafkaError):
            return False

    wait_until(all_there, what=f"{brokers} Kafka brokers", timeout_seconds=120, explain=lambda: log_tail(log))


def _settings(number: int, *, rack: str, seat: Seat, voters: str, logs: Path) -> str:
    settings = {
        "process.roles": "broker,controller",
        "node.id": number,
        "broker.rack": rack,
        "listeners": f"PLAINTEXT://{seat.address}:{seat.broker},CONTROLLER://{seat.address}:{seat.controller}",
        "advertised.listeners": f"PLAINTEXT://{seat.address}:{seat.broker}",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": voters,
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
        "log.dirs": logs,
        "offsets.topic.num.partitions": 3,
        "offsets.topic.replication.factor": 1,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
        "group.initial.rebalance.delay.ms": 0,
    }
    return "".join(f"{name}={value}\n" for name, value in settings.items())
