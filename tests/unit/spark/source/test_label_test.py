from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ballast.spark.source.label_test import Asks, LabelTest

texts = st.text(st.sampled_from('ab.*+?()[]{}^$|\\"\n é'), max_size=4)
several = st.lists(texts, min_size=1, max_size=3).map(tuple)
tests = st.one_of(
    st.builds(LabelTest, st.just("a"), st.just(Asks.EQUAL), several, st.booleans()),
    st.builds(
        LabelTest,
        st.just("a"),
        st.sampled_from([Asks.STARTS, Asks.ENDS, Asks.CONTAINS]),
        texts.map(lambda text: (text,)),
        st.booleans(),
    ),
    st.builds(LabelTest, st.just("a"), st.just(Asks.ABSENT), st.just(()), st.booleans()),
)  # fmt: skip
series = st.one_of(st.just({}), st.builds(lambda value: {"a": value}, texts))


def passes(matcher: str, value: str) -> bool:
    """As Prometheus decides it; a label that is absent has the value ''."""
    found = re.fullmatch(r"a(=~|!~|!=|=)(.*)", matcher, re.DOTALL)
    assert found
    text: str = json.loads(found[2])
    match found[1]:
        case "=":
            return value == text
        case "!=":
            return value != text
        case "=~":
            return re.fullmatch(text, value) is not None
        case _:
            return re.fullmatch(text, value) is None


@given(tests, series)
def test_a_matcher_never_hides_a_series_that_the_test_wants(test: LabelTest, labels: dict[str, str]) -> None:
    if test.holds(labels):
        assert passes(test.matcher(), labels.get("a", ""))


@pytest.mark.parametrize(
    ("test", "labels", "holds"),
    [
        (LabelTest("a", Asks.EQUAL, ("x", "y")), {"a": "y"}, True),
        (LabelTest("a", Asks.EQUAL, ("x",)), {"a": "xy"}, False),
        (LabelTest("a", Asks.EQUAL, ("x",), negated=True), {"a": "y"}, True),
        (LabelTest("a", Asks.EQUAL, ("x",), negated=True), {}, False),
        (LabelTest("a", Asks.STARTS, ("x",)), {"a": "xy"}, True),
        (LabelTest("a", Asks.ENDS, ("x",)), {"a": "xy"}, False),
        (LabelTest("a", Asks.CONTAINS, ("y",), negated=True), {"a": "xyz"}, False),
        (LabelTest("a", Asks.ABSENT), {}, True),
        (LabelTest("a", Asks.ABSENT), {"a": ""}, True),
        (LabelTest("a", Asks.ABSENT, negated=True), {"a": "x"}, True),
        (LabelTest("a", Asks.ABSENT, negated=True), {}, False),
    ],
)
def test_a_series_is_tested_as_sql_tests_its_column(test: LabelTest, labels: dict[str, str], *, holds: bool) -> None:
    assert test.holds(labels) is holds


def test_a_matcher_takes_texts_literally() -> None:
    assert LabelTest("a", Asks.EQUAL, ('x"\n',)).matcher() == 'a="x\\"\\n"'
    assert LabelTest("a", Asks.STARTS, ("x.",)).matcher() == 'a=~"x\\\\.(?s:.*)"'
