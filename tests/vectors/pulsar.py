"""Recorded Pulsar situations in our words: brokers as nodes, bundles as executors, usages in percent."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ballast.shedding.load import ExecutorLoad, NodeLoad, PoolLoad
from ballast.shedding.transfer_pool import Activity, Allowed, TopExecutor, TransferNode, TransferPool
from tests.vectors.case import Case

NOT_CARRIED_OVER = (
    "activeBrokers",
    "placements",
    "assign",
    "notOwned",
    "policyBundles",
    "filtered",
    "recentBrokersElapsedSeconds",
)
_WEIGHTS = {
    "cpu": "loadBalancerCPUResourceWeight",
    "memory": "loadBalancerMemoryResourceWeight",
    "directMemory": "loadBalancerDirectMemoryResourceWeight",
    "bandwidthIn": "loadBalancerBandwidthInResourceWeight",
    "bandwidthOut": "loadBalancerBandwidthOutResourceWeight",
}
# What Pulsar keeps out of shedding: heartbeat and SLA-monitor namespaces, which stay where their broker is.
_SYSTEM = re.compile(r"(pulsar|sla-monitor)/[^/]+:\d+/0x")

Given = Mapping[str, Any]


def rounds(case: Case) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """The given of each round, with what it carries over from the one before, and the want."""
    carried: dict[str, Any] = {}
    for each in case.rounds:
        carried = {key: value for key, value in carried.items() if key not in NOT_CARRIED_OVER} | each["given"]
        yield carried, each["want"]


def single(value: float) -> float:
    """Rounded to binary32."""
    return float(struct.unpack("f", struct.pack("f", value))[0])


def percent(resource: list[float]) -> float:
    usage, limit = resource
    return single(single(single(usage) / single(limit)) * 100.0) if limit > 0 else 0.0


def max_percent(broker: Given, weights: Mapping[str, float]) -> float:
    """The largest weighted resource usage."""
    return max(percent(broker.get(resource, [0.0, 0.0])) * weight for resource, weight in weights.items())


def weights(config: Given) -> dict[str, float]:
    """The weights that a class reads; a resource without one takes no part."""
    return {resource: config[key] for resource, key in _WEIGHTS.items() if key in config}


Score = Callable[[Given], float]


def scored_by(weights: Mapping[str, float]) -> Score:
    return lambda broker: max_percent(broker, weights) if weights else 0.0


def pool(given: Given, score: Score) -> PoolLoad:
    """The pool in the order in which the class saw it; a bundle without metrics stands behind those that have some."""
    figures = {row[0]: row for row in given["bundles"] if not _SYSTEM.match(row[0])}
    order = {name: index for index, name in enumerate(figures)}
    recent = set(given.get("recentlyUnloaded", ()))

    def executor(name: str) -> ExecutorLoad:
        if name not in figures:
            return ExecutorLoad(name)
        _, rate_in, rate_out, bytes_in, bytes_out, *_ = figures[name]
        return ExecutorLoad(name, rate_in + rate_out, bytes_in + bytes_out, movable=name not in recent)

    def node(broker: Given) -> NodeLoad:
        owned = sorted(given["owners"].get(broker["name"], ()), key=lambda name: order.get(name, len(order)))
        return NodeLoad(
            name=broker["name"],
            score=score(broker),
            rate_per_second=broker["msgRateIn"] + broker["msgRateOut"],
            bytes_per_second=broker["msgThroughputIn"] + broker["msgThroughputOut"],
            executors=tuple(executor(name) for name in owned),
        )

    return PoolLoad(tuple(node(broker) for broker in given["brokers"] if not broker.get("noLocalData")))


def activities(given: Given, config: Given) -> list[Activity]:
    """What TopKBundles looks at."""
    return [
        Activity(name, bytes_in, bytes_out, rate_in + rate_out, consumers + producers + topics, cache)
        for name, rate_in, rate_out, bytes_in, bytes_out, consumers, producers, topics, cache in given["bundles"]
        if not name.startswith("pulsar/system/") and not _SYSTEM.match(name)
        if namespace(name) not in config["loadBalancerSheddingExcludedNamespaces"]
    ]


def reports(given: Given, before: Mapping[str, float]) -> dict[str, float]:
    """Bytes per second of each broker as it last reported them."""
    return {
        broker["name"]: before.get(broker["name"], 0.0)
        if broker.get("noReport")
        else broker["msgThroughputIn"] + broker["msgThroughputOut"]
        for broker in given["brokers"]
    }


def transfer_pool(given: Given, config: Given, reported: Mapping[str, float]) -> TransferPool:
    volumes = {row[0]: row[3] + row[4] for row in given["bundles"]}
    recent = set(given.get("recentlyUnloaded", ()))
    excluded = config["loadBalancerSheddingExcludedNamespaces"]
    gone = set(given.get("notOwned", ()))
    score = scored_by(weights(config))
    since = given.get("recentBrokersElapsedSeconds", {})

    def top(bundle: str) -> TopExecutor:
        movable = bundle not in recent and namespace(bundle) not in excluded
        return TopExecutor(bundle, volumes.get(bundle, 0.0), movable, bundle not in gone)

    def node(broker: Given) -> TransferNode:
        name = broker["name"]
        return TransferNode(
            name=name,
            score=score(broker),
            bytes_per_second=reported[name],
            reported=not broker.get("noReport"),
            stored=not broker.get("noData"),
            age_seconds=broker.get("ageSeconds", 0.0),
            since_unload_seconds=since.get(name),
            top=tuple(top(bundle) for bundle in given["topBundles"].get(name, ())),
        )

    return TransferPool(tuple(node(broker) for broker in given["brokers"]), frozenset(given["registered"]))


def allowed(given: Given, config: Given) -> Allowed:
    """Pulsar's isTransferable: policies, and the filter pipeline. A broker needs no registration to be a target."""
    kept = set() if config["loadBalancerSheddingBundlesWithPoliciesEnabled"] else set(given.get("policyBundles", ()))

    def may(bundle: str, source: str, target: str) -> bool:
        filtered = given.get("filtered", {}).get(bundle, ())
        return bundle not in kept and target not in filtered and target != source

    return may


def namespace(bundle: str) -> str:
    return bundle.rsplit("/", 1)[0]


def value_key(bundle: str, given: Given) -> str:
    """What makes two of Pulsar's BundleData equal: short- and long-term averages, not the name."""
    row = next((row for row in given["bundles"] if row[0] == bundle), None)
    if row is None:
        return "default"
    *short, factor = row[1:]
    return repr((short, [value * factor for value in short]))
