from __future__ import annotations

import re
import struct
import sys
from collections.abc import Mapping, Sequence
from math import inf, nan
from pathlib import Path

import pytest

from ballast.cli.picture.exhibits import (
    MOST_POLICIES,
    NoRendererError,
    Trade,
    choice,
    exhibits,
    pareto,
    single,
    write_pngs,
)
from ballast.cli.picture.frame import NARROW, WIDE, Drawing, Plot
from ballast.errors import InvalidField
from ballast.simulation.ranking import Estimate, ranking
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


def plot(marks: str = '<circle class="filled" cx="9" cy="9" r="5"/>') -> Plot:
    return Plot("dot", "A dot", (Drawing(WIDE, 100.0, marks), Drawing(NARROW, 100.0, marks)))


def size(path: Path) -> tuple[int, int]:
    width, height = struct.unpack(">II", path.read_bytes()[16:24])
    return width, height


def test_every_plot_of_a_study_becomes_a_picture_of_its_name(tmp_path: Path) -> None:
    made = study()
    written = write_pngs(exhibits(made, ranking(made)), tmp_path / "new")
    names = ["pareto", "imbalance-1", "imbalance-2", "moves", "nodes-before", "nodes-after"]
    assert [path.name for path in written] == [f"{name}.png" for name in names]
    assert all(size(path)[0] > 1500 for path in written)


def test_equal_plots_are_equal_pictures(tmp_path: Path) -> None:
    one, other = (write_pngs([plot()], tmp_path / name)[0] for name in ("one", "other"))
    assert one.read_bytes() == other.read_bytes()


def test_marks_and_words_are_in_the_picture(tmp_path: Path) -> None:
    (full,) = write_pngs([plot()], tmp_path / "full")
    (bare,) = write_pngs([plot("")], tmp_path / "bare")
    assert full.read_bytes() != bare.read_bytes()


def test_without_the_renderer_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    with pytest.raises(NoRendererError, match=r"pip install '\.\[spark\]' from a checkout"):
        write_pngs([plot()], tmp_path)


def test_without_a_font_it_draws_nothing_rather_than_no_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ballast.cli.picture.exhibits.plain", lambda: "svg text { font-family: 'No Such Font' }")
    with pytest.raises(NoRendererError, match="fonts-dejavu-core"):
        write_pngs([plot()], tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidField, match=r"--png.*file"):
        write_pngs([plot()], tmp_path / "file")
