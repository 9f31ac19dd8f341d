"""Kubernetes' timestamps (RFC 3339, UTC) and seconds since the epoch."""

from __future__ import annotations

from datetime import UTC, datetime


def seconds(text: str | None) -> float | None:
    """Seconds since the epoch; None for no timestamp."""
    return datetime.fromisoformat(text).timestamp() if text else None


def text(at_seconds: float) -> str:
    """As metav1.Time has it, to the second."""
    return datetime.fromtimestamp(at_seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def micro_text(at_seconds: float) -> str:
    """As metav1.MicroTime has it."""
    return datetime.fromtimestamp(at_seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
