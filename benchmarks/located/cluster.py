"""Three zones with limited links, and one application whose executors are placed there in a given way."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import yaml

from examples.demo import manifests
from examples.demo.installation import await_gating, install
from examples.demo.pool import POOL, POOL_LABEL, SYSTEM
from tests.testbed.network import Crossed
from tests.testbed.nodes import RACK_LABEL, ZONE_LABEL, NodeSpec
from tests.testbed.spark_driver import FILES, driver, log, prepare
from tests.testbed.testbed import Testbed
from tests.testbed.waiting import wait_until

RACK_MEGABITS, ZONE_MEGABITS = 80.0, 40.0
EXECUTORS = 3
JOB = Path(__file__).with_name("job.py")
_CORES = 0.5
"""Of a node, all for one executor."""
_DATA = "/data"
_WAIT_SECONDS = 300.0
_RESERVED = {"key": "example/reserved", "value": "system", "effect": "NoSchedule"}
_TOLERATIONS = ({"key": "example/reserved", "operator": "Exists"},)

Json = dict[str, Any]


def nodes() -> list[NodeSpec]:
    """Two racks in each of three zones, each with room for all executors; and a node for the driver and Ballast."""
    workers = [
        NodeSpec(
            f"{zone}{rack}-{number}",
            zone=f"zone-{zone}",
            rack=f"rack-{zone}{rack}",
            cpu=f"{_CORES * 1000:.0f}m",
            memory="2Gi",
            cpu_quota_cores=_CORES,
            labels={POOL_LABEL: POOL},
        )
        for zone in "abc"
        for rack in (1, 2)
        for number in range(1, EXECUTORS + 1)
    ]
    system = NodeSpec(
        SYSTEM,
        zone="zone-b",
        rack="rack-b0",
        cpu="4",
        memory="12Gi",
        labels={POOL_LABEL: SYSTEM},
        taints=[_RESERVED],
    )
    return [*workers, system]


@dataclass(frozen=True, slots=True)
class Way:
    """How executors come to their nodes: by what their pods ask of kube-scheduler, or by Ballast."""

    name: str
    affinity: Json = field(default_factory=dict)
    zone: str = ""
    ballast: bool = False


def _near(key: str, weight: int) -> Json:
    selector = {"matchLabels": {"app": "located"}}
    return {"weight": weight, "podAffinityTerm": {"topologyKey": key, "labelSelector": selector}}


DEFAULT, AFFINITY, ONE_ZONE, BALLAST = "kube-scheduler", "podAffinity", "one zone", "Ballast"
WAYS = (
    Way(DEFAULT),
    Way(
        AFFINITY,
        affinity={
            "podAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [_near(ZONE_LABEL, 50), _near(RACK_LABEL, 100)]
            }
        },
    ),
    Way(ONE_ZONE, zone="zone-a"),
    Way(BALLAST, ballast=True),
)


@dataclass(frozen=True, slots=True)
class Ran:
    """One of the two jobs of one application."""

    way: str
    job: str
    round_seconds: tuple[float, ...]
    crossed: Crossed
    racks: tuple[str, ...]
    """Of the executors."""


@dataclass(frozen=True, slots=True)
class Located:
    testbed: Testbed
    folder: Path

    def run(self, way: Way, *, turn: int, rounds: int) -> list[Ran]:
        """An application of its own from its start to its end."""
        namespace = f"{way.name.lower().replace(' ', '-')}-{turn}"
        folder = self.folder / namespace
        folder.mkdir()
        folder.chmod(0o777)
        spec = {"affinity": way.affinity, "containers": [{"name": "executor"}]}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"app": "located"}}, "spec": spec}
        prepare(self.testbed, namespace, {"job.py": JOB.read_text(), "executor.yaml": yaml.safe_dump(pod)})
        if way.ballast:
            self.testbed.apply(_topology(namespace))
            await_gating(self.testbed, namespace, labels=manifests.EXECUTOR_LABELS)
        self.testbed.apply(_driver(way, namespace, folder, rounds=rounds))
        done = [self._job(way, name, namespace, folder) for name in ("shuffle", "cpu")]
        self._await(namespace, lambda: self._phase(namespace) == "Succeeded", "the end of the application")
        self.testbed.kubectl("delete", "namespace", namespace, "--wait=true")
        return done

    def _job(self, way: Way, name: str, namespace: str, folder: Path) -> Ran:
        self._await(namespace, (folder / f"ready-{name}").exists, f"the warm rounds of {name}")
        racks, before = self._racks(namespace), self.testbed.crossed()
        (folder / f"go-{name}").touch()
        done = folder / f"done-{name}"
        self._await(namespace, done.exists, f"the end of {name}")
        return Ran(way.name, name, tuple(json.loads(done.read_text())), self.testbed.crossed().since(before), racks)

    def _racks(self, namespace: str) -> tuple[str, ...]:
        pods = self.testbed.api.get(f"/api/v1/namespaces/{namespace}/pods?labelSelector=spark-role%3Dexecutor")["items"]
        rack = {spec.name: spec.rack for spec in nodes()}
        return tuple(sorted(rack[pod["spec"]["nodeName"]] for pod in pods))

    def _phase(self, namespace: str) -> str:
        return str(self.testbed.api.get(f"/api/v1/namespaces/{namespace}/pods/driver")["status"].get("phase"))

    def _await(self, namespace: str, condition: Any, what: str) -> None:
        def explain() -> str:
            return log(self.testbed, namespace, "driver")[-3000:]

        def there() -> bool:
            return bool(condition()) or self._phase(namespace) == "Failed"

        wait_until(there, what=what, timeout_seconds=_WAIT_SECONDS, explain=explain)
        if not condition():
            raise SystemExit(f"{namespace}: the driver failed before {what}:\n{explain()}")


def _driver(way: Way, namespace: str, folder: Path, *, rounds: int) -> Json:
    volume = "spark.kubernetes.executor.volumes.hostPath.data"
    labels = manifests.EXECUTOR_LABELS if way.ballast else {}
    settings = {
        "spark.app.id": f"spark-{uuid4().hex}",
        "spark.executor.instances": str(EXECUTORS),
        # Cached blocks are local on their executor alone.
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.scheduler.maxRegisteredResourcesWaitingTime": "120s",
        "spark.executor.cores": "1",
        "spark.executor.memory": "600m",
        "spark.executor.memoryOverhead": "384m",
        "spark.kubernetes.executor.request.cores": f"{_CORES * 1000 * 0.9:.0f}m",
        f"spark.kubernetes.node.selector.{POOL_LABEL}": POOL,
        "spark.kubernetes.executor.podTemplateFile": f"{FILES}/executor.yaml",
        "spark.sql.shuffle.partitions": str(EXECUTORS * 2),
        "spark.sql.adaptive.enabled": "false",
        f"{volume}.mount.path": _DATA,
        f"{volume}.options.path": str(folder),
        **({f"spark.kubernetes.executor.node.selector.{ZONE_LABEL}": way.zone} if way.zone else {}),
        **{f"spark.kubernetes.executor.label.{name}": value for name, value in labels.items()},
    }
    pod = driver(namespace, "job.py", [_DATA, str(rounds)], settings=settings, folders={_DATA: folder})
    pod["metadata"]["labels"] = {"spark-role": "driver", "spark-app-selector": settings["spark.app.id"]}
    pod["spec"] |= {"nodeSelector": {POOL_LABEL: SYSTEM}, "tolerations": list(_TOLERATIONS)}
    return pod


def _topology(namespace: str) -> Json:
    component = {"name": manifests.COMPONENT, "executors": EXECUTORS, "exchange": {"bytesPerSecond": "10Mi"}}
    return {
        "apiVersion": "ballast.dev/v1alpha1",
        "kind": "SparkTopology",
        "metadata": {"name": manifests.TOPOLOGY, "namespace": namespace},
        "spec": {"components": [component]},
    }


@contextmanager
def located(folder: Path) -> Iterator[Located]:
    """The testbed with Ballast, which leaves executors without its labels to kube-scheduler."""
    folder.chmod(0o755)
    testbed = Testbed(progress=print)
    with testbed.up(nodes=nodes(), network=True, rack_megabits=RACK_MEGABITS, zone_megabits=ZONE_MEGABITS):
        install(testbed, node_selector={POOL_LABEL: SYSTEM}, tolerations=_TOLERATIONS)
        testbed.apply(manifests.policy(testbed.prometheus_url, leveling=False))
        yield Located(testbed, folder)
