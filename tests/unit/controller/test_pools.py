from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ballast.api import BalancingPolicy
from ballast.controller.pools import for_another, territories
from ballast.controller.survey import Read
from ballast.kube.nodes import NodeReader
from ballast.model import Constraints, Requirement
from tests.builders import an_executor, gated
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
    found = territories([policy("first", "streaming"), policy("second", "b")], NODES)
    assert found.nodes == {"first": {"s1", "s2"}, "second": {"b1"}}
    assert found.stalled == {}


def test_of_two_that_overlap_the_younger_is_stalled_and_told_what_to_change() -> None:
    found = territories([policy("old", "streaming"), policy("young", "streaming"), policy("other", "b")], NODES)
    assert set(found.nodes) == {"old", "other"}
    assert "old (s1, s2)" in found.stalled["young"]
    assert "spec.nodeSelector" in found.stalled["young"]


def test_policies_without_nodes_do_not_overlap() -> None:
    found = territories([policy("first", "none"), policy("second", "none")], NODES)
    assert found.stalled == {}


@pytest.mark.parametrize(("pool", "another"), [("streaming", True), ("b", False)])
def test_a_gated_executor_is_left_to_the_pool_that_admits_it(*, pool: str, another: bool) -> None:
    pools = {"streaming": frozenset({"s1", "s2"}), "b": frozenset({"b1"})}
    facts = {each.name: each for each in NODES}
    assert for_another(gated("e", constraints=_only("b")), pool, pools, facts) is another
    assert not for_another(gated("e"), pool, pools, facts)
    running = replace(an_executor("e"), constraints=_only("b"))
    assert not for_another(running, pool, pools, facts)


def test_who_fits_nowhere_is_everybodys_business() -> None:
    pools = {"streaming": frozenset({"s1", "s2"}), "b": frozenset({"b1"})}
    facts = {each.name: each for each in NODES}
    assert not for_another(gated("e", constraints=_only("nowhere")), "b", pools, facts)


def _only(pool: str) -> Constraints:
    return Constraints(affinity_terms=((Requirement("pool", "In", (pool,)),),))
