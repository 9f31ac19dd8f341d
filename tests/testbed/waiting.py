"""Waiting for a condition instead of for a while."""

import time
from collections.abc import Callable
from typing import TypeVar

from tests.testbed.errors import TestbedError

Result = TypeVar("Result")
POLL_SECONDS = 0.05


def wait_until(
    condition: Callable[[], Result | None],
    *,
    what: str,
    timeout_seconds: float = 60.0,
    poll_seconds: float = POLL_SECONDS,
    explain: Callable[[], str] = str,
) -> Result:
    """The first truthy result of `condition`; TestbedError with `explain()` when none came in time."""
    deadline = time.monotonic() + timeout_seconds
    while True:
        result = condition()
        if result:
            return result
        if time.monotonic() > deadline:
            raise TestbedError(f"{what}: not within {timeout_seconds:g} s\n{explain()}".rstrip())
        time.sleep(poll_seconds)


def stays(condition: Callable[[], object], *, what: str, seconds: float, poll_seconds: float = POLL_SECONDS) -> None:
    """Watch a condition hold for so long, where the lack of a change is what is tested; TestbedError once it fails."""
    begun = time.monotonic()
    while True:
        watched = time.monotonic() - begun
        if not condition():
            raise TestbedError(f"{what}: not any more after {watched:.1f} s of {seconds:g} s")
        if watched >= seconds:
            return
        time.sleep(poll_seconds)
