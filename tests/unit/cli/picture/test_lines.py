from __future__ import annotations

import re
from itertools import pairwise
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from ballast.cli.picture.frame import WIDE, Frame, Scale, fitting
from ballast.cli.picture.lines import Course, Line, lines, small_multiples
from ballast.simulation.study import Series
from tests.unit.simulation.traces import trace


def drawings(markup: str) -> list[str]:
    return re.findall(r"<svg .*?</svg>", markup)


def labels(svg: str) -> list[str]:
    return re.findall(r'<text class="tick"[^>]*>([^<]*)', svg)


def test_every_plot_is_drawn_for_wide_and_for_narrow_screens() -> None:
    drawn = drawings(lines([], seconds=60.0, title="a < b"))
    assert [ET.fromstring(svg).get("class") for svg in drawn] == ["wide", "narrow"]


def test_of_a_name_that_is_too_long_the_end_is_kept() -> None:
    assert fitting("node-1", 100.0) == "node-1"
    short = fitting("default avgShedder.lowThreshold=15", 100.0)
    assert len(short) < 17
    assert short.startswith("…")
    assert short.endswith("lowThreshold=15"[-12:])


class TestTime:
    def test_is_labeled_in_round_steps_few_enough_to_read(self) -> None:
        for minutes in (5, 40, 90, 300, 1440, 20_000):
            frame = Frame(WIDE, minutes * 60.0, 100.0)
            found = [float(x) for x in re.findall(r'<text class="tick" x="([\d.]+)"', "".join(frame.time_axis()))]
            assert 2 <= len(found) <= WIDE.labels + 1
            assert all(right - left > 30.0 for left, right in pairwise(found))

    def test_is_said_in_minutes_hours_and_days(self) -> None:
        assert labels("".join(Frame(WIDE, 2 * 3600.0, 100.0).time_axis()))[5:8] == ["50m", "1h", "1h10"]
        assert labels("".join(Frame(WIDE, 86_400.0, 100.0).time_axis()))[-1] == "1d"


class TestScale:
    def test_ends_at_a_round_figure_that_holds_the_highest(self) -> None:
        for highest in (0.03, 0.9, 7.0, 99.0, 101.0, 4_321.0):
            scale = Scale.up_to(highest, start=0.0, end=1.0)
            assert 0.4 < scale.at(highest) <= 1.0
            assert len(list(scale.ticks())) <= 6

    def test_of_nothing_but_zeros_is_a_scale_all_the_same(self) -> None:
        scale = Scale.up_to(0.0, start=10.0, end=0.0)
        assert scale.at(0.0) == 10.0


class TestLines:
    def test_a_gap_in_the_figures_is_a_gap_in_the_line(self) -> None:
        broken = Line("a", np.arange(5.0), np.array([1.0, 2.0, np.nan, 3.0, 4.0]))
        svg, _ = drawings(lines([broken], seconds=4.0, title="t"))
        assert len(re.findall("<polyline", svg)) == 2

    def test_what_is_higher_stands_higher_and_all_of_it_inside(self) -> None:
        rising = Line("a", np.arange(3.0), np.array([0.0, 30.0, 60.0]))
        svg, _ = drawings(lines([rising], seconds=2.0, title="t"))
        (points,) = re.findall(r'points="([^"]*)"', svg)
        heights = [float(point.split(",")[1]) for point in points.split()]
        assert heights[0] > heights[1] > heights[2] >= 0.0

    def test_a_level_stretch_keeps_its_ends(self) -> None:
        level = Line("a", np.arange(6.0), np.array([1.0, 1.0, 1.0, 5.0, 5.0, 5.0]))
        svg, _ = drawings(lines([level], seconds=5.0, title="t"))
        (points,) = re.findall(r'points="([^"]*)"', svg)
        assert len(points.split()) == 4

    def test_names_are_escaped(self) -> None:
        assert "<b>" not in lines([Line("<b>", np.arange(2.0), np.ones(2))], seconds=1.0, title="t")


def series(hot: float, *, every: float = 60.0) -> Series:
    """A pool of two nodes, ten passes, whose imbalance is half of `hot`."""
    return Series.of(trace([[hot, 0.0]] * 10, every=every))


def test_a_course_is_the_mean_over_seeds_and_knows_how_far_they_are_apart() -> None:
    course = Course.of("a", [series(20.0), series(60.0)])
    assert course.mean.values == pytest.approx(20.0)
    assert course.low == pytest.approx(10.0)
    assert course.high == pytest.approx(30.0)


def test_runs_whose_passes_are_at_other_times_are_laid_over_each_other() -> None:
    course = Course.of("a", [series(20.0), series(20.0, every=61.0)])
    assert course.mean.values == pytest.approx(10.0)
    assert course.mean.times[-1] == 600.0


def test_before_the_first_pass_nothing_is_known() -> None:
    late = Series.of(trace([[20.0, 0.0]] * 10, times=300.0 + 60.0 * np.arange(10), duration_seconds=900.0))
    course = Course.of("a", [late])
    assert np.isnan(course.mean.values[0])
    assert course.mean.values[-1] == pytest.approx(10.0)


def drawn(*courses: Course) -> str:
    return small_multiples(courses, seconds=600.0, name="n", title="t").drawings[0].marks


def test_every_policy_has_a_panel_of_its_own_with_the_others_behind() -> None:
    marks = drawn(Course.of("a", [series(20.0)]), Course.of("b", [series(40.0)]))
    assert re.findall(r'class="strong"[^>]*>(\w)<', marks) == ["a", "b"]
    assert len(re.findall(r'<use class="other" href="#n-wide"/>', marks)) == 2
    assert len(re.findall(r'<polyline class="own"', marks)) == 2


def test_panels_share_one_scale() -> None:
    marks = drawn(Course.of("a", [series(20.0)]), Course.of("b", [series(40.0)]))
    heights = [float(y) for y in re.findall(r'class="own" points="[\d.]+,([\d.]+)', marks)]
    assert heights[1] < heights[0]


def test_a_band_shows_seeds_that_differ_and_none_where_they_agree() -> None:
    assert 'class="band"' in drawn(Course.of("a", [series(20.0), series(30.0)]))
    assert 'class="band"' not in drawn(Course.of("a", [series(20.0), series(20.0)]))
