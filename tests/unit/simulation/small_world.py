"""Small scenarios, and policies to run them under."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ballast.api import BalancingPolicy
from ballast.api.version import API_VERSION
from ballast.model import Policy
from ballast.simulation.cluster import Cluster, Lifetimes, changes
from ballast.simulation.inventory import executor_slots, fleet
from ballast.simulation.policies import policy_in
from ballast.simulation.scenario import Scenario

EAGER: dict[str, Any] = {
    "metrics": {"window": "60s"},
    "placement": {"mode": "Enforce", "maxExecutorsPerNodePercent": 100},
    "moves": {
        "mode": "Enforce",
        "maxConcurrent": 100,
        "maxConcurrentPerNode": 100,
        "cooldown": "0s",
        "budgets": [],
        "minGain": 0,
        "settle": "2m",
    },
}
SMALL_AND_LARGE = [{"name": "large", "cores": 8, "zones": ["a"]}, {"name": "small", "cores": 2, "zones": ["b"]}]


def scenario(**spec: Any) -> Scenario:
    """Two nodes at 80 and 20 percent, bundles of a core each, for half an hour, unless `spec` says otherwise."""
    base: dict[str, Any] = {
        "duration": "30m",
        "nodes": [{"name": "node", "count": 2, "cores": 10}],
        "applications": [
            {"name": "bundle", "copies": 10, "load": {"cores": 1.0}, "runsOn": {"node-0": 8, "node-1": 2}}
        ],
    }
    return Scenario.parse({"metadata": {"name": "small"}, "spec": {**base, **spec}})


def by_spec(spec: Mapping[str, Any], scenario: Scenario, *, name: str) -> Policy:
    """The policy of a spec without a node selector. Raises InvalidResource."""
    document = {
        "apiVersion": API_VERSION,
        "kind": "BalancingPolicy",
        "metadata": {"name": name},
        "spec": {"nodeSelector": {}, **spec},
    }
    return policy_in(BalancingPolicy.parse(document), scenario)


def policy(shedding: dict[str, Any] | None = None, **moves: Any) -> Policy:
    """Everything is allowed, as far as `moves` does not say otherwise."""
    spec = {**EAGER, "shedding": shedding or {}, "moves": {**EAGER["moves"], **moves}}
    return by_spec(spec, scenario(), name="policy")


def cluster(nodes: list[dict[str, Any]], executors: int = 4, **job: Any) -> Cluster:
    spec = scenario(
        nodes=nodes, applications=[{"name": "job", "executors": executors, "load": {"cores": 1}, **job}]
    ).spec
    built = fleet(spec.nodes)
    found = Cluster(
        built,
        executor_slots(spec, built),
        moving=spec.moving,
        changes=changes(spec.events, built),
        life=Lifetimes(),
    )
    found.advance(0.0)
    return found
