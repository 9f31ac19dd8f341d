from __future__ import annotations

from math import inf, isnan, nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ballast.placement.strategy import ROUNDING, NodeValues

FIGURES = st.lists(st.sampled_from([0.0, 0.1, 0.3, 1.0, inf]), min_size=1, max_size=12)
CHANGES = st.lists(st.tuples(st.integers(0, 11), st.sampled_from([0.0, 0.1, 0.2, 0.3, 1.0, inf])), max_size=20)


@given(FIGURES, CHANGES)
def test_the_lowest_are_those_of_the_figures_as_they_are_now(
    start: list[float], changes: list[tuple[int, float]]
) -> None:
    figures = NodeValues(np.array(start))
    nodes = np.arange(0, len(start), 2)
    for node, figure in changes:
        figures.of(nodes)
        figures.lowest()
        figures.set(node % len(start), figure)
        now = figures.of(nodes).tolist()
        assert now == figures.all[nodes].tolist()
        assert figures.lowest() == [position for position, each in enumerate(now) if each == min(now)]


KNOWN = st.lists(st.one_of(st.just(nan), st.floats(0.0, 2.0)), min_size=1, max_size=12)


@given(KNOWN, st.lists(st.tuples(st.integers(0, 11), st.floats(0.0, 1.0)), max_size=20))
def test_both_means_follow_the_known_figures(start: list[float], changes: list[tuple[int, float]]) -> None:
    figures = NodeValues(np.array(start))
    nodes = np.arange(len(start))
    for node, more in changes:
        figures.of(nodes)
        figures.rough_mean()
        figures.set(node % len(start), figures.all[node % len(start)] + more)
        known = [each for each in figures.all.tolist() if not isnan(each)]
        assert figures.mean() == pytest.approx(sum(known) / len(known) if known else 0.0, abs=1e-12)
        assert figures.rough_mean() == pytest.approx(figures.mean(), abs=ROUNDING / 2)


def test_other_nodes_are_picked_out_again() -> None:
    figures = NodeValues(np.array([3.0, 1.0, 2.0]))
    assert figures.of(np.array([0, 2])).tolist() == [3.0, 2.0]
    assert figures.lowest() == [1]
    figures.set(1, 0.5)
    assert figures.of(np.array([1, 2])).tolist() == [0.5, 2.0]
    assert (figures.lowest(), figures.mean(), figures.rough_mean()) == ([0], 1.25, 1.25)
