from __future__ import annotations

from enum import Enum
from typing import Any

import pytest

from ballast.api import (
    BalancingPolicy,
)
from ballast.api.duration import Duration
from ballast.model import LEAVING_TAINTS, Budget, LoadUnit, PlacementMode, Policy
from ballast.model.from_api import defect, policy_from, schedule_defect
from ballast.model.policy import SheddingPolicy
from ballast.model.shedders import (
    OverloadSettings,
    ShedderSettings,
    ThresholdSettings,
    TrafficSettings,
    TransferSettings,
    UniformSettings,
)


def _policy(spec: dict[str, Any]) -> BalancingPolicy:
    return BalancingPolicy.parse(
        {
            "apiVersion": "ballast.dev/v1alpha1",
            "kind": "BalancingPolicy",
            "metadata": {"name": "streaming"},
            "spec": {"nodeSelector": {"matchLabels": {"pool": "streaming"}}, **spec},
        }
    )


def test_the_defaults_of_the_resource_are_the_planners() -> None:
    found = policy_from(_policy({}))
    expected = Policy("streaming")
    assert found.placement == expected.placement
    assert found.shedding == expected.shedding
    assert found.levels == expected.levels
    assert (found.interval_seconds, found.window_seconds, found.max_age_seconds) == (60.0, 120.0, 180.0)


@pytest.mark.parametrize(
    ("strategy", "block"),
    [
        ("ThresholdShedder", "thresholdShedder"),
        ("OverloadShedder", "overloadShedder"),
        ("UniformLoadShedder", "uniformLoadShedder"),
        ("TransferShedder", "transferShedder"),
    ],
)
def test_a_block_without_figures_means_what_no_block_means(strategy: str, block: str) -> None:
    filled = policy_from(_policy({"shedding": {"strategy": strategy, "advanced": {block: {}}}})).shedding
    absent = policy_from(_policy({"shedding": {"strategy": strategy}})).shedding
    assert filled.chosen == absent.chosen == SheddingPolicy(strategy).chosen


def _another(value: object) -> object:
    """A value of the same kind; None where there is no simple one."""
    match value:
        case bool():
            return not value
        case Enum():
            return next(each for each in type(value) if each != value)
        case int():
            return value + 1
        case float():
            return value / 2.0 + 0.1
        case Duration():
            return Duration.parse("7s")
    return None


@pytest.mark.parametrize("block", ["moves", "placement"])
def test_every_simple_field_reaches_the_planners_policy(block: str) -> None:
    resource = _policy({})
    fields = getattr(resource.spec, block)
    others = {name: _another(getattr(fields, name)) for name in type(fields).model_fields}
    simple = {name: other for name, other in others.items() if other is not None}
    assert len(simple) >= 8
    for name, other in simple.items():
        spec = resource.spec.model_copy(update={block: fields.model_copy(update={name: other})})
        assert policy_from(resource.model_copy(update={"spec": spec})) != policy_from(resource), name


def test_default_budgets_come_from_the_resource() -> None:
    assert policy_from(_policy({})).moves.budgets == (
        Budget(6, 3600.0, percent=20),
        Budget(2, 86400.0, scope="Topology", percent=75),
    )


def test_units_arrive_as_seconds_bytes_and_ratios() -> None:
    found = policy_from(
        _policy(
            {
                "placement": {"mode": "Enforce", "debounce": "1500ms"},
                "shedding": {"avgShedder": {"unit": "Traffic", "minThroughput": "2Mi"}},
                "moves": {"maxStateSize": "500M", "maxFailurePercent": 25},
            }
        )
    )
    assert found.placement.mode is PlacementMode.ENFORCE
    assert found.placement.debounce_seconds == 1.5
    assert found.shedding.avg_shedder.unit is LoadUnit.TRAFFIC
    assert found.shedding.avg_shedder.min_throughput_bytes == 2 * 1024 * 1024
    assert found.moves.max_state_bytes == 500e6
    assert found.moves.max_failure_percent == 25


def test_taints_of_a_policy_change_what_they_name_and_nothing_else() -> None:
    """Without a notice, a known taint keeps its deadline, and any other has none."""
    given: list[dict[str, Any]] = [
        {"key": "aws-node-termination-handler/spot-itn", "drain": False},
        {"key": "DeletionCandidateOfClusterAutoscaler"},
        {"key": "node.kubernetes.io/out-of-service", "notice": "1m"},
        {"key": "example.com/retired"},
        {"key": "example.com/reclaimed", "notice": "90s"},
    ]
    table = policy_from(_policy({"moves": {"drain": {"taints": given}}})).moves.drain.taints
    rows = {row.key: (row.notice_seconds, row.drains) for row in table}
    assert [rows[each["key"]] for each in given] == [
        (120.0, False),
        (None, True),
        (60.0, False),
        (None, True),
        (90.0, True),
    ]
    assert len(rows) == len(table) == len(LEAVING_TAINTS) + 2


