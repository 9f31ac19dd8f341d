"""Settings for all tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.examples import USUAL

# How long an example takes depends on what else the machine does, and tells nothing about the property.
UNTIMED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], database=None, max_examples=USUAL)
settings.register_profile("short", UNTIMED, derandomize=True, max_examples=USUAL // 5)
"""The same examples in every run, so that `make test` gives the same verdict each time, and a fifth of them."""
settings.register_profile("fixed", UNTIMED, derandomize=True)
"""The same examples in every run, and all of them: `make soak`."""
settings.register_profile("fresh", UNTIMED, derandomize=False, print_blob=True)
"""Other examples in every run: `make bench BENCH=fuzz`, with a seed that it prints."""
settings.load_profile("short")
pytest.register_assert_rewrite("tests.apiserver.behaviors")

ROOT = Path(__file__).parents[1]
LONGEST = (
    "tests/spark/test_backtest_on_kubernetes.py",
    "tests/spark/test_audit_chaos.py",
    "tests/spark/test_history.py",
    "tests/spark/test_backtest.py",
)
"""Files of tests/spark that take longest, though some have few tests. pytest-xdist gives out whole files, by itself
those with most tests first: with a long file at the end one worker goes on while all others have ended.
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    rank = {name: number for number, name in enumerate(LONGEST)}
    items.sort(key=lambda item: rank.get(item.path.relative_to(ROOT).as_posix(), len(rank)))
