from __future__ import annotations

from typing import Any

from ballast.controller.declaration import remarks
from ballast.controller.ends import Rates
from tests.unit.kube.builders import topology

ASKING: dict[str, Any] = {
    "components": [
        {"name": "ingest", "exchange": {"query": "sum(x)"}},
        {"name": "sessions", "exchange": {"bytesPerSecond": 5}},
    ],
    "streams": [{"from": "ingest", "to": "sessions", "rate": {"query": "sum(y)"}}],
}


def said(*, rates: Rates | None = None, allowed: bool = True, **spec: Any) -> list[tuple[str, str]]:
    found = remarks(topology(**spec), rates=rates or {}, queries_allowed=allowed)
    assert {each.topology for each in found} <= {"analytics/clicks"}
    assert not any(each.stalls for each in found)
    return [(each.reason, each.message) for each in found]


def test_queries_that_the_policy_does_not_let_run_are_told_with_the_remedy() -> None:
    ((reason, words),) = said(allowed=False, **ASKING)
    assert reason == "QueryNotAllowed"
    assert words.startswith("components[ingest].exchange.query, streams[ingest, sessions].rate.query: ")
    assert "metrics.topologyQueries: Allow" in words
    assert "write bytesPerSecond" in words


def test_literal_rates_need_no_leave() -> None:
    assert said(allowed=False, components=[{"name": "ingest", "exchange": {"bytesPerSecond": 5}}]) == []


def test_a_query_without_a_figure_is_told_where_it_stands() -> None:
    assert said(rates={("analytics/clicks", "sum(x)"): 5.0, ("analytics/clicks", "sum(y)"): 1.0}, **ASKING) == []
    ((reason, words),) = said(rates={("analytics/clicks", "sum(x)"): 5.0}, **ASKING)
    assert reason == "QueryWithoutFigure"
    assert words.startswith("streams[ingest, sessions].rate.query: ")


def chain(*ways: tuple[str, str]) -> dict[str, Any]:
    names = sorted({name for way in ways for name in way})
    return {"components": [{"name": n} for n in names], "streams": [{"from": a, "to": b} for a, b in ways]}


def test_a_cycle_is_told_and_nothing_else_is() -> None:
    assert said(**chain(("a", "b"), ("b", "c"), ("a", "c"))) == []
    ((reason, words),) = said(**chain(("a", "b"), ("b", "c"), ("c", "b"), ("c", "d")))
    assert reason == "CycleInStreams"
    assert "b → c → b" in words or "c → b → c" in words


def test_what_goes_to_an_external_component_and_comes_back_is_no_cycle() -> None:
    components = [{"name": "kafka", "external": {"zones": {"a": 1}}}, {"name": "ingest"}]
    streams = [{"from": "kafka", "to": "ingest"}, {"from": "ingest", "to": "kafka"}]
    assert said(components=components, streams=streams) == []
