"""Pulsar's placement strategies, through `place`."""

from __future__ import annotations

import pytest

from ballast.placement.strategies import Averages, PlacementState
from tests.vectors import placed, pulsar
from tests.vectors.case import Case
from tests.vectors.outcome import Outcome, Record

DIGITS = 4
"""To which averages are kept."""


def scores(case: Case, given: pulsar.Given) -> dict[str, float]:
    """Of the candidates that have figures, percent."""
    weights = pulsar.weights(case.config)
    brokers = {broker["name"]: broker for broker in given["brokers"]}
    return {name: pulsar.scored_by(weights)(brokers[name]) for name in given["candidates"] if name in brokers}


@pytest.mark.vectors("pulsar", "LeastLongTermMessageRate")
def test_least_long_term_rate(case: Case) -> None:
    overloaded = case.config["loadBalancerBrokerOverloadedThresholdPercentage"]
    for given, want in pulsar.rounds(case):
        known, best = scores(case, given), want.get("best", ())
        found = placed.least_long_term_rate(given, known, overloaded_percent=overloaded, wanted=best)
        assert found <= known.keys() if "error" in want else sorted(found) == sorted(best)


@pytest.mark.vectors("pulsar", "LeastResourceUsageWithWeight")
def test_least_resource_usage(case: Case, record: Record) -> None:
    ratio = case.config["loadBalancerHistoryResourcePercentage"]
    difference = case.config["loadBalancerAverageResourceUsageDifferenceThresholdPercentage"]
    averages = Averages()
    for given, want in pulsar.rounds(case):
        known, best = scores(case, given), want.get("best", ())
        averages = placed.usage_observed(given, known, averages, history_ratio=ratio)
        found = placed.least_resource_usage_of(list(known), averages, difference_percent=difference, wanted=best)
        if "error" in want:
            assert found <= known.keys()
            continue
        usage = {name: round(value, DIGITS) for name, value in want["usage"].items()}
        assert dict(averages.by_node) == pytest.approx(usage, abs=1.01 * 10**-DIGITS)
        if sorted(found) != sorted(best):
            assert_at_the_threshold(averages, known, difference, differing=found.symmetric_difference(best))
            record(Outcome(case, "at-the-threshold"))


def assert_at_the_threshold(
    averages: Averages, known: dict[str, float], difference: float, differing: set[str]
) -> None:
    """Ours keeps averages to four digits: only what they could decide may differ."""
    usage = {name: ratio for name, ratio in averages.by_node if name in known}
    limit = sum(usage.values()) / len(usage) - difference / 100
    assert all(abs(usage[name] - limit) < 3 * 10**-DIGITS for name in differing)


@pytest.mark.vectors("pulsar", "ExtensibleLeastResourceUsageWithWeight")
def test_extensible_least_resource_usage(case: Case) -> None:
    difference = case.config["loadBalancerAverageResourceUsageDifferenceThresholdPercentage"]
    for given, want in pulsar.rounds(case):
        averages = Averages(tuple(sorted(given["weightedMaxEMA"].items())))
        found = placed.least_resource_usage_of(
            given["candidates"], averages, difference_percent=difference, wanted=want["best"]
        )
        assert sorted(found) == sorted(want["best"])


@pytest.mark.vectors("pulsar", "RoundRobinBrokerSelector")
def test_round_robin(case: Case, record: Record) -> None:
    """Ours goes by name: nodes are named by their position in Pulsar's list, while that stays the same."""
    state, last, turns = PlacementState(), list[str](), list[str | None]()
    changed = False
    for given, want in pulsar.rounds(case):
        listed = given["candidates"]
        changed |= bool(last) and listed != last
        turns = turns if listed == last else []
        last = listed
        names = {f"{at:04d}": name for at, name in enumerate(listed)}
        chosen, state = placed.Question("RoundRobin", list(names), {}).once(state)
        turns.append(chosen)
        if not changed:
            assert names.get(chosen or "") == want["selected"]
        assert len(set(turns[-len(listed) :])) == min(len(turns), len(listed)) or not listed
    if changed:
        record(Outcome(case, "list-changed"))
