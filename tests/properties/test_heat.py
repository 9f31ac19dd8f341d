"""Nodes that are kept from new executors are those that the shedder, at the same scores, would unload."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ballast.model import AvgShedderPolicy, SheddingPolicy
from ballast.model.shedders import OverloadSettings, ThresholdSettings, TransferSettings
from ballast.placement.placement_view import would_be_unloaded
from ballast.shedding.avg_shedder_usage import UsageMemory, UsageSettings, avg_shedder_usage
from ballast.shedding.load import ExecutorLoad, NodeLoad, PoolLoad, Suggestion, UsageExecutor, UsageNode, UsagePool
from ballast.shedding.strategies import shed
from ballast.shedding.transfer_shedder import Cause

BY_USAGE = SheddingPolicy(avg_shedder=AvgShedderPolicy(low_hits=1, high_hits=1))
ABOVE_MEAN = ThresholdSettings(min_bytes_per_second=0.0, threshold=10.0)
BY_THRESHOLD = SheddingPolicy("ThresholdShedder", threshold_shedder=ABOVE_MEAN)
BY_OVERLOAD = SheddingPolicy("OverloadShedder", overload_shedder=OverloadSettings(threshold=60.0))
BY_LOWER_BOUNDARY = SheddingPolicy("ThresholdShedder", threshold_shedder=replace(ABOVE_MEAN, lower_boundary=True))
FAR_APART = 15.0
"""Points of deviation."""
BY_TRANSFER, BY_DEVIATION = (
    SheddingPolicy(
        "TransferShedder",
        transfer_shedder=TransferSettings(hits=0, overload_threshold=60.0, target_std_ratio=most / 100),
    )
    # No pool deviates by more than fifty points on the whole: then only single nodes are too hot.
    for most in (50.0, FAR_APART)
)
POLICIES = (BY_USAGE, BY_THRESHOLD, BY_LOWER_BOUNDARY, BY_OVERLOAD, BY_TRANSFER)


def clear(found: list[float]) -> bool:
    """Of every limit that counts from the mean: on it, rounding decides."""
    apart = np.abs(np.array(found) - np.mean(found))
    return all(np.abs(apart - limit).min() > 1e-6 for limit in (0.0, 10.0, 15.0, 50.0))


# Odd eighths: exact in binary, and on no limit that counts from zero.
scores = st.lists(st.integers(0, 399).map(lambda eighths: (2 * eighths + 1) / 8), min_size=2, max_size=8).filter(clear)


def suggested(policy: SheddingPolicy, found: list[float]) -> tuple[Suggestion, ...]:
    """Of a first pass that needs no more than one hit, over nodes with four alike executors each."""
    if policy.strategy == "AvgShedder":
        rules = policy.avg_shedder
        settings = UsageSettings(
            low_hits=1, high_hits=1, low_threshold=rules.low_threshold, min_hot_score=rules.min_hot_score, max_moves=99
        )
        nodes = (
            UsageNode(f"{at}", score, 16.0, executors=tuple(UsageExecutor(f"{at}/{n}", 0.01 * score) for n in range(4)))
            for at, score in enumerate(found)
        )
        return avg_shedder_usage(UsagePool(tuple(nodes)), settings, UsageMemory(), now_seconds=0.0).suggestions
    load = PoolLoad.of(
        NodeLoad(f"{at}", score, 4e3, 4e6, executors=tuple(ExecutorLoad(f"{at}/{n}", 1e3, 1e6) for n in range(4)))
        for at, score in enumerate(found)
    )
    return shed(policy.strategy, load, policy.chosen, "").suggestions


def sources(policy: SheddingPolicy, found: list[float]) -> set[int]:
    """Except for those of TransferShedder that only fill a node which is too cold."""
    return {int(each.source) for each in suggested(policy, found) if each.cause != Cause.UNDERLOADED}


def first_source(found: list[float]) -> set[int]:
    return {int(each.source) for each in suggested(BY_DEVIATION, found)[:1]}


def hot(policy: SheddingPolicy, found: list[float]) -> set[int]:
    return set(np.flatnonzero(would_be_unloaded(np.array(found), policy)).tolist())


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.strategy)
@given(scores)
def test_no_node_is_unloaded_that_was_not_called_hot(policy: SheddingPolicy, found: list[float]) -> None:
    assert sources(policy, found) <= hot(policy, found)


@given(scores)
def test_while_the_scores_are_too_far_apart_the_first_node_unloaded_was_called_hot(found: list[float]) -> None:
    """What is unloaded next follows from scores that the first transfer has changed."""
    assume(np.std(found) > FAR_APART)
    assert first_source(found) <= hot(BY_DEVIATION, found)


@pytest.mark.parametrize("policy", [BY_THRESHOLD, BY_OVERLOAD], ids=lambda policy: policy.strategy)
@given(scores)
def test_whom_a_threshold_calls_hot_is_unloaded(policy: SheddingPolicy, found: list[float]) -> None:
    assert sources(policy, found) == hot(policy, found)


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.strategy)
def test_one_hot_node_among_cold_ones_is_unloaded(policy: SheddingPolicy) -> None:
    """Else nothing above would say anything."""
    assert sources(policy, [10.125, 95.125, 20.125, 15.125]) == {1}


def test_the_hottest_is_the_first_to_be_unloaded_while_the_scores_are_too_far_apart() -> None:
    assert first_source([10.125, 59.125, 20.125, 15.125]) == {1}
