"""How fast gated executors are released and bound, against a real API server with nodes that only exist in it.

Runs in one testbed, each with fresh pods: (a) kube-scheduler alone binds pods without a gate; (b) a bare HTTP loop
sends the same patches and asks for the same answers, with nothing decided; (c) Ballast decides and releases. Timed
from the first patch until all pods are bound; for (a) from the first pod's creation, since the scheduler binds while
others are created. (d) Contention: the nodes hold the executors and nothing more, and while they are nominated and
gated, other pods of their priority ask for the same room.
"""

from __future__ import annotations

import dataclasses
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
from ballast.kube.answer import FULL
from ballast.kube.client import METADATA_ONLY, Client, Limits
from ballast.kube.connection import Connection
from ballast.kube.events import EventRecorder
from ballast.kube.nomination import Nominated, nominate_many
from ballast.kube.objects import Query, read_list
from ballast.kube.pods import Pod, PodReader
from ballast.model import Memory, Plan
from ballast.planner.plan import plan
from ballast.prometheus import Reading
from ballast.tenancy import lane as lanes
from benchmarks.report import Aim, Baseline, Result, machine, write
from tests.testbed.nodes import NodeSpec
from tests.testbed.testbed import Testbed
from tests.testbed.waiting import wait_until

NODES, PODS, SET = 1_000, 5_000, 50
NODE_CORES, NODES_PER_ZONE = 16, 500
"""Of larger zones kube-scheduler scores a sample, so that executors are nominated to their nodes."""
RIVALS = 1_000
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


def decided(client: Client) -> tuple[Context, Plan]:
    """What Ballast would release now: objects, snapshot and plan, as the operator's round does it."""
    objects = ClusterLister(client).look()
    now = time.time()
    lands = pools_of(objects.policies, objects.lists.nodes)
    cluster_view = ClusterView(objects, lands, GateClock().after(objects.lists.pods, now), now)
    context = cluster_view.context(objects.policies[0], Memory(), Reading(), [])
    plan_, _ = plan(context.snapshot, context.policy, Memory(), now)
    return context, plan_


def bare(testbed: Testbed, client: Client, namespace: str) -> Callable[[], None]:
    """The same patches over plain connections, all nominations first, with nothing decided on the way."""
    context, plan_ = decided(client)
    reader = PodReader()
    pods: dict[str, Pod] = {
        pod.uid: pod for pod in read_list(client, Query(kinds.POD, namespace=namespace), reader.read).items
    }
    nominations: list[_Patch] = []
    releases: list[_Patch] = []
    for placement in plan_.placements:
        pod = pods[placement.uid]
        if pod.held is not None:
            path = f"/api/v1/namespaces/{namespace}/pods/{pod.name}"
            # The version is not known before a nomination is answered; a test of the uid costs the server as much.
            test = {"op": "test", "path": "/metadata/uid", "value": pod.uid}
            if placement.nominated:
                add = {"op": "add", "path": "/status/nominatedNodeName", "value": placement.node}
                nominations.append((f"{path}/status", FULL, json.dumps([test, test, add]).encode()))
            _, *operations = release_patch(pod.held, placement, context.policy.levels).operations
            releases.append((path, METADATA_ONLY, json.dumps([test, *operations]).encode()))

    def send() -> None:
        for patches in (nominations, releases):
            with ThreadPoolExecutor(CONNECTIONS) as threads:
                parts = [patches[i::CONNECTIONS] for i in range(CONNECTIONS)]
                list(threads.map(lambda part: _send(testbed, part), parts))

    return send


_Patch = tuple[str, str, bytes]
"""Path, the form of the answer, body."""


def _send(testbed: Testbed, patches: list[_Patch]) -> None:
    connection = Connection.from_kubeconfig(testbed.kubeconfig)
    context = ssl.create_default_context(cafile=connection.tls.ca_path)
    context.load_cert_chain(str(connection.tls.certificate_path), connection.tls.key_path)
    host = connection.server.removeprefix("https://")
    link = http.client.HTTPSConnection(host, context=context)
    for path, form, body in patches:
        headers = {"Content-Type": "application/json-patch+json", "Accept": form}
        link.request("PATCH", f"{path}?fieldManager=bench", body, headers)
        answer = link.getresponse()
        answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{path}: HTTP {answer.status}")
    link.close()


def ours(client: Client) -> Callable[[], None]:
    context, plan_ = decided(client)
    acting = actuator(client)

    def release() -> None:
        acting.release(context, plan_)

    return release


def actuator(client: Client) -> Actuator:
    telemetry = Telemetry(CollectorRegistry())
    lane = lanes.Lane()
    events = EventRecorder(
        client, lane, instance="bench", clock=time.time, on_error=lambda error: print(error, file=sys.stderr)
    )
    return Actuator(client, lane, events=events, telemetry=telemetry, clock=time.time)


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
        emptied(testbed, client, name)
    return [*_results(rates, planning), *_contention(testbed, client)]


