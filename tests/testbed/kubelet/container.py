"""The life of one container: runs, restarts with back-off, probes and the way it is stopped."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import time
from collections.abc import Awaitable
from dataclasses import replace
from typing import Any, Protocol

from tests.testbed.kubelet import execution, probes
from tests.testbed.kubelet.attempts import Attempt, Main, Result, existing
from tests.testbed.kubelet.environment import ConfigError
from tests.testbed.kubelet.habitat import Habitat
from tests.testbed.kubelet.status import ContainerStatus, Running, Terminated, Waiting

Json = dict[str, Any]
MAX_BACKOFF_SECONDS = 300.0
BACKOFF_RESET_SECONDS = 600.0
MIN_KILL_SECONDS = 2.0
CONFIG_RETRY_SECONDS = 1.0

log = logging.getLogger(__name__)


class Owner(Protocol):
    """The pod that a container belongs to, as the container needs it."""

    restart_policy: str
    first_backoff_seconds: float

    def event(self, reason: str, message: str, *, warning: bool = False) -> None: ...

    def changed(self) -> None:
        """The container's status is another."""
        ...


class Container:
    """One container of one pod. `status` is always current; `run` returns when it will not start again."""

    def __init__(self, spec: Json, owner: Owner, habitat: Habitat, *, is_init: bool) -> None:
        self.spec = spec
        self.name: str = spec["name"]
        self._pod = owner
        self._habitat = habitat
        self._folder = habitat.containers_folder(self.name)
        self._stopping = asyncio.Event()
        self._attempt: Attempt | None = None
        self._backoff_seconds = 0.0
        self._ending: asyncio.Task[None] | None = None
        self.started = asyncio.Event()
        """Set once the container has started (its startup probe included), or never will."""
        self.is_sidecar = is_init and spec.get("restartPolicy") == "Always"
        self.status = ContainerStatus(
            name=self.name,
            image=spec["image"],
            state=Waiting("PodInitializing" if not is_init else "ContainerCreating"),
            is_init=is_init,
            is_sidecar=self.is_sidecar,
        )

    @property
    def attempt(self) -> Attempt | None:
        """The current run, or the last one."""
        return self._attempt

    @property
    def _policy(self) -> str:
        if self.is_sidecar:
            return "Always"
        # A failed init container of an Always pod is tried again, a successful one is done.
        return "OnFailure" if self.status.is_init and self._pod.restart_policy == "Always" else self._pod.restart_policy

    def _set(self, **changes: Any) -> None:
        before, self.status = self.status, replace(self.status, **changes)
        if self.status.started:
            self.started.set()
        if self.status != before:
            self._pod.changed()

    async def run(self) -> None:
        """Start, watch and restart by policy until done or stopped. Finds runs from before a kubelet restart."""
        found = existing(self._folder)
        number = found[-1].number if found else 0
        attempt = found[-1] if found else None
        while not self._stopping.is_set():
            if attempt is None:
                attempt = await self._start(number)
            if attempt is None:
                return
            self._attempt = attempt
            result = await self._watch(attempt)
            if not self._again(result):
                return
            await self._back_off(result)
            self._habitat.discard(self.name, number)
            number, attempt = number + 1, None

    async def _start(self, number: int) -> Attempt | None:
        """Start a run; None when the container was stopped before it could be."""
        while not self._stopping.is_set():
            try:
                spec = await self._habitat.describe(self.spec, number)
            except ConfigError as error:
                self._set(state=Waiting("CreateContainerConfigError", str(error)))
                self._pod.event("Failed", str(error), warning=True)
                await self._pause(CONFIG_RETRY_SECONDS)
                continue
            attempt = Attempt(self._folder / str(number))
            await attempt.start(spec)
            return attempt
        return None

    async def _watch(self, attempt: Attempt) -> Result:
        """From a run's start to its end, probes included."""
        main = attempt.main
        identifier = self._habitat.identifier(self.name, attempt.number)
        probing = None
        if main is not None:
            self._running(main, identifier, attempt.number)
            probing = asyncio.create_task(self._probe(attempt))
        try:
            result = await attempt.wait()
        finally:
            if probing is not None:
                probing.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await probing
        self._set(
            state=self._terminated(result, identifier, attempt.number),
            ready=self.status.is_init and not self.is_sidecar and result.exit_code == 0,
            started=False,
        )
        return result

    def _running(self, main: Main, identifier: str, number: int) -> None:
        started = "startupProbe" not in self.spec
        self._set(
            state=Running(main.started),
            container_id=identifier,
            restarts=number,
            started=started,
            ready=started and "readinessProbe" not in self.spec,
        )
        self._pod.event("Started", f"Started container {self.name}")

    def _terminated(self, result: Result, identifier: str, number: int) -> Terminated:
        if result.setup_error:
            reason, code = "StartError", result.exit_code
        elif result.signal == signal.SIGKILL and self._habitat.oom_killed(self.name, number):
            reason, code = "OOMKilled", result.exit_code
        else:
            reason, code = ("Error", result.exit_code) if result.exit_code else ("Completed", 0)
        return Terminated(
            exit_code=code,
            reason=reason,
            signal=result.signal,
            started=result.started,
            finished=result.finished,
            message=result.setup_error,
            container_id=identifier,
        )

    def _again(self, result: Result) -> bool:
        if self._stopping.is_set():
            return False
        return self._policy == "Always" or (self._policy == "OnFailure" and result.exit_code != 0)

    async def _back_off(self, result: Result) -> None:
        """The first restart comes at once, each later one after twice the time of the one before."""
        if result.finished - result.started > BACKOFF_RESET_SECONDS:
            self._backoff_seconds = 0.0
        last = self.status.state
        if self._backoff_seconds:
            message = f"back-off {self._backoff_seconds:g}s restarting failed container {self.name}"
            self._set(last=last, state=Waiting("CrashLoopBackOff", message))
            self._pod.event("BackOff", message, warning=True)
            await self._pause(self._backoff_seconds)
            if self._stopping.is_set():
                self._set(last=None, state=last)
        else:
            self._set(last=last)
        self._backoff_seconds = min(
            max(self._pod.first_backoff_seconds, 2 * self._backoff_seconds), MAX_BACKOFF_SECONDS
        )

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), seconds)

    async def _probe(self, attempt: Attempt) -> None:
        async def execute(argv: list[str], timeout_seconds: float) -> tuple[int, str]:
            return await execution.capture(attempt, argv, timeout_seconds)

        target = self._habitat.target(self.spec, execute)
        if "startupProbe" in self.spec:
            await probes.repeat(self.spec["startupProbe"], target, self._startup, until=True)
        async with asyncio.TaskGroup() as group:
            if "readinessProbe" in self.spec:
                group.create_task(probes.repeat(self.spec["readinessProbe"], target, self._ready))
            if "livenessProbe" in self.spec:
                group.create_task(probes.repeat(self.spec["livenessProbe"], target, self._alive))

    def _startup(self, passed: bool, message: str) -> None:
        if passed:
            self._set(started=True, ready="readinessProbe" not in self.spec)
        else:
            self._unhealthy("Startup", message)

    def _ready(self, passed: bool, message: str) -> None:
        self._set(ready=passed)
        if not passed:
            self._pod.event("Unhealthy", f"Readiness probe failed: {message}", warning=True)

    def _alive(self, passed: bool, message: str) -> None:
        if not passed:
            self._unhealthy("Liveness", message)

    def _unhealthy(self, kind: str, message: str) -> None:
        self._pod.event("Unhealthy", f"{kind} probe failed: {message}", warning=True)
        self._pod.event("Killing", f"Container {self.name} failed {kind.lower()} probe, will be restarted")
        probe = self.spec.get(f"{kind.lower()}Probe", {})
        grace = probe.get("terminationGracePeriodSeconds", 30)
        self._ending = asyncio.create_task(self._terminate(grace))

    async def stop(self, grace_seconds: float) -> None:
        """Stop for good: preStop, SIGTERM, and SIGKILL when the grace period is over."""
        self._stopping.set()
        self.started.set()
        await self._terminate(grace_seconds)

    async def _terminate(self, grace_seconds: float) -> None:
        attempt = self._attempt
        if attempt is None or not isinstance(self.status.state, Running):
            return
        deadline = time.monotonic() + grace_seconds
        ended = asyncio.create_task(attempt.wait())
        try:
            await self._pre_stop(attempt, ended, deadline)
            attempt.signal(signal.SIGTERM)
            patience = max(deadline - time.monotonic(), min(MIN_KILL_SECONDS, grace_seconds))
            await asyncio.wait({ended}, timeout=patience)
            if not ended.done():
                attempt.signal(signal.SIGKILL)
                await ended
        finally:
            ended.cancel()

    async def _pre_stop(self, attempt: Attempt, ended: asyncio.Task[Result], deadline: float) -> None:
        hook = self.spec.get("lifecycle", {}).get("preStop")
        if not hook:
            return
        running = asyncio.create_task(self._hook(hook, attempt, deadline - time.monotonic()))
        await asyncio.wait({running, ended}, timeout=deadline - time.monotonic(), return_when=asyncio.FIRST_COMPLETED)
        if not running.done():
            running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running

    async def _hook(self, hook: Json, attempt: Attempt, timeout_seconds: float) -> None:
        async def execute(argv: list[str], limit_seconds: float) -> tuple[int, str]:
            return await execution.capture(attempt, argv, limit_seconds)

        if "sleep" in hook:
            await asyncio.sleep(hook["sleep"]["seconds"])
            return
        action: Awaitable[tuple[bool, str]] = probes.check(
            {**hook, "timeoutSeconds": max(timeout_seconds, 0.1)}, self._habitat.target(self.spec, execute)
        )
        passed, message = await action
        if not passed:
            self._pod.event("FailedPreStopHook", message, warning=True)
