"""Structured logs: one line an entry, as text or JSON."""

from __future__ import annotations

import logging

from pythonjsonlogger.json import JsonFormatter

_QUIET = ("kopf", "aiohttp", "urllib3", "asyncio")


def configure(*, as_json: bool, level: int) -> None:
    """Set up the root logger; call once, in `main`."""
    handler = logging.StreamHandler()
    handler.setFormatter(_json() if as_json else logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=level, handlers=[handler], force=True)
    for name in _QUIET:
        logging.getLogger(name).setLevel(max(level, logging.WARNING))
    # It warns that it can't take over the signals, which is what we want.
    logging.getLogger("kopf._core.reactor.running").setLevel(logging.ERROR)


def _json() -> logging.Formatter:
    return JsonFormatter(
        "%(levelname)s %(name)s %(message)s",
        timestamp="time",
        rename_fields={"levelname": "level", "name": "logger"},
    )
