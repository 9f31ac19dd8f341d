"""The operator places ten sets at once although it gets little of the machine, in a cluster of many others' pods."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
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
from tests.testbed.nodes import METRICS_PORT, NodeSpec
from tests.testbed.testbed import Testbed

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

SETS, SIZE = 10, 12
GATE_TIMEOUT_SECONDS = 10.0
"""The policy's default."""
NOISY_WAIT_SECONDS = 30.0
"""Noise starves the API server, too, and no release is sooner than the server takes it."""
LOOK_SECONDS = 2.0
"""Of the witness: it must not be what keeps the API server busy."""
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


@contextmanager
def ballast(testbed: Testbed, resources: Mapping[str, Any]) -> Iterator[None]:
    """The chart with its Deployment's pods on a node that runs them."""
    testbed.create_namespace(NAMESPACE)
    where = f"--namespace={NAMESPACE}"
    values = testbed.instance.folder / "ballast-values.yaml"
    values.write_text(yaml.safe_dump({"nodeSelector": dict(SYSTEM.labels), "resources": dict(resources)}))
    testbed.helm("install", RELEASE, str(CHART), where, f"--values={values}")
    try:
        testbed.kubectl("wait", "--for=create", f"lease/{RELEASE}", where, f"--timeout={START_SECONDS:.0f}s")
        yield
    finally:
        testbed.helm("uninstall", RELEASE, where, "--no-hooks", "--wait")


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
    """One node that runs the operator's pods, none yet for executors, and the nodes and pods of others."""
    with Testbed(progress=print).up(nodes=[SYSTEM], prometheus=False, kwok=True) as testbed:
        specs = [node(index) for index in range(OTHER_NODES)]
        testbed.add_fake_nodes(specs)
        testbed.create_namespace(OTHERS)
        pods = (
            foreign(index, namespace=OTHERS, node_name=specs[index % OTHER_NODES].name) for index in range(OTHER_PODS)
        )
        with closing(Server(testbed.api, connections=CONNECTIONS)) as server:
            create_all(server, OTHERS, pods, count=OTHER_PODS)
        yield testbed


def test_with_a_tenth_of_a_core_executors_are_placed_in_time(machine: Testbed) -> None:
    with ballast(machine, {"requests": {"cpu": "50m"}, "limits": {"cpu": "100m", "memory": "512Mi"}}):
        before = _throttled_seconds(machine)
        found = _ten_sets(machine, "throttled", gated_seconds=GATED_SECONDS)
        assert _throttled_seconds(machine) > before + 1.0, "it was not starved, so this shows nothing"
        _assert_placed(found, within_seconds=GATE_TIMEOUT_SECONDS + 1.0)


def test_on_a_machine_that_others_keep_busy_executors_are_placed_in_time(machine: Testbed) -> None:
    with ballast(machine, {"requests": {"cpu": "50m"}, "limits": {"memory": "512Mi"}}), noise():
        found = _ten_sets(machine, "noisy", gated_seconds=NOISY_WAIT_SECONDS)
        _assert_placed(found, within_seconds=NOISY_WAIT_SECONDS)


_ADDRESS = '{.status.addresses[?(@.type=="InternalIP")].address}'


def _throttled_seconds(testbed: Testbed) -> float:
    """For how long the operator's containers would have run and might not, by the kubelet."""
    (address,) = testbed.kubectl("get", "node", SYSTEM.name, f"-o=jsonpath={_ADDRESS}").split()
    with urllib.request.urlopen(f"http://{address}:{METRICS_PORT}/metrics/cadvisor", timeout=10) as answer:
        text = answer.read().decode()
    series = re.findall(r"^container_cpu_cfs_throttled_seconds_total\{(.*)\} (\S+)", text, re.MULTILINE)
    return sum(float(value) for labels, value in series if f'namespace="{NAMESPACE}"' in labels)


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
