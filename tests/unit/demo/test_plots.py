"""The pictures of the report: steps that are round, labels that can be read."""

from __future__ import annotations

import re
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples.demo.plots import NARROW, WIDE, Frame, Size, durations, scores

WORDS = ("noise", "executor leaves", "replacement runs", "judged")


@pytest.mark.parametrize(
    ("longest", "ticks"),
    [
        (0.4, ["0", "0.2", "0.4", "0.6", "0.8", "1"]),
        (6.03, ["0", "2", "4", "6", "8"]),
        (31.0, ["0", "10", "20", "30", "40"]),
    ],
)
def test_durations_are_told_in_round_steps(longest: float, ticks: list[str]) -> None:
    drawn = durations([(10.0, longest)], [], start=0.0, end=60.0)
    assert re.findall(r'text-anchor="end">([^<]+)<', drawn) == ticks


def test_a_narrow_plot_has_the_name_of_a_line_within_it() -> None:
    drawn = scores({"node-1": [(0.0, 10.0), (60.0, 20.0)]}, [], hot="node-1", cold="", threshold=70.0, size=NARROW)
    (where,) = re.findall(r'<text class="hot" x="([0-9.]+)" y="[0-9.]+" text-anchor="end">', drawn)
    assert float(where) <= NARROW.width


@given(
    times=st.lists(st.floats(1.0, 119.0), min_size=1, max_size=len(WORDS)),
    size=st.sampled_from([WIDE, NARROW]),
)
def test_no_label_of_a_mark_covers_another_or_leaves_the_plot(times: list[float], size: Size) -> None:
    labels = Frame(0.0, 120.0, 100.0, list(zip(times, WORDS, strict=False)), size).labels
    assert all(label.left >= 0 and label.right <= size.width for label in labels)
    for one, other in combinations(labels, 2):
        assert one.row != other.row or one.right <= other.left or other.right <= one.left
