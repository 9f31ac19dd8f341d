from __future__ import annotations

import gc

import numpy as np  # noqa: F401 -- loads the library of which the test asks
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from ballast.runtime import planning_runtime


@pytest.mark.parametrize(("before", "within"), [(700, 500_000), (900_000, 900_000), (0, 0)])
def test_reference_cycles_are_sought_seldom_while_runs_go_on_and_as_before_afterwards(before: int, within: int) -> None:
    seen = []

    def seen_until_it_raises() -> None:
        with planning_runtime():
            seen.append(gc.get_threshold())
            raise RuntimeError("enough")

    found = gc.get_threshold()
    try:
        gc.set_threshold(before, 9, 8)
        with pytest.raises(RuntimeError, match="enough"):
            seen_until_it_raises()
        assert seen == [(within, 9, 8)]
        assert gc.get_threshold() == (before, 9, 8)
    finally:
        gc.set_threshold(*found)


def test_matrices_are_multiplied_on_one_thread_while_runs_go_on() -> None:
    with threadpool_limits(limits=2, user_api="blas"):
        before = blas_threads()
        assert before
        with planning_runtime():
            assert set(blas_threads()) == {1}
        assert blas_threads() == before


def blas_threads() -> list[int]:
    return [each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"]
