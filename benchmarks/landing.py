"""How many executors kube-scheduler binds to the nodes chosen for them, and what that costs.

A real kube-scheduler and one zone of 500 nodes that exist in the API server alone, unevenly filled: so many nodes that
it scores a sample of them. The same sets are released with the node preferred and nothing more, and nominated.
"""

from __future__ import annotations

import dataclasses
import sys
import time
from random import Random

from ballast.kube.client import Client, Limits
from ballast.kube.connection import Connection
from ballast.model import Plan
from benchmarks.gates import (
    CONNECTIONS,
    POLICY,
    actuator,
    created,
    decided,
    emptied,
    executor,
    fake_node,
    plain,
    pods,
    until_bound,
)
from benchmarks.report import Aim, Baseline, Result, machine, write
from tests.testbed.testbed import Testbed

NODES, EXECUTORS, SETS = 500, 120, 3
_LEAST_CORES, _MOST_CORES = 6, 12
"""That other pods have of a node's 16."""


def run() -> list[Result]:
    testbed = Testbed(progress=lambda text: print(text, flush=True))
    testbed.up(nodes=[], kubelet=False, prometheus=False, kwok=True)
    try:
        testbed.kubectl("apply", "--server-side", "-f", "crds")
        testbed.kubectl("wait", "--for=condition=Established", "crd/balancingpolicies.ballast.dev", "--timeout=60s")
        testbed.apply(POLICY)
        testbed.add_fake_nodes([fake_node(i) for i in range(NODES)])
        client = Client(Connection.from_kubeconfig(testbed.kubeconfig), Limits(connections=CONNECTIONS))
        random = Random("filling")
        testbed.create_namespace("filling")
        filling = [(i, random.randint(_LEAST_CORES, _MOST_CORES)) for i in range(NODES)]
        created(client, "filling", [plain(i, cores=cores, node=fake_node(i).name) for i, cores in filling])
        landed = {name: [0, 0.0] for name in ("preferred", "nominated")}
        for number in range(SETS):
            for name, figures in landed.items():
                on_node, seconds = _placed(testbed, client, f"{name}-{number}", nominated=name == "nominated")
                figures[0] += on_node
                figures[1] += seconds
        return _results(landed)
    finally:
        testbed.down()


def _placed(testbed: Testbed, client: Client, namespace: str, *, nominated: bool) -> tuple[int, float]:
    """Executors on the nodes chosen for them, and seconds until all are bound."""
    testbed.create_namespace(namespace)
    bodies = [executor(namespace, i, gated=True) for i in range(EXECUTORS)]
    for body in bodies:
        body["metadata"]["labels"] |= {"spark-app-selector": namespace, "ballast.dev/topology": namespace}
    created(client, namespace, bodies)
    context, plan_ = decided(client)
    placements = tuple(dataclasses.replace(each, nominated=nominated) for each in plan_.placements)
    started = time.perf_counter()
    actuator(client).release(context, Plan(placements=placements))
    until_bound(client, namespace)
    seconds = time.perf_counter() - started
    homes = {pod["metadata"]["uid"]: pod["spec"].get("nodeName") for pod in pods(testbed, namespace)}
    emptied(testbed, client, namespace)
    return sum(homes[each.uid] == each.node for each in placements), seconds


def _results(landed: dict[str, list[float]]) -> list[Result]:
    case = f"{EXECUTORS} executors in a zone of {NODES} nodes"
    shares = {name: on_node / (SETS * EXECUTORS) for name, (on_node, _) in landed.items()}
    seconds = {name: total / SETS for name, (_, total) in landed.items()}
    return [
        Result(case, "on the node chosen for it", shares["nominated"], "1",
               Baseline("the node preferred, no nomination", shares["preferred"]), Aim(1.0, at_least=True)),
        Result(case, "requests for each executor", 2.0, "1", Baseline("the node preferred, no nomination", 1.0)),
        Result(case, "first patch to all bound", seconds["nominated"], "s",
               Baseline("the node preferred, no nomination", seconds["preferred"])),
    ]  # fmt: skip


def main() -> int:
    before = machine()
    results = run()
    write("landing", results, before=before)
    return 1 if any(result.met is False for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
