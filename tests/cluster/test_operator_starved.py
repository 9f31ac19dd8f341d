"""The operator places ten sets at once although it gets little of the machine, in a cluster of many others' pods."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from benchmarks.load.churn import create_all
from benchmarks.load.pods import foreign, node
from benchmarks.load.server import Server
from tests.cluster.chart.installation import CHART, NAMESPACE, RELEASE
from tests.cluster.controller.pool import (
    RACK_LABEL,
    ZONE_LABEL,
    gated_seconds,
    pool,
    preferred_labels,
    required_labels,
)
from tests.faults.invariants import GATED_SECONDS, watched
from tests.testbed.kubelet import cgroups
from tests.testbed.nodes import NodeSpec
from tests.testbed.testbed import Testbed

pytestmark = [pytest.mark.cluster, pytest.mark.soak, pytest.mark.timeout(900)]

SETS, SIZE = 10, 12
REPLICAS = 2
GATE_TIMEOUT_SECONDS = 10.0
"""The policy's default."""
NOISY_WAIT_SECONDS = 30.0
"""Noise starves the API server, too, and no release is sooner than the server takes it."""
LOOK_SECONDS = 2.0
"""Of the witness: it must not be what keeps the API server busy."""
THROTTLED_CORES = 0.1
START_SECONDS = 240.0
OTHERS = "services"
OTHER_NODES, OTHER_PODS = 1_000, 5_000
"""So many that a pass which lists them all takes a tenth of a core for longer than a gate may last."""
CONNECTIONS = 16
SYSTEM = NodeSpec("system", cpu="8", memory="16Gi", labels={"pool": "system"})
BURNERS_PER_CORE = 8


def racks() -> list[NodeSpec]:
    """Three zones of four racks of eight nodes."""
    return [
        NodeSpec(f"{zone}{rack}-{number}", zone=zone, rack=f"{zone}-{rack}", cpu="4")
        for zone in "abc"
        for rack in range(4)
        for number in range(8)
    ]


@dataclass(frozen=True, slots=True)
class Placed:
    """What became of one executor."""

    waited_seconds: float
    """Between its creation and its release by the API server's clock, which gives whole seconds: less than 1 s off."""
    zone_required: bool
    decided_rack: str | None
    rack: str


def install(testbed: Testbed) -> None:
    """The chart with its Deployment's pods on a node that runs them."""
    testbed.create_namespace(NAMESPACE)
    where = f"--namespace={NAMESPACE}"
    values = testbed.instance.folder / "ballast-values.yaml"
    resources = {"requests": {"cpu": "50m"}, "limits": {"memory": "512Mi"}}
    values.write_text(yaml.safe_dump({"nodeSelector": dict(SYSTEM.labels), "resources": resources}))
    testbed.helm("install", RELEASE, str(CHART), where, f"--values={values}")
    testbed.kubectl("wait", "--for=create", f"lease/{RELEASE}", where, f"--timeout={START_SECONDS:.0f}s")


@contextmanager
def throttled(testbed: Testbed) -> Iterator[Callable[[], float]]:
    """Each replica has a tenth of a core inside the block, as if its container had that limit.

    Yields for how many seconds they would have run and might not. With so little, starting alone takes most of a
    minute, so they have started before.
    """
    groups = cgroups.detect(Path("/proc/self/mounts").read_text())
    names = [f"{testbed.instance.cgroup_prefix}/{SYSTEM.name}/pod{uid}" for uid in _replicas(testbed)]
    assert len(names) == REPLICAS
    try:
        for name in names:
            groups.set_quota(name, THROTTLED_CORES)
        yield lambda: sum(groups.cpu(name).throttled_seconds for name in names)
    finally:
        for name in names:
            groups.set_quota(name, float(SYSTEM.cpu))


