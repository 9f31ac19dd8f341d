from __future__ import annotations

from dataclasses import replace
from math import isnan, nan
from typing import Any

import pytest

from ballast.simulation.ranking import Estimate, Ranking, quantile, ranking, verdict
from ballast.simulation.run_metrics import run_metrics
from ballast.simulation.study import Case, Result, Series, Study
from tests.unit.simulation.studies import CAREFUL, EAGER, STILL
from tests.unit.simulation.studies import result as result_of
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


def test_for_as_many_moves_the_one_that_is_nearer_in_every_case_is_recommended() -> None:
    found = ranked(
        *seeds("far", [1.0, 5.0, 3.0], locality_cost=2.0, moves=3),
        *seeds("near", [2.0, 4.5, 3.1], locality_cost=1.0, moves=3),
    )
    assert found.recommended == "near"


def with_locality(policy: str, imbalances: list[float], costs: list[float], **known: Any) -> list[Result]:
    return [
        replace(each, metrics=replace(each.metrics, locality_cost=cost))
        for each, cost in zip(seeds(policy, imbalances, **known), costs, strict=True)
    ]


def test_noise_in_locality_recommends_no_policy_that_is_less_level() -> None:
    """C of the field reports: 20 against 16.2 point-hours, never level 4 of 4 against 2 of 4, equal moves."""
    worse = with_locality("worse", [10.0, 30.0, 22.0, 18.0], [0.70, 0.69, 0.71, 0.69], moves=5, seconds_to_balance=None)
    better = with_locality("better", [12.0, 20.0, 16.0, 16.8], [0.71, 0.70, 0.69, 0.72], moves=5)
    found = ranked(*worse, *better)
    assert set(found.as_good) == {"worse", "better"}
    assert found.recommended == "better"


def test_locality_is_compared_in_the_cases_in_which_it_is_known_of_both() -> None:
    """Half a percent nearer in the one case that both tell; the mean of the others' cases makes it no more."""
    far = with_locality("far", [1.0, 5.0, 3.0], [2.0, nan, nan], moves=3)
    near = with_locality("near", [2.0, 4.5, 3.1], [1.99, 0.001, 0.001], moves=3)
    assert ranked(*far, *near).recommended == "far"


def test_a_difference_in_moves_that_chance_can_make_decides_nothing() -> None:
    some = [
        replace(each, metrics=replace(each.metrics, moves=m))
        for each, m in zip(seeds("some", [1.0, 5.0, 3.0]), (4, 9, 4), strict=True)
    ]
    other = [
        replace(each, metrics=replace(each.metrics, moves=m))
        for each, m in zip(seeds("other", [2.0, 4.5, 3.1]), (5, 3, 5), strict=True)
    ]
    assert ranked(*some, *other).recommended == "some"


def test_fewer_moves_are_no_gain_where_more_cases_stay_out_of_balance() -> None:
    eager = seeds("eager", [1.0, 5.0, 3.0], moves=9, seconds_to_balance=20.0)
    calm = seeds("calm", [2.0, 4.5, 3.1], moves=2, seconds_to_balance=None)
    found = ranked(*eager, *calm)
    assert found.as_good == ("eager", "calm")
    assert found.recommended == "eager"


def test_of_policies_that_read_the_same_the_one_that_is_level_more_often_is_recommended() -> None:
    level = seeds("level", [16.25, 16.25], moves=5, seconds_to_balance=20.0)
    assert ranked(*seeds("never", [16.2, 16.2], moves=5, seconds_to_balance=None), *level).recommended == "level"


def test_a_pool_that_never_became_level_counts_with_its_whole_window() -> None:
    found = ranked(result("policy", seed=1, seconds_to_balance=None), result("policy", seed=2, seconds_to_balance=20.0))
    (standing,) = found.standings
    assert standing.never_level == 1
    assert standing.mean("seconds_to_balance") == pytest.approx((EVEN.duration_seconds + 20.0) / 2)


def test_each_figure_has_its_interval_over_windows_and_seeds() -> None:
    found = ranked(*(result("policy", window=window, seed=seed) for window in "ab" for seed in (1, 2)))
    assert found.of("policy").estimates["moves"].cases == found.of("policy").cases == 4


def test_the_interval_is_student_s_t() -> None:
    # Five values of mean 3 and deviation √2.5; t for four degrees of freedom is 2.7764.
    found = Estimate.of([1.0, 2.0, 3.0, 4.0, 5.0])
    assert (found.mean, found.cases) == (3.0, 5)
    assert found.half_width == pytest.approx(2.7764 * (2.5 / 5) ** 0.5, rel=1e-4)
    assert (found.low, found.high) == pytest.approx((1.0368, 4.9632), abs=1e-3)


@pytest.mark.parametrize("values", [[4.0], [4.0, nan]])
def test_a_single_case_has_no_interval(values: list[float]) -> None:
    found = Estimate.of(values)
    assert (found.mean, found.cases) == (4.0, 1)
    assert isnan(found.half_width)


def test_cases_that_do_not_tell_are_left_out() -> None:
    assert Estimate.of([1.0, nan, 3.0]) == Estimate.of([1.0, 3.0])
    assert isnan(Estimate.of([nan]).mean)
    assert Estimate.of([]).cases == 0


@pytest.mark.parametrize(
    ("freedom", "tabulated"), [(1, 12.7062), (30, 2.0423), (31, 2.0395), (60, 2.0003), (120, 1.9799), (10**6, 1.96)]
)
def test_quantiles_are_the_tabulated_ones(freedom: int, tabulated: float) -> None:
    assert quantile(freedom) == pytest.approx(tabulated, abs=1e-4)


def test_points_that_are_left_are_those_beyond_what_is_level() -> None:
    still = verdict([result_of(STILL)])
    assert still.points_left == pytest.approx(90.0 - 30.0 - 15.0)
    assert verdict([result_of(CAREFUL)]).points_left == 0.0


def test_needless_moves_are_counted_by_the_day() -> None:
    """The hand-made runs last an hour and say nothing of how few moves were needed."""
    assert verdict([result_of(CAREFUL)]).needless_moves == pytest.approx(24.0 * 2)
    assert verdict([result_of(STILL)]).needless_moves == 0.0


def test_slow_is_what_is_not_level_in_the_end_then_what_took_many_rounds() -> None:
    still, careful, eager = (verdict([result_of(policy)]) for policy in (STILL, CAREFUL, EAGER))
    assert still.slowness == (1, 0.0)
    assert careful.slowness == (0, 2.0)
    assert careful.slowness < eager.slowness < still.slowness


def test_cases_are_averaged() -> None:
    both = verdict([result_of(STILL), result_of(CAREFUL)])
    assert both.points_left == pytest.approx(45.0 / 2)
    assert both.slowness == (1, 2.0)
