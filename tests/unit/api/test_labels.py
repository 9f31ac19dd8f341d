from __future__ import annotations

from typing import Any

import pytest

from ballast.api.labels import LabelSelector

LABELS = {"app": "kafka", "tier": "gold"}


@pytest.mark.parametrize(
    ("selector", "matches"),
    [
        ({}, True),
        ({"matchLabels": {"app": "kafka"}}, True),
        ({"matchLabels": {"app": "kafka", "tier": "gold"}}, True),
        ({"matchLabels": {"app": "spark"}}, False),
        ({"matchLabels": {"zone": "a"}}, False),
        ({"matchExpressions": [{"key": "app", "operator": "In", "values": ["kafka", "redis"]}]}, True),
        ({"matchExpressions": [{"key": "app", "operator": "In", "values": ["redis"]}]}, False),
        ({"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}, False),
        ({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["redis"]}]}, True),
        ({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["kafka"]}]}, False),
        ({"matchExpressions": [{"key": "zone", "operator": "NotIn", "values": ["a"]}]}, True),
        ({"matchExpressions": [{"key": "app", "operator": "Exists"}]}, True),
        ({"matchExpressions": [{"key": "zone", "operator": "Exists"}]}, False),
        ({"matchExpressions": [{"key": "zone", "operator": "DoesNotExist"}]}, True),
        ({"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}, False),
        ({"matchLabels": {"app": "kafka"}, "matchExpressions": [{"key": "zone", "operator": "Exists"}]}, False),
    ],
)
def test_a_selector_matches_as_kubernetes_does(selector: dict[str, Any], matches: bool) -> None:
    assert LabelSelector.model_validate(selector).matches(LABELS) is matches


def test_only_a_selector_without_conditions_is_empty() -> None:
    assert LabelSelector().is_empty
    assert not LabelSelector(match_labels={"a": "b"}).is_empty