def _contention(testbed: Testbed, client: Client) -> list[Result]:
    for name in ("filling", "contended", "rivals"):
        testbed.create_namespace(name)
    full = NODE_CORES - PODS // NODES
    created(client, "filling", [plain(i, cores=full, node=fake_node(i).name) for i in range(NODES)])
    create_all(client, "contended", gated=True)
    context, plan_ = decided(client)
    chosen = {each.uid: each.node for each in plan_.placements if each.node is not None}
    started = time.perf_counter()
    wanted = [(context.pods[uid], node) for uid, node in chosen.items()]
    lane = lanes.Lane(lanes.Limits(late_seconds=600.0))
    nominated = [each.pod for each in nominate_many(client, lane, wanted) if isinstance(each, Nominated)]
    nominating = time.perf_counter() - started
    created(client, "rivals", [plain(i, cores=1) for i in range(RIVALS)])
    _tried(testbed, "rivals")
    fresh = dataclasses.replace(context, pods={**context.pods, **{pod.uid: pod for pod in nominated}})
    actuator(client).release(fresh, plan_)
    _tried(testbed, "contended")
    homes = {pod["metadata"]["uid"]: pod["spec"].get("nodeName") for pod in pods(testbed, "contended")}
    stolen = sum(homes.get(uid) != node for uid, node in chosen.items())
    case = f"{RIVALS} pods ask for the room of {PODS} gated executors, and there is no other"
    return [
        Result(case, "executors to be nominated", float(sum(_to_nominate(plan_))), "1", aim=Aim(PODS, at_least=True)),
        Result(case, "nominations answered", len(nominated) / nominating, "patches/s"),
        Result(case, "places stolen", float(stolen), "1", aim=Aim(0.0)),
        Result(
            case,
            "rivals bound",
            float(sum("nodeName" in pod["spec"] for pod in pods(testbed, "rivals"))),
            "1",
            aim=Aim(0.0),
        ),
    ]


def _to_nominate(plan_: Plan) -> list[bool]:
    return [placement.nominated for placement in plan_.placements]


def plain(index: int, *, cores: int, node: str | None = None) -> dict[str, Any]:
    """A pod that is no executor, of the executors' priority; bound from the start if it names its node."""
    pod = executor("", index, gated=False)
    pod["metadata"] = {"name": f"plain-{index}"}
    (container,) = pod["spec"]["containers"]
    container["resources"] = {"requests": {"cpu": str(cores)}}
    return {**pod, "spec": {**pod["spec"], **({"nodeName": node} if node else {})}}


def created(client: Client, namespace: str, bodies: list[dict[str, Any]]) -> None:
    with ThreadPoolExecutor(CONNECTIONS) as threads:
        list(threads.map(lambda body: client.create(kinds.POD, body, namespace=namespace), bodies))


def _tried(testbed: Testbed, namespace: str) -> None:
    """Wait until kube-scheduler has bound every pod, or has said that it finds no room."""

    def tried() -> bool:
        unbound = pods(testbed, namespace, "?fieldSelector=spec.nodeName%3D")
        return all(any(c.get("reason") == "Unschedulable" for c in _conditions(pod)) for pod in unbound)

    wait_until(tried, what=f"the pods of {namespace} were tried", timeout_seconds=600.0, poll_seconds=0.5)


def _conditions(pod: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (pod.get("status") or {}).get("conditions") or []
    return found


def pods(testbed: Testbed, namespace: str, query: str = "") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = testbed.api.get(f"/api/v1/namespaces/{namespace}/pods{query}")["items"]
    return found


def fake_node(index: int) -> NodeSpec:
    return NodeSpec(
        name=f"node-{index:04d}",
        zone=f"z{index // NODES_PER_ZONE}",
        rack=f"r{index // 20}",
        cpu=str(NODE_CORES),
        memory="64Gi",
        pods="110",
        labels={"pool": "bench"},
    )


def emptied(testbed: Testbed, client: Client, namespace: str) -> None:
    testbed.kubectl("delete", "pods", "--all", "-n", namespace, "--wait=false", "--grace-period=0", "--force")

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
        Result(case, "first patch to last answer", PODS / rates["ballast"][0], "pods/s",
               Baseline("bare HTTP loop", PODS / rates["bare"][0]), Aim(0.9, at_least=True, of_ratio=True)),
        Result(case, "looking and deciding", planning, "s"),
    ]  # fmt: skip


if __name__ == "__main__":
    at_start = machine()
    write("gates", run(), before=at_start)