def _replicas(testbed: Testbed) -> list[str]:
    """Their pods' uids."""
    chosen = "--selector=app.kubernetes.io/name=ballast"
    found = testbed.kubectl("get", "pods", f"--namespace={NAMESPACE}", chosen, "--output=json")
    return [pod["metadata"]["uid"] for pod in json.loads(found)["items"] if not _of_a_job(pod)]


def _of_a_job(pod: dict[str, Any]) -> bool:
    return "job-name" in pod["metadata"]["labels"]


@contextmanager
def noise() -> Iterator[None]:
    """Processes that would take several times the machine's cores."""
    spinning = [sys.executable, "-c", "while True: pass"]
    burners = [subprocess.Popen(spinning) for _ in range(BURNERS_PER_CORE * (os.cpu_count() or 1))]
    try:
        yield
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()


@pytest.fixture(scope="module")
def machine() -> Iterator[Testbed]:
    """Ballast on the one node that runs pods, none yet for executors, and the nodes and pods of others."""
    with Testbed(progress=print).up(nodes=[SYSTEM], prometheus=False, kwok=True) as testbed:
        specs = [node(index) for index in range(OTHER_NODES)]
        testbed.add_fake_nodes(specs)
        testbed.create_namespace(OTHERS)
        pods = (
            foreign(index, namespace=OTHERS, node_name=specs[index % OTHER_NODES].name) for index in range(OTHER_PODS)
        )
        with closing(Server(testbed.api, connections=CONNECTIONS)) as server:
            create_all(server, OTHERS, pods, count=OTHER_PODS)
        install(testbed)
        yield testbed


def test_with_a_tenth_of_a_core_executors_are_placed_in_time(machine: Testbed) -> None:
    with throttled(machine) as throttled_seconds:
        found = _ten_sets(machine, "throttled", gated_seconds=GATED_SECONDS)
        assert throttled_seconds() > 1.0, "it was not starved, so this shows nothing"
    _assert_placed(found, within_seconds=GATE_TIMEOUT_SECONDS + 1.0)


def test_on_a_machine_that_others_keep_busy_executors_are_placed_in_time(machine: Testbed) -> None:
    with noise():
        found = _ten_sets(machine, "noisy", gated_seconds=NOISY_WAIT_SECONDS)
    _assert_placed(found, within_seconds=NOISY_WAIT_SECONDS)


def _ten_sets(testbed: Testbed, name: str, *, gated_seconds: float) -> list[Placed]:
    with pool(testbed, name, racks()) as mine:
        mine.policy(placement={"mode": "Enforce"})
        mine.await_gating(seconds=START_SECONDS)
        with watched(testbed, name, gated_seconds=gated_seconds, look_seconds=LOOK_SECONDS):
            executors = [each for number in range(SETS) for each in mine.executors(SIZE, application=f"spark-{number}")]
            mine.await_released(executors, seconds=120.0)
            mine.nodes_of(executors, seconds=240.0)
        racks_of = {mine.node(spec.name): spec.rack for spec in racks()}
        return [_placed(mine.pod(executor), racks_of) for executor in executors]


def _placed(pod: dict[str, Any], racks_of: Mapping[str, str]) -> Placed:
    decided = preferred_labels(pod).get(RACK_LABEL)
    return Placed(
        waited_seconds=gated_seconds(pod),
        zone_required=ZONE_LABEL in required_labels(pod),
        decided_rack=decided[0] if decided else None,
        rack=racks_of[pod["spec"]["nodeName"]],
    )


def _assert_placed(found: list[Placed], *, within_seconds: float) -> None:
    waits = sorted({round(each.waited_seconds, 1) for each in found})
    bare = sum(not each.zone_required for each in found)
    undecided = sum(each.decided_rack is None for each in found)
    landed = sum(each.rack == each.decided_rack for each in found)
    report = f"waited {waits} s; of {len(found)}: {bare} bare, {undecided} without a rack, {landed} on the decided rack"
    assert waits[-1] <= within_seconds, report
    assert bare == 0, report
    assert landed >= 0.95 * len(found), report
