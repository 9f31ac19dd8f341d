"""Storm's orders of executors."""

from __future__ import annotations

import pytest

from ballast.placement.storm.executor_order import (
    by_connection_count,
    by_proximity,
    sorted_children,
    topological_order,
)
from tests.vectors.case import Case
from tests.vectors.storm_cluster import component_graph


@pytest.mark.vectors("storm", "ExecSorterByProximity")
def test_by_proximity(case: Case) -> None:
    given, want = case.raw["given"], case.raw["want"]
    # Storm's comparator leaves the order of several non-shuffle children to chance; ours takes the streams' order.
    graph = component_graph(given, given["unassigned"], want["sorted_children"])
    assert topological_order(graph) == want["topological_order"]
    assert {name: sorted_children(graph, name) for name in want["sorted_children"]} == want["sorted_children"]
    assert by_proximity(graph) == want["executors"]


@pytest.mark.vectors("storm", "ExecSorterByConnectionCount")
def test_by_connection_count(case: Case) -> None:
    given, want = case.raw["given"], case.raw["want"]
    assert by_connection_count(component_graph(given, given["unassigned"])) == want["executors"]
