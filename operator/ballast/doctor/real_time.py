"""Spark's real-time mode in the code of an application: the trigger is nowhere else."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from ballast.doctor.submission import Submission, properties
from ballast.errors import InvalidField

SETTINGS = "spark.sql.streaming.realTimeMode."
"""Settings that begin so have no effect on other queries."""
_TRIGGER = re.compile(
    r"\btrigger\s*\((?:[^()]|\([^()]*\))*?\brealTime\s*=\s*(?!(?:False|None)\b)[^=\s]"
    r"|\bTrigger\.RealTime\b|\bRealTimeTrigger\b"
)
"""In Python an argument of `trigger`, in Scala and Java `Trigger.RealTime(…)`."""
_COMMENT = re.compile(r"^\s*(?:#|//|\*).*$", re.MULTILINE)


def asks_for_real_time(code: str) -> int | None:
    """The number of the first line that does."""
    found = _TRIGGER.search(_COMMENT.sub("", code))
    return None if found is None else found.string.count("\n", 0, found.end()) + 1


def sets_real_time(text: str) -> bool:
    """Of a properties file, such as a driver's spark.properties."""
    try:
        return any(key.startswith(SETTINGS) for key in properties(text))
    except InvalidField:  # Spark did not write it
        return False


def with_code(app: Submission, code_of: Callable[[str], str | None]) -> Submission:
    """The application with what its own file says. `code_of` gives the file's text, or None if it can't be read."""
    code = code_of(app.main_file) if app.main_file else None
    line = None if code is None else asks_for_real_time(code)
    return app if line is None else replace(app, real_time_by=f"Line {line} of {app.main_file} asks for real-time mode")
