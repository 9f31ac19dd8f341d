"""Commands list the cluster, and the operator watches it: both must see the same."""

from __future__ import annotations

import time

from ballast.controller.cluster_objects import ClusterLister, ClusterObjects
from ballast.controller.cluster_state import ClusterState
from tests.testbed.waiting import wait_until
from tests.unit.controller.stage import move, streaming
from tests.unit.controller.world import World
from tests.unit.kube.builders import GATE, driver, executor, expression, node, pod

LOCAL = {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression("kubernetes.io/hostname", "node-1")]}]}}


def world() -> World:
    """Some objects of every kind, and a policy that can't be read."""
    found = World()
    data = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    found.put("nodes", node("node-1"), node("node-2", unschedulable=True))
    found.put("namespaces", *({"metadata": {"name": name, "labels": {"team": name}}} for name in ("analytics", "web")))
    scratch = {"name": "scratch", "persistentVolumeClaim": {"claimName": "scratch"}}
    gated = executor(2, gates=[GATE], volumes=[scratch])
    found.put("pods", streaming(1, node="node-1", volumes=[data]), gated, driver(), pod("other"))
    claim = {"metadata": {"namespace": "analytics", "name": "scratch"}, "spec": {"storageClassName": "fast"}}
    found.put("persistentvolumeclaims", claim)
    allowed = [{"matchLabelExpressions": [{"key": "topology.kubernetes.io/zone", "values": ["b"]}]}]
    found.put("storageclasses", {"metadata": {"name": "fast"}, "allowedTopologies": allowed})
    volume = {"claimRef": {"name": "data", "namespace": "analytics"}, "nodeAffinity": LOCAL}
    found.put("persistentvolumes", {"metadata": {"name": "pv-1"}, "spec": volume, "status": {"phase": "Bound"}})
    for number, name in enumerate(("first", "second")):
        spec = {"nodeSelector": {"matchLabels": {"pool": name}}}
        created = f"2026-01-0{2 - number}T00:00:00Z"
        found.put("balancingpolicies", {"metadata": {"name": name, "creationTimestamp": created}, "spec": spec})
    found.put("balancingpolicies", {"metadata": {"name": "broken"}, "spec": {"interval": "never"}})
    for name in ("views", "clicks"):
        metadata = {"name": name, "namespace": "analytics", "labels": {"team": "a"}}
        found.put("sparktopologies", {"metadata": metadata, "spec": {"components": [{"name": "only"}]}})
    found.put("executormoves", move(1), move(2))
    return found


def seen(objects: ClusterObjects) -> dict[str, object]:
    lists = objects.lists
    by_uid = {pod.uid: pod for pod in lists.pods}
    return {
        "pods": {uid: pod for uid, pod in by_uid.items() if pod.executor is not None or pod.is_driver},
        "nodes": sorted(lists.nodes, key=lambda each: each.name),
        "namespaces": dict(lists.namespaces),
        "volumes": [lists.volumes.node_terms("analytics", pod.claims) for pod in by_uid.values() if pod.claims],
        "policies": [read.resource for read in objects.policies],
        "topologies": [read.resource for read in objects.topologies],
        "moves": sorted(each["metadata"]["uid"] for each in objects.moves),
        "broken": [str(each) for each in objects.broken],
    }


def test_commands_list_what_the_operator_watches() -> None:
    client = world().client()
    state = ClusterState(
        client, monotonic=time.monotonic, notify=lambda: None, gated=lambda: None, failed=lambda _: None
    )
    listed = seen(ClusterLister(client).look())
    state.start()
    try:
        # No executor waits for claims and StorageClasses.
        wait_until(lambda: seen(state.look()) == listed, what="the operator sees the same")
    finally:
        state.stop()
    assert all(listed.values()), listed
