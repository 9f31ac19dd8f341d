"""The running operator: keeps the cluster's state, elects a leader, reconciles when something changed or is due."""

from __future__ import annotations

import asyncio
import logging
import platform
import time
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version

from prometheus_client import CollectorRegistry, ProcessCollector

from ballast.controller import logs
from ballast.controller.actuator import Actuator
from ballast.controller.cluster_state import ClusterState
from ballast.controller.failures import FailureReports
from ballast.controller.framework import Framework, Hooks
from ballast.controller.gate_timeout import Fallback, GateTimeout, Overdue
from ballast.controller.loop import CALM_SECONDS, Agenda, Loop, LoopThread, in_background, pause, tell
from ballast.controller.metrics_reader import MetricsReader
from ballast.controller.movers import Movers
from ballast.controller.other_releases import OtherReleases
from ballast.controller.pages import health_server, metrics_server
from ballast.controller.reconciler import Parts, Reconciler
from ballast.controller.released import Released
from ballast.controller.reporter import Reporter
from ballast.controller.successor import another_is_ready
from ballast.controller.switch import UNINSTALLED, Switch
from ballast.controller.telemetry import Pulse, Telemetry
from ballast.errors import BallastError
from ballast.kube.client import Client
from ballast.kube.clock import ServerClock
from ballast.kube.connection import Connection
from ballast.kube.document import JSON
from ballast.kube.errors import KubeError
from ballast.kube.events import EventRecorder
from ballast.kube.kinds import Kind
from ballast.kube.lease import ELECTION_LIMITS, Election, LeaseSettings
from ballast.tenancy.lane import Lane, Rank

_LOG = logging.getLogger(__name__)
_GATES_EVERY_SECONDS = 1.0
_COMPARE_EVERY_SECONDS = 10.0
"""How often our own kinds are listed while no policy is known: definitions that were deleted may be applied again, and
kopf may miss the new objects.
"""
_LEADER_TURNS, _STANDBY_TURNS = 12, 60
"""At every so many of these times they are listed also while policies are known, to see whether kopf still hears of
every change. Of a standby, only its fallback places depend on them.
"""
_FALLBACK_SECONDS = 1.0
"""For the cluster's state when executors are overdue; then they are released as they are."""
_NOTICED_SECONDS = 0.5
"""Until API servers have most likely seen that the switch is off. The next leader waits as long for the lease."""
_LAST_WRITES_SECONDS = 1.0
"""For Events and statuses that wait when the operator stops."""
_LATE_SECONDS = 5.0
"""An event that a list has shown to be missing may still come within this time."""


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
    lease_seconds: float = 15.0
    """client-go's usual duration. A shorter one makes fail-over faster, and costs more requests."""
    stop_seconds: float = 7.0
    """How long to wait for what is under way, then for the last releases, and half as long for giving the lease up:
    together less than a pod's grace.
    """