def test_favored_nodes_are_found_by_their_labels() -> None:
    spec = {"placement": {"favoredNodes": {"matchLabels": {"disk": "nvme"}}}}
    found = policy_from(_policy(spec), {"a": {"disk": "nvme"}, "b": {}})
    assert found.placement.favored_nodes == ("a",)


def test_the_figures_of_placement_strategies_arrive() -> None:
    rate = {
        "strategy": "LeastLongTermRate",
        "advanced": {"leastLongTermRate": {"overloadThreshold": 60, "longWindow": "2h"}},
    }
    usage = {
        "strategy": "LeastResourceUsage",
        "advanced": {"leastResourceUsage": {"minDifference": 5, "historyWeightPercent": 50}},
    }
    near = {"advanced": {"proximity": {"searchTime": "2s"}}}
    found = policy_from(_policy({"placement": rate})).placement
    assert (found.max_score_percent, found.long_window_seconds) == (60.0, 7200.0)
    found = policy_from(_policy({"placement": usage})).placement
    assert (found.min_difference, found.history_ratio, found.max_score_percent) == (5.0, 0.5, 85.0)
    assert policy_from(_policy({"placement": near})).placement.search_seconds == 2.0


@pytest.mark.parametrize(
    ("block", "given", "meant"),
    [
        (
            "thresholdShedder",
            {"threshold": 1, "historyWeightPercent": 20, "minThroughput": 3, "lowerBoundary": True},
            ThresholdSettings(1, 0.2, 3.0, lower_boundary=True),
        ),
        ("overloadShedder", {"threshold": 1}, OverloadSettings(1)),
        (
            "uniformLoadShedder",
            {
                "rateDifferencePercent": 1,
                "throughputPercent": 200,
                "maxUnloadPercent": 30,
                "minRate": 4,
                "minThroughput": 5,
                "maxExecutors": 6,
            },
            UniformSettings(1, 2.0, 0.3, 4.0, 5.0, 6),
        ),
        (
            "transferShedder",
            {
                "targetStdDev": 10,
                "hits": 2,
                "maxNodesPerPass": 4,
                "overloadThreshold": 5,
                "historyWeightPercent": 50,
                "delay": "6s",
                "maxAge": "11s",
                "maxCandidates": 8,
            },
            TransferSettings(
                target_std_ratio=0.1,
                hits=2,
                max_nodes=4,
                overload_threshold=5,
                history_ratio=0.5,
                cooldown_seconds=6.0,
                ttl_seconds=11.0,
                max_candidates=8,
            ),
        ),
    ],
    ids=["threshold", "overload", "uniform", "transfer"],
)
def test_the_parameters_of_the_strategy_arrive(block: str, given: dict[str, Any], meant: ShedderSettings) -> None:
    strategy = block[0].upper() + block[1:]
    found = policy_from(_policy({"shedding": {"strategy": strategy, "advanced": {block: given}}})).shedding
    assert found.chosen == meant


def test_avg_shedders_parameters_are_those_of_its_traffic_unit_too() -> None:
    found = policy_from(_policy({"shedding": {"avgShedder": {"unit": "Traffic", "lowHits": 3, "minRate": 7}}})).shedding
    assert found.chosen == TrafficSettings(low_hits=3, min_rate_per_second=7.0)


def with_budget(**budget: Any) -> BalancingPolicy:
    return BalancingPolicy.parse(
        {
            "apiVersion": "ballast.dev/v1alpha1",
            "kind": "BalancingPolicy",
            "metadata": {"name": "streaming"},
            "spec": {
                "nodeSelector": {"matchLabels": {"pool": "streaming"}},
                "moves": {"budgets": [{"moves": 6, "per": "1h"}, {"moves": 0, "duration": "2h", **budget}]},
            },
        }
    )


@pytest.mark.parametrize(
    "budget",
    [
        {"schedule": "0 8 * * 1-5"},
        {"schedule": "*/5 * * * *", "timeZone": "Europe/Berlin"},
        {"schedule": "0 0 29 2 *", "timeZone": "UTC"},
    ],
)
def test_a_schedule_that_comes_is_fine(budget: dict[str, str]) -> None:
    assert defect(with_budget(**budget)) is None


@pytest.mark.parametrize(
    ("budget", "field"),
    [
        ({"schedule": "61 * * * *"}, "schedule"),
        ({"schedule": "0 8 * * 9"}, "schedule"),
        ({"schedule": "0 0 31 2 *"}, "schedule"),
        ({"schedule": "0 8 * * *", "timeZone": "Mars/Olympus"}, "timeZone"),
    ],
)
def test_what_never_comes_names_the_field_the_value_and_the_remedy(budget: dict[str, str], field: str) -> None:
    found = defect(with_budget(**budget))
    assert found is not None
    assert str(found).startswith(f"spec.moves.budgets[1].{field}: {budget[field]!r}: ")
    assert "write " in found.remedy


def test_a_snapshots_schedule_may_have_a_number_of_any_length() -> None:
    found = schedule_defect(f"*/{'9' * 5000} * * * *", "UTC", at="policy.moves.budgets.0", time_zone_field="time_zone")
    assert found is not None
    assert "write five fields" in found.remedy
