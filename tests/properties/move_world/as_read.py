"""A state of the world as the real operator reads it: pods as the API server has them, gathered by the real code."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from ballast.controller.cluster_objects import ClusterObjects, OpenMove
from ballast.controller.cluster_view import ClusterView, pools_of
from ballast.controller.gateclock import GateClock
from ballast.controller.move_facts import facts
from ballast.controller.observe import Lists
from ballast.kube import names
from ballast.kube.document import text
from ballast.kube.nodes import NodeReader
from ballast.kube.pods import Pod, PodReader
from ballast.model import Memory, Phase
from ballast.moves import Facts
from ballast.prometheus import Reading
from tests.properties.carried.play import policy
from tests.properties.move_world.operator_side import now
from tests.properties.move_world.world import ELSEWHERE, SOURCE, TARGET, TICK, Executor, World, uid
from tests.unit.kube.builders import CREATED_AT, GATE, NOMINATED_BY_US, executor, expression, node, required

JSON = dict[str, Any]
BASE = CREATED_AT + 10_000.0
"""Of the world's present tick, in seconds since the epoch; times are compared without it."""
POLICY = policy({"mode": "Enforce"})
NODES = tuple(NodeReader().read(node(name)) for name in (SOURCE, TARGET, ELSEWHERE))
PINNED_BY_US = {
    "manager": names.FIELD_MANAGER,
    "operation": "Update",
    "fieldsV1": {
        "f:spec": {"f:affinity": {"f:nodeAffinity": {"f:requiredDuringSchedulingIgnoredDuringExecution": {}}}}
    },
}
NAMESPACES = {"apps": {"ballast.dev/gate": "enabled"}}


def gathered(world: World, index: int) -> Facts:
    """What the real code finds out about one move; `now` is the world's own."""
    pods = [_read(each) for each in world.executors]
    moves = [OpenMove({}, move) for move in world.moves if move is not None]
    objects = ClusterObjects(Lists(pods, NODES, NAMESPACES), (POLICY,), (), ())
    at = BASE + now(world)
    view = ClusterView(objects, pools_of([POLICY], NODES), GateClock().after(pods, at), at)
    context = view.context(POLICY, Memory(), Reading(), moves)
    move = world.moves[index]
    assert move is not None
    return facts(OpenMove({}, move), context, {each.key: each for each in moves}, at)


@lru_cache(maxsize=10_000)
def _read(one: Executor) -> Pod:
    return PodReader().read(_pod(one))


def _pod(one: Executor) -> JSON:
    status: JSON = {"phase": _PHASES[one.phase]}
    managed: list[JSON] = []
    more: JSON = {}
    if one.phase is Phase.GATED:
        more["gates"] = [GATE]
    if one.pinned is not None:
        more["affinity"] = required(expression("topology.kubernetes.io/zone", "a"))
        managed.append({**PINNED_BY_US, "time": text(CREATED_AT)})
    if one.nominated:
        status["nominatedNodeName"] = one.pinned
        managed.append(NOMINATED_BY_US)
    if one.unschedulable:
        since = {"lastTransitionTime": text(BASE + one.since * TICK)}
        status["conditions"] = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", **since}]
    if one.failed:
        ended = {"terminated": {"exitCode": 143}}
        status["containerStatuses"] = [{"name": "spark-kubernetes-executor", "state": ended}]
    name = f"exec-{one.number}"
    found = executor(one.number, name=name, application=str(one.application), namespace="apps", status=status, **more)
    changes: JSON = {"uid": uid(one.application, one.number), "managedFields": managed}
    changes["creationTimestamp"] = text(BASE + one.created * TICK)
    if one.phase is Phase.LEAVING:
        changes["deletionTimestamp"] = text(BASE + (one.since + 1) * TICK)
    if one.node is not None:
        found["spec"]["nodeName"] = one.node
    return {**found, "metadata": {**found["metadata"], **changes}}


_PHASES = {
    Phase.GATED: "Pending",
    Phase.PENDING: "Pending",
    Phase.RUNNING: "Running",
    Phase.LEAVING: "Running",
    Phase.ENDED: "Failed",
}
