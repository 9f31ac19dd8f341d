from __future__ import annotations

from typing import Any

from ballast.api import BalancingPolicy
from ballast.controller.pools import pools_of
from ballast.controller.survey import Read
from ballast.kube.nodes import NodeReader
from tests.unit.kube.builders import node

READER = NodeReader()
NODES = [
    READER.read(node("s1", labels={"pool": "streaming"})),
    READER.read(node("s2", labels={"pool": "streaming"})),
    READER.read(node("b1", labels={"pool": "b"})),
]


def policy(name: str, pool: str) -> Read[BalancingPolicy]:
    raw: dict[str, Any] = {
        "apiVersion": "ballast.dev/v1alpha1",
        "kind": "BalancingPolicy",
        "metadata": {"name": name},
        "spec": {"nodeSelector": {"matchLabels": {"pool": pool}}},
    }
    return Read(raw, BalancingPolicy.parse(raw))


def test_each_policy_rules_over_the_nodes_that_it_selects() -> None:
    found = pools_of([policy("first", "streaming"), policy("second", "b")], NODES)
    assert found.nodes == {"first": {"s1", "s2"}, "second": {"b1"}}
    assert found.stalled == {}


def test_of_two_that_overlap_the_younger_is_stalled_and_told_what_to_change() -> None:
    found = pools_of([policy("old", "streaming"), policy("young", "streaming"), policy("other", "b")], NODES)
    assert set(found.nodes) == {"old", "other"}
    assert "old (s1, s2)" in found.stalled["young"]
    assert "spec.nodeSelector" in found.stalled["young"]


def test_policies_without_nodes_do_not_overlap() -> None:
    found = pools_of([policy("first", "none"), policy("second", "none")], NODES)
    assert found.stalled == {}
