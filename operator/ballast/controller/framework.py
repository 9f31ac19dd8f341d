"""kopf runs the process: its start, its end, its login, and the handlers for our kinds.

The operator's own work begins when kopf's startup handlers run and ends in its cleanup handlers. When kopf fails (an
answer that is no JSON ends all of it), it is started again inside the process after a pause, and our work goes on
meanwhile: executors are released by what the other watches say.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ballast.api.version import GROUP, VERSION
from ballast.kube import kinds
from ballast.kube.connection import Connection, Tls
from ballast.kube.document import JSON
from ballast.kube.kinds import Kind

# kopf, loaded without the Kubernetes client library.
#
# kopf loads that library wherever it is installed, to recognize its classes and its logins. Ballast uses neither, and
# the library's model classes take a tenth of the CPU seconds of a start. Here, importing it fails while kopf is loaded,
# as if it were not installed.

__all__ = ["kopf"]


@contextmanager
def _absent(library: str) -> Iterator[None]:
    modules: dict[str, Any] = sys.modules
    if library in modules:
        yield
        return
    modules[library] = None  # what the import system takes for "there is no such module"
    try:
        yield
    finally:
        del modules[library]


with _absent("kubernetes"):
    import kopf
    from kopf._cogs.structs.credentials import Vault


_LOG = logging.getLogger(__name__)

_OWN_KINDS = (kinds.BALANCING_POLICY, kinds.SPARK_TOPOLOGY, kinds.EXECUTOR_MOVE)
_DELETED = "DELETED"
_LOG_IN_AGAIN_SECONDS = 1.0
_FIRST_RESTART_SECONDS = 0.5
_LONGEST_RESTART_SECONDS = 15.0
_FAILING_SECONDS = 8.0
"""For kopf to end by itself after it has failed. It was seen to wait for ever for a watch that it could not cancel."""
_STOPPING_SECONDS = 25.0
"""For kopf to end when it is told to: longer than the operator's work takes to wind up in its cleanup."""
_CANCELLATIONS = 3
_ROTATION_SECONDS = 3.0
"""How often the files of the authority and of our certificate are compared with those that kopf logged in with."""
_STEADY_SECONDS = 60.0
"""After running for so long, kopf is started again without a growing pause."""
_INACTIVITY_SECONDS = 90.0
"""Without any event, until kopf opens a watch again."""
_LISTED_AT_ONCE = 10
"""Kopf takes a page as a whole, and one object of a user's may take 20 MiB once it is read."""
_OUTAGE_BACKOFFS_SECONDS = (1.0, 1.0, 2.0, *[5.0] * 720)
"""kopf retries through an outage of the API server of an hour before it gives up and is started again."""


@dataclass(frozen=True, slots=True)
class Hooks:
    """What the operator wants to hear of."""

    heard: Callable[[Kind, JSON, bool], None]
    """An object of ours changed; True: it was deleted."""
    started: Callable[[], Awaitable[None]]
    """At every start of kopf, before it watches anything."""
    ended: Callable[[], Awaitable[None]]
    """When the process is to end, after kopf's watches have."""


@dataclass(slots=True)
class Framework:
    """Runs kopf until `stop` is set, or the process is told to end by SIGTERM or SIGINT, which sets it."""

    connection: Connection
    hooks: Hooks
    stop: asyncio.Event
    restarts: int = 0
    """How often kopf was started again."""
    _current: tuple[asyncio.AbstractEventLoop, asyncio.Event] | None = field(default=None, init=False)

    async def run(self) -> None:
        pause = _FIRST_RESTART_SECONDS
        loop = asyncio.get_running_loop()
        while not self.stop.is_set():
            began = loop.time()
            try:
                await self._once()
            except (Exception, asyncio.CancelledError) as error:
                if isinstance(error, asyncio.CancelledError) and _is_cancelled():
                    raise
                _LOG.warning("kopf failed, started again in %.1f s: %s: %s", pause, type(error).__name__, error)
            else:
                if not self.stop.is_set():
                    _LOG.warning("kopf ended by itself, started again in %.1f s", pause)
            if self.stop.is_set():
                break
            self.restarts += 1
            if loop.time() - began >= _STEADY_SECONDS:
                pause = _FIRST_RESTART_SECONDS
            await _wait(self.stop, pause)
            pause = min(2 * pause, _LONGEST_RESTART_SECONDS)

    def restart(self) -> None:
        """Have kopf started again, from any thread: it was found not to hear of changes any more."""
        current = self._current
        if current is not None:
            loop, ending = current
            loop.call_soon_threadsafe(ending.set)

    async def _once(self) -> None:
        existing = asyncio.all_tasks()
        ending, vault = asyncio.Event(), Vault()
        self._current = (asyncio.get_running_loop(), ending)
        ours = {
            asyncio.create_task(_relay(self.stop, ending)),
            asyncio.create_task(_end_when_rotated(self.connection.tls, ending)),
        }
        try:
            tasks = await kopf.spawn_tasks(
                registry=self._registry(),
                settings=_settings(),
                clusterwide=True,
                standalone=True,
                # Without one kopf asks for the user's name, and the user of a container has none.
                identity="ballast",  # type: ignore[arg-type]
                stop_flag=ending,
                vault=vault,
            )
            self._take_signals()
            running = asyncio.create_task(kopf.run_tasks(tasks, ignored=existing | ours))
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait({running}, timeout=_STOPPING_SECONDS if self.stop.is_set() else _FAILING_SECONDS)
            if not running.done():
                _LOG.warning("kopf does not end after one of its tasks has")
                inner = asyncio.all_tasks() - existing - ours - {running, *tasks}
                await _cancel(inner, until=running)
                await _cancel({running, *tasks}, until=running)
            running.result()
        finally:
            for task in ours:
                task.cancel()
            self._current = None
            # Kopf closes its connections only where it ends as it should.
            await vault.close()

    def _take_signals(self) -> None:
        """Replace the handlers that kopf has just set, which fail at a second signal."""
        if threading.current_thread() is threading.main_thread():
            loop = asyncio.get_running_loop()
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(number, self.stop.set)

    def _registry(self) -> kopf.OperatorRegistry:
        """Event handlers only: no annotation, no finalizer, nothing stored on users' objects."""
        registry = kopf.OperatorRegistry()
        logins = itertools.count()

        async def log_in(**_: Any) -> kopf.ConnectionInfo:
            login = next(logins)
            if login:
                await asyncio.sleep(_LOG_IN_AGAIN_SECONDS)
            return _credentials(self.connection, login)

        async def start(**_: Any) -> None:
            await self.hooks.started()

        async def clean_up(**_: Any) -> None:
            if self.stop.is_set():
                await self.hooks.ended()

        kopf.on.startup(registry=registry, id="start")(start)
        kopf.on.cleanup(registry=registry, id="clean-up")(clean_up)
        kopf.on.login(registry=registry, id="login")(log_in)
        for kind in _OWN_KINDS:
            kopf.on.event(GROUP, VERSION, kind.plural, registry=registry, id=kind.plural)(self._handler(kind))
        return registry

    def _handler(self, kind: Kind) -> Callable[..., Awaitable[None]]:
        async def on_event(event: Mapping[str, Any], **_: Any) -> None:
            whole = event["object"]
            self.hooks.heard(kind, {**whole, "metadata": {**whole["metadata"]}}, event["type"] == _DELETED)
            _empty(whole)

        return on_event


