"""Storm's orders of executors."""

from __future__ import annotations

import pytest

from ballast.placement.executor_order import (
    by_connection_count,
    by_proximity,
    sorted_children,
    topological_order,
)
from tests.vectors.case import Case
from tests.vectors.outcome import Outcome, Record
from tests.vectors.storm_cluster import component_graph

SEVERAL = "several-non-shuffle-children"


@pytest.mark.vectors("storm", "ExecSorterByProximity")
def test_by_proximity(case: Case, record: Record) -> None:
    given, want = case.raw["given"], case.raw["want"]
    children = None
    if SEVERAL in case.flags:
        # Storm's comparator leaves their order to chance; ours takes the streams' order, which is put as Storm's was.
        children = want["sorted_children"]
        record(Outcome(case, SEVERAL))
    graph = component_graph(given, given["unassigned"], children)
    assert topological_order(graph) == want["topological_order"]
    assert {name: sorted_children(graph, name) for name in want["sorted_children"]} == want["sorted_children"]
    assert by_proximity(graph) == want["executors"]


@pytest.mark.vectors("storm", "ExecSorterByConnectionCount")
def test_by_connection_count(case: Case) -> None:
    given, want = case.raw["given"], case.raw["want"]
    assert by_connection_count(component_graph(given, given["unassigned"])) == want["executors"]
