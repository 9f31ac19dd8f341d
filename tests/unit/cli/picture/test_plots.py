from __future__ import annotations

import re
from itertools import pairwise
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from ballast.cli.picture.frame import WIDE, Frame
from ballast.cli.picture.plots import Line, heat_map, lines
from tests.unit.simulation.traces import move, trace

RECT = re.compile(r'<rect class="h(\d)" x="([\d.]+)" y="([\d.]+)" width="([\d.]+)"')


def drawings(markup: str) -> list[str]:
    return re.findall(r"<svg .*?</svg>", markup)


def labels(svg: str) -> list[str]:
    return re.findall(r'<text class="tick"[^>]*>([^<]*)', svg)


@pytest.mark.parametrize("markup", [heat_map(trace([[80.0, 20.0]] * 5)), lines([], seconds=60.0, title="a < b")])
def test_every_plot_is_drawn_for_wide_and_for_narrow_screens(markup: str) -> None:
    assert [ET.fromstring(svg).get("class") for svg in drawings(markup)] == ["wide", "narrow"]


class TestTime:
    def test_is_labelled_in_round_steps_few_enough_to_read(self) -> None:
        for minutes in (5, 40, 90, 300, 1440, 20_000):
            frame = Frame(WIDE, minutes * 60.0, 100.0)
            found = [float(x) for x in re.findall(r'<text class="tick" x="([\d.]+)"', "".join(frame.time_axis()))]
            assert 2 <= len(found) <= WIDE.labels + 1
            assert all(right - left > 30.0 for left, right in pairwise(found))

    def test_is_said_in_minutes_hours_and_days(self) -> None:
        assert labels("".join(Frame(WIDE, 2 * 3600.0, 100.0).time_axis()))[5:8] == ["50m", "1h", "1h10"]
        assert labels("".join(Frame(WIDE, 86_400.0, 100.0).time_axis()))[-1] == "1d"


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

    def test_names_are_escaped(self) -> None:
        assert "<b>" not in lines([Line("<b>", np.arange(2.0), np.ones(2))], seconds=1.0, title="t")


class TestHeatMap:
    def test_the_shade_is_the_usage_in_tens(self) -> None:
        svg, _ = drawings(heat_map(trace([[5.0, 55.0, 140.0]] * 3)))
        assert [int(shade) for shade, *_ in RECT.findall(svg)] == [0, 5, 9]

    def test_a_node_that_is_not_there_is_not_drawn(self) -> None:
        svg, _ = drawings(heat_map(trace([[50.0, np.nan], [50.0, 20.0]])))
        (_, always, _, _), (_, later, _, _) = RECT.findall(svg)
        assert float(later) > float(always)

    def test_a_change_of_shade_is_where_the_usage_changed(self) -> None:
        svg, _ = drawings(heat_map(trace([[80.0]] * 5 + [[30.0]] * 5)))
        (hot, x, _, width), (cold, at, _, _) = RECT.findall(svg)
        assert (hot, cold) == ("8", "3")
        assert float(x) + float(width) == pytest.approx(float(at), abs=0.2)

    def test_every_move_is_an_arrow_between_its_nodes(self) -> None:
        svg, _ = drawings(heat_map(trace([[80.0, 20.0]] * 5, moves=(move(0, 1, 60.0), move(1, 0, 120.0)))))
        down, up = re.findall(r'class="move" d="M[\d.]+ ([\d.]+)V([\d.]+)', svg)
        assert float(down[0]) < float(down[1])
        assert float(up[0]) > float(up[1])

    def test_of_very_many_nodes_those_with_moves_are_shown(self) -> None:
        crowd = trace([[50.0] * 500] * 3, moves=(move(400, 7, 60.0),))
        svg, _ = drawings(heat_map(crowd))
        assert len(RECT.findall(svg)) == 60
        assert 'class="move"' in svg
