"""kopf's part: watch our kinds and the executors, and say that something changed. Nothing is decided or written."""

from __future__ import annotations

import asyncio
import itertools
import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import kopf

from ballast.api.meta import GROUP, VERSION
from ballast.controller.background import in_background
from ballast.controller.failures import Failure, failure
from ballast.errors import BallastError
from ballast.kube import names
from ballast.kube.connection import Connection

_KINDS = ("balancingpolicies", "sparktopologies", "executormoves")
_EXECUTORS = f"{names.SPARK_ROLE}=executor"
_DELETED = "DELETED"
_MOST_SEEN = 100_000
_LOG_IN_AGAIN_SECONDS = 1.0
_OUTAGE_BACKOFFS_SECONDS = (1.0, 1.0, 2.0, *[5.0] * 720)
"""An hour without an API server is sat out: a process that ends is started anew ever later, and comes back late."""


class WatchEndedError(BallastError):
    """Nothing would be noticed any more; the process is to be started anew."""


async def watch(
    connection: Connection, changed: Callable[[], None], *, failed: Callable[[Failure], None], stop: asyncio.Event
) -> None:
    """Call `changed` after everything that a round could act upon, until `stop` is set. Raises if kopf gives up.

    kopf takes over the signals of the main thread and cancels every task of the loop it ran in, so it gets a thread
    and a loop of its own; `changed` is called in the caller's, `failed` in kopf's, perhaps twice about one executor.
    """
    loop, ending = asyncio.get_running_loop(), threading.Event()
    hears = _Hears(lambda: loop.call_soon_threadsafe(changed), failed)
    work = in_background(_run, connection, hears, ending)
    watching, stopping = asyncio.ensure_future(work), asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait((watching, stopping), return_when=asyncio.FIRST_COMPLETED)
        if watching.done():
            await watching
            raise WatchEndedError("kopf stopped watching, and nobody asked it to")
    finally:
        stopping.cancel()
        ending.set()
    await watching


@dataclass(frozen=True, slots=True)
class _Hears:
    """Who is told of what."""

    changed: Callable[[], object]
    failed: Callable[[Failure], None]


def _run(connection: Connection, hears: _Hears, ending: threading.Event) -> None:
    asyncio.run(_operate(connection, hears, ending))


async def _operate(connection: Connection, hears: _Hears, ending: threading.Event) -> None:
    try:
        await kopf.operator(
            registry=_registry(connection, hears),
            settings=_settings(),
            clusterwide=True,
            standalone=True,
            # Without one kopf asks for the user's name, and the user of a container has none.
            identity="ballast",  # type: ignore[arg-type]
            stop_flag=ending,
        )
    finally:
        # A thread of kopf's waits for it, and the end of this loop for that thread: also when kopf fails by itself.
        ending.set()


def _registry(connection: Connection, hears: _Hears) -> kopf.OperatorRegistry:
    """Event handlers only: no annotation, no finalizer, nothing stored on users' objects."""
    registry = kopf.OperatorRegistry()
    news, logins = News(), itertools.count()

    async def on_ours(body: Mapping[str, Any], type: str | None, **_: Any) -> None:  # noqa: A002 -- kopf's name
        if news.of_spec(body, deleted=type == _DELETED):
            hears.changed()

    async def on_executor(body: Mapping[str, Any], type: str | None, **_: Any) -> None:  # noqa: A002 -- kopf's name
        found = failure(body)
        if found is not None:
            hears.failed(found)
        if news.of_pod(body, deleted=type == _DELETED):
            hears.changed()

    async def log_in(**_: Any) -> kopf.ConnectionInfo:
        login = next(logins)
        if login:
            await asyncio.sleep(_LOG_IN_AGAIN_SECONDS)
        return _credentials(connection, login)

    for plural in _KINDS:
        kopf.on.event(GROUP, VERSION, plural, registry=registry, id=plural)(on_ours)
    kopf.on.event("", "v1", "pods", registry=registry, id="executors", labels={names.SPARK_ROLE: "executor"})(
        on_executor
    )
    kopf.on.login(registry=registry, id="login")(log_in)
    return registry


def _settings() -> kopf.OperatorSettings:
    settings = kopf.OperatorSettings()
    settings.peering.standalone = True
    settings.posting.enabled = False
    settings.posting.level = logging.WARNING
    settings.networking.request_timeout = 30
    settings.networking.connect_timeout = 10
    settings.networking.error_backoffs = _OUTAGE_BACKOFFS_SECONDS
    settings.watching.server_timeout = 300
    settings.watching.chunk_size = 500
    settings.watching.label_selectors["", "v1", "pods"] = _EXECUTORS
    return settings


def _credentials(connection: Connection, login: int) -> kopf.ConnectionInfo:
    """The same as our own client uses; asked for again when the server refuses them.

    That may be a token that was rotated, or a server that can't check tokens now: `login` counts, since kopf gives up
    when it gets what was refused before.
    """
    known = connection.configuration
    scheme, _, token = (known.get_api_key_with_prefix("BearerToken") or "").partition(" ")
    return kopf.ConnectionInfo(
        server=known.host,
        ca_path=known.ssl_ca_cert,
        scheme=scheme or None,
        token=token or None,
        certificate_path=known.cert_file,
        private_key_path=known.key_file,
        default_namespace=connection.namespace,
        # Of several; there is one at a time.
        priority=login,
    )


class News:
    """Tells what a round could act upon from what it has written itself or can do nothing about."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[Any, ...]] = {}

    def __len__(self) -> int:
        return len(self._seen)

    def of_spec(self, body: Mapping[str, Any], *, deleted: bool = False) -> bool:
        """A new object, another generation, or one that goes; a write of status is no news."""
        metadata = body["metadata"]
        return self._differs(body, (metadata.get("generation"), "deletionTimestamp" in metadata), deleted=deleted)

    def of_pod(self, body: Mapping[str, Any], *, deleted: bool = False) -> bool:
        """A gate that is ours, a node, a phase, a departure."""
        spec, status = body.get("spec") or {}, body.get("status") or {}
        gates = tuple(gate["name"] for gate in spec.get("schedulingGates") or ())
        leaving = "deletionTimestamp" in body["metadata"]
        return self._differs(body, (gates, spec.get("nodeName"), status.get("phase"), leaving), deleted=deleted)

    def _differs(self, body: Mapping[str, Any], now: tuple[Any, ...], *, deleted: bool) -> bool:
        uid = body["metadata"]["uid"]
        if deleted:
            self._seen.pop(uid, None)
            return True
        if self._seen.get(uid) == now:
            return False
        if len(self._seen) >= _MOST_SEEN:
            # What vanished during a re-list was never reported as deleted; looking again costs one round.
            self._seen.clear()
        self._seen[uid] = now
        return True
