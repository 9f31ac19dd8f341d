"""The running operator: elects a leader, runs rounds when something changed or is due, and stops cleanly."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from dataclasses import dataclass
from functools import partial
from wsgiref.simple_server import WSGIServer

from prometheus_client import CollectorRegistry, start_http_server

from ballast.controller.actuator import Actuator
from ballast.controller.agenda import Agenda
from ballast.controller.background import in_background
from ballast.controller.failures import FailureReports
from ballast.controller.figures import Figures
from ballast.controller.health import HealthServer, Pulse
from ballast.controller.loop import CALM_SECONDS, Loop
from ballast.controller.movers import Movers
from ballast.controller.reporter import Reporter
from ballast.controller.rounds import Crew, Rounds
from ballast.controller.stale import StaleGates
from ballast.controller.survey import Surveyor
from ballast.controller.switch import Switch
from ballast.controller.telemetry import Telemetry
from ballast.controller.waiting import pause
from ballast.controller.watching import watch
from ballast.kube.client import Client
from ballast.kube.connection import Connection
from ballast.kube.errors import KubeError
from ballast.kube.events import EventRecorder
from ballast.kube.lease import ELECTION_LIMITS, Election, LeaseSettings

_LOG = logging.getLogger(__name__)

STALE_AFTER_SECONDS = 11.5
"""A little more than the longest gate timeout: by then the leader should have released it."""
_STALE_EVERY_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Settings:
    """How one replica runs."""

    name: str
    """Of the lease and of the gate switch."""
    namespace: str
    """The operator's own."""
    identity: str
    host: str = "0.0.0.0"  # noqa: S104 -- probes and scrapes come from outside of the pod
    health_port: int = 8080
    metrics_port: int = 9464
    lease_seconds: float = 6.0
    stop_seconds: float = 7.0
    """How long to wait for what is under way, and then for the parting words: together less than a pod's grace."""


