"""Pods, containers and what surrounds them, with only the interesting parts given."""

from typing import Any

from tests.testbed.kubelet.environment import PodFacts

Json = dict[str, Any]


def container(name: str = "main", *, image: str = "host", **fields: Any) -> Json:
    return {"name": name, "image": image, **fields}


def pod(*containers: Json, name: str = "web-0", uid: str = "11111111-2222", **spec: Any) -> Json:
    return {
        "metadata": {
            "name": name,
            "namespace": "shop",
            "uid": uid,
            "labels": {"app": "web"},
            "annotations": {"note": "two\nlines"},
        },
        "spec": {"nodeName": "node-1", "containers": list(containers) or [container()], **spec},
    }


def facts(of: Json | None = None, **fields: Any) -> PodFacts:
    return PodFacts(
        pod=of or pod(),
        pod_ip="127.9.1.2",
        host_ip="127.9.1.1",
        node_capacity={"cpu": "2", "memory": "4Gi"},
        **fields,
    )
