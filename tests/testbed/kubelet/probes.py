"""Startup, readiness and liveness probes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import aiohttp

Json = dict[str, Any]
Execute = Callable[[list[str], float], Awaitable[tuple[int, str]]]


@dataclass(frozen=True, slots=True)
class Timing:
    initial_delay_seconds: float = 0
    period_seconds: float = 10
    timeout_seconds: float = 1
    success_threshold: int = 1
    failure_threshold: int = 3

    @classmethod
    def of(cls, probe: Json) -> Timing:
        return cls(
            initial_delay_seconds=probe.get("initialDelaySeconds", 0),
            period_seconds=probe.get("periodSeconds", 10),
            timeout_seconds=probe.get("timeoutSeconds", 1),
            success_threshold=probe.get("successThreshold", 1),
            failure_threshold=probe.get("failureThreshold", 3),
        )


@dataclass(frozen=True, slots=True)
class Tally:
    """Outcomes of one probe so far. `verdict`: what they add up to; None while they don't yet."""

    timing: Timing
    successes: int = 0
    failures: int = 0
    verdict: bool | None = None

    def after(self, *, passed: bool) -> Tally:
        successes = self.successes + 1 if passed else 0
        failures = 0 if passed else self.failures + 1
        verdict = self.verdict
        if successes >= self.timing.success_threshold:
            verdict = True
        elif failures >= self.timing.failure_threshold:
            verdict = False
        return Tally(self.timing, successes, failures, verdict)


@dataclass(frozen=True, slots=True)
class Target:
    """What probes of one container act on."""

    address: str
    ports: dict[str, int]
    """The container's named ports."""
    execute: Execute
    session: aiohttp.ClientSession

    def port(self, value: str | int) -> int:
        return self.ports[value] if isinstance(value, str) and value in self.ports else int(value)


async def http(action: Json, target: Target, timeout_seconds: float) -> tuple[bool, str]:
    scheme, path = action.get("scheme", "HTTP").lower(), action.get("path", "/")
    host = action.get("host") or target.address
    url = f"{scheme}://{host}:{target.port(action['port'])}{path if path.startswith('/') else '/' + path}"
    headers = {entry["name"]: entry["value"] for entry in action.get("httpHeaders", [])}
    timeout = aiohttp.ClientTimeout(total=timeout_seconds)
    # A probe asks whether the container answers, not who it is: as the real kubelet's, it takes any certificate.
    async with target.session.get(url, headers=headers, timeout=timeout, ssl=False) as response:
        return 200 <= response.status < 400, f"{url}: status {response.status}"


async def tcp(action: Json, target: Target, timeout_seconds: float) -> tuple[bool, str]:
    host = action.get("host") or target.address
    async with asyncio.timeout(timeout_seconds):
        _, writer = await asyncio.open_connection(host, target.port(action["port"]))
    writer.close()
    return True, ""


async def check(probe: Json, target: Target) -> tuple[bool, str]:
    """Probe once: whether it passed, and what there is to say about it."""
    timeout_seconds = Timing.of(probe).timeout_seconds
    try:
        if "httpGet" in probe:
            return await http(probe["httpGet"], target, timeout_seconds)
        if "tcpSocket" in probe:
            return await tcp(probe["tcpSocket"], target, timeout_seconds)
        if "exec" in probe:
            code, output = await target.execute(probe["exec"]["command"], timeout_seconds)
            return code == 0, f"exit code {code}: {output[:200]}"
    except (aiohttp.ClientError, OSError, TimeoutError, KeyError, ValueError) as error:
        return False, f"{type(error).__name__}: {error}"
    return False, f"none of {sorted(probe)} is supported here"


async def repeat(probe: Json, target: Target, told: Callable[[bool, str], None], *, until: bool = False) -> None:
    """Probe for ever and tell each change of the verdict; with `until`, stop at the first verdict."""
    timing = Timing.of(probe)
    tally = Tally(timing)
    await asyncio.sleep(timing.initial_delay_seconds)
    while True:
        passed, message = await check(probe, target)
        before, tally = tally.verdict, tally.after(passed=passed)
        if tally.verdict is not None and tally.verdict != before:
            told(tally.verdict, message)
            if until:
                return
        await asyncio.sleep(timing.period_seconds)
