"""Structured logs: one line an entry, as text or JSON."""

from __future__ import annotations

import json
import logging

from pythonjsonlogger.core import RESERVED_ATTRS
from pythonjsonlogger.json import JsonFormatter

_KOPFS = ("settings", "k8s_skip", "k8s_ref")
"""What kopf's entries carry for its own use."""
_OWN = {*vars(logging.makeLogRecord({})), "message", "asctime", *_KOPFS}
"""What is not shown behind the message."""
_QUIET = ("kopf", "aiohttp", "urllib3", "asyncio")


def configure(*, as_json: bool, level: int) -> None:
    """Set up the root logger; call once, in `main`."""
    handler = logging.StreamHandler()
    handler.setFormatter(_json() if as_json else _Text("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=level, handlers=[handler], force=True)
    for name in _QUIET:
        logging.getLogger(name).setLevel(max(level, logging.WARNING))
    # It warns that it can't take over the signals, which is what we want.
    logging.getLogger("kopf._core.reactor.running").setLevel(logging.ERROR)


class _Text(logging.Formatter):
    """The message, and behind it what the entry carries, as `key=value`."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 -- logging's name
        carried = {key: value for key, value in vars(record).items() if key not in _OWN and not key.startswith("_")}
        return " ".join([super().formatMessage(record), *(f"{key}={_shown(value)}" for key, value in carried.items())])


def _shown(value: object) -> str:
    if isinstance(value, str) and value and value.isprintable() and not set(value) & set(' "='):
        return value
    return json.dumps(value, default=str, ensure_ascii=False, separators=(",", ":"))


def _json() -> logging.Formatter:
    return JsonFormatter(
        "%(levelname)s %(name)s %(message)s",
        timestamp="time",
        reserved_attrs=[*RESERVED_ATTRS, *_KOPFS],
        rename_fields={"levelname": "level", "name": "logger"},
    )
