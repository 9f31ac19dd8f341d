from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ballast.spark.source.grid import Grid

grids = st.builds(Grid, st.integers(0, 10_000), st.integers(1, 50), st.integers(0, 60))


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
