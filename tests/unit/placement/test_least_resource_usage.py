from __future__ import annotations

import pytest

from ballast.placement.least_resource_usage import Averages, UsageSettings, averaged, possible
from ballast.placement.strategy import Candidate

SETTINGS = UsageSettings(history_ratio=0.5, difference_threshold=5.0)


def seen(*passes: tuple[float, float, float]) -> Averages:
    averages = Averages()
    for scores in passes:
        nodes = [
            Candidate(str(i), score, current_rate_per_second=1.0, executors=frozenset({"e"}))
            for i, score in enumerate(scores, start=1)
        ]
        averages = averaged(nodes, SETTINGS, averages)
    return averages


@pytest.mark.parametrize(
    ("passes", "best"),
    [
        ([(10, 30, 60)], ("1",)),
        ([(10, 30, 60), (20, 30, 50), (30, 30, 40), (35, 20, 45)], ("2",)),
        ([(30, 30, 30)], ("1", "2", "3")),
    ],
    ids=["far below the mean", "smoothed", "nobody far enough below"],
)
def test_nodes_below_the_mean(passes: list[tuple[float, float, float]], best: tuple[str, ...]) -> None:
    assert possible(["1", "2", "3"], SETTINGS, seen(*passes)) == best


def test_the_moving_average() -> None:
    averages = dict(seen((10, 30, 60), (20, 30, 50), (30, 30, 40), (30, 30, 40), (35, 20, 45)).by_node)
    assert averages == pytest.approx({"1": 0.30625, "2": 0.25, "3": 0.44375})


@pytest.mark.parametrize(
    "fresh",
    [Candidate("3", 0.0, current_rate_per_second=1.0), Candidate("3", 0.0, executors=frozenset({"e"}))],
    ids=["without executors", "without records"],
)
def test_a_node_that_serves_nothing_starts_again(fresh: Candidate) -> None:
    assert dict(averaged([fresh], SETTINGS, seen((10, 30, 60))).by_node)["3"] == 0.0


def test_those_without_figures_are_chosen_only_when_nobody_is_below() -> None:
    averages = Averages((("1", 0.1), ("2", 0.5)))
    assert possible(["1", "2", "unknown"], SETTINGS, averages) == ("1",)
    assert possible(["2", "unknown"], SETTINGS, averages) == ("2", "unknown")
    assert possible(["unknown"], SETTINGS, Averages()) == ("unknown",)
    assert possible([], SETTINGS, averages) == ()


def test_those_that_left_can_be_forgotten() -> None:
    assert Averages((("1", 0.1), ("2", 0.5))).within(["2", "3"]) == Averages((("2", 0.5),))
