"""The expressions by which queries bound labels."""

import re

import pytest

from ballast.cli.discover import QUERIES as DISCOVER
from ballast.prometheus import Preset, queries
from ballast.prometheus.preset import FROM_POD, MATCHERS, OF_EXECUTOR, OF_NODE
from ballast.sizing.executor_metrics import QUERIES as SIZE
from ballast.spark.history.signal import signals


@pytest.mark.parametrize("preset", list(Preset))
def test_no_query_excludes_characters_which_takes_prometheus_seconds_for_each_expression(preset: Preset) -> None:
    """Since Go 1.22, to print an expression costs time for each character of Unicode that it takes."""
    history = [each.query for each in signals(preset, window_seconds=60.0, operator="ballast-system")]
    asked = [*queries(preset, {}).rendered(60.0).values(), *SIZE.values(), *DISCOVER.values(), *history]
    assert not [text for text in asked if "[^" in text]


@pytest.mark.parametrize(
    ("selectors", "label", "taken", "left_out"),
    [
        (FROM_POD, "namespace", ("", "n" * 63), ("n" * 64,)),
        (FROM_POD, "pod", ("", "a_B.c"), ("a[", "a" * 254)),
        (OF_NODE, "node", ("", "n-1.example.com"), ("n" * 254,)),
        (OF_NODE, "instance", ("", "10.0.0.1:9100", "[fd00::1]:9100", "https://n1:10250/?a=b"), ("[[::1]", "i" * 302)),
        (OF_EXECUTOR, "pod", ("orders-exec-7",), ("-exec-7", "orders-exec-", "orders[-exec-7")),
    ],
)
def test_labels_are_as_long_as_names_may_be_and_only_an_instance_begins_with_a_bracket(
    selectors: str, label: str, taken: tuple[str, ...], left_out: tuple[str, ...]
) -> None:
    expression = _expressions(selectors)[label]
    assert [value for value in (*taken, *left_out) if expression.fullmatch(value)] == list(taken)


def _expressions(selectors: str) -> dict[str, re.Pattern[str]]:
    found = re.findall(r'(\w+)=~"([^"]*)"', selectors.replace(MATCHERS, ""))
    # Python warns of `[[`, which Go takes as it is.
    return {label: re.compile(text.replace("[[]", r"\[")) for label, text in found}