class Operator:
    """One replica. Build it, `await run(stop)`; every resource is closed when that returns."""

    def __init__(self, connection: Connection, settings: Settings) -> None:
        self._connection, self._settings = connection, settings
        self._telemetry = Telemetry(CollectorRegistry())
        ProcessCollector(registry=self._telemetry.registry)
        self._telemetry.build.info({"version": version("ballast-operator"), "python": platform.python_version()})
        self._client = Client(connection, observer=self._telemetry.count_request)
        self._lane = Lane()
        self._agenda = Agenda()
        self._pulse = Pulse(time.monotonic)
        self._lease = LeaseSettings.of_duration(
            settings.lease_seconds, namespace=settings.namespace, name=settings.name, identity=settings.identity
        )
        self._clock = ServerClock(time.time)
        self._election_client = Client(
            connection, ELECTION_LIMITS, observer=self._telemetry.count_request, clock=self._clock
        )
        self._election = Election(self._election_client, self._lease, clock=self._clock, monotonic=time.monotonic)
        self._stopped = False
        """A reconcile that was left behind must not act any more."""
        named = partial(
            Switch,
            name=settings.name,
            identity=settings.identity,
            clock=self._clock,
            monotonic=time.monotonic,
            pod_created_at=self._pod_created_at,
        )
        self._switch = named(self._client)
        self._others = OtherReleases(self._client, self._switch, name=settings.name, monotonic=time.monotonic)
        self._parting_switch = named(self._election_client)
        """With short timeouts, for turning it off at the end."""
        self._told_of_end = False
        """Whether the log says that the operator's own namespace is being deleted."""
        self._metrics = MetricsReader(self._client, namespace=settings.namespace, clock=self._clock)
        self._failed = FailureReports()
        self._work = LoopThread(self._live)
        self._framework: Framework | None = None
        self._state = ClusterState(
            self._client,
            monotonic=time.monotonic,
            notify=self._notify,
            gated=self._gated,
            failed=self._failed.put,
        )
        self._client.written = self._state.wrote
        self._events = EventRecorder(
            self._client,
            self._lane,
            instance=settings.identity,
            clock=self._clock,
            on_error=lambda error: _LOG.warning("an event was lost: %s", error),
        )
        self._reporter = Reporter(
            self._client,
            self._lane,
            events=self._events,
            clock=self._clock,
            stays_off=lambda: self._switch.stays_off,
            rests=lambda: self._switch.rests,
            try_again=self._try_again,
        )
        self._released = Released()
        self._reconciler = self._build_reconciler()
        places = Fallback(partial(self._state.look, patience_seconds=_FALLBACK_SECONDS), clock=self._clock)
        self._gates = GateTimeout(
            self._client,
            self._lane,
            gated=self._state.gated,
            places=places,
            clock=self._clock,
            rest=self._switch.rest,
            labels_of=self._state.labels_of,
        )

    def _pod_created_at(self) -> float | None:
        return self._state.created_at(self._settings.namespace, self._settings.identity)

    def _build_reconciler(self) -> Reconciler:
        parts = Parts(
            observer=self._state,
            metrics=self._metrics,
            movers=Movers(
                self._client,
                self._lane,
                events=self._events,
                telemetry=self._telemetry,
                clock=self._clock,
                reread=self._state.reread,
            ),
            actuator=Actuator(
                self._client, self._lane, events=self._events, telemetry=self._telemetry, clock=self._clock
            ),
            reporter=self._reporter,
            switch=self._switch,
            telemetry=self._telemetry,
            released=self._released,
        )
        return Reconciler(
            parts,
            clock=self._clock,
            monotonic=time.monotonic,
            leading=lambda: self._election.leading and not self._stopped,
            reported=self._failed.take,
            check_alone=self._others.check,
            release_promised=self._agenda.release_due,
        )

    async def run(self, stop: asyncio.Event) -> None:
        """Run until `stop` is set. When anything but kopf fails, gated executors are released, and the error raised.

        kopf has this loop. At its end it cancels every task that was made in its loop since it began, so the operator's
        own tasks have their own loop and thread; kopf's startup starts it, and kopf's cleanup waits for its end. It is
        told to end at once: gated executors do not wait until kopf has closed its watches.
        """
        loop = asyncio.get_running_loop()
        ended = asyncio.Event()
        # The loop may end as soon as it has been told of the first.
        self._work.ended.add_done_callback(lambda _: tell(loop, ended.set))
        self._work.ended.add_done_callback(lambda _: tell(loop, stop.set))
        self._framework = Framework(self._connection, Hooks(self._heard, self._start, partial(self._end, ended)), stop)
        relaying = asyncio.create_task(self._relay(stop))
        try:
            await self._framework.run()
            await self._end(ended)
        finally:
            relaying.cancel()
        self._work.ended.result()

    async def _relay(self, stop: asyncio.Event) -> None:
        await stop.wait()
        self._work.stop()

    async def _start(self) -> None:
        self._work.start()

    async def _end(self, ended: asyncio.Event) -> None:
        self._work.stop()
        await ended.wait()

    async def _live(self, stop: asyncio.Event) -> None:
        settings = self._settings
        health = health_server(self._pulse, host=settings.host, port=settings.health_port)
        metrics = metrics_server(self._telemetry.registry, host=settings.host, port=settings.metrics_port)
        try:
            await health.start()
            await metrics.start()
            await self._work_until(stop)
        finally:
            if self._election.leading and self._others.alone:
                # While watches still show which executors are gated.
                await self._release_at_end()
            self._state.stop()
            await self._close()
            await health.stop()
            await metrics.stop()

    async def _work_until(self, stop: asyncio.Event) -> None:
        self._state.start()
        ended = asyncio.Event()
        try:
            async with asyncio.TaskGroup() as tasks:
                electing = tasks.create_task(self._elect(stop, ended))
                doing = [
                    tasks.create_task(each(stop)) for each in (self._run_reconciler, self._watch_gates, self._compare)
                ]
                tasks.create_task(self._wind_up(doing, electing, stop=stop, ended=ended))
        except Exception:
            await self._give_up_gates()
            raise

    def _heard(self, kind: Kind, raw: JSON, deleted: bool) -> None:
        self._state.heard(kind, raw, deleted=deleted)

    def _notify(self) -> None:
        """From any thread."""
        self._work.call(partial(self._agenda.mark, after_seconds=CALM_SECONDS))

    def _try_again(self, after_seconds: float) -> None:
        """From any thread."""
        self._work.call(partial(self._agenda.mark, after_seconds=after_seconds))

    def _gated(self) -> None:
        """Executors at their gates do not wait until the loop has rested from a flood of other changes."""
        self._work.call(partial(self._agenda.promise, after_seconds=CALM_SECONDS))

    async def _elect(self, stop: asyncio.Event, ended: asyncio.Event) -> None:
        """Until `ended`: a leader goes on leading until its last reconcile is over, and then turns the switch off."""
        led = False
        while not ended.is_set() and (led or not stop.is_set()):
            leading = await in_background(self._election.tick)
            failure = self._election.last_error
            if failure is not None:
                _LOG.warning("election: %s", failure)
                if not leading:
                    self._pulse.fail(failure)
            elif not leading:
                self._pulse.beat()
            if leading and not led:
                self._note_leading(leading=True)
                self._state.distrust()
                self._reconciler.forget()
                self._others.forget()
                self._agenda.mark()
            elif led and not leading:
                self._note_leading(leading=False)
                self._lane.forget()
                self._agenda.mark()
            led = leading
            self._telemetry.leading.set(int(leading))
            self._telemetry.clock_behind.set(self._clock.behind_seconds)
            await pause(ended, self._lease.renew_seconds if failure is None else self._lease.retry_seconds)

    def _note_leading(self, *, leading: bool) -> None:
        identity = self._settings.identity
        words = f"{identity} {'leads' if leading else 'leads no longer'}"
        logs.note(logs.Line.LEADER, words, {"identity": identity, "leading": leading})

    async def _run_reconciler(self, stop: asyncio.Event) -> None:
        loop = Loop(
            self._agenda,
            self._pulse,
            leading=lambda: self._election.leading,
            clock=self._clock,
            look_again_seconds=self._lease.retry_seconds,
            promised=lambda: self._reconciler.release_at,
        )
        await loop.run(self._reconciler.run, stop)

    async def _watch_gates(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            try:
                overdue = await in_background(self._release_gated)
            except KubeError as error:
                _LOG.warning("overdue gates were not looked for: %s", error)
            except Exception:  # noqa: BLE001 -- it is logged, and the next second tries again
                _LOG.exception("overdue gates were not released")
            else:
                self._measure(overdue)
                for policy, reasons in overdue.by_policy.items():
                    self._released.add(reasons)
                    self._telemetry.count_unplaced(policy, sorted(set(reasons.values())))
                if overdue:
                    _LOG.warning(
                        "gate timeout: %d executors released with a zone, %d without a place, %d still gated",
                        overdue.placed, overdue.bare, overdue.failed,
                    )  # fmt: skip
            self._telemetry.keep_watches(self._state.ages(), self._state.restarts())
            await pause(stop, _GATES_EVERY_SECONDS)

    def _measure(self, overdue: Overdue) -> None:
        now = self._clock()
        for policy, seconds in overdue.holds:
            self._telemetry.count_hold(policy, seconds, now=now)
        self._telemetry.note_gated(overdue.longest_gated_seconds, now=now)

    def _release_gated(self) -> Overdue:
        """Release what is overdue; all, and gate nothing more, once the operator's own namespace is being deleted.

        Kubernetes takes 5 s until it removes what is in it: this operator with its account, and the CronJob. The policy
        that gates executors is in no namespace, and stays.
        """
        namespace = self._settings.namespace
        if not (self._others.alone and self._state.leaving(namespace)):
            return self._gates.run()
        again = self._told_of_end
        if not again:
            _LOG.warning("namespace %s is being deleted: all executors are released, and no more are gated", namespace)
        self._told_of_end = True
        try:
            self._parting_switch.off(UNINSTALLED)
        except KubeError as error:
            _LOG.warning("the gate switch was left on: %s", error)
        return self._gates.release_all(replace=again)

    async def _compare(self, stop: asyncio.Event) -> None:
        """Start kopf again when it no longer hears of what lists show. A standby looks less often."""
        turn = 0
        while True:
            turn += 1
            await pause(stop, _COMPARE_EVERY_SECONDS)
            if stop.is_set():
                return
            if self._state.restored():
                _LOG.warning(
                    "etcd was restored from a backup: our own kinds are listed again, and kopf is started again"
                )
                self._restart_kopf()
                self._agenda.mark()
                continue
            if self._state.has_policies and turn % (_LEADER_TURNS if self._election.leading else _STANDBY_TURNS):
                continue
            try:
                missed = await in_background(self._state.verify)
            except BallastError as error:
                _LOG.warning("our own kinds were not compared: %s", error)
                continue
            except Exception:  # noqa: BLE001 -- it is logged, and they are compared again later
                _LOG.exception("our own kinds were not compared")
                continue
            if missed:
                self._agenda.mark()
                await pause(stop, _LATE_SECONDS)
                if self._state.unheard(missed):
                    _LOG.warning("kopf missed changes of %d objects, and is started again", len(missed))
                    self._restart_kopf()

    def _restart_kopf(self) -> None:
        if self._framework is not None:
            self._framework.restart()

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

    async def _give_up_gates(self) -> None:
        """Release what is gated when this process fails: no other replica may be there."""
        _LOG.exception("the operator fails; releasing all gated executors")
        try:
            await asyncio.wait_for(
                in_background(partial(self._gates.release_all, replace=False)), self._settings.stop_seconds
            )
        except Exception:  # noqa: BLE001 -- it is logged
            _LOG.exception("gated executors were not released")

    async def _release_at_end(self) -> None:
        """The last replica leaves no executor gated (scaled to zero, a drained node)."""
        self._stopped = True
        try:
            await asyncio.wait_for(in_background(self._end_gating), self._settings.stop_seconds)
        except TimeoutError:
            _LOG.warning("the API server hangs: gated executors are left to the next leader")
        except Exception:  # noqa: BLE001 -- it is logged, and the lease is given up all the same
            _LOG.exception("gated executors are left to the next leader")

    def _end_gating(self) -> None:
        if self._is_succeeded():
            _LOG.info("stopping: another replica is ready, and places the executors that are gated")
            return
        try:
            self._parting_switch.off("Stopped")
        except KubeError as error:
            _LOG.warning("the gate switch was left on: %s", error)
        began = time.monotonic()
        found = self._gates.release_all(replace=False)
        seconds = time.monotonic() - began
        # Other API servers may have gated some before they saw the switch.
        time.sleep(_NOTICED_SECONDS)
        rest = self._gates.release_all(replace=True)
        placed, bare = found.placed + rest.placed, found.bare + rest.bare
        if placed or bare or rest.failed:
            words = "stopping: in %.1f s %d executors released with a zone, %d without a place, %d still gated"
            _LOG.info(words, seconds, placed, bare, rest.failed)

    def _is_succeeded(self) -> bool:
        """Whether another replica is there, as in a rolling update, and not about to stop as well.

        Scaled to zero, all replicas are deleted within a moment: so this looks twice.
        """
        namespace, identity = self._settings.namespace, self._settings.identity
        if not another_is_ready(self._client, namespace=namespace, identity=identity):
            return False
        time.sleep(_NOTICED_SECONDS)
        return another_is_ready(self._client, namespace=namespace, identity=identity)

    async def _close(self) -> None:
        self._stopped = True
        # The next leader plans without them.
        self._lane.forget([Rank.MOVE, Rank.CREATE])
        try:
            await asyncio.wait_for(in_background(self._election.release), self._settings.stop_seconds / 2)
        except TimeoutError:
            _LOG.warning("the API server hangs: the lease was not given up")
        await in_background(partial(self._lane.drain, _LAST_WRITES_SECONDS))
        for each in (self._reconciler, self._metrics, self._election_client, self._client):
            each.close()


async def _leave_behind(doing: list[asyncio.Task[None]], *, after_seconds: float) -> None:
    _, hanging = await asyncio.wait(doing, timeout=after_seconds)
    for task in hanging:
        _LOG.warning("%s hangs and is left behind", task.get_coro().__name__)  # type: ignore[union-attr]
        task.cancel()