def _empty(whole: dict[str, Any]) -> None:
    """Take out what kopf does not read any more.

    Its views of an object are a reference cycle, and the objects of a user may be long: they would fill the memory
    until the cycle is found.
    """
    for part in ("spec", "status"):
        whole.pop(part, None)
    for part in ("labels", "annotations", "managedFields"):
        whole["metadata"].pop(part, None)


def _settings() -> kopf.OperatorSettings:
    settings = kopf.OperatorSettings()
    settings.peering.standalone = True
    settings.posting.enabled = False
    settings.posting.level = logging.WARNING
    settings.process.ultimate_exiting_timeout = None
    settings.networking.request_timeout = 30
    settings.networking.connect_timeout = 10
    settings.networking.error_backoffs = _OUTAGE_BACKOFFS_SECONDS
    settings.watching.server_timeout = 300
    # The API server sends idle kinds a bookmark every minute: a watch that is silent for longer is broken.
    settings.watching.inactivity_timeout = _INACTIVITY_SECONDS
    settings.watching.chunk_size = _LISTED_AT_ONCE
    return settings


def _credentials(connection: Connection, login: int) -> kopf.ConnectionInfo:
    """The same as our own client uses; asked for again when the server refuses them.

    That may be a token that was rotated, or a server that can't check tokens now: `login` counts, since kopf gives up
    when it gets what was refused before.
    """
    scheme, _, token = (connection.authorization() or "").partition(" ")
    tls = connection.tls
    return kopf.ConnectionInfo(
        server=connection.server,
        ca_path=tls.ca_path,
        insecure=not tls.verify,
        scheme=scheme or None,
        token=token or None,
        certificate_path=tls.certificate_path,
        private_key_path=tls.key_path,
        proxy_url=connection.proxy,
        default_namespace=connection.namespace,
        # Of several; there is one at a time.
        priority=login,
    )


async def _cancel(tasks: set[asyncio.Task[Any]], *, until: asyncio.Task[None]) -> None:
    """Cancel tasks of kopf again and again: some swallow the first cancellation, and kopf cancels only once."""
    for _ in range(_CANCELLATIONS):
        for task in tasks:
            task.cancel()
        await asyncio.wait({until}, timeout=1.0)
        if until.done():
            return


def _is_cancelled() -> bool:
    """Whether the task that runs kopf is itself to end, rather than kopf, whose cancellation it awaited."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def _relay(stop: asyncio.Event, ending: asyncio.Event) -> None:
    await stop.wait()
    ending.set()


async def _end_when_rotated(tls: Tls, ending: asyncio.Event) -> None:
    """Kopf reads these files when it logs in, and never logs in again because of a certificate that it does not trust:
    "certificate verify failed" for as long as it retries.
    """
    before = _contents(tls)
    while _contents(tls) == before:  # noqa: ASYNC110 -- files change without an event
        await asyncio.sleep(_ROTATION_SECONDS)
    _LOG.info("the API server's authority or the operator's certificate was rotated: kopf is started again")
    ending.set()


def _contents(tls: Tls) -> list[bytes]:
    """A file that is being replaced counts as empty."""
    paths = [Path(path) for path in (tls.ca_path, tls.certificate_path) if path]
    return [path.read_bytes() if path.is_file() else b"" for path in paths]


async def _wait(stop: asyncio.Event, seconds: float) -> None:
    try:
        await asyncio.wait_for(stop.wait(), seconds)
    except TimeoutError:
        return
