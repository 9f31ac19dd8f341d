from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from ballast.cli.picture.exhibits import MOST_POLICIES, choice, exhibits, single
from ballast.simulation.ranking import ranking
from ballast.simulation.study import Study
from tests.unit.simulation.studies import CAREFUL, EAGER, STILL, document, result, study


def test_before_is_what_moves_nothing() -> None:
    made = study([STILL, CAREFUL])
    assert choice(made, ranking(made)).before == STILL


def test_where_all_policies_move_before_is_the_one_with_the_highest_imbalance() -> None:
    made = study([CAREFUL, EAGER])
    assert ranking(made).recommended == EAGER
    assert choice(made, ranking(made)).before == CAREFUL


def test_a_single_policy_has_nothing_to_be_compared_with() -> None:
    made = study([CAREFUL])
    chosen = exhibits(made, ranking(made))
    assert chosen.before is None
    assert [plot.name for plot in chosen] == ["pareto", "imbalance-1", "imbalance-2", "moves", "nodes-after"]


def test_of_many_policies_the_best_are_shown_and_what_moves_nothing() -> None:
    made = study([*(f"careful-{number}" for number in range(20)), STILL], windows=["w"], seeds=[1])
    chosen = choice(made, ranking(made))
    assert len(chosen.policies) == MOST_POLICIES + 1
    assert chosen.policies[-1] == STILL


def test_of_many_windows_those_are_shown_in_which_it_makes_a_difference() -> None:
    helped = [("quiet", 26), ("busy", 2), ("so-so", 13), ("idle", 26), ("better", 6)]
    runs = [result(STILL, window=window, noise=float(noise)) for window, noise in helped]
    other = [result(EAGER, window=window, noise=0.0) for window, _ in helped]
    made = Study((*runs, *other), {policy: document(policy) for policy in (STILL, EAGER)})
    differences = {
        window: abs(runs[i].metrics.imbalance_point_hours - other[i].metrics.imbalance_point_hours)
        for i, (window, _) in enumerate(helped)
    }
    expected = sorted(differences, key=lambda window: -differences[window])[:3]
    assert list(choice(made, ranking(made)).windows) == expected


@pytest.mark.parametrize("seeds", [{"a": (1, 2), "b": (7, 8)}, {"a": (7, 8), "b": (1, 2)}])
def test_of_windows_with_seeds_of_their_own_the_run_of_the_lowest_one_is_shown(
    seeds: Mapping[str, Sequence[int]],
) -> None:
    made = study([STILL, CAREFUL], windows=["a", "b"], seeds=seeds)
    chosen = exhibits(made, ranking(made)).chosen
    case = single(made, chosen, CAREFUL).case
    assert (case.window, case.seed) == (chosen.window, min(seeds[chosen.window]))
