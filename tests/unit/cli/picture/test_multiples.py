from __future__ import annotations

import re

import numpy as np
import pytest

from ballast.cli.picture.multiples import Course, small_multiples
from ballast.simulation.study import Series
from tests.unit.simulation.traces import trace


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
