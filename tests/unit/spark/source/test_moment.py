from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ballast.errors import InvalidField
from ballast.spark.source.moment import Grid, as_rfc3339, datetime_microseconds, span_ms, time_ms

NOW_MS = 1_767_225_600_000  # 2026-01-01T00:00:00Z

grids = st.builds(Grid, st.integers(0, 10_000), st.integers(1, 50), st.integers(0, 60))


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("15s", 15_000),
        ("15", 15_000),
        ("0.25", 250),
        ("250ms", 250),
        ("1h30m", 5_400_000),
        ("1d12h", 129_600_000),
        ("2w", 1_209_600_000),
        (" 5m ", 300_000),
    ],
)
def test_a_span_is_read_as_prometheus_writes_it_or_in_seconds(text: str, milliseconds: int) -> None:
    assert span_ms(text, field="step") == milliseconds


@pytest.mark.parametrize("text", ["", "0", "0s", "-5s", "5 parsecs", "1h 30m", "nan", "inf", "1e99", "5m\n3", "٣s"])
def test_what_is_no_span_is_refused_by_the_name_of_its_field(text: str) -> None:
    with pytest.raises(InvalidField, match=r"^step: "):
        span_ms(text, field="step")


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("2026-01-01T00:00:00Z", NOW_MS),
        ("2026-01-01T02:00:00.250+02:00", NOW_MS + 250),
        ("2025-12-31T23:00:00-01:00", NOW_MS),
        ("1767225600", NOW_MS),
        ("1767225600.1239", NOW_MS + 123),
        ("now", NOW_MS),
        ("now-6h", NOW_MS - 21_600_000),
        ("now - 1d", NOW_MS - 86_400_000),
        ("now+90", NOW_MS + 90_000),
    ],
)
def test_a_time_is_read_from_rfc_3339_an_epoch_or_now(text: str, milliseconds: int) -> None:
    assert time_ms(text, now_ms=NOW_MS, field="start") == milliseconds


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("yesterday", "write a time such as"),
        ("now-", "write a time such as"),
        ("now-soon", "write a span such as"),
        ("2026-01-01T00:00:00", "say which zone"),
        ("2026-13-01T00:00:00Z", "write a time such as"),
        ("99999999999999", "write a time such as"),
    ],
)
def test_what_is_no_time_is_refused_with_a_remedy(text: str, remedy: str) -> None:
    with pytest.raises(InvalidField, match=remedy):
        time_ms(text, now_ms=NOW_MS, field="start")


@given(st.integers(0, 4_000_000_000_000))
def test_a_time_that_is_written_is_read_again(milliseconds: int) -> None:
    assert time_ms(as_rfc3339(milliseconds), now_ms=0, field="offset") == milliseconds


def test_a_datetime_without_a_zone_is_utc() -> None:
    naive = datetime(2026, 1, 1, 0, 0, 0, 7)  # noqa: DTZ001 -- as Spark may hand it over
    assert datetime_microseconds(naive) == NOW_MS * 1000 + 7
    assert datetime_microseconds(naive.replace(tzinfo=UTC)) == NOW_MS * 1000 + 7
    assert datetime_microseconds(naive.replace(tzinfo=timezone(timedelta(hours=1)))) == (NOW_MS - 3_600_000) * 1000 + 7


def steps(grid: Grid) -> list[int]:
    return [grid.start_ms + n * grid.step_ms for n in range(grid.count)]


def test_both_ends_of_a_range_are_asked_for() -> None:
    assert steps(Grid.between(100, 130, step_ms=15)) == [100, 115, 130]
    assert steps(Grid.between(100, 129, step_ms=15)) == [100, 115]
    assert steps(Grid.between(100, 100, step_ms=15)) == [100]
    assert steps(Grid.between(100, 80, step_ms=15)) == []


@given(grids, st.integers(1, 20))
def test_the_parts_of_a_grid_have_each_of_its_steps_once_and_in_order(grid: Grid, most: int) -> None:
    parts = list(grid.parts(most))
    assert [step for part in parts for step in steps(part)] == steps(grid)
    assert all(1 <= part.count <= most for part in parts)
    assert all(steps(part)[-1] == part.last_ms for part in parts)


bounds = st.one_of(st.none(), st.integers(-1_000_000, 14_000_000))


@given(grids, bounds, bounds)
def test_a_narrowed_grid_keeps_exactly_the_steps_between_the_bounds(
    grid: Grid, low_us: int | None, high_us: int | None
) -> None:
    wanted = [
        step
        for step in steps(grid)
        if (low_us is None or step * 1000 >= low_us) and (high_us is None or step * 1000 <= high_us)
    ]
    assert steps(grid.narrowed(low_us, high_us)) == wanted
