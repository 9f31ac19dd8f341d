from __future__ import annotations

import re
from math import inf, nan

from ballast.cli.picture.pareto import Trade, pareto
from ballast.simulation.ranking import Estimate


def trade(
    moves: float, imbalance: float, *, locality: float = nan, front: bool = True, recommended: bool = False,
    half_width: float = nan,
) -> Trade:  # fmt: skip
    return Trade(
        name=f"{moves:g} moves",
        moves=Estimate(moves, half_width, 4),
        imbalance=Estimate(imbalance, half_width, 4),
        locality=locality,
        on_front=front,
        recommended=recommended,
    )


def drawn(*trades: Trade) -> str:
    return pareto(trades, name="pareto", title="t").drawings[0].marks


def marks(svg: str) -> list[tuple[str, float, float, float]]:
    """Style, x, y and radius of each policy's mark."""
    found = re.findall(r'<circle class="(filled|hollow)" cx="([\d.]+)" cy="([\d.]+)" r="([\d.]+)"', svg)
    return [(style, float(x), float(y), float(r)) for style, x, y, r in found]


def numbers(svg: str) -> list[str]:
    return re.findall(r'class="strong"[^>]*>([^<]*)<', svg)


def test_more_moves_stand_to_the_right_and_more_imbalance_higher() -> None:
    (_, left, high, _), (_, right, low, _) = marks(drawn(trade(0.0, 30.0), trade(10.0, 5.0)))
    assert left < right
    assert high < low


def test_what_is_on_the_front_is_filled() -> None:
    assert [style for style, *_ in marks(drawn(trade(0, 9), trade(9, 9, front=False)))] == ["filled", "hollow"]


def test_the_recommended_one_alone_has_a_ring() -> None:
    svg = drawn(trade(0, 9), trade(9, 1, recommended=True))
    assert len(re.findall('<circle class="ring"', svg)) == 1


def test_a_mark_is_the_larger_the_dearer_its_locality() -> None:
    sizes = [
        r for *_, r in marks(drawn(trade(0, 9, locality=0.1), trade(5, 5, locality=0.2), trade(9, 1, locality=0.4)))
    ]
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[-1]


def test_without_known_locality_all_marks_are_of_one_size() -> None:
    svg = drawn(trade(0, 9), trade(5, 5, locality=0.2))
    assert len({r for *_, r in marks(svg)}) == 1
    assert ">locality cost" not in svg


def test_policies_are_numbered_in_their_order_and_together_where_they_stand_together() -> None:
    assert numbers(drawn(trade(0, 30), trade(10, 5), trade(10, 5))) == ["1", "2, 3"]
    assert numbers(drawn(*[trade(3, 3)] * 9)) == ["1, 2, 3, 4, 5…"]


def test_intervals_are_drawn_where_there_are_any() -> None:
    assert len(re.findall('class="error"', drawn(trade(5, 5, half_width=1.0)))) == 2
    assert 'class="error"' not in drawn(trade(5, 5))


def test_nothing_stands_outside_however_wide_an_interval_is() -> None:
    svg = drawn(trade(1, 1, half_width=50.0), trade(0, 0))
    ends = [float(x) for x in re.findall(r'class="error" x1="[\d.]+" x2="([\d.]+)"', svg)]
    assert max(ends, default=inf) <= 760.0
