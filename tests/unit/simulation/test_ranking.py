from __future__ import annotations

from dataclasses import replace
from math import nan
from typing import Any

import pytest

from ballast.simulation.ranking import Ranking, ranking
from ballast.simulation.run_metrics import run_metrics
from ballast.simulation.study import Case, Result, Series, Study
from tests.unit.simulation.traces import trace

EVEN = trace([[50.0, 50.0]])


def result(policy: str, *, window: str = "day", seed: int = 1, **known: Any) -> Result:
    case = Case(policy, window, seed)
    return Result(case, replace(run_metrics(EVEN), **known), Series.of(EVEN), ())


def ranked(*results: Result) -> Ranking:
    return ranking(Study(results, {one.case.policy: {"spec": {}} for one in results}))


def front(found: Ranking) -> set[str]:
    return {standing.policy for standing in found.standings if standing.on_front}


def test_a_policy_is_on_the_front_unless_another_is_better_all_round() -> None:
    found = ranked(
        result("level", imbalance_point_hours=1.0, moves=9, locality_cost=1.0),
        result("lazy", imbalance_point_hours=5.0, moves=0, locality_cost=1.0),
        result("near", imbalance_point_hours=5.0, moves=5, locality_cost=0.5),
        result("worse", imbalance_point_hours=5.0, moves=9, locality_cost=1.0),
    )
    assert front(found) == {"level", "lazy", "near"}
    assert found.standings[-1].policy == "worse"


def test_policies_alike_are_all_on_the_front() -> None:
    assert front(ranked(result("one"), result("other"))) == {"one", "other"}


def test_unknown_locality_is_left_out_of_the_front() -> None:
    found = ranked(
        result("few", imbalance_point_hours=1.0, moves=1, locality_cost=nan),
        result("many", imbalance_point_hours=1.0, moves=2, locality_cost=nan),
    )
    assert front(found) == {"few"}


def test_with_one_case_the_lowest_imbalance_is_recommended() -> None:
    found = ranked(
        result("lazy", imbalance_point_hours=5.0, moves=0), result("level", imbalance_point_hours=4.5, moves=9)
    )
    assert found.recommended == found.standings[0].policy == "level"


def seeds(policy: str, imbalances: list[float], **known: Any) -> list[Result]:
    return [
        result(policy, seed=seed, imbalance_point_hours=value, **known)
        for seed, value in enumerate(imbalances, start=1)
    ]


def test_where_chance_may_tell_policies_apart_fewer_moves_decide() -> None:
    found = ranked(*seeds("eager", [1.0, 5.0, 3.0], moves=9), *seeds("calm", [2.0, 4.5, 3.1], moves=2))
    assert found.as_good == ("calm", "eager")
    assert found.recommended == "calm"


def test_what_is_higher_in_every_case_is_told_apart_however_few_they_are() -> None:
    found = ranked(*seeds("eager", [1.0, 50.0], moves=9), *seeds("calm", [2.0, 99.0], moves=0))
    assert found.recommended == "eager"


@pytest.mark.parametrize(
    ("lowest", "higher", "as_good"),
    [
        pytest.param(19.16, 19.24, True, id="both read 19.2"),
        pytest.param(100.0, 100.9, True, id="less than 1 %"),
        pytest.param(100.0, 101.1, False, id="more than 1 %"),
        pytest.param(0.5, 0.55, True, id="less than 0.1 point-hours"),
        pytest.param(0.5, 0.65, False, id="more than 0.1 point-hours"),
    ],
)
def test_a_difference_too_small_to_matter_tells_nothing_even_in_every_case(
    lowest: float, higher: float, *, as_good: bool
) -> None:
    found = ranked(*seeds("eager", [lowest] * 3, moves=9), *seeds("calm", [higher] * 3, moves=2))
    assert ("calm" in found.as_good) is as_good


def test_policies_are_compared_case_by_case() -> None:
    # Apart by a point in all cases but one: told apart, however much the cases differ from each other.
    eager = [1.0, 50.0, 99.0, 7.0, 20.0, 80.0]
    calm = [*(value + 1.0 for value in eager[:-1]), eager[-1]]
    assert ranked(*seeds("eager", eager, moves=9), *seeds("calm", calm, moves=2)).as_good == ("eager",)


def test_equals_are_told_apart_by_locality_then_by_imbalance() -> None:
    assert (
        ranked(result("far", locality_cost=2.0, moves=3), result("near", locality_cost=1.0, moves=3)).recommended
        == "near"
    )


def test_a_pool_that_never_became_level_counts_with_its_whole_window() -> None:
    found = ranked(result("policy", seed=1, seconds_to_balance=None), result("policy", seed=2, seconds_to_balance=20.0))
    (standing,) = found.standings
    assert standing.never_level == 1
    assert standing.mean("seconds_to_balance") == pytest.approx((EVEN.duration_seconds + 20.0) / 2)


def test_each_figure_has_its_interval_over_windows_and_seeds() -> None:
    found = ranked(*(result("policy", window=window, seed=seed) for window in "ab" for seed in (1, 2)))
    assert found.of("policy").estimates["moves"].cases == found.of("policy").cases == 4
