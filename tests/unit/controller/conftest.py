"""What holds of every line of the log, whatever a test is about."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

_LOGGER = logging.getLogger("ballast")


class _Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.incomplete: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        try:
            words = record.getMessage()
        except (TypeError, ValueError) as error:
            words = f"None: {record.msg}: {error}"
        if not words or "None" in words.replace(",", " ").replace(":", " ").split():
            self.incomplete.append(words)


@pytest.fixture(autouse=True)
def _lines_of_the_log_are_complete(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Also those that are not shown: a value that is missing shows only when someone needs it."""
    lines, level = _Lines(), _LOGGER.level
    caplog.handler.setLevel(logging.WARNING)
    _LOGGER.addHandler(lines)
    _LOGGER.setLevel(logging.DEBUG)
    yield
    _LOGGER.setLevel(level)
    _LOGGER.removeHandler(lines)
    assert lines.incomplete == []
