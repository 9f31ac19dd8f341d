from dataclasses import replace

import pytest

from ballast.shedding.lasting import Lasting, calmed, lasting_ratios, observed
from ballast.shedding.load import UsageNode
from tests.unit.shedding.builders import used

HOUR = 3600.0


def node(score: float = 80.0, *, astray: float) -> UsageNode:
    return replace(used("a", score), astray=astray)


def after(hours: float, *, astray: float) -> Lasting:
    lasting: Lasting = ()
    for _ in range(int(hours * 60)):
        lasting = observed(lasting, [node(astray=astray)], silent=(), elapsed_seconds=60.0)
    return lasting


def test_what_executors_use_beyond_the_mean_does_not_count_at_first() -> None:
    assert calmed(node(80.0, astray=25.0), {}, middle=50.0).score == 55.0


def test_the_longer_it_lasts_the_more_of_it_counts() -> None:
    seen = [calmed(node(80.0, astray=25.0), dict(after(hours, astray=25.0)), middle=50.0) for hours in (1, 3, 12)]
    assert [round(each.score) for each in seen] == [65, 74, 80]


def test_what_has_passed_no_longer_counts() -> None:
    lasting = after(12.0, astray=25.0)
    for _ in range(12 * 60):
        lasting = observed(lasting, [node(astray=0.0)], silent=(), elapsed_seconds=60.0)
    assert calmed(node(80.0, astray=25.0), dict(lasting), middle=50.0).score == pytest.approx(55.0, abs=0.1)


def test_a_burst_that_was_the_other_way_round_counts_for_nothing() -> None:
    assert calmed(node(80.0, astray=25.0), {"a": -25.0}, middle=50.0).score == 55.0
    assert calmed(node(30.0, astray=-10.0), {"a": 25.0}, middle=50.0).score == 40.0


@pytest.mark.parametrize(
    ("score", "astray", "seen"),
    [(80.0, 40.0, 50.0), (30.0, -40.0, 50.0), (30.0, -10.0, 40.0), (80.0, -10.0, 80.0), (30.0, 10.0, 30.0)],
)
def test_a_score_goes_to_the_middle_at_most_and_never_away_from_it(score: float, astray: float, seen: float) -> None:
    found = calmed(node(score, astray=astray), {}, middle=50.0)
    assert (found.score, found.passing) == (seen, abs(score - seen))


def test_only_the_nodes_that_stray_farthest_are_remembered() -> None:
    many = [replace(used(f"n{i:03}", 50.0), astray=float(i)) for i in range(100)]
    lasting = observed((), many, silent=(), elapsed_seconds=HOUR)
    assert [name for name, _ in lasting] == [f"n{i:03}" for i in range(36, 100)]


def test_what_begins_to_stray_is_remembered_however_many_nodes_have_strayed_a_little_for_long() -> None:
    """What lasts has to be remembered from its first pass, next to 64 nodes with a little more in the average."""
    many = [replace(used(f"n{i:03}", 50.0), astray=1.0) for i in range(100)]
    lasting: Lasting = ()
    for _ in range(120):
        lasting = observed(lasting, many, silent=(), elapsed_seconds=60.0)
    for _ in range(120):
        lasting = observed(lasting, [*many, node(astray=25.0)], silent=(), elapsed_seconds=60.0)
    assert dict(lasting)["a"] == pytest.approx(15.8, abs=0.1)
    assert len(lasting) <= 80


def test_a_node_that_does_not_stray_is_not_remembered() -> None:
    assert observed((), [node(astray=0.0)], silent=(), elapsed_seconds=HOUR) == ()


def test_what_is_known_of_a_node_without_metrics_stays() -> None:
    assert observed((("gone", 9.0), ("silent", 5.0)), (), silent={"silent"}, elapsed_seconds=HOUR) == (("silent", 5.0),)


@pytest.mark.parametrize(
    ("lasted", "astray", "ratio"),
    [(10.0, 20.0, 0.5), (20.0, 10.0, 1.0), (-10.0, -20.0, None), (10.0, -20.0, None), (10.0, 0.0, None)],
    ids=["half", "never more than all", "starved executors", "now below the mean", "none now"],
)
def test_of_what_executors_use_beyond_their_means_the_share_that_lasted_counts(
    lasted: float, astray: float, ratio: float | None
) -> None:
    assert lasting_ratios((("n", lasted),), {"n": astray}) == ({} if ratio is None else {"n": ratio})
