from __future__ import annotations

import pytest

from ballast.spark.source import promql


@pytest.mark.parametrize(
    ("query", "changed"),
    [
        ("up", 'up{a="1"}'),
        ("up{}", 'up{a="1"}'),
        ('up{b="2"}', 'up{b="2",a="1"}'),
        ('up{b="2",}', 'up{b="2",a="1"}'),
        ('{__name__=~"x.*"}', '{__name__=~"x.*",a="1"}'),
        ('up{b="}{\\"#"}', 'up{b="}{\\"#",a="1"}'),
        ("up{b='x', c=`}`}", "up{b='x', c=`}`,a=\"1\"}"),
        ("up offset 5m", 'up{a="1"} offset 5m'),
        ("up @ 1767225600.000", 'up{a="1"} @ 1767225600.000'),
        ("rate(x_total[5m])", 'rate(x_total{a="1"}[5m])'),
        (' max_over_time ( a:b {c!="d"} [1h] offset 5m )', ' max_over_time ( a:b {c!="d",a="1"} [1h] offset 5m )'),
        ("rate(rate[5m])", 'rate(rate{a="1"}[5m])'),
    ],
)  # fmt: skip
def test_a_matcher_is_added_to_the_one_selector_of_a_query(query: str, changed: str) -> None:
    assert promql.takes_matchers(query)
    assert promql.with_matchers(query, ['a="1"']) == changed
    assert promql.with_matchers(query, []) == query


@pytest.mark.parametrize(
    "query",
    [
        "sum(up)", "up + up", "a and b", "topk(1, up)", "rate(x[5m:1m])", "rate(x[5m]) > 1", "absent(up)", "time()",
        "vector(1)", "1", "NaN", "Inf", '"text"', "up # note", 'label_replace(up, "a", "$1", "b", "(.*)")',
        "quantile_over_time(0.5, x[5m])", "-up", "(up)", "up offset 5m + 1", "",
    ],
)  # fmt: skip
def test_other_queries_are_left_as_they_are(query: str) -> None:
    assert not promql.takes_matchers(query)


@pytest.mark.parametrize(
    ("query", "selector"),
    [("up", "up"), ('rate(x{a="b"} [5m])', 'x{a="b"}'), ('{a="b"} offset 1h', '{a="b"}')],
)
def test_the_selector_of_a_query_is_found(query: str, selector: str) -> None:
    assert promql.selector(query) == selector


def test_the_ends_of_the_range_are_pinned_outside_of_texts_and_remarks() -> None:
    query = 'x @ end() + y{a="@ start()"} @start( ) # @ end()'
    assert promql.pinned(query, start_ms=1_500, end_ms=20_007) == 'x @ 20.007 + y{a="@ start()"} @ 1.500 # @ end()'


@pytest.mark.parametrize(("name", "plain"), [("pod", True), ("__name__", False), ("my.label", False), ("1a", False)])
def test_matchers_are_added_for_plain_labels_alone(name: str, *, plain: bool) -> None:
    assert promql.is_plain_label(name) is plain
