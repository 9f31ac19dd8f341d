"""An application with a remote shuffle service, as the example declares it, from its pods to its places."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from ballast.api.topology import SparkTopology
from ballast.controller.gateclock import GateClock
from ballast.controller.observe import Lists, Observation, Pool, observe
from ballast.kube.nodes import NodeReader
from ballast.kube.pods import PodReader
from ballast.model import Memory, Phase, PlacementMode, PlacementPolicy, Policy
from ballast.planner.plan import plan
from tests.unit.kube.builders import CREATED_AT, GATE, driver, executor, node, pod

JSON = dict[str, Any]
EXAMPLE = Path(__file__).parents[2] / "examples" / "sparktopology-remote-shuffle.yaml"
NOW = CREATED_AT + 100.0
POLICY = Policy("streaming", placement=PlacementPolicy(mode=PlacementMode.ENFORCE, max_executors_per_node_ratio=0.5))
ZONES = {"a-1": "a", "a-2": "a", "b-1": "b", "b-2": "b"}
OURS = {"ballast.dev/topology": "sessions-report"}
WORKER = {"app.kubernetes.io/name": "celeborn", "app.kubernetes.io/role": "worker"}


def example() -> SparkTopology:
    return SparkTopology.parse(yaml.safe_load(EXAMPLE.read_text()))


def with_exchange(declared: SparkTopology) -> SparkTopology:
    """The same executors, shuffling among themselves."""
    document = declared.to_dict()
    document["spec"]["streams"] = []
    document["spec"]["components"][1]["exchange"] = {"bytesPerSecond": "60Mi"}
    return SparkTopology.parse({"apiVersion": "ballast.dev/v1alpha1", "kind": "SparkTopology", **document})


def look(declared: SparkTopology, *workers: str) -> Observation:
    """Four executors wait; their driver is on a-1, a worker of the service on each node named."""
    pods = [
        driver(node="a-1"),
        *(executor(number, gates=[GATE], labels=OURS) for number in range(1, 5)),
        *(pod(f"worker-{number}", namespace="celeborn", node=at, labels=WORKER) for number, at in enumerate(workers)),
    ]
    reader, nodes = PodReader(), NodeReader()
    read = [reader.read(each) for each in pods]
    labels = {
        name: {"topology.kubernetes.io/zone": zone, "topology.ballast.dev/rack": name} for name, zone in ZONES.items()
    }
    return observe(
        Lists(
            read,
            [nodes.read(node(name, labels=each)) for name, each in labels.items()],
            {"analytics": {}, "celeborn": {}},
        ),
        POLICY,
        pool=Pool(external_namespaces=frozenset({"celeborn"})),
        topologies=[declared],
        clock=GateClock().after(read, CREATED_AT),
        now=NOW,
    )


def zones(seen: Observation) -> Counter[str]:
    decided, _ = plan(seen.snapshot, POLICY, Memory(), NOW)
    assert len(decided.placements) == 4
    return Counter(ZONES[placement.node or ""] for placement in decided.placements)


def test_executors_go_to_the_zone_of_the_services_workers() -> None:
    assert zones(look(example(), "b-1", "b-2")) == {"b": 4}


def test_executors_that_shuffle_among_themselves_stay_near_their_driver() -> None:
    assert zones(look(with_exchange(example()), "b-1", "b-2")) == {"a": 4}


def test_what_crosses_zones_is_what_goes_to_workers_elsewhere_and_nothing_among_executors() -> None:
    seen = look(example(), "a-2", "b-1")
    running = tuple(
        replace(e, node=name, phase=Phase.RUNNING) for e, name in zip(seen.snapshot.executors, ZONES, strict=True)
    )
    decided, _ = plan(replace(seen.snapshot, executors=running), POLICY, Memory(), NOW)
    (view,) = decided.locality
    assert view.cross_zone_ratio == 0.5
    assert view.cross_zone_bytes_per_second == 60 * 2**20


def test_the_declaration_leaves_nothing_to_be_told() -> None:
    assert look(example(), "b-1").findings == ()
