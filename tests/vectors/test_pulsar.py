from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from ballast.placement.pulsar import avg_shedder as avg_placement
from ballast.shedding.avg_shedder_traffic import TrafficSettings, avg_shedder_traffic
from ballast.shedding.hits import HitCounts
from ballast.shedding.load import PoolLoad
from ballast.shedding.pairing import ascending
from ballast.shedding.suggestion import Suggestion
from tests.vectors import pulsar
from tests.vectors.case import Case
from tests.vectors.closeness import same
from tests.vectors.defects import faithful
from tests.vectors.outcome import Outcome, Record

Unloads = Mapping[str, list[str]]


def unloads(suggestions: Iterable[Suggestion]) -> dict[str, list[str]]:
    by_source: dict[str, list[str]] = {}
    for suggestion in suggestions:
        by_source.setdefault(suggestion.source, []).append(suggestion.executor)
    return by_source


def same_unloads(ours: Unloads, theirs: Unloads, case: Case, record: Record) -> bool:
    """False when a tie went the other way, so that the rest of the case can't be compared; asserts otherwise."""
    if ours == theirs:
        return True
    if case.raw["orderTie"] and _sets(ours) == _sets(theirs):
        record(Outcome(case, "orderTie"))
        return True
    assert case.raw["tie"], f"{ours} != {theirs}"
    record(Outcome(case, "tie"))
    return False


def _sets(by_source: Unloads) -> dict[str, set[str]]:
    return {source: set(executors) for source, executors in by_source.items()}


def avg_settings(config: Mapping[str, Any]) -> TrafficSettings:
    return TrafficSettings(
        low_threshold=config["loadBalancerAvgShedderLowThreshold"],
        high_threshold=config["loadBalancerAvgShedderHighThreshold"],
        low_hits=config["loadBalancerAvgShedderHitCountLowThreshold"],
        high_hits=config["loadBalancerAvgShedderHitCountHighThreshold"],
        max_unload_ratio=config["maxUnloadPercentage"],
        min_rate_per_second=config["minUnloadMessage"],
        min_bytes_per_second=config["minUnloadMessageThroughput"],
        **faithful("AvgShedder"),
    )


@pytest.mark.vectors("pulsar", "AvgShedder")
def test_avg_shedder(case: Case, record: Record) -> None:
    weights = pulsar.weights(case.config)
    settings = avg_settings(case.config)
    memory = HitCounts()
    destinations = avg_placement.Destinations()
    for given, want in pulsar.rounds(case):
        load = pulsar.pool(given, lambda broker: pulsar.max_percent(broker, weights) / 100 * 100)
        result = avg_shedder_traffic(load, settings, memory)
        memory = result.memory
        if not same_unloads(unloads(result.suggestions), want["unloads"], case, record):
            return
        compare_state(load, memory, want)
        decided = {each.executor: pulsar.value_key(each.executor, given) for each in result.suggestions}
        destinations = destinations.noting((decided[each.executor], str(each.target)) for each in result.suggestions)
        assert {name: destinations.of(key) for name, key in decided.items()} == want["destinations"]
        destinations = compare_placements(given, want, destinations)


def compare_state(load: PoolLoad, memory: HitCounts, want: Mapping[str, Any]) -> None:
    assert same({node.name: node.score for node in load.nodes}, want["scores"])
    assert [node.name for node in ascending(load)] == want["sortedBrokers"]
    assert {name: hits.high for name, hits in memory.by_node if hits.high} == want["hitHigh"]
    assert {name: hits.low for name, hits in memory.by_node if hits.low} == want["hitLow"]


def compare_placements(
    given: Mapping[str, Any], want: Mapping[str, Any], destinations: avg_placement.Destinations
) -> avg_placement.Destinations:
    brokers = [broker["name"] for broker in given["brokers"]]
    for asked, wanted in zip(given.get("placements", ()), want.get("placements", ()), strict=True):
        key = pulsar.value_key(asked["bundle"], given)
        candidates = [name for name in brokers if name not in asked.get("exclude", ())]
        possible = sorted(avg_placement.possible(key, candidates, destinations))
        assert possible == wanted.get("observed", [])
        assert possible or "error" in wanted
        if asked.get("commit"):
            destinations = destinations.noting([(key, possible[0])])
    return destinations