class Operator:
    """One replica. Build it, `await run(stop)`; every resource is closed when that returns."""

    def __init__(self, connection: Connection, settings: Settings) -> None:
        self._connection, self._settings = connection, settings
        self._client = Client(connection)
        self._telemetry = Telemetry(CollectorRegistry())
        self._agenda = Agenda()
        self._pulse = Pulse(time.monotonic)
        self._lease = LeaseSettings(
            settings.namespace,
            settings.name,
            settings.identity,
            duration_seconds=settings.lease_seconds,
            renew_deadline_seconds=settings.lease_seconds * 2 / 3,
            retry_seconds=settings.lease_seconds / 6,
        )
        self._election_client = Client(connection, ELECTION_LIMITS)
        self._election = Election(self._election_client, self._lease, clock=time.time, monotonic=time.monotonic)
        self._stopped = False
        """A round that was left behind must not act any more."""
        named = partial(Switch, name=settings.name, identity=settings.identity, clock=time.time)
        self._switch = named(self._client)
        self._parting_switch = named(self._election_client)
        """With short timeouts, for turning it off at the end."""
        self._figures = Figures(self._client, namespace=settings.namespace)
        self._failed = FailureReports()
        self._stale = StaleGates(self._client, clock=time.time)
        self._rounds = self._build_rounds()

    def _build_rounds(self) -> Rounds:
        events = EventRecorder(
            self._client,
            instance=self._settings.identity,
            clock=time.time,
            on_error=lambda error: _LOG.warning("an event was lost: %s", error),
        )
        crew = Crew(
            surveyor=Surveyor(self._client),
            figures=self._figures,
            movers=Movers(self._client, events=events, telemetry=self._telemetry, clock=time.time),
            actuator=Actuator(self._client, events=events, telemetry=self._telemetry, clock=time.time),
            reporter=Reporter(self._client, events=events, clock=time.time, stays_off=lambda: self._switch.stays_off),
            switch=self._switch,
            telemetry=self._telemetry,
        )
        return Rounds(
            crew,
            clock=time.time,
            monotonic=time.monotonic,
            leading=lambda: self._election.leading and not self._stopped,
            reported=self._failed.take,
        )

    async def run(self, stop: asyncio.Event) -> None:
        """Run until `stop` is set. Raises what no restart of a round can mend."""
        health = HealthServer(self._pulse, host=self._settings.host, port=self._settings.health_port)
        await health.start()
        metrics, thread = start_http_server(
            self._settings.metrics_port, self._settings.host, registry=self._telemetry.registry
        )
        try:
            async with asyncio.TaskGroup() as tasks:
                ended = asyncio.Event()
                electing = tasks.create_task(self._elect(stop, ended))
                doing = [tasks.create_task(w(stop)) for w in (self._run_rounds, self._release_stale, self._watch)]
                tasks.create_task(self._wind_up(doing, electing, stop=stop, ended=ended))
        finally:
            await self._close()
            await health.stop()
            _end(metrics, thread)

    async def _elect(self, stop: asyncio.Event, ended: asyncio.Event) -> None:
        """Until `ended`: who leads goes on leading until the last round is over, and then turns the switch off."""
        led = False
        while not ended.is_set() and (led or not stop.is_set()):
            leading = await in_background(self._election.tick)
            if self._election.last_error is not None:
                _LOG.warning("election: %s", self._election.last_error)
            elif not leading:
                self._pulse.beat()
            if leading and not led:
                _LOG.info("%s leads", self._settings.identity)
                self._rounds.forget()
                self._agenda.mark()
            elif led and not leading:
                _LOG.warning("%s leads no longer", self._settings.identity)
                self._agenda.mark()
            led = leading
            self._telemetry.leading.set(int(leading))
            await pause(ended, self._lease.retry_seconds)

    async def _run_rounds(self, stop: asyncio.Event) -> None:
        loop = Loop(
            self._agenda,
            self._pulse,
            leading=lambda: self._election.leading,
            clock=time.time,
            look_again_seconds=self._lease.retry_seconds,
        )
        await loop.run(self._rounds.run, stop)

    async def _release_stale(self, stop: asyncio.Event) -> None:
        """Every replica does this, so that a leader that hangs holds nobody."""
        while not stop.is_set():
            try:
                outcomes = await in_background(self._stale.release, older_than_seconds=STALE_AFTER_SECONDS)
            except KubeError as error:
                _LOG.warning("stale gates were not looked for: %s", error)
            else:
                if outcomes:
                    _LOG.warning("released %d executors that had waited too long", len(outcomes))
            await pause(stop, _STALE_EVERY_SECONDS)

    async def _watch(self, stop: asyncio.Event) -> None:
        mark = partial(self._agenda.mark, after_seconds=CALM_SECONDS)
        await watch(self._connection, mark, failed=self._failed.put, stop=stop)

    async def _wind_up(
        self,
        doing: list[asyncio.Task[None]],
        electing: asyncio.Task[None],
        *,
        stop: asyncio.Event,
        ended: asyncio.Event,
    ) -> None:
        """What hangs when the operator is to stop is not waited for long: the pod would be killed meanwhile."""
        await stop.wait()
        await _leave_behind(doing, after_seconds=self._settings.stop_seconds)
        ended.set()
        await _leave_behind([electing], after_seconds=self._lease.retry_seconds)

    async def _close(self) -> None:
        was_leading, self._stopped = self._election.leading, True
        try:
            await asyncio.wait_for(in_background(self._give_up, was_leading=was_leading), self._settings.stop_seconds)
        except TimeoutError:
            _LOG.warning("the API server hangs: the lease was not given up")
        for each in (self._rounds, self._figures, self._election_client, self._client):
            each.close()

    def _give_up(self, *, was_leading: bool) -> None:
        """The switch goes off before the lease is given up: whoever leads next turns it on again."""
        try:
            if was_leading:
                self._parting_switch.off("Stopped")
        except KubeError as error:
            _LOG.warning("the gate switch was left on: %s", error)
        self._election.release()


async def _leave_behind(doing: list[asyncio.Task[None]], *, after_seconds: float) -> None:
    _, hanging = await asyncio.wait(doing, timeout=after_seconds)
    for task in hanging:
        _LOG.warning("%s hangs and is left behind", task.get_coro().__name__)  # type: ignore[union-attr]
        task.cancel()


def _end(server: WSGIServer, thread: threading.Thread) -> None:
    server.shutdown()
    server.server_close()
    thread.join(timeout=5)
