"""How fast gated executors are released and bound, against a real API server with nodes that only exist in it.

Three runs in one testbed, each with fresh pods: (a) kube-scheduler alone binds pods without a gate; (b) a bare HTTP
loop sends the same release patches with nothing decided; (c) Ballast decides and releases. Timed from the first
patch until all pods are bound; for (a) from the first pod's creation, since the scheduler binds while others are
created.
"""

from __future__ import annotations

import http.client
import json
import ssl
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from prometheus_client import CollectorRegistry

from ballast.controller.actuator import Actuator
from ballast.controller.cluster_objects import ClusterLister
from ballast.controller.cluster_view import ClusterView, pools_of
from ballast.controller.context import Context
from ballast.controller.gateclock import GateClock
from ballast.controller.telemetry import Telemetry
from ballast.kube import kinds
from ballast.kube.actions import release_patch
from ballast.kube.client import Client, Limits
from ballast.kube.connection import Connection
from ballast.kube.events import EventRecorder
from ballast.kube.objects import Query, read_list
from ballast.kube.pods import Pod, PodReader
from ballast.model import Memory
from ballast.planner.plan import plan
from ballast.prometheus import Reading
from benchmarks.report import Aim, Baseline, Result, machine, write
from tests.testbed.nodes import NodeSpec
from tests.testbed.testbed import Testbed
from tests.testbed.waiting import wait_until

NODES, PODS, SET = 1_000, 5_000, 50
CONNECTIONS = 16
GATE = {"name": "ballast.dev/placement"}
POLICY = """
apiVersion: ballast.dev/v1alpha1
kind: BalancingPolicy
metadata: {name: bench}
spec:
  nodeSelector: {matchLabels: {pool: bench}}
  placement: {mode: Enforce, debounce: 0s}
"""


def executor(namespace: str, index: int, *, gated: bool) -> dict[str, Any]:
    """A pod as Spark's driver would create it, as far as placing goes."""
    application = index // SET
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"app-{application}-exec-{index % SET + 1}",
            "namespace": namespace,
            "labels": {
                "spark-role": "executor",
                "spark-app-selector": f"spark-{application:032x}",
                "spark-exec-id": str(index % SET + 1),
                "spark-exec-resourceprofile-id": "0",
                "ballast.dev/topology": f"app-{application}",
            },
        },
        "spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "containers": [
                {"name": "spark-kubernetes-executor", "image": "spark", "resources": {"requests": {"cpu": "1"}}}
            ],
            "tolerations": [{"key": "kwok.x-k8s.io/node", "operator": "Exists"}],
            **({"schedulingGates": [GATE]} if gated else {}),
        },
    }


def create_all(client: Client, namespace: str, *, gated: bool) -> None:
    with ThreadPoolExecutor(CONNECTIONS) as threads:
        list(
            threads.map(
                lambda i: client.create(kinds.POD, executor(namespace, i, gated=gated), namespace=namespace),
                range(PODS),
            )
        )


def until_bound(client: Client, namespace: str) -> None:
    def all_bound() -> bool:
        waiting = {"fieldSelector": "spec.nodeName=", "limit": "1"}
        return not client.get_page(kinds.POD, waiting, namespace=namespace, metadata_only=True).items

    wait_until(all_bound, what=f"{PODS} pods are bound", timeout_seconds=600.0, poll_seconds=0.2)


def timed(work: Callable[[], None], client: Client, namespace: str) -> tuple[float, float]:
    """Seconds until the last patch was answered, and until all were bound."""
    started = time.perf_counter()
    work()
    sent = time.perf_counter() - started
    until_bound(client, namespace)
    return sent, time.perf_counter() - started


def decided(client: Client) -> tuple[Context, list[Any], Any]:
    """What Ballast would release now: objects, snapshot and plan, as the operator's round does it."""
    objects = ClusterLister(client).look()
    now = time.time()
    lands = pools_of(objects.policies, objects.lists.nodes)
    cluster_view = ClusterView(objects, lands, GateClock().after(objects.lists.pods, now), now)
    context = cluster_view.context(objects.policies[0], Memory(), Reading(), [])
    plan_, _ = plan(context.snapshot, context.policy, Memory(), now)
    return context, list(plan_.placements), plan_


def bare(testbed: Testbed, client: Client, namespace: str) -> Callable[[], None]:
    """The same patches over plain connections, with nothing decided on the way."""
    context, placements, _ = decided(client)
    reader = PodReader()
    pods: dict[str, Pod] = {
        pod.uid: pod for pod in read_list(client, Query(kinds.POD, namespace=namespace), reader.read).items
    }
    patches: list[tuple[str, bytes]] = []
    for placement in placements:
        pod = pods[placement.uid]
        if pod.held is not None:
            operations = release_patch(pod.held, placement, context.policy.levels).operations
            path = f"/api/v1/namespaces/{namespace}/pods/{pod.name}"
            patches.append((path, json.dumps(operations).encode()))

    def send() -> None:
        with ThreadPoolExecutor(CONNECTIONS) as threads:
            list(threads.map(lambda part: _send(testbed, part), [patches[i::CONNECTIONS] for i in range(CONNECTIONS)]))

    return send


