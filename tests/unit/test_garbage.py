from __future__ import annotations

import gc

import pytest

from ballast.garbage import seldom_sought


@pytest.mark.parametrize(("before", "within"), [(700, 500_000), (900_000, 900_000), (0, 0)])
def test_reference_cycles_are_sought_seldom_while_runs_go_on_and_as_before_afterwards(before: int, within: int) -> None:
    seen = []

    def seen_until_it_raises() -> None:
        with seldom_sought():
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
