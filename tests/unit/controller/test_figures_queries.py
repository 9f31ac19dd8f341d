"""Which queries of topologies are asked, and what becomes of their answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlparse

import pytest

from ballast.api import BalancingPolicy
from ballast.controller.ends import Rates
from ballast.controller.metrics import MetricsReader
from ballast.kube.nodes import NodeReader
from tests.unit.kube.builders import node, topology
from tests.unit.kube.scripted import Answer, Scripted, scripted

NODES = [NodeReader().read(node("node-1"))]
NOW = 1_767_571_200.0
ASKING = topology(components=[{"name": "ingest", "exchange": {"query": "sum(x)"}}])


def answer(kind: str, result: list[Any]) -> Answer:
    return Answer(body={"status": "success", "data": {"resultType": kind, "result": result}})


def vector(*values: str) -> Answer:
    return answer("vector", [{"metric": {"node": "node-1"}, "value": [1.0, value]} for value in values])


SCALAR = answer("scalar", [1.0, "7"])
RANGE = answer("matrix", [{"metric": {}, "values": [[1.0, "7"]]}])


def policy(server: Scripted, **metrics: Any) -> BalancingPolicy:
    return BalancingPolicy.parse(
        {
            "apiVersion": "ballast.dev/v1alpha1",
            "kind": "BalancingPolicy",
            "metadata": {"name": "streaming"},
            "spec": {"nodeSelector": {}, "metrics": {"prometheus": {"url": server.url}, **metrics}},
        }
    )


def rates(server: Scripted, folder: Path, **metrics: Any) -> Rates:
    figures = MetricsReader(server.client(folder), namespace="ballast-system")
    try:
        return figures.rates(policy(server, **metrics), [ASKING], now=NOW)
    finally:
        figures.close()


def test_queries_of_topologies_do_not_run_unless_the_policy_allows_them(tmp_path: Path) -> None:
    with scripted(vector("7")) as server:
        assert rates(server, tmp_path) == {}
        assert server.asked == []
        assert rates(server, tmp_path, topologyQueries="Allow") == {("analytics/clicks", "sum(x)"): 7.0}


@pytest.mark.parametrize(
    "given", [vector("NaN"), vector("+Inf"), vector("1", "2"), vector(), SCALAR, RANGE, Answer(422)]
)
def test_what_is_not_one_finite_figure_is_no_rate(tmp_path: Path, given: Answer) -> None:
    with scripted(given) as server:
        assert rates(server, tmp_path, topologyQueries="Allow") == {}
        assert server.asked


@pytest.mark.parametrize("given", [SCALAR, RANGE])
def test_a_policys_query_of_another_kind_gives_no_figures_and_ends_no_pass(tmp_path: Path, given: Answer) -> None:
    with scripted(given) as server:
        figures = MetricsReader(server.client(tmp_path), namespace="ballast-system")
        found = figures.read(policy(server), NODES, [], now=NOW)
        figures.close()
    assert (found.nodes, found.health.available) == ({}, False)


def test_all_queries_of_a_look_are_about_one_moment_that_can_be_asked_about_again(tmp_path: Path) -> None:
    """A whole second, of which everything is stored."""
    with scripted(vector("7")) as server:
        figures = MetricsReader(server.client(tmp_path), namespace="ballast-system")
        found = figures.read(policy(server), NODES, [], now=NOW + 0.7)
        figures.rates(policy(server, topologyQueries="Allow"), [ASKING], now=NOW + 0.7)
        figures.close()
    moments = {text for asked in server.asked for text in parse_qs(urlparse(asked.path).query)["time"]}
    assert (found.at, {float(text) for text in moments}) == (NOW - 1.0, {NOW - 1.0})