def _send(testbed: Testbed, patches: list[tuple[str, bytes]]) -> None:
    connection = Connection.from_kubeconfig(testbed.kubeconfig)
    context = ssl.create_default_context(cafile=connection.tls.ca_path)
    context.load_cert_chain(str(connection.tls.certificate_path), connection.tls.key_path)
    host = connection.server.removeprefix("https://")
    link = http.client.HTTPSConnection(host, context=context)
    headers = {"Content-Type": "application/json-patch+json", "Accept": "application/json"}
    for path, body in patches:
        link.request("PATCH", path, body, headers)
        answer = link.getresponse()
        answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{path}: HTTP {answer.status}")
    link.close()


def ours(client: Client) -> Callable[[], None]:
    context, _, plan_ = decided(client)
    telemetry = Telemetry(CollectorRegistry())
    events = EventRecorder(
        client, instance="bench", clock=time.time, on_error=lambda error: print(error, file=sys.stderr)
    )
    actuator = Actuator(client, events=events, telemetry=telemetry, clock=time.time)

    def release() -> None:
        actuator.release(context, plan_)

    return release


def run() -> list[Result]:
    testbed = Testbed(progress=lambda text: print(text, flush=True))
    testbed.up(nodes=[], kubelet=False, prometheus=False, kwok=True)
    try:
        return _compare(testbed)
    finally:
        testbed.down()


def _compare(testbed: Testbed) -> list[Result]:
    testbed.kubectl("apply", "--server-side", "-f", "crds")
    testbed.kubectl("wait", "--for=condition=Established", "crd/balancingpolicies.ballast.dev", "--timeout=60s")
    testbed.apply(POLICY)
    testbed.add_fake_nodes([fake_node(i) for i in range(NODES)])
    client = Client(Connection.from_kubeconfig(testbed.kubeconfig), Limits(connections=CONNECTIONS))
    rates: dict[str, tuple[float, float]] = {}
    planning = 0.0
    for name in ("ungated", "bare", "ballast"):
        testbed.create_namespace(name)
        started = time.perf_counter()
        create_all(client, name, gated=name != "ungated")
        created = time.perf_counter() - started
        print(f"{name}: {PODS} pods created in {created:.1f} s", flush=True)
        if name == "ungated":
            until_bound(client, name)
            # The scheduler works while pods are created, so its time is from the first creation on.
            rates[name] = (created, time.perf_counter() - started)
        else:
            planned = time.perf_counter()
            work = bare(testbed, client, name) if name == "bare" else ours(client)
            planning = time.perf_counter() - planned
            rates[name] = timed(work, client, name)
        testbed.kubectl("delete", "pods", "--all", "-n", name, "--wait=false", "--grace-period=0", "--force")
        _emptied(client, name)
    return _results(rates, planning)


def fake_node(index: int) -> NodeSpec:
    return NodeSpec(
        name=f"node-{index:04d}",
        zone=f"z{index // 400}",
        rack=f"r{index // 20}",
        cpu="16",
        memory="64Gi",
        pods="110",
        labels={"pool": "bench"},
    )


def _emptied(client: Client, namespace: str) -> None:
    def empty() -> bool:
        return not client.get_page(kinds.POD, {"limit": "1"}, namespace=namespace, metadata_only=True).items

    wait_until(empty, what=f"the pods of {namespace} are deleted", timeout_seconds=600.0, poll_seconds=0.5)


def _results(rates: dict[str, tuple[float, float]], planning: float) -> list[Result]:
    case = f"{PODS} pods on {NODES} nodes, {CONNECTIONS} connections"
    per_second = {name: PODS / total for name, (_, total) in rates.items()}
    return [
        Result(case, "first patch to all bound", per_second["ballast"], "pods/s",
               Baseline("bare HTTP loop", per_second["bare"]), Aim(0.9, at_least=True, of_ratio=True)),
        Result(case, "first patch to all bound, next to the scheduler", per_second["ballast"], "pods/s",
               Baseline("kube-scheduler ungated", per_second["ungated"])),
        Result(case, "patches answered", PODS / rates["ballast"][0], "patches/s",
               Baseline("bare HTTP loop", PODS / rates["bare"][0])),
        Result(case, "looking and deciding", planning, "s"),
    ]  # fmt: skip


if __name__ == "__main__":
    at_start = machine()
    write("gates", run(), before=at_start)
