"""What a user of Ballast would write for this job, and a load that belongs to none of its executors."""

from __future__ import annotations

from typing import Any

from examples.demo.pool import POOL, POOL_LABEL

NAMESPACE = "analytics"
BROKERS = "brokers"
TOPOLOGY = "clickstream"
COMPONENT = "windows"
POLICY = "streaming"
EXECUTOR_LABELS = {"ballast.dev/topology": TOPOLOGY, "ballast.dev/component": COMPONENT}
WINDOW_SECONDS = 15
SETTLE_SECONDS = 45
MIN_HOT_SCORE = 60
"""The default of a policy."""
_API = "ballast.dev/v1alpha1"

Json = dict[str, Any]

_LEVELING: Json = {"moves": {"mode": "Enforce", "settle": f"{SETTLE_SECONDS}s", "minExecutorAge": "20s"}}
_PLACING_ALONE: Json = {"shedding": {"strategy": "None"}, "moves": {"mode": "Disabled"}}
"""Without a strategy, since one would take the scores of starting JVMs for the pool's usual noise."""


def topology(executors: int) -> Json:
    """The job shuffles within itself and reads from the broker."""
    return {
        "apiVersion": _API,
        "kind": "SparkTopology",
        "metadata": {"name": TOPOLOGY, "namespace": NAMESPACE},
        "spec": {
            "components": [
                {
                    "name": "broker",
                    "external": {"namespace": BROKERS, "selector": {"matchLabels": {"app": "broker"}}},
                },
                {
                    "name": COMPONENT,
                    "workload": "Streaming",
                    "executors": executors,
                    "exchange": {"bytesPerSecond": "10Mi"},
                },
            ],
            "streams": [
                {
                    "from": "broker",
                    "to": COMPONENT,
                    "grouping": "LocalOrShuffle",
                    "rate": {"bytesPerSecond": "5Mi"},
                }
            ],
        },
    }


def policy(prometheus_url: str, *, leveling: bool) -> Json:
    """Enforced, and the default one except for its short times. Without `leveling` it moves nothing."""
    return {
        "apiVersion": _API,
        "kind": "BalancingPolicy",
        "metadata": {"name": POLICY},
        "spec": {
            "nodeSelector": {"matchLabels": {POOL_LABEL: POOL}},
            "externalNamespaces": [BROKERS],
            "interval": "5s",
            "metrics": {
                "prometheus": {"url": prometheus_url},
                "window": f"{WINDOW_SECONDS}s",
                "maxAge": "30s",
            },
            "placement": {"mode": "Enforce"},
            **(_LEVELING if leveling else _PLACING_ALONE),
        },
    }


def shown(spec: Json, prefix: str = "") -> list[str]:
    """A policy's settings, one a line, as `a.b = value`."""
    lines = []
    for name, value in spec.items():
        if isinstance(value, dict):
            lines += shown(value, f"{prefix}{name}.")
        else:
            lines.append(f"{prefix}{name} = {value}")
    return lines


def broker(node: str) -> Json:
    """Stands for what the job reads from: a small pod that stays where it is."""
    return _pod("broker-0", BROKERS, image="pause", labels={"app": "broker"}, cpu="10m", node=node)


def noise(node: str, cores: float) -> Json:
    """A neighbor that burns the CPU that it asked for."""
    cpu = f"{cores * 1000:.0f}m"
    pod = _pod("noisy-neighbor", BROKERS, image="noise", labels={"app": "noise"}, cpu=cpu, node=node)
    pod["spec"]["containers"][0]["args"] = ["--cores", f"{cores:g}"]
    return pod


def _pod(name: str, namespace: str, *, image: str, labels: dict[str, str], cpu: str, node: str) -> Json:
    resources = {"requests": {"cpu": cpu, "memory": "32Mi"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {
            "nodeName": node,
            "terminationGracePeriodSeconds": 1,
            "containers": [{"name": "main", "image": image, "resources": resources}],
        },
    }
