"""The cluster of the example: two zones with a broker and two nodes for executors each, and limited links."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from tests.testbed.kafka import Kafka, jars, kafka
from tests.testbed.nodes import NodeSpec, PlacedNode
from tests.testbed.spark_driver import FILES, driver, prepare
from tests.testbed.testbed import Testbed

HERE = Path(__file__).parent
NAMESPACE, PLAIN_NAMESPACE = "clickstream", "plain"
POOL = {"pool": "streaming"}
SYSTEM, BROKERS = {"pool": "system"}, {"pool": "brokers"}
RACK_MEGABITS, ZONE_MEGABITS = 40.0, 10.0
EXECUTORS = 4
ZONES = ("zone-a", "zone-b")
LABELS = {"ballast.dev/topology": "clickstream", "ballast.dev/component": "visits"}
_DATA, _JARS = "/data", "/connector"
_RESERVED = {"key": "example/reserved", "value": "system", "effect": "NoSchedule"}
TOLERATIONS = ({"key": "example/reserved", "operator": "Exists"},)

Json = dict[str, Any]


def nodes() -> list[NodeSpec]:
    """Each of the pool has room for two executors, and so has each zone for all four, next to a broker."""
    pool = [
        NodeSpec(
            f"{zone}-{number}",
            zone=zone,
            rack=f"rack-{zone[-1]}1",
            cpu="1",
            memory="4Gi",
            labels=POOL,
        )
        for zone in ZONES
        for number in (1, 2)
    ]
    return [
        *pool,
        *(_reserved(f"broker-{zone[-1]}", zone, f"rack-{zone[-1]}1", BROKERS) for zone in ZONES),
        _reserved("system", "zone-b", "rack-b0", SYSTEM),
    ]


def _reserved(name: str, zone: str, rack: str, labels: Mapping[str, str]) -> NodeSpec:
    return NodeSpec(name, zone=zone, rack=rack, cpu="2", memory="8Gi", labels=labels, taints=[_RESERVED])


def brokers(testbed: Testbed, folder: Path) -> AbstractContextManager[Kafka]:
    """A real broker on each node that is reserved for one; its zone is its `broker.rack`."""
    placed = [
        PlacedNode(spec, testbed.node_addresses[spec.name], "", netns=testbed.node_namespaces[spec.name])
        for spec in nodes()
        if spec.name.startswith("broker-")
    ]
    return kafka(folder, racks=[node.spec.zone for node in placed], nodes=placed)


@dataclass(frozen=True, slots=True)
class Submission:
    """One run of the job. `folder` is on this machine and becomes /data in every pod of it."""

    namespace: str
    folder: Path
    bootstrap: str
    arguments: Sequence[str] = ()
    labels: Mapping[str, str] | None = None
    settings: Mapping[str, str] | None = None
    """Of Spark, besides those that the example needs."""

    @property
    def topics(self) -> tuple[str, str]:
        """The source and the sink."""
        return f"clicks-{self.namespace}", f"visits-{self.namespace}"

    def submit(self, testbed: Testbed) -> None:
        self.folder.mkdir(mode=0o777, parents=True)
        self.folder.chmod(0o777)
        prepare(testbed, self.namespace, {name: (HERE / name).read_text() for name in ("job.py", "executor.yaml")})
        testbed.apply(self._driver())

    def _driver(self) -> Json:
        settings = self._settings()
        source, sink = self.topics
        where = ["--bootstrap", self.bootstrap, "--source", source, "--sink", sink, "--folder", _DATA]
        arguments = [*where, *self.arguments]
        folders = {_DATA: self.folder, _JARS: jars("kafka-connector")}
        pod = driver(self.namespace, "job.py", arguments, settings=settings, folders=folders)
        pod["metadata"]["labels"] = {"spark-role": "driver", "spark-app-selector": settings["spark.app.id"]}
        pod["spec"] |= {"nodeSelector": {"kubernetes.io/hostname": "system"}, "tolerations": list(TOLERATIONS)}
        return pod

    def _settings(self) -> dict[str, str]:
        labels = {f"spark.kubernetes.executor.label.{name}": value for name, value in (self.labels or {}).items()}
        volumes = "spark.kubernetes.executor.volumes.hostPath"
        return {
            "spark.app.id": f"spark-{uuid4().hex}",
            "spark.executor.instances": str(EXECUTORS),
            "spark.executor.cores": "1",
            "spark.kubernetes.executor.request.cores": "400m",
            "spark.executor.memoryOverhead": "384m",
            "spark.kubernetes.executor.podTemplateFile": f"{FILES}/executor.yaml",
            "spark.driver.extraClassPath": f"{_JARS}/*",
            "spark.executor.extraClassPath": f"{_JARS}/*",
            f"{volumes}.data.mount.path": _DATA,
            f"{volumes}.data.options.path": str(self.folder),
            f"{volumes}.jars.mount.path": _JARS,
            f"{volumes}.jars.options.path": str(jars("kafka-connector")),
            "spark.sql.shuffle.partitions": str(EXECUTORS),
            "spark.sql.adaptive.enabled": "false",
            "spark.locality.wait": "0s",
            **labels,
            **(self.settings or {}),
        }


def executors(testbed: Testbed, namespace: str) -> Counter[str]:
    """By zone, once all run; until then empty."""
    pods = testbed.api.get(f"/api/v1/namespaces/{namespace}/pods?labelSelector=spark-role%3Dexecutor")["items"]
    zones = {spec.name: spec.zone for spec in nodes()}
    running = [zones[pod["spec"]["nodeName"]] for pod in pods if pod["status"].get("phase") == "Running"]
    return Counter(running) if len(running) == EXECUTORS else Counter()
