"""A finding: what is wrong, why it matters, and what to change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

_NONE: Mapping[str, str] = {}


class Severity(StrEnum):
    ERROR = "error"
    """Ballast, or a part of it, does not work."""
    WARNING = "warning"
    """It works, and costs more or protects less than it should."""
    INFO = "info"
    """Worth knowing; does not affect the exit code."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What holds of every finding with one id."""

    severity: Severity
    why: str
    """With the measured consequence, where there is one."""
    remedy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    id: str
    """Stable: scripts may rely on it."""
    severity: Severity
    subject: str
    """The file or the object that it is about."""
    what: str
    why: str
    remedy: str
    settings: Mapping[str, str] = field(default_factory=lambda: _NONE)
    """Spark configuration that removes the finding."""
    commands: tuple[str, ...] = ()
    """Shell commands that remove the finding."""

    @property
    def anchor(self) -> str:
        return f"docs/doctor.md#{self.id.lower()}"
