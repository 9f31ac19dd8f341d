from __future__ import annotations

import re
from itertools import pairwise
from xml.etree import ElementTree as ET

import numpy as np

from ballast.cli.picture.frame import WIDE, Frame, Scale, fitting
from ballast.cli.picture.lines import Line, lines


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
